"""SymForce: symbolic derivatives, as generated Python code with common subexpressions shared.

SymForce brings a SymEngine of its own, which is installed instead of the package
``symengine``: one environment cannot have both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.symengine import Symengine, check_differentiated


class Symforce(Symengine):
    """SymForce's generated functions, in Python and without Numba."""

    name = "symforce"
    extra = "symforce"
    title = "SymForce"
    modules = ("symforce.symbolic", "symforce.codegen")
    summary = "SymForce: diff, common subexpressions shared, generated Python code"
    vectorised = False
    kinks_derived = True

    def names(self) -> Mapping[str, Any]:
        """Return SymForce's symbolic functions."""
        import symforce.symbolic as sf

        return {"sf": sf}

    def estimated_seconds(self, function: Function, order: int) -> float:
        """Return the seconds of differentiation, and of generating code for every element."""
        return 1e-5 * len(function.graph) * float(function.n) ** order

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient as one generated function, called point by point."""
        call = self.compiled(*self.value_and_gradient(function))

        def both(x: Array) -> Any:
            value, *slopes = call(x)
            return value, slopes

        return self.one_by_one(function, points, both)

    def compiled(self, symbols: list[Any], expressions: list[Any]) -> PeerCall:
        """Return the generated function of the expressions, of a point ``(n,)``."""
        from symforce import codegen
        from symforce.codegen.codegen_config import ZeroEpsilonBehavior
        from symforce.values import Values

        check_differentiated(self.title, expressions)
        generator = codegen.Codegen(
            inputs=Values(**{str(symbol): symbol for symbol in symbols}),
            outputs=Values(**{f"output{k}": value for k, value in enumerate(expressions)}),
            # The formula is differentiated as it is, not moved away from its singularities.
            config=codegen.PythonConfig(
                use_numba=False, zero_epsilon_behavior=ZeroEpsilonBehavior.ALLOW
            ),
        )
        try:
            run = generator.lambdify()
        except codegen.codegen.CodeGenerationException as error:
            raise UnsupportedError(f"SymForce generates no code for it: {error}") from error
        return lambda x: np.atleast_1d(np.array(run(*x.tolist()), dtype=float))


SYMFORCE = Symforce()
