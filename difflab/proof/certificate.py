"""Certificates: what is needed to check a proof again, as JSON, and the check."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from difflab.autodiff.functions.transforms import jacobian
from difflab.core.files import write_whole
from difflab.core.strict_json import dumps, strict
from difflab.core.wording import counted
from difflab.errors import DifflabError, InputError
from difflab.graph.function import Function
from difflab.language import parse

__all__ = ["SCHEMA", "Certificate", "checked", "leaves", "read_certificate"]

SCHEMA = "difflab.certificate/1"
Box = list[tuple[float, float]]
Verdict = Literal["proved", "refuted", "undecided"]


@dataclass(frozen=True)
class Certificate:
    """A statement about a derivative graph over a box, with what proves it.

    Attributes
    ----------
    verdict : str
        ``"proved"``: the function is smooth on the box, and no component of the derivative graph
        differs from the derivative by more than `width`; ``"refuted"``: one does, at `point`;
        ``"undecided"``: neither could be shown, for the `reason`.
    text : str
        The function, a program of the language.
    mode : str
        The mode of the derivative graph.
    box : list of (float, float)
        The interval of each flattened input.
    width : float
        The allowed difference.
    splits : dict of str to int
        The input whose interval was halved, for each box that was divided: by its path from the
        whole box, a digit 0 or 1 for the lower and the upper half.
    pieces : list of dict
        For each box that was not divided, from the lowest path: ``lower`` and ``upper`` bounds of
        the derivative's components, and the largest ``difference``.
    point : list of float
        Where the graph differs; empty unless refuted.
    difference : float
        The largest difference that is possible, or, if refuted, the least one at the point.
    reason : str
        Why it is undecided.
    bits : int
        The precision.
    versions : dict of str to str
        Of difflab, python-flint and FLINT.
    """

    verdict: Verdict
    text: str
    mode: str
    box: Box
    width: float
    splits: dict[str, int]
    pieces: list[dict[str, Any]]
    point: list[float]
    difference: float
    reason: str
    bits: int
    versions: dict[str, str]
    schema: str = field(default=SCHEMA)

    @property
    def proved(self) -> bool:
        """Whether the derivative graph is proved to agree."""
        return self.verdict == "proved"

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as strict JSON values."""
        found: dict[str, Any] = strict(self)
        return found

    def save(self, path: str | Path) -> None:
        """Write the certificate to a file, which ``difflab check --certificate`` checks."""
        write_whole({Path(path): (dumps(self.to_dict()) + "\n").encode()})

    def __str__(self) -> str:
        if self.verdict == "undecided":
            return f"undecided: {self.reason}"
        if self.verdict == "refuted":
            return f"refuted: at {self.point} the graph differs by at least {self.difference:.3g}"
        pieces = counted(len(self.pieces), "piece")
        return f"proved: smooth, and no component differs by more than {self.width:g}, on {pieces}"


def leaves(box: Box, splits: Mapping[str, int]) -> Iterator[tuple[str, Box]]:
    """Yield the path and the box of each piece; together they cover the box.

    Examples
    --------
    >>> list(leaves([(0.0, 4.0)], {"": 0, "1": 0}))
    [('0', [(0.0, 2.0)]), ('10', [(2.0, 3.0)]), ('11', [(3.0, 4.0)])]
    """
    waiting = [("", list(box))]
    while waiting:
        path, part = waiting.pop()
        if path not in splits:
            yield path, part
            continue
        axis = splits[path]
        low, high = part[axis]
        middle = low + (high - low) / 2
        for digit, side in (("1", (middle, high)), ("0", (low, middle))):
            half = list(part)
            half[axis] = side
            waiting.append((path + digit, half))


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate.

    Raises
    ------
    InputError
        The file cannot be read, or it is no certificate.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the certificate '{path}': {error}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(f"'{path}' is not a certificate", hint=f'its "schema" must be "{SCHEMA}"')
    try:
        found["box"] = [(float(low), float(high)) for low, high in found["box"]]
        found["difference"], found["width"] = float(found["difference"]), float(found["width"])
        found["splits"] = {str(path): int(axis) for path, axis in found["splits"].items()}
        known = Certificate(**found)
        axes = range(len(known.box))
        if not all(axis in axes for axis in known.splits.values()):
            raise ValueError("a box is divided along an input that it does not have")
        if not all(isinstance(piece, dict) for piece in known.pieces):
            raise ValueError("a piece is not an object")
        if not all(-math.inf < low <= high < math.inf for low, high in known.box):
            raise ValueError("an interval of the box is not bounded, or its ends are exchanged")
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"'{path}' is a damaged certificate: {error}") from None
    return known


def checked(certificate: Certificate) -> str:
    """Compute a certificate's statement again; return why it does not hold, empty if it does.

    Only the text, the box and its division are used; everything else is computed again.
    """
    try:
        function = parse(certificate.text)
        derivative = jacobian(function, certificate.mode)  # type: ignore[arg-type]
    except DifflabError as error:
        return f"its function cannot be differentiated: {error}"
    if len(certificate.box) != function.n:
        return f"its box has {len(certificate.box)} intervals for {function.n} inputs"
    if certificate.verdict == "refuted":
        return _refuted(certificate, function, derivative)
    if certificate.verdict != "proved":
        return f"it proves nothing: {certificate.reason}"
    return _proved(certificate, function, derivative)


def _refuted(certificate: Certificate, function: Function, derivative: Function) -> str:
    from difflab.proof.difference import least_at

    x = certificate.point
    inside = len(x) == function.n and all(
        low <= number <= high for number, (low, high) in zip(x, certificate.box, strict=True)
    )
    if not inside:
        return "its point is not in the box"
    least = least_at(function, derivative, x)
    if least > certificate.width:
        return ""
    return f"at its point the graph may differ by only {least:.3g}"


def _proved(certificate: Certificate, function: Function, derivative: Function) -> str:
    from difflab.proof.difference import bounded

    pieces = list(leaves(certificate.box, certificate.splits))
    if len(pieces) != len(certificate.pieces):
        return f"it has {len(certificate.pieces)} pieces, and its box {len(pieces)}"
    for (_, box), stated in zip(pieces, certificate.pieces, strict=True):
        found = bounded(function, derivative, box)
        if not found.smooth:
            return f"the function may not be smooth on {box}"
        if not found.difference <= certificate.width:
            return f"on {box} the graph may differ by {found.difference:.3g}"
        lower, upper = stated.get("lower"), stated.get("upper")
        if not _overlap(found.lower, found.upper, lower, upper):
            return f"on {box} it states bounds that exclude the derivative"
    return ""


def _overlap(low: list[float], high: list[float], lower: Any, upper: Any) -> bool:
    """Whether the intervals of two lists overlap, each with its counterpart."""
    if not isinstance(lower, list) or not isinstance(upper, list):
        return False
    if not len(low) == len(lower) == len(upper):
        return False
    pairs = zip(low, high, lower, upper, strict=True)
    return all(
        isinstance(c, int | float) and isinstance(d, int | float) and max(a, c) <= min(b, d)
        for a, b, c, d in pairs
    )
