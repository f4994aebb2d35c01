"""The target ``native``: machine code through LLVM, for vectors of points and for one point.

`execute.lower.ufuncs` lowers a program to NumPy's universal functions, `spelling` has the LLVM IR
of each, `operations` and `writer` write the module, `libraries` finds the mathematical functions,
`engine` compiles and loads, `store` caches compiled code between runs, and `target` calls it.
`arrays` does the same for one point of a function of arrays, as loop nests, and for each point of
a batch.
"""
