"""`richardson`: central differences extrapolated to step zero, with an error that holds.

A central quotient has the error series ``a_1 h^2 + a_2 h^4 + ...``. From quotients at
``h, h/2, h/4, ...`` Richardson's tableau removes one power after another, so that steps
large enough to be free of rounding give nearly all digits. The entry of the tableau with
the smallest sum of truncation and rounding error is used; if only one side of x is inside
the domain, the same is done with one-sided quotients, whose series has all powers.

The error estimate is twice the sum of

- the difference from the entry of lower order, which is the error of *that* entry
  (Ridders' rule, an overestimate), at least a thousandth of the difference before it,
- the rounding of the values and their noise near x, carried through the weights;

and at least half the difference of the one-sided derivatives, so that a kink, where
central quotients agree at every step, is not mistaken for a derivative.

Sources: L. F. Richardson and J. A. Gaunt, *The deferred approach to the limit*, Phil.
Trans. A 226 (1927); C. Ridders, *Accurate computation of F'(x) and F'(x) F''(x)*, Adv.
Eng. Software 4 (1982); *Numerical Recipes* 5.7.
"""

from __future__ import annotations

from difflab.differences.extrapolation import EVEN, FULL, extrapolated
from difflab.differences.rules import DifferenceRule, SecondRule
from difflab.methods.numeric.finite import Differences, steps

RICHARDSON = Differences(
    name="richardson",
    summary="central differences extrapolated to step zero, adaptive, with an error estimate",
    rule=DifferenceRule(
        # The odd factor keeps steps from falling on the period of a function at a round x.
        units=steps(0.317, 2.0, 7),
        central=extrapolated(7, 2.0, EVEN, 5, 0),
        onesided=extrapolated(7, 2.0, FULL, 5, 0),
        tolerance=1e-9,
        strict=True,
        fine_units=steps(8.0, 2.0, 10),
        fine_central=extrapolated(10, 2.0, EVEN, 5),
        fine_onesided=extrapolated(10, 2.0, FULL, 6),
        from_onset=True,
    ),
    second=SecondRule(
        units=steps(0.317, 2.0, 7),
        central=extrapolated(7, 2.0, EVEN, 5),
        onesided=extrapolated(7, 2.0, FULL, 5),
        tolerance=1e-7,
    ),
)
