"""The target ``cupy``: one CUDA kernel per group of operations that fuse, and CuPy between them.

`execute.ufuncs` turns a group into NumPy's universal functions, `spelling` says each of them in
CUDA's language, `writer` puts them into a kernel, `stages` finds the groups, and `target` calls.
"""

from difflab.execute.targets.cuda.target import CupyTarget

__all__ = ["CupyTarget"]
