"""The library of problems (`library`, one text file each) and families of functions by size."""

from difflab.lab.problems.file import Problem, Reference
from difflab.lab.problems.library import (
    FAMILIES,
    SETS,
    FunctionFamily,
    ProblemSet,
    crossover,
    helmholtz,
    logistic,
    nested_sine,
    problem,
    problem_sets,
    problems,
    product,
    rosenbrock,
)

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
