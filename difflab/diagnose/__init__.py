"""What went wrong in a value or a gradient, and at which points a function is regular.

`explanation` names the operation that made a nan and the inputs no gradient arrives at; `domain`
says where a function is undefined; `points` and `point_check` choose and check points.
"""

from difflab.diagnose.explanation import Explanation, explain
from difflab.diagnose.node_origins import node_cotangents

__all__ = ["Explanation", "explain", "node_cotangents"]
