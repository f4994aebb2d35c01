"""Graph to text, LaTeX, Python and C.

All four print from the rows' templates, in time linear in the graph: a subexpression that is
used more than once gets a line of its own where writing it out would grow the result.
"""

from difflab.language.printers.c import c
from difflab.language.printers.latex import latex
from difflab.language.printers.python import python
from difflab.language.printers.text import text

__all__ = ["c", "latex", "python", "text"]
