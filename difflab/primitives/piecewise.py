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
    name: str, infix: str, latex: str, compare: Callable[[Any, Any], Any], relation: str
) -> Primitive:
    """Return the row of one comparison."""
    return Primitive(
        name=name,
        arity=2,
        kernel=name,
        rule=elementwise(None, None),
        infix=infix,
        sympy=lambda sympy, a, b: getattr(sympy, relation)(a, b),
        mpmath=lambda mp, a, b: compare(a, b),
        c=f"{{0}} {infix} {{1}}",
        python=f"{{0}} {infix} {{1}}",
        latex=f"{{0}} {latex} {{1}}",
        samples=(REAL, REAL),
        kinks=lambda a, b: a - b,
        convention="derivative 0",
        analytic=False,
        boolean=True,
    )


less = _comparison("less", "<", "<", lambda a, b: a < b, "StrictLessThan")
less_equal = _comparison("less_equal", "<=", "\\le", lambda a, b: a <= b, "LessThan")
greater = _comparison("greater", ">", ">", lambda a, b: a > b, "StrictGreaterThan")
greater_equal = _comparison("greater_equal", ">=", "\\ge", lambda a, b: a >= b, "GreaterThan")
equal = _comparison("equal", "==", "=", lambda a, b: a == b, "Equality")
not_equal = _comparison("not_equal", "!=", "\\ne", lambda a, b: a != b, "Unequality")

logical_and: Primitive = Primitive(
    name="logical_and",
    arity=2,
    kernel="logical_and",
    rule=elementwise(None, None),
    infix="and",
    sympy="And",
    mpmath=lambda mp, a, b: bool(a) and bool(b),
    c="{0} && {1}",
    python="{0} and {1}",
    latex="{0} \\wedge {1}",
    samples=(REAL, REAL),
    analytic=False,
    boolean=True,
    truths=(0, 1),
    commutative=True,
)
logical_or: Primitive = Primitive(
    name="logical_or",
    arity=2,
    kernel="logical_or",
    rule=elementwise(None, None),
    infix="or",
    sympy="Or",
    mpmath=lambda mp, a, b: bool(a) or bool(b),
    c="{0} || {1}",
    python="{0} or {1}",
    latex="{0} \\vee {1}",
    samples=(REAL, REAL),
    analytic=False,
    boolean=True,
    truths=(0, 1),
    commutative=True,
)
logical_not: Primitive = Primitive(
    name="logical_not",
    arity=1,
    kernel="logical_not",
    rule=elementwise(None),
    infix="not",
    sympy="Not",
    mpmath=lambda mp, a: not a,
    c="!{0}",
    python="not {0}",
    latex="\\neg {0}",
    samples=(REAL,),
    analytic=False,
    boolean=True,
    truths=(0,),
)
as_number: Primitive = Primitive(
    name="as_number",
    arity=1,
    kernel=kernels.logical_value,
    rule=elementwise(None),
    sympy=lambda sympy, c: sympy.Piecewise((1, c), (0, True)),
    mpmath=lambda mp, c: mp.mpf(1 if c else 0),
    c="({0} ? 1.0 : 0.0)",
    python="(1.0 if {0} else 0.0)",
    latex="\\left[{0}\\right]",
    samples=(REAL,),
    analytic=False,
    truths=(0,),
    structural=True,
)
where: Primitive = Primitive(
    name="where",
    arity=3,
    kernel="where",
    rule=select(None, lambda c, a, b: c, lambda c, a, b: logical_not(c)),
    names=("where",),
    sympy=lambda sympy, c, a, b: sympy.Piecewise((a, c), (b, True)),
    mpmath=lambda mp, c, a, b: a if c else b,
    c="({0} ? {1} : {2})",
    python="({1} if {0} else {2})",
    latex="\\begin{{cases}} {1} & {0} \\\\ {2} & \\text{{otherwise}} \\end{{cases}}",
    samples=(REAL, REAL, REAL),
    convention="the derivative of the selected branch",
    analytic=False,
    truths=(0,),
)
minimum: Primitive = Primitive(
    name="minimum",
    arity=2,
    kernel="minimum",
    rule=select(lambda a, b: a < b, lambda a, b: logical_not(a < b)),
    names=("min", "minimum"),
    sympy="Min",
    mpmath=lambda mp, a, b: a if a < b or a != a else b,
    c="minimum({0}, {1})",
    python="({0} if {0} < {1} or {0} != {0} else {1})",
    latex="\\min\\left({0}, {1}\\right)",
    samples=(REAL, REAL),
    kinks=lambda a, b: a - b,
    convention="at a tie the derivative of the last argument",
    analytic=False,
)
maximum: Primitive = Primitive(
    name="maximum",
    arity=2,
    kernel="maximum",
    rule=select(lambda a, b: a > b, lambda a, b: logical_not(a > b)),
    names=("max", "maximum"),
    sympy="Max",
    mpmath=lambda mp, a, b: a if a > b or a != a else b,
    c="maximum({0}, {1})",
    python="({0} if {0} > {1} or {0} != {0} else {1})",
    latex="\\max\\left({0}, {1}\\right)",
    samples=(REAL, REAL),
    kinks=lambda a, b: a - b,
    convention="at a tie the derivative of the last argument",
    analytic=False,
)
relu: Primitive = Primitive(
    name="relu",
    arity=1,
    kernel=lambda xp, x: xp.maximum(x, 0.0),
    rule=select(lambda x: x > 0),
    names=("relu",),
    sympy=lambda sympy, x: sympy.Max(x, 0),
    mpmath=lambda mp, x: mp.mpf(0) if x <= 0 else x,
    c="({0} <= 0.0 ? 0.0 : {0})",
    python="({0} if {0} > 0.0 or {0} != {0} else 0.0)",
    latex="\\max\\left({0}, 0\\right)",
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
    arity=3,
    kernel="clip",
    rule=select(
        _is_inside,
        _is_low,
        # One of the three holds everywhere, also where there is a nan.
        lambda *args: logical_not(logical_or(_is_inside(*args), _is_low(*args))),
    ),
    names=("clip",),
    sympy=lambda sympy, x, low, high: sympy.Min(sympy.Max(x, low), high),
    mpmath=lambda mp, x, low, high: min(max(x, low), high),
    c="minimum(maximum({0}, {1}), {2})",
    python="clip({0}, {1}, {2})",
    latex="\\operatorname{{clip}}\\left({0}, {1}, {2}\\right)",
    samples=((1.1, 1.9), (0.2, 0.9), (2.1, 2.9)),
    kinks=lambda x, low, high: (x - low) * (x - high),
    convention="derivative 1 at the bounds",
    analytic=False,
)
absolute: Primitive = Primitive(
    name="absolute",
    arity=1,
    kernel="abs",
    rule=elementwise(lambda t, y, x: t * sign(x)),
    names=("abs", "absolute"),
    sympy="Abs",
    mpmath="fabs",
    c="fabs({0})",
    python="fabs({0})",
    latex="\\left|{0}\\right|",
    samples=(REAL,),
    kinks=lambda x: x,
    convention="derivative 0 at 0",
    analytic=False,
)
sign: Primitive = Primitive(
    name="sign",
    arity=1,
    kernel="sign",
    rule=elementwise(None),
    names=("sign",),
    sympy="sign",
    mpmath="sign",
    c="({0} > 0.0 ? 1.0 : {0} < 0.0 ? -1.0 : {0})",
    python="({0} if {0} != {0} or {0} == 0.0 else 1.0 if {0} > 0.0 else -1.0)",
    latex="\\operatorname{{sign}}\\left({0}\\right)",
    samples=(REAL,),
    kinks=lambda x: x,
    convention="derivative 0",
    analytic=False,
)


def _step(
    name: str, sympy: str | None, mpmath: str, python: str, latex: str, kernel: str
) -> Primitive:
    """Return the row of one rounding."""
    return Primitive(
        name=name,
        arity=1,
        kernel=kernel,
        rule=elementwise(None),
        names=(name,),
        sympy=sympy,
        mpmath=mpmath,
        c=f"{kernel}({{0}})",
        python=python,
        latex=latex,
        samples=(FRACTION,),
        kinks=lambda x: _from_integer(x - 0.5 if name == "round" else x),
        convention="derivative 0, also at the jumps",
        analytic=False,
    )


def _from_integer(x: Any) -> Any:
    """Return the signed distance to the nearest integer, where roundings jump."""
    return x - round_(x)


floor = _step(
    "floor",
    "floor",
    "floor",
    "copysign(float(floor({0})), {0})",
    "\\left\\lfloor {0} \\right\\rfloor",
    "floor",
)
ceil = _step(
    "ceil",
    "ceiling",
    "ceil",
    "copysign(float(ceil({0})), {0})",
    "\\left\\lceil {0} \\right\\rceil",
    "ceil",
)
round_ = _step(
    "round",
    None,
    "nint",
    "copysign(float(round({0})), {0})",
    "\\operatorname{{round}}\\left({0}\\right)",
    "rint",
)
mod: Primitive = Primitive(
    name="mod",
    arity=2,
    kernel="mod",
    rule=elementwise(lambda t, y, a, b: t, lambda t, y, a, b: -(t * round_((a - y) / b))),
    names=("mod",),
    sympy="Mod",
    mpmath=lambda mp, a, b: a - b * mp.floor(a / b),
    c="modulo({0}, {1})",
    python="{0} % {1}",
    latex="{0} \\bmod {1}",
    samples=((2.2, 2.8), (0.9, 1.05)),
    defined="a divisor other than 0",
    kinks=lambda a, b: _from_integer(a / b),
    convention="derivative 1 in the dividend, also at the jumps",
    analytic=False,
)
heaviside: Primitive = Primitive(
    name="heaviside",
    arity=1,
    kernel=kernels.heaviside,
    rule=elementwise(None),
    names=("heaviside",),
    sympy="Heaviside",
    mpmath=lambda mp, x: mp.mpf(0 if x < 0 else 1 if x > 0 else 0.5),
    c="({0} == 0.0 ? 0.5 : {0} > 0.0 ? 1.0 : {0} < 0.0 ? 0.0 : {0})",
    python="({0} if {0} != {0} else 0.5 if {0} == 0.0 else 1.0 if {0} > 0.0 else 0.0)",
    latex="\\operatorname{{H}}\\left({0}\\right)",
    samples=(REAL,),
    kinks=lambda x: x,
    convention="value 1/2 and derivative 0 at 0",
    analytic=False,
)
