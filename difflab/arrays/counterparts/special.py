"""Universal functions of `scipy.special` that are compositions of rows of the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from difflab.arrays.given import as_array
from difflab.primitives import (
    absolute,
    besseli,
    besselj,
    besselk,
    bessely,
    betainc,
    ci,
    equal,
    exp,
    exp_remainder,
    floor,
    gammainc,
    gammaincc,
    greater,
    hypot,
    less,
    log,
    log_remainder,
    logical_and,
    logical_or,
    not_equal,
    power,
    si,
    softplus,
    versine,
    where,
)


def _of_order(order: int, row: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: row(order, x)


def _relative_entropy(x: Any, y: Any) -> Any:
    """Return x ln(x/y); 0 at x = 0 ≤ y, infinite outside of the domain, and nan of nan."""
    return _entropy(as_array(x), as_array(y), lambda x, y: 0.0)


def _divergence(x: Any, y: Any) -> Any:
    """Return x ln(x/y) - x + y, the Kullback-Leibler divergence of two elements."""
    return _entropy(as_array(x), as_array(y), lambda x, y: y - x)


def _entropy(x: Any, y: Any, beside: Callable[[Any, Any], Any]) -> Any:
    """Return x ln(x/y) and what stands `beside` it, with SciPy's values at the edges."""
    positive = logical_and(greater(x, 0), greater(y, 0))
    u, v = where(positive, x, 1.0), where(positive, y, 1.0)
    edge = where(logical_and(equal(x, 0), y >= 0), beside(0.0, y), math.inf)
    found = where(positive, u * log(u / v) + beside(u, v), edge)
    return where(logical_or(not_equal(x, x), not_equal(y, y)), x + y, found)


def _huber(delta: Any, r: Any) -> Any:
    """Return r²/2 near 0 and delta (|r| - delta/2) beyond delta; infinite for negative delta."""
    size = absolute(r)
    near, far = size * size / 2, delta * (size - delta / 2)
    return where(less(delta, 0), math.inf, where(size <= delta, near, far))


def _pseudo_huber(delta: Any, r: Any) -> Any:
    """Return delta² (√(1 + (r/delta)²) - 1), computed without cancellation; 0 at delta = 0."""
    inside = greater(delta, 0)
    finite = where(less(absolute(r), math.inf), r, 0.0)
    found = finite * finite / (1 + hypot(1.0, finite / where(inside, delta, 1.0)))
    found = where(equal(finite, r), found, absolute(r))
    outside = where(less(delta, 0), math.inf, where(equal(delta, 0), 0.0, delta))
    return where(inside, found, outside)


def _box_cox(x: Any, power_of: Any) -> Any:
    """Return (x^p - 1)/p, and ln x at p = 0."""
    return log(x) * exp_remainder(1, 0, power_of * log(x))


def _inverse_box_cox(y: Any, power_of: Any) -> Any:
    """Return (1 + p y)^(1/p), and exp y at p = 0."""
    return exp(y * log_remainder(1, 0, power_of * y))


UFUNCS: Mapping[str, Callable[..., Any]] = {
    **{f"j{order}": _of_order(order, besselj) for order in (0, 1)},
    **{f"y{order}": _of_order(order, bessely) for order in (0, 1)},
    **{f"i{order}": _of_order(order, besseli) for order in (0, 1)},
    **{f"k{order}": _of_order(order, besselk) for order in (0, 1)},
    "betaincc": lambda a, b, x: betainc(b, a, 1 - as_array(x)),
    "boxcox": _box_cox,
    "chdtr": lambda v, x: gammainc(v / 2, x / 2),
    "chdtrc": lambda v, x: gammaincc(v / 2, x / 2),
    "cosm1": lambda x: -versine(x),
    "exp10": lambda x: power(10.0, x),
    "exprel": lambda x: exp_remainder(1, 0, x),
    "gdtr": lambda a, b, x: gammainc(b, a * x),
    "gdtrc": lambda a, b, x: gammaincc(b, a * x),
    "huber": _huber,
    "inv_boxcox": _inverse_box_cox,
    "kl_div": _divergence,
    "kn": besselk,
    "log_expit": lambda x: -softplus(-x),
    "pdtr": lambda k, m: gammaincc(floor(k) + 1, m),
    "pseudo_huber": _pseudo_huber,
    "rel_entr": _relative_entropy,
    "sici": lambda x: (si(x), ci(x)),
    "yn": bessely,
}
"""SciPy's elementwise functions that are not rows of the table, by their names."""
