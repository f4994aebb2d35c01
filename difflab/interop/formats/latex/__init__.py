"""LaTeX as papers print it, translated to difflab's language."""

from difflab.interop.formats.latex.program import from_latex, program_of_latex

__all__ = ["from_latex", "program_of_latex"]
