"""What computes a program: Python's floats, NumPy, LLVM, CUDA."""
