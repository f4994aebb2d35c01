"""CasADi: scalar expression graphs (SX) and its virtual machine.

Arrays become arrays of scalar expressions, with which CasADi is fastest on small dense functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from difflab.graph.function import Function
from difflab.methods.expressions import expressions
from difflab.methods.peers.peer import Array, CallAdapter, Peer, PeerCall
from difflab.methods.peers.scalar_peer import ScalarInterpreter, scalar_module
from difflab.methods.peers.spelling import RenamedModule
from difflab.methods.timer import LoopCall


class Casadi(Peer):
    """CasADi's expression graphs, evaluated through a buffer."""

    name = "casadi"
    extra = "peers"
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
    # The buffer holds addresses: the memory must live as long as the call.
    vars(run)["kept"] = buffer, compiled, point, results
    trigger: Callable[[], None] = run
    return trigger


def _expressions(function: Function) -> tuple[Any, Any]:
    """Return a column of symbols, and a column of the outputs as expressions."""
    import casadi

    x = casadi.SX.sym("x", function.n)
    _, outputs = expressions(function, lambda number: x[number], _interpreter(casadi))
    return x, casadi.vertcat(*outputs)


def expressions_of(function: Function, element: Callable[[int], Any]) -> list[Any]:
    """Return the outputs as expressions of the packed inputs, ``element(k)``."""
    import casadi

    _, outputs = expressions(function, element, _interpreter(casadi))
    return list(outputs)


def _interpreter(casadi: Any) -> ScalarInterpreter:
    # The primitives' own definitions expect scalar sums from NumPy, but SX is a matrix to NumPy.
    reductions = {
        "logsumexp": lambda row: casadi.logsumexp(casadi.vertcat(*row)),
        "norm": lambda row: casadi.norm_2(casadi.vertcat(*row)),
    }
    xp = scalar_module("CasADi", casadi, _names(casadi))
    return ScalarInterpreter("CasADi", xp, casadi.SX, reductions=reductions)


def _names(casadi: Any) -> dict[str, Any]:
    """Return CasADi's functions for names of NumPy, and of SymPy for whole arrays."""
    return {
        "abs": casadi.fabs,
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
        "Max": casadi.fmax,
        "Min": casadi.fmin,
    }


CASADI = Casadi()
