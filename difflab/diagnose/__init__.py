"""Diagnosis of values and gradients, and points at which a function is regular.

`explanation` finds the operation that produced a nan and the inputs with a zero gradient; `domain`
reports where a function is undefined; `points` and `point_check` choose and validate points.
"""

from difflab.diagnose.explanation import Explanation, explain
from difflab.diagnose.node_origins import node_cotangents

__all__ = ["Explanation", "explain", "node_cotangents"]
