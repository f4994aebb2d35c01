"""The target ``cupy``: one CUDA kernel per group of fused operations, and CuPy calls between them.

`stages` finds the groups, `execute.lower.ufuncs` lowers a group to NumPy's universal functions,
`spelling` has the CUDA expression of each, `writer` writes the kernel, and `target` launches it.
"""

from difflab.execute.targets.cuda.target import CupyTarget

__all__ = ["CupyTarget"]
