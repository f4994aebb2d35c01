"""The compilation targets: Python floats, NumPy, LLVM and CUDA."""
