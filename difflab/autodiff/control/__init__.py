"""Loops and branches as nodes of a graph: `scan`, `fori_loop`, `while_loop` and `cond`.

Each is a row that holds functions. The derivative of such a row is a row of the derivatives of
its functions, so that the size of a graph does not depend on the number of steps, and rows can
be differentiated to any order. On arrays and tensors, loops run in Python.
"""

# Each kind registers its rules, which rows of graphs from files and other processes need.
from difflab.autodiff.control import branches, checkpoints, loops, solutions, while_loops

__all__ = ["branches", "checkpoints", "loops", "solutions", "while_loops"]
