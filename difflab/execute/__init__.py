"""Graph to callable: one schedule, and a file or a folder for every target that spells it."""

from difflab.execute.compiled import TARGETS, Compiled, check_target, compile

__all__ = ["TARGETS", "Compiled", "check_target", "compile"]
