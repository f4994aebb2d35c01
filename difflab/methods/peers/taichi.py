"""Taichi on the processor: kernels whose source is transformed to their adjoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from textwrap import indent
from typing import Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.methods.peers.kernel_peer import (
    KernelPeer,
    Pullback,
    source_function,
    writing_module,
)
from difflab.methods.peers.peer import Array
from difflab.methods.peers.spelling import RenamedModule
from difflab.methods.peers.written_values import WrittenValue, written_text

_HEAD = """\
def kernel(x: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in range(x.shape[0]):
"""


class Taichi(KernelPeer):
    """Taichi's kernels in float64, and their ``grad``."""

    name = "taichi"
    title = "Taichi"
    prefix = "ti"
    constants = "ti.math"
    summary = "Taichi: kernels compiled for the processor, reverse mode by kernel.grad, in float64"
    codes: Mapping[str, str] = {
        "abs(x)": "ti.abs(x)",
        "sqrt(x^2)": "ti.sqrt(x**2.0)",
        "relu(x)": "~ ti.max(x, 0.0)",
        "clip(x, 0, 1)": "ti.math.clamp(x, 0.0, 1.0)",
        "hypot(x, y)": "~ ti.sqrt(x*x + y*y)",
        "norm([x, y])": "ti.Vector([x, y]).norm()",
        "sqrt(x)": "ti.sqrt(x)",
        "atan2(x, y)": "ti.atan2(x, y)",
        "where(x > 0, sqrt(x), 0)": "ti.select(x > 0.0, ti.sqrt(x), 0.0)",
        "where(x == 0, 1, sin(x)/x)": "ti.select(x == 0.0, 1.0, ti.sin(x)/x)",
        "max(x, y)": "ti.max(x, y)",
        "min(x, y)": "ti.min(x, y)",
        "max([x, y])": "ti.Vector([x, y]).max()",
        "sign(x)": "ti.math.sign(x)",
        "floor(x)": "ti.floor(x)",
        "round(x)": "ti.round(x)",
        "mod(x, y)": "ti.math.mod(x, y)",
        "x^y": "x**y",
        "x^1.0": "x**1.0",
        "x^2.0": "x**2.0",
        "tanh(x)": "ti.tanh(x)",
        "det([[x, 1], [1, 1]])": "ti.Matrix([[x, 1.0], [1.0, 1.0]]).determinant()",
        "det([[x, 1], [1, x]])": "ti.Matrix([[x, 1.0], [1.0, x]]).determinant()",
        "det([[x, 0], [0, x]])": "ti.Matrix([[x, 0.0], [0.0, x]]).determinant()",
    }

    def start(self) -> None:
        """Import the package and start its runtime, once; it takes a second."""
        super().start()
        if self.missing() is None and "taichi" not in self.__dict__:
            import taichi as ti

            ti.init(arch=ti.cpu, default_fp=ti.f64, offline_cache=False, log_level=ti.ERROR)
            self.__dict__["taichi"] = ti

    def launched(self, source: str, n: int, m: int) -> Pullback:
        """Return the kernel, and its adjoint."""
        import taichi as ti

        kernel = ti.kernel(source_function(_HEAD + indent(source, " " * 8), {"ti": ti}))

        def run(points: Array, cotangents: Array | None) -> tuple[Array, Array]:
            x = ti.ndarray(ti.f64, points.shape, needs_grad=True)
            y = ti.ndarray(ti.f64, (len(points), m), needs_grad=True)
            x.from_numpy(points)
            kernel(x, y)
            if cotangents is None:
                return y.to_numpy(), np.empty(0)
            y.grad.from_numpy(cotangents)
            try:
                kernel.grad(x, y)
            except RuntimeError as error:
                raise UnsupportedError(f"Taichi has no derivative of it: {error}") from error
            return y.to_numpy(), x.grad.to_numpy()

        return run

    @cached_property
    def module(self) -> RenamedModule:
        """Taichi's functions that write their calls."""
        import taichi as ti

        names: dict[str, Any] = {
            "arccos": "acos",
            "arcsin": "asin",
            "arctan2": "atan2",
            "arctan": lambda x: WrittenValue(f"ti.atan2({x.text}, 1.0)", ""),
            "clip": lambda x, *bounds: WrittenValue(
                f"ti.math.clamp({x.text}, {', '.join(map(written_text, bounds))})", ""
            ),
            "cosh": lambda x: WrittenValue(f"((ti.exp({x.text}) + ti.exp(-{x.text})) / 2.0)", ""),
            "exp2": lambda x: 2.0**x,
            "heaviside": lambda x, half: WrittenValue(
                f"ti.select({x.text} > 0.0, 1.0, ti.select({x.text} < 0.0, 0.0, {half}))", ""
            ),
            "hypot": lambda a, b: WrittenValue(f"ti.sqrt({(a * a + b * b).text})", ""),
            "log10": lambda x: WrittenValue(f"ti.log({x.text}) / 2.302585092994046", "", level=6),
            "log2": lambda x: WrittenValue(f"ti.log({x.text}) / 0.6931471805599453", "", level=6),
            "maximum": "max",
            "minimum": "min",
            "mod": lambda a, b: WrittenValue(f"ti.math.mod({a.text}, {b.text})", ""),
            "sign": lambda x: WrittenValue(f"ti.math.sign({x.text})", ""),
            "sinh": lambda x: WrittenValue(f"((ti.exp({x.text}) - ti.exp(-{x.text})) / 2.0)", ""),
            "where": "select",
            "Max": "max",
            "Min": "min",
        }
        names["special"] = writing_module(self, ti.math, {})
        return writing_module(self, ti, names)

    @cached_property
    def rows(self) -> Mapping[str, Callable[..., Any]]:
        """Taichi's functions of other names."""
        return {"relu": lambda x: self.module.maximum(x, 0.0)}


TAICHI = Taichi()
