"""The language: text to graph (`parse`) and graph to text, LaTeX, Python and C (`printers`).

May import `graph`, `primitives`, `core` and `errors`.
"""

from difflab.language.parser import parse

__all__ = ["parse"]
