"""Proved derivatives at a point, and whether the differences of values agree with them.

Ball arithmetic encloses a derivative by FLINT's expansions (`difflab.balls`). Differences of values
are the second witness, and the only one at kinks. Neither uses a derivative rule of difflab.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from time import perf_counter
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.balls.limit import in_time
from difflab.errors import DifflabError, MissingDependencyError
from difflab.graph.counts import operation_count
from difflab.referee.limits import Regularity, worst
from difflab.referee.ulp import nearest

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.referee.referee import Reference


BITS = (256, 512, 1024, 2048)
"""Working precisions, one after the other until every derivative is proved to `SHARP`."""
DIGITS = int(BITS[0] * math.log10(2))
"""Decimal digits of the first of them."""
SHARP = 2.0**-100
"""The largest radius of a proved derivative over its size: thirty digits."""
SMALLEST = 2.0**-1074
"""What is proved to be less than half of it rounds to zero; whether it is zero is undecidable."""
RESOLVED, MARGIN = 1e-20, 1000.0
"""The relative error of resolved differences of values, which aim at a hundred thousandth of it,
and by how much their absolute error may exceed its estimate."""
OPERATION = 1e-6
"""Seconds of one operation, for each derivative that it carries."""
INPUTS = 64
"""Inputs that one evaluation differentiates with respect to; the clock is read in between."""

Ball = Any  # of FLINT
MpReal = Any  # an mpmath number


@dataclass(frozen=True, eq=False)
class Proof:
    """Enclosures of a derivative: ``(m, n)``, or the Hessian ``(n, n)``.

    Attributes
    ----------
    exact : ndarray of mpf
        The midpoints; nan where nothing is proved.
    bounds : ndarray of float64
        The radii, rounded up; infinite where nothing is proved.
    digits : ndarray of int
        The significant decimal digits, as many as the first precision has where it is exact.
    """

    exact: NDArray[Any]
    bounds: NDArray[float64]
    digits: NDArray[np.int64]

    @classmethod
    def blank(cls, shape: tuple[int, int]) -> Proof:
        """Return a proof of nothing."""
        return cls(
            np.full(shape, mpmath.nan, dtype=object), np.full(shape, math.inf), np.zeros(shape, int)
        )

    @property
    def proved(self) -> NDArray[np.bool_]:
        """The elements that are enclosed."""
        return np.isfinite(self.bounds)

    def state(self, index: tuple[int, int], ball: Ball) -> bool:
        """Record the enclosure of an element if it is sharp, and return whether it is."""
        middle, radius = ball.mid(), ball.rad()
        known = bool(ball.is_finite() and radius <= abs(middle) * SHARP)
        sharp = known or bool(2 * ball.abs_upper() < SMALLEST)
        if sharp:
            digits, exponent = map(int, middle.man_exp()) if known else (0, 0)
            # Without rounding.
            self.exact[index] = mpmath.mp.make_mpf(mpmath.libmp.from_man_exp(digits, exponent))
            self.bounds[index] = math.nextafter(float(radius), math.inf) if radius > 0 else 0.0
            accuracy = int(ball.rel_accuracy_bits() * math.log10(2))
            self.digits[index] = min(accuracy, DIGITS) if known else DIGITS
        return sharp


def prove(function: Function, point: Sequence[float], order: int, seconds: float) -> Proof:
    """Enclose the derivative at a point, as far as it is smooth.

    Parameters
    ----------
    function : Function
        The function of n flattened inputs; for order 2, of a single output.
    point : sequence of float
        The flattened inputs.
    order : int
        1 for the Jacobian, 2 for the Hessian.
    seconds : float
        After this time no evaluation is begun, and the missing elements are not proved.
        Nothing is proved without python-flint, and of a function that cannot be recorded.

    Examples
    --------
    >>> import difflab as dl
    >>> proof = prove(dl.parse("[x*y, abs(y - 1)]"), [1 / 3, 1.0], order=1, seconds=10)
    >>> proof.proved.tolist()  # |y - 1| has a kink
    [[True, True], [False, False]]
    """
    n = len(point)
    proof = Proof.blank((function.m, n) if order == 1 else (n, n))
    together = INPUTS if order == 1 else max(n, 1)  # a pair of inputs is in one block
    if OPERATION * operation_count(function) * min(n, together) ** order > seconds:
        return proof
    blocks = [range(n)[start : start + together] for start in range(0, n, together)]
    asked = proof, blocks, point, order, seconds
    with suppress(DifflabError):  # a call of FLINT did not return, or there is no FLINT
        proof = in_time(_proved, function, *asked, timeout=seconds)
    return proof


@contextmanager
def roots_at(function: Function, points: NDArray[float64]) -> Iterator[None]:
    """Find the roots in a function at points in one batch, for `prove` at each of them."""
    try:
        from difflab.balls.roots import approximated
    except MissingDependencyError:  # without FLINT nothing is proved
        yield
        return
    with approximated(function, points):
        yield


def _proved(
    function: Function,
    proof: Proof,
    blocks: Sequence[Sequence[int]],
    point: Sequence[float],
    order: int,
    seconds: float,
) -> Proof:
    """Raise the precision until every derivative is sharp, or the time is over."""
    until = perf_counter() + seconds
    with suppress(DifflabError):
        for bits in BITS:
            blocks = [
                block
                for block in blocks
                if perf_counter() < until
                and not _stated(proof, function, point, bits, order, block)
            ]
    return proof


def _stated(
    proof: Proof,
    function: Function,
    point: Sequence[float],
    bits: int,
    order: int,
    block: Sequence[int],
) -> bool:
    """Record the enclosures at a precision; return whether a higher one can add nothing."""
    from difflab.balls.evaluation import evaluated
    from difflab.balls.library import arb, precision

    zero = arb(0)
    done = True
    outputs = evaluated(function, [arb(x) for x in point], bits, order, block)
    with precision(bits):
        for row, output in enumerate(outputs):
            if output.fault is not None:
                done = done and output.fault.certain
            elif order == 1:
                for place in block:
                    done &= proof.state((row, place), arb(output.slopes.get(place, zero)))
            else:
                curves = output.curves or {}
                for i, j in combinations_with_replacement(block, 2):
                    ball = arb(curves.get((i, j), zero))
                    done &= proof.state((i, j), ball) and proof.state((j, i), ball)
    return done


def combined(reference: Reference, proof: Proof) -> Reference:
    """Return a reference by differences in which proved elements replace the computed ones.

    Where the two exclude each other neither is used, and `Reference.contradiction` reports it.
    """
    proved = proof.proved
    if not proved.any():
        return reference
    resolved = reference.regularity != str(Regularity.UNRESOLVED)
    opposed = proved & resolved & ~_consistent(reference, proof)
    taken = proved & ~opposed
    exact, left, right = (
        np.where(taken, proof.exact, part)
        for part in (reference.exact, reference.left, reference.right)
    )
    regularity = reference.regularity.astype(object)
    regularity[taken], regularity[opposed] = str(Regularity.SMOOTH), str(Regularity.UNRESOLVED)
    rows = taken.all(axis=1)
    digits = int(np.min(proof.digits, where=proved, initial=DIGITS))
    return replace(
        reference,
        exact=exact,
        left=left,
        right=right,
        bounds=np.where(taken, proof.bounds, reference.bounds),
        regularity=regularity.astype(str),
        digits=digits if taken.all() else min(digits, reference.digits),
        status=worst(regularity),
        linear=reference.linear | (rows if reference.order == 1 else rows.all()),
        proved=taken,
        contradiction=_contradiction(reference, proof, opposed) if opposed.any() else "",
    )


def _consistent(reference: Reference, proof: Proof) -> NDArray[np.bool_]:
    """Return the mask of elements on which both agree, to the resolution of differences."""
    smooth: NDArray[np.bool_] = reference.regularity == str(Regularity.SMOOTH)
    near = np.zeros(smooth.shape, dtype=bool)
    for index in map(tuple, np.argwhere(smooth & proof.proved).tolist()):
        gap = abs(proof.exact[index] - reference.exact[index])
        own = MARGIN * reference.bounds[index] + RESOLVED * abs(reference.exact[index])
        near[index] = gap <= proof.bounds[index] + own
    return near


def _contradiction(reference: Reference, proof: Proof, opposed: NDArray[np.bool_]) -> str:
    """Return a text with both values of the first element on which the references differ."""
    index = tuple(np.argwhere(opposed)[0].tolist())
    enclosed, differenced = nearest(proof.exact[index]), nearest(reference.exact[index])
    return (
        f"ball arithmetic proves {enclosed:.17g} for element {list(index)}, and differences of "
        f"values give {differenced:.17g} ({reference.regularity[index]}): one of the two is wrong"
    )
