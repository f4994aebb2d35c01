"""heyoka: expressions, differentiated to any order at once and compiled by LLVM.

It has no absolute value, sign, maximum or floor; the first three are written as selections.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np

from difflab.graph.function import Function
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.scalar_peer import ScalarInterpreter, ScalarPeer, scalar_module
from difflab.methods.peers.spelling import RenamedModule

LARGE = 500
"""Expressions beyond which heyoka's compact mode is used: LLVM's time grows with a square."""


class Heyoka(ScalarPeer):
    """heyoka's ``diff_tensors`` in a ``cfunc``, which accepts batches."""

    name = "heyoka"
    title = "heyoka"
    summary = "heyoka: diff_tensors of expressions, compiled by LLVM"
    codes: Mapping[str, str] = {
        "abs(x)": "~ hy.select(hy.lt(x, 0.0), -x, x)",
        "sqrt(x^2)": "hy.sqrt(x**2.0)",
        "relu(x)": "hy.relu(x)",
        "clip(x, 0, 1)": "~ hy.select(hy.lt(x, 0.0), 0.0, hy.select(hy.gt(x, 1.0), 1.0, x))",
        "hypot(x, y)": "~ hy.sqrt(x**2.0 + y**2.0)",
        "sqrt(x)": "hy.sqrt(x)",
        "atan2(x, y)": "hy.atan2(x, y)",
        "where(x > 0, sqrt(x), 0)": "hy.select(hy.gt(x, 0.0), hy.sqrt(x), 0.0)",
        "where(x == 0, 1, sin(x)/x)": "hy.select(hy.eq(x, 0.0), 1.0, hy.sin(x)/x)",
        "max(x, y)": "~ hy.select(hy.gt(x, y), x, y)",
        "min(x, y)": "~ hy.select(hy.lt(x, y), x, y)",
        "x^y": "x**y",
        "x^1.0": "x**1.0",
        "x^2.0": "x**2.0",
        "sigmoid(x)": "hy.sigmoid(x)",
        "log(sigmoid(x))": "~ hy.log(hy.sigmoid(x))",
        "tanh(x)": "hy.tanh(x)",
        "erf(x)": "hy.erf(x)",
    }

    def names(self) -> Mapping[str, Any]:
        """Return heyoka."""
        import heyoka

        return {"hy": heyoka}

    def symbols(self, n: int) -> list[Any]:
        """Return variables."""
        import heyoka

        return [heyoka.expression(f"x{k}") for k in range(n)]

    def compiled(self, symbols: list[Any], outputs: list[Any], order: int) -> PeerCall:
        """Return the entries of the tensor of derivatives as one compiled function."""
        import heyoka

        entries = [_lifted(output) for output in outputs]
        if order:
            tensors = heyoka.diff_tensors(entries, diff_args=symbols, diff_order=order)
            entries = np.ravel(tensors.jacobian if order == 1 else tensors.hessian(0)).tolist()
        call: PeerCall = self._function(entries, symbols)
        return call

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient as one compiled function; heyoka's batches are columns.

        It writes into the same memory each time, as CasADi's buffer does.
        """
        import heyoka

        symbols, (output,) = self.expressions(function)
        output = _lifted(output)
        slopes = heyoka.diff_tensors([output], diff_args=symbols, diff_order=1).jacobian
        run = self._function([output, *np.ravel(slopes).tolist()], symbols)
        kept = np.empty((1 + function.n,) if points is None else (1 + function.n, points))

        def result(columns: Array) -> tuple[Array, Array]:
            return columns[0].copy(), columns[1:].T.copy()

        call, form = partial(run, outputs=kept), "cfunc(…, outputs=…)"
        return CallAdapter(call, lambda x: [np.ascontiguousarray(x.T)], result, form)

    def _function(self, entries: list[Any], symbols: list[Any]) -> Any:
        import heyoka

        large = sum(len(entry) for entry in entries) > LARGE
        return heyoka.cfunc(entries, vars=symbols, compact_mode=large)

    @cached_property
    def interpreter(self) -> ScalarInterpreter:
        """Heyoka's operations."""
        import heyoka as hy

        select = hy.select
        names = {
            "abs": lambda x: select(hy.lt(x, 0.0), -x, x),
            "clip": lambda x, low, high: _minimum(_maximum(x, low), high),
            "equal": hy.eq,
            "exp2": lambda x: hy.exp(x * math.log(2.0)),
            "greater": hy.gt,
            "greater_equal": hy.gte,
            "heaviside": lambda x, half: select(
                hy.gt(x, 0.0), 1.0, select(hy.lt(x, 0.0), 0.0, half)
            ),
            "hypot": lambda a, b: hy.sqrt(a * a + b * b),
            "less": hy.lt,
            "less_equal": hy.lte,
            "log10": lambda x: hy.log(x) / math.log(10.0),
            "log2": lambda x: hy.log(x) / math.log(2.0),
            "logical_and": lambda a, b: hy.logical_and([a, b]),
            "logical_not": lambda a: hy.eq(a, 0.0),
            "logical_or": lambda a, b: hy.logical_or([a, b]),
            "maximum": _maximum,
            "minimum": _minimum,
            "not_equal": hy.neq,
            "sign": lambda x: select(hy.gt(x, 0.0), 1.0, select(hy.lt(x, 0.0), -1.0, 0.0)),
            "special": RenamedModule("heyoka", hy, {"expit": hy.sigmoid}),
            "where": lambda condition, a, b: select(condition, _lifted(a), _lifted(b)),
            "Max": _maximum,
            "Min": _minimum,
        }
        rows = {"relu": hy.relu, "sigmoid": hy.sigmoid}
        sums = {"sum": lambda row: hy.sum(list(row)), "prod": lambda row: hy.prod(list(row))}
        xp = scalar_module("heyoka", hy, names)
        return ScalarInterpreter("heyoka", xp, hy.expression, rows, sums)


def _maximum(a: Any, b: Any) -> Any:
    import heyoka

    return heyoka.select(heyoka.gt(a, b), a, b)


def _minimum(a: Any, b: Any) -> Any:
    import heyoka

    return heyoka.select(heyoka.lt(a, b), a, b)


def _lifted(value: Any) -> Any:
    """Return an expression; heyoka's functions of two arguments need one that is none already."""
    import heyoka

    return value if isinstance(value, heyoka.expression) else heyoka.expression(float(value))


HEYOKA = Heyoka()
