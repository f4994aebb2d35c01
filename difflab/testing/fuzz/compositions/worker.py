"""The process of a package: it computes compositions, and its end ends no campaign."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from difflab.core.worker import Handlers, ReportProgress
    from difflab.testing.fuzz.compositions.framework import Framework


FRAMEWORKS = ("jax", "torch", "tensorflow", "autograd", "pytensor", "tinygrad")
"""The packages, by the names of their peers."""


def framework(name: str) -> Framework:
    """Return a package's transforms; the package itself is not imported."""
    found: Framework = import_module(f"{__package__}.{name}").FRAMEWORK
    return found


def handlers(report: ReportProgress, name: str) -> Handlers:
    """Import a package, and return the handlers of its process."""
    from difflab.language import parse

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    package = framework(name)
    package.peer.ready()
    if name == "torch":
        import torch

        torch.set_num_threads(1)

    def answer(text: str, names: Sequence[str], x: Sequence[float], dtype: str) -> list[float]:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = package.computed(parse(text), names, np.array(x), dtype)
        flat: list[float] = found.reshape(-1).tolist()
        return flat

    return {"answer": answer}
