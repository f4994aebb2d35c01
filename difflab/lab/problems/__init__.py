"""The library of problems (`library`, one text file each) and families of functions by size."""

from difflab.lab.problems.families import (
    FAMILIES,
    FunctionFamily,
    crossover,
    helmholtz,
    logistic,
    nested_sine,
    product,
    rosenbrock,
)
from difflab.lab.problems.file import Problem, Reference
from difflab.lab.problems.library import SETS, ProblemSet, problem, problem_sets, problems

__all__ = [
    "FAMILIES",
    "SETS",
    "FunctionFamily",
    "Problem",
    "ProblemSet",
    "Reference",
    "crossover",
    "helmholtz",
    "logistic",
    "nested_sine",
    "problem",
    "problem_sets",
    "problems",
    "product",
    "rosenbrock",
]
