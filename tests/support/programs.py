"""Random programs of the language, spelled independently of its printers."""

from __future__ import annotations

import math
import re

from hypothesis import strategies as st

VARIABLES = ("x", "y", "x1", "x2", "x10")
NUMBERS = ("0.5", "1.0", "2.0", "3.0", "1.5e-1", ".25", "pi", "e")
UNARY = ("sin", "cos", "exp", "tanh", "atan", "abs", "sqrt", "ln", "floor", "erf")

# The same names in Python, which has the same precedences: `**` over unary minus over `*`.
PYTHON = {
    **{name: getattr(math, name) for name in ("sin", "cos", "exp", "tanh", "atan", "sqrt", "erf")},
    "ln": math.log,
    "abs": abs,
    "floor": lambda x: float(math.floor(x)),
    "where": lambda c, a, b: a if c else b,
    "min": min,
    "max": max,
    "pi": math.pi,
    "e": math.e,
}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> str:
    """Return an expression; operands stand bare, so that precedence decides."""
    form = draw(st.integers(0, 7)) if depth else 0
    inner = expressions(depth - 1)
    if form <= 1:
        return draw(st.sampled_from(VARIABLES + NUMBERS))
    if form <= 3:
        return draw(inner) + draw(st.sampled_from("+-*/^")) + draw(inner)
    if form == 4:
        return f"-{draw(inner)}"
    if form == 5:
        return f"({draw(inner)})"
    if form == 6:
        return f"{draw(st.sampled_from(UNARY))}({draw(inner)})"
    if draw(st.booleans()):
        return f"max({draw(inner)}, {draw(inner)}, {draw(inner)})"
    return f"where({draw(conditions(depth - 1))}, {draw(inner)}, {draw(inner)})"


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    """Return a truth value, in every combination of `and`, `or` and `not`."""
    form = draw(st.integers(0, 4)) if depth else 0
    inner = conditions(depth - 1)
    if form == 1:
        return draw(inner) + draw(st.sampled_from([" and ", " or "])) + draw(inner)
    if form == 2:
        return f"not {draw(inner)}"
    if form == 3:
        return f"({draw(inner)})"
    symbol = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
    return draw(expressions(min(depth, 1))) + symbol + draw(expressions(min(depth, 1)))


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Return a program: declarations, definitions that use each other, one or more outputs."""
    lines = ["v: [4]", "v[0] + v[-1]"][: draw(st.integers(0, 1))]
    names = ["v[1]"] if lines else []
    for position in range(draw(st.integers(0, 4))):
        value = draw(expressions(3))
        if names:
            value = f"({value})*{draw(st.sampled_from(names))} - {draw(st.sampled_from(names))}"
        lines.append(f"a{position} = {value}")
        names.append(f"a{position}")
    outputs = draw(
        st.lists(st.one_of(expressions(3), st.sampled_from(names or ["x"])), min_size=1, max_size=4)
    )
    lines.append(outputs[0] if len(outputs) == 1 else f"[{', '.join(outputs)}]")
    return draw(st.sampled_from(["\n", " ; ", "\n\n"])).join(lines)


def in_python(expression: str) -> str:
    """Return an expression in Python's spelling."""
    return re.sub(r"\^", "**", expression)
