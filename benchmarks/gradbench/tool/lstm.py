"""lstm: the loss of a small recurrent network that predicts a text's next character.

A loop over the characters; its gradient is a second loop, from the last character to the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import difflab as dl
from benchmarks.gradbench.tool.repeats import FunctionsByName, Prepared, compiled
from benchmarks.objectives.lstm import loss
from benchmarks.objectives.maths import difflab_maths

__all__ = ["FUNCTIONS"]


def _scanned(step: Callable[..., Any], carry: Any, *sequences: Any) -> Any:
    return dl.scan(lambda kept, now: (step(kept, *now), None), carry, sequences)[0]


_LOSS = partial(loss, replace(difflab_maths(), loop=_scanned))


def _arguments(question: Any) -> list[Any]:
    names = ("main_params", "extra_params", "state", "sequence")
    gates, ends, state, sequence = (np.array(question[name], dtype=float) for name in names)
    b = sequence.shape[1]
    return [gates.reshape(-1, 2, 4, b), ends, state.reshape(-1, 2, b), sequence]


def _objective(question: Any) -> Prepared:
    return compiled(_LOSS, *_arguments(question), output=float)


def _jacobian(question: Any) -> Prepared:
    def flat(gradient: Any) -> Any:
        return np.concatenate([part.ravel() for part in gradient]).tolist()

    return compiled(dl.grad(_LOSS, (0, 1)), *_arguments(question), output=flat)


FUNCTIONS: FunctionsByName = {"objective": _objective, "jacobian": _jacobian}
