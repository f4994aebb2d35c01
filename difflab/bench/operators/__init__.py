"""The bench of differential operators: Laplacians in every way, and beside JAX and PyTorch."""
