"""SymbAnaFis: symbolic derivatives in Rust, compiled to code of a stack machine.

Expressions are built by its own operators and methods. Its parser is not used: it reads a function
that it does not know as a product of names, and gives the derivative of that. It has no
comparisons, so that functions with branches are refused, but for those that `abs` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.graph.counts import check_tree_size
from difflab.graph.function import Function
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.scalar_peer import ScalarInterpreter, ScalarPeer, scalar_module
from difflab.methods.peers.spelling import RenamedModule, known_order
from difflab.methods.protocol import Family


class SymbAnafis(ScalarPeer):
    """SymbAnaFis's ``diff`` and ``CompiledEvaluator``, one for each element."""

    name = "symb-anafis"
    title = "SymbAnaFis"
    package = "symb_anafis"
    packages = ("symb-anafis",)
    summary = "SymbAnaFis: symbolic diff in Rust, one compiled evaluator per element"
    family = Family.SYMBOLIC
    codes: Mapping[str, str] = {
        "abs(x)": "x.abs()",
        "sqrt(x^2)": "(x**2).sqrt()",
        "relu(x)": "~ (x + x.abs())/2",
        "hypot(x, y)": "~ (x**2 + y**2).sqrt()",
        "sqrt(x)": "x.sqrt()",
        "cbrt(x)": "x.cbrt()",
        "atan2(x, y)": "x.atan2(y)",
        "max(x, y)": "~ (x + y + (x - y).abs())/2",
        "min(x, y)": "~ (x + y - (x - y).abs())/2",
        "sign(x)": "x.signum()",
        "floor(x)": "x.floor()",
        "round(x)": "x.round()",
        "x^y": "x**y",
        "x^1.0": "x**1.0",
        "x^2.0": "x**2.0",
        "tanh(x)": "x.tanh()",
        "sinc(x)": "x.sinc()",
        "digamma(x)": "x.digamma()",
        "erf(x)": "x.erf()",
        "besselj(0, x)": "x.besselj(0)",
        "besseli(1, x)": "x.besseli(1)",
    }

    def estimated_seconds(self, function: Function, order: int) -> float:
        """Return the seconds of differentiation, which traverses the expression for each input."""
        return 1e-6 * len(function.graph) * float(function.n) ** order

    def names(self) -> Mapping[str, Any]:
        """Return the package; most of its functions are methods of expressions."""
        import symb_anafis

        return {"sa": symb_anafis}

    def symbols(self, n: int) -> list[Any]:
        """Return symbols."""
        import symb_anafis

        return [symb_anafis.symb(name).to_expr() for name in _names(n)]

    def expressions(self, function: Function) -> tuple[list[Any], list[Any]]:
        """Return the expressions, unless they are too large without shared parts."""
        check_tree_size(function, self.title)
        return super().expressions(function)

    def compiled(self, symbols: list[Any], outputs: list[Any], order: int) -> PeerCall:
        """Return the entries of the derivative, each evaluated by itself."""
        names = _names(len(symbols))
        entries = [_lifted(output) for output in outputs]
        for _ in range(order):
            entries = [entry.diff(name) for entry in entries for name in names]
        evaluators = [_evaluator(entry, names) for entry in entries]
        return lambda x: np.array([evaluator.evaluate(np.array(x)) for evaluator in evaluators])

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient as one evaluator each, which accept batches of columns."""
        _, (output,) = self.expressions(function)
        names, output = _names(function.n), _lifted(output)
        entries = [output, *(output.diff(name) for name in names)]
        evaluators = [_evaluator(entry, names) for entry in entries]
        batch = () if points is None else (points,)

        def one(point: Array) -> Any:
            return [evaluator.evaluate(point) for evaluator in evaluators]

        def many(*columns: Array) -> Any:
            return [evaluator.eval_batch(list(columns)) for evaluator in evaluators]

        def arguments(x: Array) -> Any:
            return [np.array(x)] if points is None else list(np.ascontiguousarray(x.T))

        def result(arrays: Any) -> tuple[Array, Array]:
            value, *slopes = (np.asarray(part, dtype=float).reshape(batch) for part in arrays)
            return value, np.stack(slopes, axis=-1)

        return CallAdapter(one if points is None else many, arguments, result)

    @cached_property
    def interpreter(self) -> ScalarInterpreter:
        """The operators and the methods of expressions."""
        from symb_anafis import Expr

        def lacking(name: str) -> Callable[..., Any]:
            def refuse(*_: Any) -> Any:
                raise UnsupportedError(f"{self.title} has no function '{name}'")

            return refuse

        compared = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
        special = RenamedModule(
            self.title, Expr, {"ellipe": Expr.elliptic_e, "ellipk": Expr.elliptic_k}
        )
        names = {
            **{name: lacking(name) for name in (*compared, "where", "heaviside", "isfinite")},
            "exp2": lambda x: _lifted(2) ** x,
            "hypot": lambda a, b: (a * a + b * b).sqrt(),
            "log": Expr.ln,
            "maximum": lambda a, b: (a + b + (_lifted(a) - b).abs()) / 2,
            "minimum": lambda a, b: (a + b - (_lifted(a) - b).abs()) / 2,
            "rint": lacking("round to even"),
            "sign": Expr.signum,
            "special": special,
            "Max": lambda a, b: (a + b + (_lifted(a) - b).abs()) / 2,
            "Min": lambda a, b: (a + b - (_lifted(a) - b).abs()) / 2,
        }
        rows: dict[str, Callable[..., Any]] = {
            "cbrt": Expr.cbrt,
            "digamma": Expr.digamma,
            "gamma": Expr.gamma,
            "lambertw": Expr.lambertw,
            "sigmoid": lambda x: 1 / (1 + (-x).exp()),
            "besseli": lambda order, x: x.besseli(_whole(order)),
            "besselj": lambda order, x: x.besselj(_whole(order)),
            "besselk": lambda order, x: x.besselk(_whole(order)),
            "bessely": lambda order, x: x.bessely(_whole(order)),
            "polygamma": lambda order, x: x.polygamma(_whole(order)),
        }
        xp = scalar_module(self.title, Expr, names)
        return ScalarInterpreter(self.title, xp, _lifted, rows)


def _names(n: int) -> list[str]:
    return [f"input{k}" for k in range(n)]


def _whole(order: Any) -> int:
    """Return the order of a Bessel function; SymbAnaFis has integer orders only."""
    try:
        number = known_order(order)
    except (TypeError, ValueError):
        number = None
    if number is None or number != int(number):
        raise UnsupportedError("SymbAnaFis has Bessel functions of whole orders only")
    return int(number)


def _lifted(value: Any) -> Any:
    """Return an expression; a whole number is written as one, which keeps powers exact."""
    from symb_anafis import Expr

    return value if isinstance(value, Expr) else Expr(float(value))


def _evaluator(entry: Any, names: list[str]) -> Any:
    from symb_anafis import CompiledEvaluator

    return CompiledEvaluator(entry, names)


SYMB_ANAFIS = SymbAnafis()
