"""Graph to text, to LaTeX and to code in programming languages.

All of them print from the templates of the primitives, in time linear in the size of the graph: a
subexpression with several uses gets its own line if repeating it would lengthen the result.
"""

from difflab.language.printers.c import c, cuda
from difflab.language.printers.fortran import fortran
from difflab.language.printers.javascript import javascript
from difflab.language.printers.julia import julia
from difflab.language.printers.latex import latex
from difflab.language.printers.matlab import matlab
from difflab.language.printers.python import python
from difflab.language.printers.r import r
from difflab.language.printers.rust import rust
from difflab.language.printers.stan import stan
from difflab.language.printers.text import text

__all__ = [
    "c",
    "cuda",
    "fortran",
    "javascript",
    "julia",
    "latex",
    "matlab",
    "python",
    "r",
    "rust",
    "stan",
    "text",
]
