"""The sweeps, graph to graph: forward, reverse, elimination, and what they share."""
