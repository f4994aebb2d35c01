"""The target ``native``: machine code through LLVM, for vectors of points and for one point.

`execute.lower.record` lowers a program to NumPy's universal functions, `functions` has the LLVM IR
of each, `writer` writes the module, `libraries` finds the mathematical functions, `engine`
compiles, loads and caches compiled code between runs, and `target` calls it.
`arrays` does the same for one point of a function of arrays, as loop nests, and for each point of
a batch.
"""
