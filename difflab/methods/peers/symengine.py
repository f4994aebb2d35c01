"""SymEngine: symbolic derivatives, compiled by LLVM where it was built with it.

SymEngine has SymPy's interface, so the primitives' definitions for SymPy apply to it too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.counts import check_tree_size
from difflab.graph.function import Function
from difflab.graph.interpreters import SympyInterpreter
from difflab.graph.ir import Number
from difflab.methods.expressions import expressions
from difflab.methods.peers.peer import Array, CallAdapter, Peer, PeerCall
from difflab.methods.peers.spelling import RenamedModule
from difflab.methods.protocol import Family


class Symengine(Peer):
    """SymEngine's ``diff`` and ``Lambdify`` with common subexpressions shared."""

    name = "symengine"
    extra = "peers"
    title = "SymEngine"
    summary = "SymEngine: diff, common subexpressions shared, compiled by LLVM"
    family = Family.SYMBOLIC
    kinks_derived = False
    """Whether the package has derivatives of its own Abs, Max, Min and sign."""

    def estimated_seconds(self, function: Function, order: int) -> float:
        """Return the seconds of differentiation, which traverses the expression for each input."""
        return 4e-7 * len(function.graph) * float(function.n) ** order

    def derivative(self, function: Function, order: int) -> PeerCall:
        """Return the Jacobian or Hessian, element by element, as compiled code."""
        return self._differentiated(*self._expressions(function), order)

    def names(self) -> Mapping[str, Any]:
        """Return SymEngine."""
        import symengine

        return {"symengine": symengine}

    def expressed(self, code: Callable[..., Any], n: int, order: int) -> PeerCall:
        """Return value, gradient or Hessian of `code` on symbols."""
        import symengine

        symbols = [symengine.Symbol(f"input{k}") for k in range(n)]
        return self._differentiated(symbols, [symengine.sympify(code(*symbols))], order)

    def _expressions(self, function: Function) -> tuple[list[Any], list[Any]]:
        return _expressions(function, own=self.kinks_derived)

    def _differentiated(self, symbols: list[Any], outputs: list[Any], order: int) -> PeerCall:
        entries = outputs
        for _ in range(order):
            entries = [row.diff(symbol) for row in entries for symbol in symbols]
        call = self.compiled(symbols, entries)
        return lambda x: call(np.array(x))  # SymEngine rejects read-only arrays

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient as one compiled function, which accepts batches."""
        call = self.compiled(*self.value_and_gradient(function))
        shape = (1 + function.n,) if points is None else (points, 1 + function.n)

        def unpack(result: Any) -> tuple[Array, Array]:
            result = result.reshape(shape)
            return result[..., 0], result[..., 1:]

        return CallAdapter(call, lambda x: [np.ascontiguousarray(x)], unpack)

    def value_and_gradient(self, function: Function) -> tuple[list[Any], list[Any]]:
        """Return the symbols, and the value followed by the partial derivatives."""
        symbols, (output,) = self._expressions(function)
        return symbols, [output, *(output.diff(symbol) for symbol in symbols)]

    def compiled(self, symbols: list[Any], expressions: list[Any]) -> PeerCall:
        """Return code that maps ``(n,)`` to the values of the expressions."""
        import symengine

        check_differentiated(self.title, expressions)
        have_llvm = getattr(symengine, "have_llvm", True)
        for backend in ("llvm", "lambda") if have_llvm else ("lambda",):
            try:
                call: PeerCall = symengine.Lambdify(symbols, expressions, backend=backend, cse=True)
                return call
            except (RuntimeError, ValueError) as error:
                reason = error  # LLVM's backend does not support a function
        raise UnsupportedError(f"{self.title} generates no code for it: {reason}")


def check_differentiated(title: str, expressions: list[Any]) -> None:
    """Raise if an expression contains a derivative for which there is no rule."""
    for expression in expressions:
        if "Derivative" in type(expression).__name__:
            raise UnsupportedError(f"{title} has no derivative of {expression.args[0]}")


def _expressions(function: Function, *, own: bool) -> tuple[list[Any], list[Any]]:
    """Return a symbol per flattened input and an expression per flattened output."""
    import symengine

    check_tree_size(function, "SymEngine")
    # SymEngine's `cse` names temporaries x0, x1, …, even if such symbols exist already.
    symbols, outputs = expressions(
        function, lambda number: symengine.Symbol(f"input{number}"), SymengineInterpreter(own)
    )
    return symbols, [symengine.sympify(output) for output in outputs]


class SymengineInterpreter(SympyInterpreter):
    """Interpreter whose values are SymEngine expressions, built with SymPy's names."""

    title = "SymEngine"

    def __init__(self, own: bool) -> None:
        super().__init__()
        import symengine
        from symengine.lib import symengine_wrapper

        names = {} if own else _names(symengine)
        self.sympy = RenamedModule("SymEngine", symengine, names)
        self.conditions = (bool, symengine_wrapper.Boolean)

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        scalar, truths = super()._scalar(primitive), primitive.truths
        if not truths:
            return scalar

        def judged(*args: Any) -> Any:
            return scalar(*(self._truth(a) if k in truths else a for k, a in enumerate(args)))

        return judged

    def _truth(self, value: Any) -> Any:
        """Return a number as the condition that it is not zero."""
        return value if isinstance(value, self.conditions) else self.sympy.Ne(value, 0)

    def constant(self, value: Number, name: str | None) -> Any:
        """Return an exact integer, ``pi``, ``E``, or the float64."""
        if name is None and isinstance(value, float):
            return self.sympy.RealDouble(value)
        return super().constant(value, name)


def _names(symengine: Any) -> dict[str, Any]:
    """Return piecewise forms of functions that SymEngine, whose symbols are complex, rejects."""
    piecewise = symengine.Piecewise
    return {
        "Abs": lambda x: piecewise((x, x > 0), (-x, True)),
        "Max": lambda a, b: piecewise((a, symengine.Gt(a, b)), (b, True)),
        "Min": lambda a, b: piecewise((a, symengine.Lt(a, b)), (b, True)),
        "sign": lambda x: piecewise((1, x > 0), (-1, x < 0), (0, True)),
    }


SYMENGINE = Symengine()
