"""Programs that solve, differentiated: roots, optima, linear systems, integrals, ODEs.

Callbacks take their arguments in SciPy's order, ``f(x, *params)``, and results have SciPy's names.
The derivative is that of the solution, ``derivative="implicit"``, or that of the steps,
``derivative="unrolled"``.
"""

from difflab.solve.calls import OptimizeResult
from difflab.solve.equations import fixed_point, linear, root
from difflab.solve.integrals import quad
from difflab.solve.ivp_calls import OdeResult, ivp
from difflab.solve.optima import Bounds, minimize

__all__ = [
    "Bounds",
    "OdeResult",
    "OptimizeResult",
    "fixed_point",
    "ivp",
    "linear",
    "minimize",
    "quad",
    "root",
]
