"""gmm: the log posterior of a mixture of Gaussians with a Wishart prior, and its gradient."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import difflab as dl
from benchmarks.gradbench.tool.repeats import FunctionsByName, Prepared, compiled
from benchmarks.objectives.gmm import log_posterior
from benchmarks.objectives.maths import difflab_maths

__all__ = ["FUNCTIONS"]

PARAMETERS = ("alpha", "mu", "q", "l")


def _prepared(transform: Any, question: Any, output: Any) -> Prepared:
    k, d = question["k"], question["d"]
    shapes = {"alpha": (k,), "mu": (k, d), "q": (k, d), "l": (k, d * (d - 1) // 2)}
    parameters = [np.reshape(question[name], shape) for name, shape in shapes.items()]
    f = partial(log_posterior, difflab_maths(), (question["gamma"], question["m"]))
    return compiled(transform(f), *parameters, np.array(question["x"]), output=output)


def _objective(question: Any) -> Prepared:
    return _prepared(lambda f: f, question, float)


def _jacobian(question: Any) -> Prepared:
    def named(gradient: Any) -> dict[str, Any]:
        return {name: part.tolist() for name, part in zip(PARAMETERS, gradient, strict=True)}

    return _prepared(lambda f: dl.grad(f, (0, 1, 2, 3)), question, named)


FUNCTIONS: FunctionsByName = {"objective": _objective, "jacobian": _jacobian}
