"""The target ``exact``: ball arithmetic, with every result correctly rounded."""

from difflab.execute.targets.exact.target import ExactTarget

__all__ = ["ExactTarget"]
