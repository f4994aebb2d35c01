"""Diagnosis of values and gradients, and points at which a function is regular.

`explanation` finds the operation that produced a nan and the inputs with a zero gradient; `points`
chooses points, and `point_check` validates them and reports where a function is undefined.
"""

from difflab.diagnose.explanation import Explanation, explain
from difflab.diagnose.node_origins import node_cotangents

__all__ = ["Explanation", "explain", "node_cotangents"]
