"""Graph to callable: one schedule, and a file for every target that spells it.

May import `autodiff` and what lies below it.
"""

from difflab.execute.compiled import Compiled, compile

__all__ = ["Compiled", "compile"]
