"""Random formulas whose error budgets must hold: the true error lies in what is proved.

The truth is mpmath's: values, and differences of values for the gradient, so that no derivative
rule of difflab is its own judge. Where ball arithmetic proves no bound of the terms of higher
order, as at a kink, there is nothing to hold; the formula's other points may have one.
"""

from __future__ import annotations

import math

import numpy as np

from difflab.core.dtypes import format_of
from difflab.errors import DomainError, UnsupportedError
from difflab.language import parse
from difflab.rounding.budget import Budget, error_budget
from tests.differential.formulas import VARIABLES, Formula, formulas
from tests.differential.scalar import DIGITS, exact
from tests.differential.search import Family

DTYPES = ("float64", "float64", "float32", "float16")
MODERATE = 50.0
"""Numbers up to it, and none below its inverse but zero, are budgeted."""
TRUNCATED = 1e-50
"""What the differences that are the truth leave, relative to the gradient or to 1."""
MOST = 2
"""Points of a formula that are checked."""


def check(formula: Formula) -> None:
    """Raise AssertionError where an error exceeds its budget."""
    function = parse(formula.text)
    if not function.n:
        return
    columns = [VARIABLES.index(name) for name in function.inputs]
    dtype = DTYPES[formula.choice % len(DTYPES)]
    form, checked = format_of(dtype), 0
    for point in np.array(formula.points)[:, columns]:
        size = np.abs(point)
        if checked == MOST or not np.all((size == 0) | ((size < MODERATE) & (size > 1 / MODERATE))):
            continue
        point = np.asarray(form.cast(point), np.float64)
        at = dict(zip(function.inputs, point.tolist(), strict=True))
        if not np.all(np.isfinite(function.values(point))):
            continue
        try:
            found = error_budget(function, at, dtype=dtype, prove=True)
        except (DomainError, UnsupportedError):
            continue
        checked += 1
        try:
            truth = exact(function, point.tolist(), DIGITS)
        except TypeError:  # mpmath's hypergeometric functions, at complex numbers
            continue
        for part, expected in zip(found.parts, (truth[:1], truth[1:]), strict=True):
            hold(part, expected, f"{dtype} at {at}")


def hold(part: Budget, truth: np.ndarray, where: str) -> None:
    """Hold the outputs of a budget to the truth, and to what ball arithmetic says of them."""
    for each, expected in zip(part.outputs, truth.tolist(), strict=True):
        allowed = (each.bound + each.remainder) * (1 + 1e-9) + 1e-320
        if not math.isfinite(allowed) or not math.isfinite(expected):
            continue
        rounded = np.spacing(abs(expected)) / 2 + TRUNCATED * max(1.0, abs(expected))
        error = abs(each.value - expected)
        assert error <= allowed + rounded, (
            f"{part.kind} {each.name} {where}: {each.value!r} errs by {error:g}, beyond {allowed:g}"
        )
        if math.isfinite(each.error):
            assert each.error <= allowed, (
                f"{part.kind} {each.name} {where}: proved to err by {each.error:g}, beyond "
                f"{allowed:g}"
            )


FAMILY = Family("budgets", formulas(), check, fixed=150, fresh=50)
