"""NVIDIA Warp on the processor: kernels of Python's syntax, and a tape of their launches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from textwrap import indent
from typing import Any

import numpy as np

from difflab.methods.peers.kernel_peer import (
    KernelPeer,
    Pullback,
    source_function,
    writing_module,
)
from difflab.methods.peers.peer import Array
from difflab.methods.peers.spelling import RenamedModule
from difflab.methods.peers.written_values import WrittenValue

_HEAD = """\
def kernel(x: wp.array2d(dtype=wp.float64), y: wp.array2d(dtype=wp.float64)):
    i = wp.tid()
"""
_NUMBER = re.compile(r"\[i, \d+\]|[A-Za-z_][\w.]*|(\d[\d.]*(?:e[-+]?\d+)?)")
"""A literal, which is float32 in Warp; before it, what contains digits and is none."""


class Warp(KernelPeer):
    """Warp's kernels in float64, and `wp.Tape`."""

    name = "warp"
    title = "Warp"
    packages = ("warp-lang",)
    prefix = "wp"
    summary = "Warp: kernels compiled for the processor, reverse mode by wp.Tape, in float64"
    codes: Mapping[str, str] = {
        "abs(x)": "wp.abs(x)",
        "sqrt(x^2)": "wp.sqrt(x**2.0)",
        "relu(x)": "~ wp.max(x, 0.0)",
        "clip(x, 0, 1)": "wp.clamp(x, 0.0, 1.0)",
        "hypot(x, y)": "~ wp.sqrt(x*x + y*y)",
        "norm([x, y])": "wp.length(wp.vec2d(x, y))",
        "sqrt(x)": "wp.sqrt(x)",
        "cbrt(x)": "wp.cbrt(x)",
        "atan2(x, y)": "wp.atan2(x, y)",
        "where(x > 0, sqrt(x), 0)": "wp.where(x > 0.0, wp.sqrt(x), 0.0)",
        "where(x == 0, 1, sin(x)/x)": "wp.where(x == 0.0, 1.0, wp.sin(x)/x)",
        "max(x, y)": "wp.max(x, y)",
        "min(x, y)": "wp.min(x, y)",
        "max([x, y])": "wp.max(wp.vec2d(x, y))",
        "sign(x)": "wp.sign(x)",
        "heaviside(x)": "~ 1.0 - wp.step(x)",
        "floor(x)": "wp.floor(x)",
        "round(x)": "wp.rint(x)",
        "mod(x, y)": "wp.mod(x, y)",
        "x^y": "x**y",
        "x^1.0": "x**1.0",
        "x^2.0": "x**2.0",
        "tanh(x)": "wp.tanh(x)",
        "erf(x)": "wp.erf(x)",
        "erfinv(x)": "wp.erfinv(x)",
        "det([[x, 1], [1, 1]])": "wp.determinant(wp.mat22d(x, 1.0, 1.0, 1.0))",
        "det([[x, 1], [1, x]])": "wp.determinant(wp.mat22d(x, 1.0, 1.0, x))",
        "det([[x, 0], [0, x]])": "wp.determinant(wp.mat22d(x, 0.0, 0.0, x))",
    }

    def start(self) -> None:
        """Import the package and compile a kernel; the first one takes some seconds."""
        super().start()
        if self.missing() is None:
            self.launched("y[i, 0] = x[i, 0]", 1, 1)(np.ones((1, 1)), np.ones((1, 1)))

    def launched(self, source: str, n: int, m: int) -> Pullback:
        """Return the launch of a kernel on a tape, and the tape's backward sweep."""
        import warp as wp

        wp.config.quiet = True  # else it prints each compilation
        literal = lambda match: f"wp.float64({match[1]})" if match[1] else match[0]  # noqa: E731
        text = _HEAD + indent(_NUMBER.sub(literal, source), "    ")
        function = source_function(text, {"wp": wp})
        # A module of its own: Warp compiles all kernels of a module anew for each that is added.
        kernel = wp.kernel(function, module="unique")

        def run(points: Array, cotangents: Array | None) -> tuple[Array, Array]:
            options = {"dtype": wp.float64, "device": "cpu"}
            x = wp.array(points, requires_grad=True, **options)
            y = wp.empty((len(points), m), requires_grad=True, **options)
            with wp.Tape() as tape:
                wp.launch(kernel, len(points), inputs=[x], outputs=[y], device="cpu")
            if cotangents is None:
                return y.numpy(), np.empty(0)
            tape.backward(grads={y: wp.array(cotangents, **options)})
            return y.numpy(), x.grad.numpy()

        return run

    @cached_property
    def module(self) -> RenamedModule:
        """Warp's functions that write their calls."""
        import warp as wp

        names: dict[str, Any] = {
            "arccos": "acos",
            "arcsin": "asin",
            "arctan": "atan",
            "arctan2": "atan2",
            "clip": "clamp",
            "exp2": lambda x: 2.0**x,
            "heaviside": _heaviside,
            "hypot": lambda a, b: _named("sqrt", a * a + b * b),
            "maximum": "max",
            "minimum": "min",
            "mod": lambda a, b: a - b * _named("floor", a / b),
            "Max": "max",
            "Min": "min",
        }
        names["special"] = writing_module(self, wp, {})
        return writing_module(self, wp, names)

    @property
    def reductions(self) -> Mapping[str, Callable[[Sequence[Any]], Any]]:
        """Warp's functions of vectors."""
        names = {"max": "max", "min": "min", "norm": "length"}
        return {name: _of_vector(function) for name, function in names.items()}

    @cached_property
    def rows(self) -> Mapping[str, Callable[..., Any]]:
        """Warp's functions of other names."""
        return {"erfinv": self.module.special.erfinv, "relu": lambda x: self.module.maximum(x, 0.0)}


def _of_vector(function: str) -> Callable[[Sequence[WrittenValue]], WrittenValue]:
    """Return a function of a vector, as one of its elements."""

    def write(row: Sequence[WrittenValue]) -> WrittenValue:
        elements = ", ".join(value.text for value in row)
        return WrittenValue(f"wp.{function}(wp.vector({elements}))", "")

    return write


def _named(function: str, value: WrittenValue) -> WrittenValue:
    return WrittenValue(f"wp.{function}({value.text})", "")


def _heaviside(x: WrittenValue, half: float = 0.5) -> WrittenValue:
    """The step function, as 1 less Warp's, which is 1 for negative x and 0 otherwise."""
    return WrittenValue(f"wp.where({x.text} == 0.0, {half}, 1.0 - wp.step({x.text}))", "")


WARP = Warp()
