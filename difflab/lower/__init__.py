"""What code that is written or printed is made of: loop nests, and kernels as basic rows."""
