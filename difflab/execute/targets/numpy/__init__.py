"""The target ``numpy``: batches in blocks, and one point of a function of arrays."""
