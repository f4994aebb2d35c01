"""Selections, rounding, comparisons and logic: the rows with kinks and jumps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from difflab.core.primitive import Primitive, elementwise, select
from difflab.primitives import kernels

__all__ = [
    "absolute",
    "as_number",
    "ceil",
    "clip",
    "equal",
    "floor",
    "greater",
    "greater_equal",
    "heaviside",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "mod",
    "not_equal",
    "relu",
    "round_",
    "sign",
    "where",
]

REAL = (0.3, 2.7)
FRACTION = (0.2, 0.8)


def _comparison(
    name: str,
    infix: str,
    compare: Callable[[Any, Any], Any],
    relation: str,
    glyph: str,
    latex: str | None = None,
) -> Primitive:
    """Return the row of one comparison."""
    return Primitive(
        name=name,
        rule=elementwise(None, None),
        infix=infix,
        sympy=lambda sympy, a, b: getattr(sympy, relation)(a, b),
        mpmath=lambda mp, a, b: compare(a, b),
        latex=f"{{0}} {latex or glyph} {{1}}",
        glyph=glyph,
        samples=(REAL, REAL),
        kinks=lambda a, b: a - b,
        convention="derivative 0",
        analytic=False,
        boolean=True,
    )


less = _comparison("less", "<", lambda a, b: a < b, "StrictLessThan", "<")
less_equal = _comparison("less_equal", "<=", lambda a, b: a <= b, "LessThan", "≤", "\\le")
greater = _comparison("greater", ">", lambda a, b: a > b, "StrictGreaterThan", ">")
greater_equal = _comparison("greater_equal", ">=", lambda a, b: a >= b, "GreaterThan", "≥", "\\ge")
equal = _comparison("equal", "==", lambda a, b: a == b, "Equality", "=")
not_equal = _comparison("not_equal", "!=", lambda a, b: a != b, "Unequality", "≠", "\\ne")

logical_and: Primitive = Primitive(
    name="logical_and",
    rule=elementwise(None, None),
    infix="and",
    sympy="And",
    mpmath=lambda mp, a, b: bool(a) and bool(b),
    latex="{0} \\wedge {1}",
    glyph="∧",
    notation="{0} and {1}",
    samples=(REAL, REAL),
    analytic=False,
    boolean=True,
    truths=(0, 1),
    commutative=True,
)
logical_or: Primitive = Primitive(
    name="logical_or",
    rule=elementwise(None, None),
    infix="or",
    sympy="Or",
    mpmath=lambda mp, a, b: bool(a) or bool(b),
    latex="{0} \\vee {1}",
    glyph="∨",
    notation="{0} or {1}",
    samples=(REAL, REAL),
    analytic=False,
    boolean=True,
    truths=(0, 1),
    commutative=True,
)
logical_not: Primitive = Primitive(
    name="logical_not",
    rule=elementwise(None),
    infix="not",
    sympy="Not",
    mpmath=lambda mp, a: not a,
    latex="\\neg {0}",
    glyph="¬",
    notation="not {0}",
    samples=(REAL,),
    analytic=False,
    boolean=True,
    truths=(0,),
)
as_number: Primitive = Primitive(
    name="as_number",
    kernel=kernels.logical_value,
    rule=elementwise(None),
    sympy=lambda sympy, c: sympy.Piecewise((1, c), (0, True)),
    mpmath=lambda mp, c: mp.mpf(1 if c else 0),
    latex="\\left[{0}\\right]",
    glyph="0/1",
    notation="[{0}]",
    names=(),
    samples=(REAL,),
    analytic=False,
    truths=(0,),
    structural=True,
    dtype="float64",
)
where: Primitive = Primitive(
    name="where",
    ulps=0.0,
    rule=select(None, lambda c, a, b: c, lambda c, a, b: logical_not(c)),
    sympy=lambda sympy, c, a, b: sympy.Piecewise((a, c), (b, True)),
    mpmath=lambda mp, c, a, b: a if c else b,
    latex="\\begin{{cases}} {1} & {0} \\\\ {2} & \\text{{otherwise}} \\end{{cases}}",
    roles=("if", "then", "else"),
    zero_slope="the other branch is selected",
    samples=(REAL, REAL, REAL),
    convention="the derivative of the selected branch",
    analytic=False,
    truths=(0,),
)


def _least(a: Any, b: Any) -> Any:
    """Return the smaller of two real numbers; nan if either is nan."""
    return a if a < b or a != a else b


def _largest(a: Any, b: Any) -> Any:
    """Return the larger of two real numbers; nan if either is nan."""
    return a if a > b or a != a else b


minimum: Primitive = Primitive(
    name="minimum",
    ulps=0.0,
    portable=lambda xp, a, b: xp.where((a < b) | (a != a), a, b),
    rule=select(lambda a, b: a < b, lambda a, b: logical_not(a < b)),
    names=("min", "minimum"),
    sympy="Min",
    mpmath=lambda mp, a, b: _least(a, b),
    latex="\\min\\left({0}, {1}\\right)",
    zero_slope="{other} is selected",
    samples=(REAL, REAL),
    kinks=lambda a, b: a - b,
    convention="at a tie the derivative of the last argument",
    analytic=False,
)
maximum: Primitive = Primitive(
    name="maximum",
    ulps=0.0,
    portable=lambda xp, a, b: xp.where((a > b) | (a != a), a, b),
    rule=select(lambda a, b: a > b, lambda a, b: logical_not(a > b)),
    names=("max", "maximum"),
    sympy="Max",
    mpmath=lambda mp, a, b: _largest(a, b),
    latex="\\max\\left({0}, {1}\\right)",
    zero_slope="{other} is selected",
    samples=(REAL, REAL),
    kinks=lambda a, b: a - b,
    convention="at a tie the derivative of the last argument",
    analytic=False,
)
relu: Primitive = Primitive(
    name="relu",
    ulps=0.0,
    kernel=lambda xp, x: xp.maximum(x, 0.0),
    rule=select(lambda x: x > 0),
    sympy=lambda sympy, x: sympy.Max(x, 0),
    mpmath=lambda mp, x: mp.mpf(0) if x <= 0 else x,
    latex="\\max\\left({0}, 0\\right)",
    zero_slope="{0} ≤ 0",
    samples=(REAL,),
    kinks=lambda x: x,
    convention="derivative 0 at 0",
    analytic=False,
)


def _is_inside(x: Any, low: Any, high: Any) -> Any:
    # Bounds in the wrong order: the upper one is the result, wherever x is.
    return logical_and(equal(x, clip(x, low, high)), low <= high)


def _is_low(x: Any, low: Any, high: Any) -> Any:
    return logical_and(x < low, low <= high)


clip: Primitive = Primitive(
    name="clip",
    ulps=0.0,
    portable=lambda xp, x, low, high: xp.minimum(xp.maximum(x, low), high),
    rule=select(
        _is_inside,
        _is_low,
        # One of the three holds everywhere, also where there is a nan.
        lambda *args: logical_not(logical_or(_is_inside(*args), _is_low(*args))),
    ),
    sympy=lambda sympy, x, low, high: sympy.Min(sympy.Max(x, low), high),
    mpmath=lambda mp, x, low, high: _least(_largest(x, low), high),
    roles=("x", "low", "high"),
    zero_slope="a bound is selected",
    samples=((1.1, 1.9), (0.2, 0.9), (2.1, 2.9)),
    kinks=lambda x, low, high: (x - low) * (x - high),
    convention="derivative 1 at the bounds",
    analytic=False,
)
absolute: Primitive = Primitive(
    name="absolute",
    kernel="abs",
    ulps=0.0,
    ufunc="absolute",
    rule=elementwise(lambda t, y, x: t * sign(x)),
    names=("abs", "absolute"),
    sympy="Abs",
    mpmath="fabs",
    latex="\\left|{0}\\right|",
    glyph="|x|",
    notation="|{0}|",
    samples=(REAL,),
    kinks=lambda x: x,
    convention="derivative 0 at 0",
    analytic=False,
)
sign: Primitive = Primitive(
    name="sign",
    ulps=0.0,
    portable=lambda xp, x: xp.where(x > 0, 1.0, xp.where(x < 0, -1.0, x)),
    rule=elementwise(None),
    samples=(REAL,),
    kinks=lambda x: x,
    convention="derivative 0",
    analytic=False,
)


def _step(
    name: str, kernel: str, sympy: str | None, mpmath: str, glyph: str, latex: str, jump: float
) -> Primitive:
    """Return the row of one rounding, which jumps at the integers plus `jump`."""
    return Primitive(
        name=name,
        kernel=kernel,
        ulps=0.0,
        rule=elementwise(None),
        sympy=sympy,
        mpmath=mpmath,
        latex=latex,
        glyph=glyph,
        notation=name,
        samples=(FRACTION,),
        kinks=lambda x: _from_integer(x - jump if jump else x),
        convention="derivative 0, also at the jumps",
        analytic=False,
    )


def _from_integer(x: Any) -> Any:
    """Return the signed distance to the nearest integer, where roundings jump."""
    return x - round_(x)


LOWER, UPPER = "\\left\\lfloor {0} \\right\\rfloor", "\\left\\lceil {0} \\right\\rceil"
ROUNDED = "\\operatorname{{round}}\\left({0}\\right)"

floor = _step("floor", "floor", "floor", "floor", "⌊x⌋", LOWER, 0.0)
ceil = _step("ceil", "ceil", "ceiling", "ceil", "⌈x⌉", UPPER, 0.0)
round_ = _step("round", "rint", None, "nint", "round", ROUNDED, 0.5)
fmod: Primitive = Primitive(name="fmod", ulps=0.0, rule=elementwise(None, None))
"""C's remainder, of the dividend's sign; printed code alone computes it."""


def _mod(xp: Any, a: Any, b: Any) -> Any:
    """Return C's remainder, shifted to the divisor's sign."""
    rest = fmod(a, b)
    other = ((rest < 0) & (b > 0)) | ((rest > 0) & (b < 0))
    return xp.where(rest == 0, xp.where(b < 0, -0.0, 0.0), xp.where(other, rest + b, rest))


mod: Primitive = Primitive(
    name="mod",
    portable=_mod,
    ufunc="remainder",
    rule=elementwise(lambda t, y, a, b: t, lambda t, y, a, b: -(t * round_((a - y) / b))),
    sympy="Mod",
    mpmath=lambda mp, a, b: a - b * mp.floor(a / b),
    latex="{0} \\bmod {1}",
    notation="{0} mod {1}",
    samples=((2.2, 2.8), (0.9, 1.05)),
    defined="a divisor other than 0",
    kinks=lambda a, b: _from_integer(a / b),
    convention="derivative 1 in the dividend, also at the jumps",
    analytic=False,
)
heaviside: Primitive = Primitive(
    name="heaviside",
    ulps=0.0,
    portable=lambda xp, x: xp.where(x == 0, 0.5, xp.where(x > 0, 1.0, xp.where(x < 0, 0.0, x))),
    kernel=kernels.heaviside,
    rule=elementwise(None),
    sympy="Heaviside",
    mpmath=lambda mp, x: x if x != x else mp.mpf(0 if x < 0 else 1 if x > 0 else 0.5),
    latex="\\operatorname{{H}}\\left({0}\\right)",
    samples=(REAL,),
    kinks=lambda x: x,
    convention="value 1/2 and derivative 0 at 0",
    analytic=False,
)
