"""Checkpoint policies on one network: memory against time, beside JAX's and PyTorch's."""
