"""`prove`: a derivative graph agrees with FLINT's derivative everywhere on a box."""

from __future__ import annotations

import math
from collections.abc import Mapping
from time import perf_counter
from typing import Any, Literal

from difflab.autodiff import jacobian
from difflab.balls.limit import TIMEOUT, in_time, reached, shown_as
from difflab.errors import DifflabError, InputError, MethodTimeout, UnsupportedError
from difflab.graph.checks import require_timeout
from difflab.graph.function import Function
from difflab.language import parse
from difflab.proof.bounds import Box, as_function, box_of
from difflab.proof.certificate import Certificate, Verdict, leaves, versions

MOST_PIECES = 4096
"""Pieces at most."""
_UNWRITTEN = "a function that cannot be written as a formula has no certificate"
SMALLEST = 12
"""Halvings of an interval, at most: a kink stays in some piece, however small."""


def prove(
    f: str | Function,
    box: Mapping[str, Any],
    *,
    width: float = 1e-3,
    mode: Literal["auto", "forward", "reverse"] = "auto",
    timeout: float = TIMEOUT,
) -> Certificate:
    """Prove that difflab's derivative graph of a function is right everywhere on a box.

    The box is divided until, on each piece X with the centre c, the function has no kink, and
    the difference d of the derivative graph and FLINT's derivative satisfies
    ``d(X) ⊂ d(c) + d′(X)(X - c) ⊂ [-width, width]``, in ball arithmetic.

    Parameters
    ----------
    f : str or Function
        A formula, or a Function that can be written as one: the certificate states that text. Where
        it reads as another graph of the same function, that one is proved, too.
    box : mapping
        For every input a number, an array, or a tuple of two, as for `enclose`.
    width : float
        The allowed difference of each component.
    mode : {"auto", "forward", "reverse"}
        The mode of the derivative graph, as for `jacobian`.
    timeout : float
        Seconds after which the verdict is ``"undecided"``, and ``reason`` says how far it came.

    Returns
    -------
    Certificate
        ``proved`` says whether the graph is; ``verdict`` is ``"proved"``, ``"refuted"`` or
        ``"undecided"``. ``save(path)`` writes the data with which ``difflab check --certificate
        path`` checks it again.

    Raises
    ------
    InputError
        The formula, the box, the width or the time limit is invalid.
    UnsupportedError
        The function cannot be written as a formula, or python-flint is missing.

    Examples
    --------
    >>> import difflab as dl
    >>> certificate = dl.prove("ln(x1) + x1*x2 - sin(x2)", {"x1": (1, 1.5), "x2": (4.9, 5.1)})
    >>> certificate.proved, len(certificate.pieces) > 1
    (True, True)
    >>> print(dl.prove("abs(x)", {"x": (-1, 1)}))  # doctest: +ELLIPSIS
    undecided: kink in y: abs has a kink at 0; ...

    References
    ----------
    R. E. Moore, R. B. Kearfott and M. J. Cloud, Introduction to Interval Analysis, SIAM, 2009.
    """
    function = as_function(f, box)
    if not (isinstance(width, int | float) and 0 < width < math.inf):
        raise InputError(f"width must be a positive number, not {width!r}")
    require_timeout(timeout)
    until = perf_counter() + timeout
    written = _written(function)
    given = (str(written.text), box_of(function, box), float(width), mode)
    certificate = _in_time(function, *given, timeout=timeout)
    if written == function or certificate.verdict == "undecided":
        return certificate
    # The values are those of the text, because the text is checked again.
    stated = _in_time(written, *given, timeout=max(until - perf_counter(), 0.0))
    if stated.verdict != certificate.verdict and perf_counter() < until:
        raise UnsupportedError(f"{_UNWRITTEN}: it is {certificate}; read from its text, {stated}")
    return stated


def _written(function: Function) -> Function:
    """Return a function parsed from its text; the graph may differ, with the same values."""
    try:
        written = parse(function.text or str(function))
    except DifflabError as error:
        raise UnsupportedError(f"{_UNWRITTEN}: {error}") from None
    if (written.input_shapes, written.m) != (function.input_shapes, function.m):
        raise UnsupportedError(f"{_UNWRITTEN}: its text has other inputs or outputs")
    return written


def _in_time(function: Function, *given: Any, timeout: float) -> Certificate:
    """Return the certificate; an undecided one if a call of FLINT does not return."""
    try:
        with shown_as("prove"):
            certificate: Certificate = in_time(_certificate, function, *given, timeout=timeout)
    except MethodTimeout as error:
        text, box, width, mode = given
        return _undecided(text, box, width, mode, str(error))
    return certificate


def _certificate(
    function: Function,
    text: str,
    box: Box,
    width: float,
    mode: Literal["auto", "forward", "reverse"],
) -> Certificate:
    """Divide the box until every piece is proved, one is refuted, or the pieces are too many."""
    from difflab.proof.difference import BITS, Bounded, bounded, least_at

    derivative = jacobian(function, mode)
    splits: dict[str, int] = {}
    proved: dict[str, Bounded] = {}
    waiting = [("", box)]
    verdict: Verdict = "proved"
    point: list[float] = []
    difference = 0.0
    while waiting:
        path, part = waiting.pop()
        reached(f"{len(proved)} pieces are proved, and {len(waiting) + 1} are not yet")
        bounds = bounded(function, derivative, part)
        if bounds.smooth and bounds.difference <= width:
            proved[path] = bounds
            difference = max(difference, bounds.difference)
            continue
        middle = [low + (high - low) / 2 for low, high in part]
        if (least := least_at(function, derivative, middle)) > width:
            verdict, point, difference = "refuted", middle, least
            break
        axis = _longest(part, box)
        if axis is None or len(splits) + 2 > MOST_PIECES:
            reason = _reason(function, part, bounds.smooth, bounds.difference)
            return _undecided(text, box, width, mode, reason, difference)
        splits[path] = axis
        halves = list(leaves(part, {"": axis}))
        waiting += [(path + digit, half) for digit, half in reversed(halves)]
    done = verdict == "proved"
    paths = [path for path, _ in leaves(box, splits)] if done else []
    return Certificate(
        verdict=verdict,
        text=text,
        mode=mode,
        box=box,
        width=width,
        splits=splits if done else {},
        pieces=[_piece(proved[path]) for path in paths],
        point=point,
        difference=difference,
        reason="",
        bits=BITS,
        versions=versions(),
    )


def _undecided(
    text: str, box: Box, width: float, mode: str, reason: str, difference: float = 0.0
) -> Certificate:
    """Return a certificate that proves nothing, with the reason."""
    from difflab.proof.difference import BITS

    return Certificate(
        verdict="undecided",
        text=text,
        mode=mode,
        box=box,
        width=width,
        splits={},
        pieces=[],
        point=[],
        difference=difference,
        reason=reason,
        bits=BITS,
        versions=versions(),
    )


def _piece(bounds: Any) -> dict[str, Any]:
    return {"lower": bounds.lower, "upper": bounds.upper, "difference": bounds.difference}


def _longest(part: Box, box: Box) -> int | None:
    """Return the input whose interval was halved least; None if all were halved often."""
    shares = [
        (high - low) / (right - left) if right > left else 0.0
        for (low, high), (left, right) in zip(part, box, strict=True)
    ]
    longest = max(shares, default=0.0)
    return shares.index(longest) if longest > 2.0**-SMALLEST else None


def _reason(function: Function, part: Box, smooth: bool, difference: float) -> str:
    """Return why a piece is not proved."""
    from difflab.balls.enclosing import enclosed

    if smooth:
        return f"on {part} the graph may differ by {difference:.3g}"
    obstacles = enclosed(function, part).obstacles  # it stops at the time limit, too
    return str(obstacles[0]) if obstacles else f"the function may not be smooth on {part}"
