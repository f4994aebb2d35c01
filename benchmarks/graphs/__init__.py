"""Python code as graphs, beside JAX and PyTorch: calls of `jit`, scans, forward mode, memory."""
