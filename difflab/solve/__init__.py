"""Programs that solve, differentiated: initial value problems of ordinary differential equations.

Callbacks take their arguments in SciPy's order, and results have SciPy's names.
"""

from difflab.solve.ivp import OdeResult, ivp

__all__ = ["OdeResult", "ivp"]
