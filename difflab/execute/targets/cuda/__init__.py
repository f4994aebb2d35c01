"""The target ``cupy``: one CUDA kernel per group of fused operations, and CuPy calls between them.

`stages` finds the groups, `execute.lower.record` lowers a group to NumPy's universal functions,
`writer` has the CUDA expression of each and writes the kernel, and `target` launches it.
"""

from difflab.execute.targets.cuda.target import CupyTarget

__all__ = ["CupyTarget"]
