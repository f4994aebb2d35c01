"""Solvers as graphs, and the derivatives of what they solve for (the implicit function theorem)."""
