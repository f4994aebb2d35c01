"""Lowering of a graph to a program: schedules, kernels as NumPy operations, buffers."""
