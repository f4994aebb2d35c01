"""The language: text to graph (`parse`) and graph to text, LaTeX, Python and C (`printers`)."""

from difflab.language.parser import parse
from difflab.language.scope import given_names

__all__ = ["given_names", "parse"]
