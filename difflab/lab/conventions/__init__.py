"""Values and derivatives at kinks, edges and special points, in every package's own functions."""
