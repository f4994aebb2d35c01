"""Quotients of Taylor remainders: numerators cancel near 0, and more so in each derivative.

Each entry is a plain and a stable form as text, a point at which the plain one is wrong, and the
two as functions. At 0, where the plain form is nan, the stable one is its limit.
"""

from __future__ import annotations

from typing import Any

from difflab.primitives import (
    absolute,
    cos,
    cos_remainder,
    cosh,
    cosh_remainder,
    exp_remainder,
    expm1,
    less,
    log1p,
    log_remainder,
    sech,
    sin,
    sinh,
    tan,
    tanh,
    versine,
    where,
)
from difflab.stabilisation.matching import NodeFunction

__all__ = ["REMAINDERS"]

Entry = tuple[str, str, dict[str, Any], NodeFunction, NodeFunction]

REMAINDERS: tuple[Entry, ...] = (
    (
        "(exp(x) - 1)/x",
        "exp_remainder(1, 0, x)",
        {"x": 1e-5},
        lambda x: expm1(x) / x,
        lambda x: exp_remainder(1, 0, x),
    ),
    (
        "(exp(x) - 1 - x)/x^2",
        "exp_remainder(2, 0, x)",
        {"x": 1e-5},
        lambda x: (expm1(x) - x) / x**2,
        lambda x: exp_remainder(2, 0, x),
    ),
    (
        "ln(1 + x)/x",
        "log_remainder(1, 0, x)",
        {"x": 1e-5},
        lambda x: log1p(x) / x,
        lambda x: log_remainder(1, 0, x),
    ),
    (
        "sin(x)/x",
        "cos_remainder(1, 0, x)",
        {"x": 1e-5},
        lambda x: sin(x) / x,
        lambda x: cos_remainder(1, 0, x),
    ),
    (
        "tan(x)/x",
        "cos_remainder(1, 0, x)/cos(x)",
        {"x": 1e-5},
        lambda x: tan(x) / x,
        lambda x: cos_remainder(1, 0, x) / cos(x),
    ),
    (
        "(1 - cos(x))/x^2",
        "cos_remainder(2, 0, x)",
        {"x": 1e-5},
        lambda x: versine(x) / x**2,
        lambda x: cos_remainder(2, 0, x),
    ),
    (
        "(1 - cos(x))/x",
        "x·cos_remainder(2, 0, x)",
        {"x": 1e-5},
        lambda x: versine(x) / x,
        lambda x: x * cos_remainder(2, 0, x),
    ),
    (
        "(x - sin(x))/x^3",
        "cos_remainder(3, 0, x)",
        {"x": 1e-3},
        lambda x: (x - sin(x)) / x**3,
        lambda x: cos_remainder(3, 0, x),
    ),
    (
        "(sin(x) - x)/x^3",
        "-cos_remainder(3, 0, x)",
        {"x": 1e-3},
        lambda x: (sin(x) - x) / x**3,
        lambda x: -cos_remainder(3, 0, x),
    ),
    (
        "sinh(x)/x",
        "cosh_remainder(1, 0, x)",
        {"x": 1e-5},
        lambda x: sinh(x) / x,
        lambda x: cosh_remainder(1, 0, x),
    ),
    (
        "(cosh(x) - 1)/x^2",
        "cosh_remainder(2, 0, x)",
        {"x": 1e-3},
        lambda x: (cosh(x) - 1) / x**2,
        lambda x: cosh_remainder(2, 0, x),
    ),
    (
        "(sinh(x) - x)/x^3",
        "cosh_remainder(3, 0, x)",
        {"x": 1e-3},
        lambda x: (sinh(x) - x) / x**3,
        lambda x: cosh_remainder(3, 0, x),
    ),
    (
        "(x - sinh(x))/x^3",
        "-cosh_remainder(3, 0, x)",
        {"x": 1e-3},
        lambda x: (x - sinh(x)) / x**3,
        lambda x: -cosh_remainder(3, 0, x),
    ),
    (
        "tanh(x)/x",
        "cosh_remainder(1, 0, x)·sech(x) for |x| < 2",
        {"x": 1e-5},
        lambda x: tanh(x) / x,
        lambda x: where(
            less(absolute(x), 2),
            cosh_remainder(1, 0, x) * sech(x),  # overflows far out, where no digit is lost
            (1 / x) * tanh(x),  # another form than the plain one, which would be rewritten again
        ),
    ),
)
