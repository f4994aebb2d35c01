"""CasADi: scalar expression graphs (SX) and its virtual machine.

Arrays become arrays of scalar expressions, with which CasADi is fastest on small dense functions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.interpreters import ElementInterpreter
from difflab.graph.ir import Number
from difflab.methods.expressions import boxed, expressions
from difflab.methods.peers.peer import Array, CallAdapter, Peer, PeerCall
from difflab.methods.peers.spelling import REAL, RenamedModule
from difflab.methods.timer import LoopCall

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["CASADI"]


class Casadi(Peer):
    """CasADi's expression graphs, evaluated through a buffer."""

    name = "casadi"
    title = "CasADi"
    summary = "CasADi: scalar graphs (SX), reverse mode, run by its virtual machine"

    def estimated_seconds(self, function: Function, order: int) -> float:
        """Return the seconds of building the expressions and differentiating them."""
        return 2e-5 * order * len(function.graph)

    def derivative(self, function: Function, order: int) -> PeerCall:
        """Return the Jacobian or Hessian as a CasADi Function, called through a buffer."""
        return self._compiled(*_expressions(function), order)

    def names(self) -> Mapping[str, Any]:
        """Return CasADi."""
        import casadi

        return {"casadi": casadi}

    def expressed(self, code: Callable[..., Any], n: int, order: int) -> PeerCall:
        """Return value, gradient or Hessian of `code` on scalar expressions."""
        import casadi

        x = casadi.SX.sym("x", n)
        return self._compiled(x, code(*[x[k] for k in range(n)]), order)

    def _compiled(self, x: Any, outputs: Any, order: int) -> PeerCall:
        import casadi

        matrix = outputs
        if order == 2:
            matrix, _ = casadi.hessian(outputs, x)
        elif order == 1:
            matrix = casadi.jacobian(outputs, x)
        # CasADi stores matrices by columns, without structural zeros.
        compiled = casadi.Function("derivative", [x], [casadi.densify(matrix.T)])
        point, results = np.zeros(x.numel()), np.zeros(matrix.shape)
        run = _bound(compiled, point, [results])

        def call(at: Array) -> Array:
            point[:] = at
            run()
            return results.copy()

        def loop(at: Array) -> LoopCall:
            point[:] = at
            return LoopCall(_BUFFER, run)

        call.__dict__["loop"] = loop
        return call

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient as one CasADi Function, mapped over a batch.

        Its buffer reads the point in place and overwrites the last result: unlike the adapters of
        most other peers, a call splits no arguments and allocates no arrays.
        """
        import casadi

        x, outputs = _expressions(function)
        slope = casadi.densify(casadi.gradient(outputs, x))
        both = casadi.Function("both", [x], [casadi.densify(outputs), slope])
        compiled = both if points is None else both.map(points)
        batch = () if points is None else (points,)
        point = np.zeros((*batch, function.n))
        values, slopes = np.zeros(batch), np.zeros((*batch, function.n))
        run = _bound(compiled, point, [values, slopes])

        def arguments(at: Array) -> list[Any]:
            point[:] = at
            return []

        return CallAdapter(run, arguments, lambda _: (values.copy(), slopes.copy()), _BUFFER)


_BUFFER = "Function.buffer()"


def _bound(compiled: Any, point: Array, results: Sequence[Array]) -> Callable[[], None]:
    """Return the call of a CasADi Function on these arrays, through its buffer."""
    buffer: Any
    buffer, run = compiled.buffer()
    buffer.set_arg(0, point.reshape(-1).data)
    for number, result in enumerate(results):
        buffer.set_res(number, result.reshape(-1).data)
    # The buffer holds addresses: what is behind them must live as long as the call.
    vars(run)["kept"] = buffer, compiled, point, results
    trigger: Callable[[], None] = run
    return trigger


def _expressions(function: Function) -> tuple[Any, Any]:
    """Return a column of symbols, and a column of the outputs as expressions."""
    import casadi

    x = casadi.SX.sym("x", function.n)
    _, outputs = expressions(function, lambda number: x[number], CasadiInterpreter())
    return x, casadi.vertcat(*outputs)


class CasadiInterpreter(ElementInterpreter):
    """Interpreter whose values are NumPy object arrays of scalar expressions."""

    def __init__(self) -> None:
        super().__init__()
        import casadi

        self.xp = RenamedModule("CasADi", casadi, _names(casadi))

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the function on arrays of expressions."""
        compute = super().operation(primitive)
        return lambda *args, **params: boxed(compute(*map(boxed, args), **params))

    def constant(self, value: Number, name: str | None) -> Any:
        """Return the nearest float64 as an expression."""
        import casadi

        return casadi.SX(float(value))

    def _whole(self, primitive: Primitive) -> Callable[..., Any]:
        form = primitive.sympy
        if primitive.name in _REDUCTIONS:
            function = getattr(self.xp, _REDUCTIONS[primitive.name])
            return lambda x, *, axes, rank: _reduced(function, x, axes)
        if primitive.name == "constant_array":
            return lambda **params: primitive.computer(np)(**params).astype(object)
        if not callable(form):
            if primitive.name in ("argmax", "argsort", "is_maximum"):
                raise UnsupportedError(f"CasADi has no function '{primitive.name}'")
            return super()._whole(primitive)
        library = self.xp
        return lambda *args, **params: form(library, *args, **params)

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive.name == "power":  # the kernel corrects errors of NumPy's power only
            return operator.pow
        compute = primitive.computer(self.xp)

        def run(*args: Any) -> Any:
            try:
                return compute(*args)
            except TypeError as error:  # a kernel that computes with arrays of truth values
                raise UnsupportedError(f"CasADi has no function '{primitive.name}'") from error

        return run


def _reduced(function: Callable[[Any], Any], x: Any, axes: tuple[int, ...]) -> Any:
    """Return CasADi's function of a column of the elements along axes."""
    import casadi

    kept = [axis for axis in range(-x.ndim, 0) if axis not in axes]
    shape = tuple(x.shape[axis] for axis in kept)
    rows = np.transpose(x, (*kept, *sorted(axes))).reshape((math.prod(shape), -1))
    found = np.empty(len(rows), dtype=object)
    for number, row in enumerate(rows):
        found[number] = function(casadi.vertcat(*row))
    return found.reshape(shape)


# The primitives' own definitions expect scalar sums from NumPy, but SX is a matrix to NumPy.
_REDUCTIONS = {"logsumexp": "logsumexp", "norm": "norm_2"}


_PLAIN = {
    "add": operator.add,
    "divide": operator.truediv,
    "multiply": operator.mul,
    "negative": operator.neg,
    "subtract": operator.sub,
}
"""Python operators that work for expressions."""


def _names(casadi: Any) -> dict[str, Any]:
    """Return CasADi's functions for names of NumPy, and of SymPy for whole arrays."""
    return {
        **REAL,
        **_PLAIN,
        "abs": casadi.fabs,
        "arccos": casadi.acos,
        "arccosh": casadi.acosh,
        "arcsin": casadi.asin,
        "arcsinh": casadi.asinh,
        "arctan": casadi.atan,
        "arctan2": casadi.atan2,
        "arctanh": casadi.atanh,
        "clip": lambda x, low, high: casadi.fmin(casadi.fmax(x, low), high),
        "equal": casadi.eq,
        "exp2": lambda x: casadi.power(2, x),
        "greater": casadi.gt,
        "greater_equal": casadi.ge,
        "heaviside": lambda x, _: casadi.heaviside(x),
        "less": casadi.lt,
        "less_equal": casadi.le,
        "log2": lambda x: casadi.log(x) / float(np.log(2.0)),
        "logaddexp": lambda a, b: casadi.fmax(a, b) + casadi.log1p(casadi.exp(-casadi.fabs(a - b))),
        "logical_and": casadi.logic_and,
        "logical_not": casadi.logic_not,
        "logical_or": casadi.logic_or,
        "maximum": casadi.fmax,
        "minimum": casadi.fmin,
        "mod": lambda a, b: a - b * casadi.floor(a / b),
        "not_equal": casadi.ne,
        "special": RenamedModule("CasADi", casadi, {}),
        "where": casadi.if_else,
        # Required by the primitives' definitions for whole arrays of expressions.
        "Symbol": casadi.SX.sym,
        "Max": casadi.fmax,
        "Min": casadi.fmin,
    }


CASADI = Casadi()
