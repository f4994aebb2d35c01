"""Finite differences compiled for a formula that is asked often, against the ordinary pass.

Both give a value and an estimate of its error. They may differ by what they themselves admit, and
where the compiled pass answers, the ordinary one must.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import difflab as dl
from difflab.methods.numeric.compiled_stencil import CompiledStencil
from difflab.methods.registry import find
from tests.differential.search import Family
from tests.support.programs import expressions

METHODS = ("richardson", "finite-central", "finite-forward")
NUMBERS = st.one_of(
    st.sampled_from((0.0, 1.0, -1.0, 1e-3, 40.0, 1e3)), st.floats(-3, 3, allow_subnormal=False)
)
SLACK = 3.0
"""Two estimates of error that each may be short by half as much again."""


@dataclass(frozen=True)
class Program:
    """A formula, a method, and points."""

    text: str
    method: str
    points: tuple[tuple[float, ...], ...]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw a formula of at least one variable and points for it."""
    text = draw(expressions(3))
    try:
        n = dl.parse(text).n
    except dl.DifflabError:
        n = 0
    assume(n > 0)
    points = st.lists(st.tuples(*[NUMBERS] * n), min_size=1, max_size=4)
    return Program(text, draw(st.sampled_from(METHODS)), tuple(draw(points)))


def check(program: Program) -> None:
    """Compare the two passes at every point at which the compiled one answers."""
    function = dl.parse(program.text)
    compiled = CompiledStencil.of(function, find(program.method).rule)  # type: ignore[attr-defined]
    if compiled is None:
        return
    for numbers in program.points:
        point = np.array(numbers)
        with np.errstate(all="ignore"):
            found = compiled(point)
            if found is None:
                continue
            plain = dl.differentiate(dl.parse(program.text), point, program.method)
            value, error = np.ravel(plain.value), np.ravel(plain.error)
            allowed = SLACK * (found[1] + error) + 4 * np.spacing(np.abs(value))
            agree = (np.abs(found[0] - value) <= allowed) | (found[0] == value)
            agree |= np.isnan(found[0]) & np.isnan(value)
        assert agree.all(), f"{program}: compiled {found}, ordinary {value} ± {error}"


FAMILY = Family("numeric", programs(), check, fixed=80, fresh=20)
