"""Derivatives of every function of numbers by mpmath: ``python -m tests.primitives.truths [ROW…]``.

Writes ``tests/data/derivatives.json``, or replaces the named rows in it. A derivative is that of
the row's mpmath form, by central differences in twice as many digits until two agree in
`AGREED` digits; no rule of difflab's is used. Points are spread over the domain, its edges and
tails; where a row has no real and finite value, there is no entry. For each point of a row there
are the derivatives of the orders 1 to `ORDER` and their condition numbers, Σ |xᵢ·∂ᵢd|/|d|.
"""

from __future__ import annotations

import itertools
import json
import math
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mpmath

import difflab as dl
from difflab.core.primitive import Primitive
from difflab.graph.interpreters import MpmathInterpreter
from difflab.graph.rewritten import composed
from difflab.primitives import TABLE
from tests.support.orders import orders

__all__ = ["FILE", "ORDER", "ROWS", "function_of", "indices"]

FILE = Path(__file__).parents[1] / "data" / "derivatives.json"
ORDER = 4
DIGITS, MOST_DIGITS, AGREED = 40, 1300, 22
ZERO_DIGITS = 640
"""From so many digits on, differences that are as small as their steps are of a derivative 0."""
SECONDS = 10
"""Of one point; points that need more are left out."""

CONSTANT = frozenset({"ceil", "floor", "heaviside", "round", "sign"})
"""Rows whose derivative is 0 or does not exist."""
NO_FORM = frozenset({"where", "clip"})
"""Selections of an argument, whose derivatives are 0 and 1."""
DERIVATIVES = frozenset(
    f"{name}_derivative" for name in ("betainc", "dawsn", "erfcx", "gammainc", "log_ndtr")
) | {"polygamma_difference"}
"""Rows that are the derivatives of others."""
ROWS = {
    name: row
    for name, row in TABLE.items()
    if row.shape is None and row.samples and not (row.boolean or row.structural or row.expansion)
    if name not in CONSTANT | NO_FORM | DERIVATIVES
}


def _shared(names: Sequence[str], points: list[Any]) -> dict[str, list[Any]]:
    return dict.fromkeys(names, points)


SIZES = [1e-300, 1e-100, 1e-17, 1e-9, 1e-4, 0.013, 0.11, 0.37, 0.5, 0.93, 1.0, 1.07, 1.7, 2.6]
SIZES += [4.4, 7.0, 12.0, 21.0, 36.0, 38.6, 45.0, 130.0, 720.0, 5e3, 1e5, 1e7, 1e10, 1e17]
SIZES += [1e100, 1e300]
LINE = [0.0, *SIZES, *(-size for size in SIZES)]
PERIODIC = [x for x in LINE if abs(x) < 1e8]
NEAR_1 = [1 - 2.0**-k for k in (5, 17, 35, 53)]
UNIT = [x for x in SIZES if x < 1] + NEAR_1
INTERVAL = [0.0, *UNIT, *(-x for x in UNIT)]
BRANCH = [-math.exp(-1) + e for e in (1e-16, 1e-14, 1e-11, 1e-8, 1e-5, 1e-3, 0.03, 0.07, 0.12, 0.2)]
NEGATIVE = [-x for x in (0.11, 0.5, 1.07, 2.6, 3.999, 12.3, 45.7, 130.4)]
GAMMA = [*(x for x in SIZES if x < 1e11), *NEGATIVE]
POINTS: dict[str, list[float]] = {
    **_shared(("sin", "cos", "tan", "versine"), PERIODIC),
    **_shared(("asin", "acos", "atanh", "erfinv"), INTERVAL),
    **_shared(("logit", "ndtri", "erfcinv"), UNIT),
    "relu": [x for x in LINE if abs(x) > 1e-20],
    "acosh": [1 + 2.0**-k for k in (52, 35, 17, 5)] + [x for x in SIZES if x > 1],
    "log1p": [*SIZES, *(-x for x in UNIT)],
    "lambertw": [*BRANCH, *(x for x in LINE if x > -0.36)],
    **_shared(("gamma", "loggamma", "digamma"), GAMMA),
    **_shared(
        ("airyai", "airyaiprime", "airybi", "airybiprime"),
        [*(x for x in LINE if -1e8 < x < 110 and abs(x) > 1e-100), -1.06e6, -2e6, 100.0],
    ),
    "dawsn": [x for x in LINE if abs(x) < 1e18],
}
SOME = [1e-9, 0.11, 0.93, 1.7, 7.0, 45.0, 1e5]
SIGNED = [-45.0, -1.7, -0.11, -1e-9, 0.0, 1e-9, 0.11, 0.93, 2.6, 38.6, 1e5]
HALF = [-2.5, -1e-9, 0.0, 0.5, 7.0]
SHAPES = [(2.0, 3.0), (0.5, 0.5), (0.5, 2.0), (1.0, 1.0), (5.0, 7.5), (1.0, 2.0), (20.0, 30.0)]
SHAPES += [(2.0, 2.0)]
PAIRS: dict[str, list[tuple[float, ...]]] = {
    **_shared(("beta", "betaln"), [
        *itertools.product([0.11, 1.7, 7.0], SOME), (1e5, 2.0), (1e10, 2.0), (2.0, 1e10),
        (1e16, 2.0), (1e16, 1e16), (1e10, 1e3), (120.0, 130.0), (1e-9, 1e-9), (1e5, 1e16),
    ]),
    "logaddexp": list(itertools.product([-40.0, 0.0, 0.5, 745.0], [-800.0, -1e-9, 0.0, 1.7, 40.0])),
    **_shared(("hypot", "atan2", "square_difference"), [
        *itertools.product([-2.5, 1e-9, 1.7], [1e-9, 0.5, 7.0]), (0.0, 2.0), (2.0, 0.0),
        (1e100, 1.0), (1e-100, 1e-100), (3.0, -4.0),
    ]),
    "power": [
        *itertools.product([1e-9, 0.5, 1.0, 7.0], [-2.5, 0.0, 0.5, 1.0, 3.0, 1e-9, 40.0]),
        *((0.0, p) for p in (1.0, 2.0, 3.0, 4.0, 7.0)), *((-2.0, p) for p in (2.0, 3.0, -1.0)),
    ],
    "xlogy": list(itertools.product(HALF, [1e-9, 0.5, 1.0, 7.0])),
    "xlog1py": list(itertools.product(HALF, [-0.999, -1e-9, 0.0, 1e-9, 7.0])),
    "divide": list(itertools.product(SIGNED, [-2.5, 1e-9, 7.0])),
    "mod": [(2.3, 1.0), (-2.3, 1.0), (7.0, 2.6), (1e5, 7.0)],
    **_shared(("maximum", "minimum"), [(1.0, 2.0), (2.0, -1.0)]),
    **_shared(("besselj", "besseli"), list(itertools.product(
        [0.0, 1.0, 2.0, 5.0, 2.5], [1e-9, 0.11, 1.0, 2.6, 7.0, 21.0, 130.0, 720.0, 5e3]
    ))),
    **_shared(("bessely", "besselk"), list(itertools.product(
        [0.0, 1.0, 2.0, 5.0, 2.5], [1e-9, 0.11, 1.0, 2.6, 7.0, 21.0, 130.0]
    ))),
    "polygamma": list(itertools.product([0.0, 1.0, 2.0, 5.0], GAMMA)),
    "zeta": list(itertools.product([1.5, 2.0, 7.0], [x for x in SIZES if 1e-17 < x < 1e11])),
    **_shared(("gammainc", "gammaincc"), [
        *itertools.product(
            [0.3, 1.0, 2.0, 3.0, 7.5], [1e-100, 1e-9, 0.11, 1.0, 2.6, 7.0, 45.0, 720.0]
        ),
        *((99.5, x) for x in (1.0, 90.0, 99.0, 130.0)), (100.0, 100.0), (101.0, 100.0),
        *((1e4, x) for x in (9e3, 9.9e3, 9999.0, 1e4, 10001.0, 1.1e4)),
        *((1e7, x) for x in (9.99e6, 1e7 - 1, 1e7, 1e7 + 1, 1.001e7)),
        (1e10, 1e10), (1e10, 1e10 - 1e5), (1e10, 1e10 + 3e5), (1e15, 1e15), (1e15, 1e15 + 1e7),
    ]),
    "betainc": [
        *((*shape, x) for shape in SHAPES for x in (1e-9, 0.11, 0.4, 0.9, 1 - 2.0**-30)),
        *((1e3, 2e3, x) for x in (0.3, 1 / 3, 0.36)), *((1e5, 1e5, x) for x in (0.499, 0.5, 0.502)),
        *((1e10, 1e10, x) for x in (0.5, 0.500003)), *((1e10, 3e10, x) for x in (0.25, 0.250002)),
        (1e15, 1e15, 0.5), (1e15, 1e15, 0.50000001), (2.0, 1e10, 1e-10), (1e10, 2.0, 1 - 2.0**-33),
        (60.0, 60.0, 0.5), (0.5, 1e5, 1e-5),
    ],
    **_shared(("exp_remainder", "cos_remainder", "cosh_remainder"), list(itertools.product(
        [1.0, 2.0], [0.0], [x for x in LINE if 1e-10 < abs(x) < 700]
    ))),
    "log_remainder": list(itertools.product(
        [1.0, 2.0], [0.0], [-1 + 2.0**-30, *(x for x in LINE if x > -1 and 1e-10 < abs(x) < 1e11)]
    )),
}  # fmt: skip


INTEGRANDS: dict[str, Callable[..., Any]] = {
    "gammainc": lambda a, x: mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a)),
    "gammaincc": lambda a, x: -mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a)),
    "betainc": lambda a, b, x: mpmath.exp(
        (a - 1) * mpmath.log(x)
        + (b - 1) * mpmath.log1p(-x)
        - (mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b))
    ),
}
"""What is integrated, whose derivatives have an order less: integrals of large parameters do not
end."""


def points_of(row: Primitive) -> list[tuple[float, ...]]:
    """Return the points of a row, each with the constants of its order first."""
    if row.name in PAIRS:
        return PAIRS[row.name]
    if len(row.samples) == 1:
        return [(x,) for x in POINTS.get(row.name, LINE)]
    return list(itertools.product(SIGNED, HALF))


def function_of(row: Primitive, constants: Sequence[float] = ()) -> dl.Function:
    """Return the row with its first arguments constant, a function of one number each."""
    free = len(row.samples) - len(constants)
    return composed(lambda nodes: [row(*constants, *nodes)], [()] * free)


def indices(free: int) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the partial derivatives of the total orders 1 to `ORDER`."""
    for index in itertools.product(range(ORDER + 1), repeat=free):
        if 1 <= sum(index) <= ORDER:
            yield index


def differentiated(
    value: Callable[..., Any], point: tuple[float, ...], index: tuple[int, ...]
) -> Any:
    """Return a partial derivative; 0 where differences fall with their digits; None for none."""
    if not any(index):
        with mpmath.workdps(DIGITS):
            return value(*map(mpmath.mpf, point))
    digits, before = DIGITS, None
    while digits <= MOST_DIGITS:
        with mpmath.workdps(digits):
            found = _nested(value, [mpmath.mpf(x) for x in point], index)
        if found is None:  # a step beyond the edge of the domain
            digits, before = 2 * digits, None
            continue
        if (
            found
            and before is not None
            and abs(found - before) <= mpmath.mpf(10) ** -AGREED * abs(found)
        ):
            return found
        if digits >= ZERO_DIGITS and abs(found) < mpmath.mpf(10) ** (-digits // 2):
            return mpmath.mpf(0)
        digits, before = 2 * digits, found
    return None


def _nested(value: Callable[..., Any], at: list[Any], index: tuple[int, ...]) -> Any:
    """Return differences of differences, by steps in the scale of arguments above 1."""
    total, digits = sum(index), mpmath.mp.dps
    step = mpmath.mpf(10) ** -(digits // 2)
    steps = [step * max(1, abs(x)) for x in at]
    with mpmath.workdps(digits * (total + 2)):
        whole = mpmath.mpf(0)
        for shifts in itertools.product(*(range(n + 1) for n in index)):
            moved = [
                x + (k - mpmath.mpf(n) / 2) * h
                for x, k, n, h in zip(at, shifts, index, steps, strict=True)
            ]
            found = value(*moved)
            if not (mpmath.isfinite(found) and mpmath.im(found) == 0):
                return None
            sign = (-1) ** (total - sum(shifts))
            weight = math.prod(math.comb(n, k) for n, k in zip(index, shifts, strict=True))
            whole += sign * weight * mpmath.re(found)
        return whole / math.prod(h**n for h, n in zip(steps, index, strict=True))


def entry(row: Primitive, point: tuple[float, ...]) -> list[list[str]] | None:
    """Return [derivative, condition number] for each of `indices`, or None outside the domain."""
    fixed = orders(row)
    function = function_of(row, point[:fixed])
    interpreter = MpmathInterpreter()
    free = point[fixed:]
    integrand = INTEGRANDS.get(row.name)

    def compute(at: Sequence[Any]) -> Any:
        if integrand is not None:
            return integrand(*point[:fixed], *at)
        return dl.evaluate(function, list(at), interpreter)[0]

    with mpmath.workdps(DIGITS):
        here = compute([mpmath.mpf(x) for x in free])
    if not (mpmath.isfinite(here) and mpmath.im(here) == 0):
        return None
    cache: dict[tuple[Any, ...], Any] = {}

    def value(*at: Any) -> Any:
        key = (mpmath.mp.prec, *at)
        if key not in cache:
            cache[key] = compute(at)
        return cache[key]

    found: dict[tuple[int, ...], Any] = {}

    def derivative(index: tuple[int, ...]) -> Any:
        if index not in found:
            lowered = index if integrand is None else (index[0] - 1,)
            found[index] = differentiated(value, free, lowered)
        return found[index]

    entries = []
    for index in indices(len(free)):
        whole = derivative(index)
        if whole is None:
            return None
        condition = mpmath.mpf(0)
        for k, x in enumerate(free):
            slope = derivative(tuple(n + (j == k) for j, n in enumerate(index)))
            if slope is None:
                return None
            condition += abs(x * slope / whole) if whole else 0
        entries.append([mpmath.nstr(whole, 17), mpmath.nstr(condition, 2)])
    return entries


def _late(signum: int, frame: Any) -> None:
    raise TimeoutError


def main(names: Sequence[str]) -> None:
    """Compute the truths of the named rows, or of all, and write the file."""
    if unknown := set(names) - set(ROWS):
        sys.exit(f"no row of truths: {', '.join(sorted(unknown))}; the rows are {', '.join(ROWS)}")
    signal.signal(signal.SIGALRM, _late)
    table = json.loads(FILE.read_text()) if names and FILE.exists() else {}
    for name in names or ROWS:
        rows, left = [], []
        for point in points_of(ROWS[name]):
            signal.alarm(SECONDS)
            try:
                found = entry(ROWS[name], point)
            except Exception as error:  # of mpmath, of any kind
                print(f"{name}{point}: {type(error).__name__}", file=sys.stderr)
                found = None
            finally:
                signal.alarm(0)
            if found is None:
                left.append(point)
            else:
                rows.append([point, found])
        table[name] = rows
        print(f"{name}: {len(rows)} points, without {left}", file=sys.stderr, flush=True)
        lines = (f"{json.dumps(key)}: {json.dumps(table[key])}" for key in sorted(table))
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
