"""The target ``native``: machine code through LLVM, for vectors of points and for one point.

`execute.ufuncs` turns a program into NumPy's universal functions, `spelling` says each of them
in LLVM's language, `writer` puts them into functions, `libraries` finds their mathematics,
`engine` compiles and loads, `store` keeps compiled code between runs, and `target` calls it;
`arrays` does the same for one point of a function of arrays, as nests of loops.
"""

from difflab.execute.targets.llvm.arrays import NativeArrays
from difflab.execute.targets.llvm.target import NativeTarget

__all__ = ["NativeArrays", "NativeTarget"]
