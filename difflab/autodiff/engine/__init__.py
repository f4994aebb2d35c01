"""The sweeps, graph to graph: forward, reverse, elimination, and their common parts."""
