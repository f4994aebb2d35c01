"""The commands of LaTeX and their translations to difflab's language.

A function's command is found in the column `latex` of its row; the words below are those that no
row prints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from difflab.arrays import trigonometric
from difflab.language.calls import CALLS
from difflab.primitives import TABLE

_GREEK = """
alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho
varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma
Upsilon Phi Psi Omega ell hbar
"""
GREEK = frozenset(_GREEK.split())
"""Commands that are names of variables."""
AMBIGUOUS = {"sigma": "sigmoid", "psi": "digamma", "phi": "", "varphi": "", "f": ""}
"""Letters that before a bracket may be a function or a factor, and the function."""
_BLANKS = r"""
\, \; \: \! \> \quad \qquad \displaystyle \textstyle \limits \nonumber \notag \big \Big \bigl \bigr
\Bigl \Bigr \bigg \Bigg \biggl \biggr \Biggl \Biggr \( \) \[ \] ~ $
"""
BLANKS = frozenset([*_BLANKS.split(), "\\ "])
"""What only changes how a formula looks."""
_FONTS = "mathbf mathit mathsf mathcal boldsymbol bm mathrm text textrm textit mathnormal"
FONTS = frozenset(_FONTS.split())
_ACCENTS = "hat bar tilde vec dot ddot overline widehat widetilde"
ACCENTS = frozenset(_ACCENTS.split())
OPERATORS: Mapping[str, str] = {
    "+": "+",
    "-": "-",
    "−": "-",
    "*": "*",
    "/": "/",
    "\\cdot": "*",
    "\\times": "*",
    "\\ast": "*",
    "·": "*",
    "×": "*",
    "\\div": "/",
}
RELATIONS: Mapping[str, str] = {
    "<": "<",
    ">": ">",
    "\\lt": "<",
    "\\gt": ">",
    "\\le": "<=",
    "\\leq": "<=",
    "\\leqslant": "<=",
    "\\ge": ">=",
    "\\geq": ">=",
    "\\geqslant": ">=",
    "\\ne": "!=",
    "\\neq": "!=",
    "\\wedge": " and ",
    "\\land": " and ",
    "\\vee": " or ",
    "\\lor": " or ",
}
DELIMITERS: Mapping[str, tuple[str, str]] = {
    "(": (")", ""),
    "[": ("]", ""),
    "\\{": ("\\}", ""),
    "\\lbrace": ("\\rbrace", ""),
    "\\lvert": ("\\rvert", "abs"),
    "\\lfloor": ("\\rfloor", "floor"),
    "\\lceil": ("\\rceil", "ceil"),
    "|": ("|", "abs"),
}
"""Opening brackets, the closing one of each, and the function that they are."""
INVERSES: Mapping[str, str] = {
    **{name: f"a{name}" for name in ("sin", "cos", "tan", "sec", "csc", "cot")},
    **{name: f"a{name}" for name in ("sinh", "cosh", "tanh", "sech", "csch", "coth")},
    "erf": "erfinv",
    "erfc": "erfcinv",
}
_SYNONYMS: Mapping[str, str] = {
    "lg": "log10",
    "lb": "log2",
    "sgn": "sign",
    "tg": "tan",
    "ctg": "cot",
    **{f"arc{name}": f"a{name}" for name in ("sec", "csc", "cot")},
    **{f"arc{name}": f"a{name}" for name in ("sinh", "cosh", "tanh", "sech", "csch", "coth")},
    **{f"ar{name}": f"a{name}" for name in ("sech", "csch", "coth")},
}
_COMMAND = re.compile(r"\\(?:operatorname\{\{(\w+)\}\}|([A-Za-z]+))\\left\(")


@cache
def functions() -> Mapping[str, str]:
    r"""Return the functions of difflab's language by the word of their command.

    They are written ``\operatorname{word}``, or upright before a bracket.

    Examples
    --------
    >>> functions()["arcsin"], functions()["Gamma"], functions()["erf"]
    ('asin', 'gamma', 'erf')
    """
    found = {name: name for name in CALLS} | dict(commands())
    return found | {name: name for row in TABLE.values() for name in row.names}


@cache
def commands() -> Mapping[str, str]:
    r"""Return the functions that have a command of their own, such as ``\sin``.

    ``\sum`` and ``\prod`` are none of them: they are sums over an index.

    Examples
    --------
    >>> commands()["ln"], "sum" in commands()
    ('ln', False)
    """
    found = {name: name for name in (*trigonometric.__all__, "det")}
    for row in TABLE.values():
        match = _COMMAND.match(row.latex or "")
        if row.shape is None and match and row.names:
            found.setdefault(match[1] or match[2], row.names[0])
        if row.shape is None:
            found |= {name: name for name in row.names}
    found |= {word: name for word, name in _SYNONYMS.items() if name in found}
    letters = {word for word in GREEK if word[0].islower()}
    return {word: name for word, name in found.items() if word not in {*letters, "sqrt"}}
