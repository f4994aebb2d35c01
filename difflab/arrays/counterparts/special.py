"""Universal functions of `scipy.special` that are compositions of rows of the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from difflab import primitives as rows
from difflab.arrays.given import as_array


def _of_order(order: int, row: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: row(order, x)


def _relative_entropy(x: Any, y: Any) -> Any:
    """Return x ln(x/y); 0 at x = 0 ≤ y, infinite outside of the domain, and nan of nan."""
    return _entropy(as_array(x), as_array(y), lambda x, y: 0.0)


def _divergence(x: Any, y: Any) -> Any:
    """Return x ln(x/y) - x + y, the Kullback-Leibler divergence of two elements."""
    return _entropy(as_array(x), as_array(y), lambda x, y: y - x)


def _entropy(x: Any, y: Any, beside: Callable[[Any, Any], Any]) -> Any:
    """Return x ln(x/y) plus ``beside(x, y)``, with SciPy's values at the edges."""
    positive = rows.logical_and(rows.greater(x, 0), rows.greater(y, 0))
    u, v = rows.where(positive, x, 1.0), rows.where(positive, y, 1.0)
    edge = rows.where(rows.logical_and(rows.equal(x, 0), y >= 0), beside(0.0, y), math.inf)
    entropy = rows.where(positive, u * rows.log(u / v) + beside(u, v), edge)
    return rows.where(rows.logical_or(rows.not_equal(x, x), rows.not_equal(y, y)), x + y, entropy)


def _huber(delta: Any, r: Any) -> Any:
    """Return r²/2 near 0 and delta (|r| - delta/2) beyond delta; infinite for negative delta."""
    size = rows.absolute(r)
    near, far = size * size / 2, delta * (size - delta / 2)
    return rows.where(rows.less(delta, 0), math.inf, rows.where(size <= delta, near, far))


def _pseudo_huber(delta: Any, r: Any) -> Any:
    """Return delta² (√(1 + (r/delta)²) - 1), computed without cancellation; 0 at delta = 0."""
    inside = rows.greater(delta, 0)
    finite = rows.where(rows.less(rows.absolute(r), math.inf), r, 0.0)
    loss = finite * finite / (1 + rows.hypot(1.0, finite / rows.where(inside, delta, 1.0)))
    loss = rows.where(rows.equal(finite, r), loss, rows.absolute(r))
    outside = rows.where(
        rows.less(delta, 0), math.inf, rows.where(rows.equal(delta, 0), 0.0, delta)
    )
    return rows.where(inside, loss, outside)


def _box_cox(x: Any, power_of: Any) -> Any:
    """Return (x^p - 1)/p, and ln x at p = 0."""
    return rows.log(x) * rows.exp_remainder(1, 0, power_of * rows.log(x))


def _inverse_box_cox(y: Any, power_of: Any) -> Any:
    """Return (1 + p y)^(1/p), and exp y at p = 0."""
    return rows.exp(y * rows.log_remainder(1, 0, power_of * y))


UFUNCS: Mapping[str, Callable[..., Any]] = {
    **{f"j{order}": _of_order(order, rows.besselj) for order in (0, 1)},
    **{f"y{order}": _of_order(order, rows.bessely) for order in (0, 1)},
    **{f"i{order}": _of_order(order, rows.besseli) for order in (0, 1)},
    **{f"k{order}": _of_order(order, rows.besselk) for order in (0, 1)},
    "betaincc": lambda a, b, x: rows.betainc(b, a, 1 - as_array(x)),
    "boxcox": _box_cox,
    "chdtr": lambda v, x: rows.gammainc(v / 2, x / 2),
    "chdtrc": lambda v, x: rows.gammaincc(v / 2, x / 2),
    "cosm1": lambda x: -rows.versine(x),
    "exp10": lambda x: rows.power(10.0, x),
    "exprel": lambda x: rows.exp_remainder(1, 0, x),
    "gdtr": lambda a, b, x: rows.gammainc(b, a * x),
    "gdtrc": lambda a, b, x: rows.gammaincc(b, a * x),
    "huber": _huber,
    "inv_boxcox": _inverse_box_cox,
    "kl_div": _divergence,
    "kn": rows.besselk,
    "log_expit": lambda x: -rows.softplus(-x),
    "pdtr": lambda k, m: rows.gammaincc(rows.floor(k) + 1, m),
    "pseudo_huber": _pseudo_huber,
    "rel_entr": _relative_entropy,
    "sici": lambda x: (rows.si(x), rows.ci(x)),
    "yn": rows.bessely,
}
"""SciPy's elementwise functions that are not rows of the table, by their names."""
