"""The language: text to graph (`parse`) and graph to text, LaTeX, Python and C (`printers`)."""

from difflab.language.parser import parse

__all__ = ["parse"]
