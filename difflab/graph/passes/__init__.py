"""Passes: a graph in, a graph out. The pipeline is in `pipeline`, a pass or a family a file."""
