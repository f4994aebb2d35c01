"""Programs that solve: roots, fixed points, optima, linear systems and integrals, differentiated.

Callbacks take their arguments in SciPy's order, ``f(x, *params)``, and results have SciPy's names.
The derivative is that of the solution, ``derivative="implicit"``, or that of the steps,
``derivative="unrolled"``.
"""

from difflab.solve.calls import OptimizeResult
from difflab.solve.equations import root

__all__ = ["OptimizeResult", "root"]
