"""Coefficients of embedded Runge-Kutta pairs: Dormand & Prince's 5(4) and 8(5,3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from difflab.primitives import where


@dataclass(frozen=True)
class Tableau:
    """A pair: the stages after the first, the weights, and the weights of error estimates.

    Attributes
    ----------
    order, error_order : int
        The order of the result and of its error estimate.
    evaluations : int
        Evaluations of f in a step.
    nodes, rows, weights : tuple
        c, a and b in Butcher's notation; the first stage has no node and no row.
    errors : tuple of tuple
        The weights of one estimate of the error, or of two that are combined; the last one is for
        f after the step.
    """

    order: int
    error_order: int
    evaluations: int
    nodes: tuple[float, ...]
    rows: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    errors: tuple[tuple[float, ...], ...]

    def norm(self, squares: Sequence[Any]) -> Any:
        """Return the error relative to the tolerance, from the mean squares of the estimates.

        Two of them are combined as in DOP853 (Hairer, Nørsett & Wanner, II.10).
        """
        if len(squares) == 1:
            return np.sqrt(squares[0])
        fifth, third = squares
        total = fifth + 0.01 * third
        return where(total == 0.0, 0.0, fifth / np.sqrt(where(total == 0.0, 1.0, total)))


def _numbers(text: str) -> tuple[float, ...]:
    """Return the floats of a text."""
    return tuple(map(float, text.split()))


def _triangle(text: str) -> tuple[tuple[float, ...], ...]:
    """Return the rows of a lower triangle, of one number, of two, and so on."""
    numbers = iter(_numbers(text))
    rows: list[tuple[float, ...]] = []
    for first in numbers:
        rows.append((first, *islice(numbers, len(rows))))
    return tuple(rows)


# Dormand & Prince, "A family of embedded Runge-Kutta formulae", J. Comput. Appl. Math. 6, 1980.
_RK45 = Tableau(
    order=5,
    error_order=4,
    evaluations=6,
    nodes=(1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0),
    rows=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    weights=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    errors=((-71 / 57600, 0.0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40),),
)

# DOP853: Hairer, Nørsett & Wanner, "Solving Ordinary Differential Equations I", 2nd ed., II.10;
# the pair of Prince & Dormand, J. Comput. Appl. Math. 7, 1981, with error estimates of order 5, 3.
_DOP853 = Tableau(
    order=8,
    error_order=7,
    evaluations=12,
    nodes=_numbers(
        """
0.05260015195876773 0.0789002279381516 0.1183503419072274 0.2816496580927726 0.3333333333333333
0.25 0.3076923076923077 0.6512820512820513 0.6 0.8571428571428571 1.0
"""
    ),
    rows=_triangle(
        """
0.05260015195876773 0.0197250569845379 0.0591751709536137 0.02958758547680685 0
0.08876275643042054 0.2413651341592667 0 -0.8845494793282861 0.924834003261792
0.037037037037037035 0 0 0.17082860872947386 0.12546768756682242 0.037109375 0 0
0.17025221101954405 0.06021653898045596 -0.017578125 0.03709200011850479 0 0 0.17038392571223998
0.10726203044637328 -0.015319437748624402 0.008273789163814023 0.6241109587160757 0 0
-3.3608926294469414 -0.868219346841726 27.59209969944671 20.154067550477894 -43.48988418106996
0.47766253643826434 0 0 -2.4881146199716677 -0.590290826836843 21.230051448181193
15.279233632882423 -33.28821096898486 -0.020331201708508627 -0.9371424300859873 0 0
5.186372428844064 1.0914373489967295 -8.149787010746927 -18.52006565999696 22.739487099350505
2.4936055526796523 -3.0467644718982196 2.273310147516538 0 0 -10.53449546673725
-2.0008720582248625 -17.9589318631188 27.94888452941996 -2.8589982771350235 -8.87285693353063
12.360567175794303 0.6433927460157636
"""
    ),
    weights=_numbers(
        """
0.054293734116568765 0 0 0 0 4.450312892752409 1.8915178993145003 -5.801203960010585
0.3111643669578199 -0.1521609496625161 0.20136540080403034 0.04471061572777259
"""
    ),
    errors=(
        _numbers(
            """
0.01312004499419488 0 0 0 0 -1.2251564463762044 -0.4957589496572502 1.6643771824549864
-0.35032884874997366 0.3341791187130175 0.08192320648511571 -0.022355307863886294 0
"""
        ),
        _numbers(
            """
-0.18980075407240762 0 0 0 0 4.450312892752409 1.8915178993145003 -5.801203960010585
-0.4226823213237919 -0.1521609496625161 0.20136540080403034 0.02265179219836082 0
"""
        ),
    ),
)

TABLEAUX = {"rk45": _RK45, "dopri8": _DOP853}
