"""From a graph to a program: schedules, kernels as NumPy's operations, buffers."""
