"""Certificates: the data of a proof that can be checked again, as JSON, and the check.

The text, the mode, the box and its division say what to compute; every other field is compared with
the result. A certificate of the versions that check it must be the one that they make, number by
number. One of other versions may state less than is proved now, never more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from difflab.autodiff import jacobian
from difflab.core.strict_json import dumps, strict
from difflab.core.system import write_whole
from difflab.core.wording import counted
from difflab.errors import DifflabError, InputError
from difflab.graph.function import Function
from difflab.language import parse

SCHEMA = "difflab.certificate/1"
Box = list[tuple[float, float]]
Verdict = Literal["proved", "refuted", "undecided"]


@dataclass(frozen=True)
class Certificate:
    """A statement about a derivative graph over a box, with its proof.

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
        fields: dict[str, Any] = strict(self)
        return fields

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
    return ((path, part) for path, part in _parts(box, splits) if path not in splits)


def _parts(box: Box, splits: Mapping[str, int]) -> Iterator[tuple[str, Box]]:
    """Yield the path and the box of everything that a division makes, divided or not."""
    waiting = [("", list(box))]
    while waiting:
        path, part = waiting.pop()
        yield path, part
        if path not in splits:
            continue
        axis = splits[path]
        low, high = part[axis]
        middle = low + (high - low) / 2
        for digit, side in (("1", (middle, high)), ("0", (low, middle))):
            half = list(part)
            half[axis] = side
            waiting.append((path + digit, half))


def versions() -> dict[str, str]:
    """Return the versions that a proof depends on."""
    from difflab import __version__
    from difflab.balls.library import FLINT_VERSION, PYTHON_FLINT_VERSION

    return {"difflab": __version__, "python-flint": PYTHON_FLINT_VERSION, "FLINT": FLINT_VERSION}


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate.

    Raises
    ------
    InputError
        The file cannot be read, or it is no certificate.
    """
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read the certificate '{path}': {error}") from None
    if not isinstance(fields, dict) or fields.get("schema") != SCHEMA:
        raise InputError(f"'{path}' is not a certificate", hint=f'its "schema" must be "{SCHEMA}"')
    try:
        fields["box"] = [(float(low), float(high)) for low, high in fields["box"]]
        fields["difference"], fields["width"] = float(fields["difference"]), float(fields["width"])
        fields["point"] = [float(number) for number in fields["point"]]
        fields["splits"] = {str(path): int(axis) for path, axis in fields["splits"].items()}
        known = Certificate(**fields)
        _require_kinds(known)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise InputError(f"'{path}' is a damaged certificate: {error}") from None
    return known


def _require_kinds(known: Certificate) -> None:
    """Raise `ValueError` unless every field holds values of its kind."""
    for name in ("verdict", "text", "mode", "reason"):
        if not isinstance(getattr(known, name), str):
            raise ValueError(f"{name} is not a text")
    if not isinstance(known.bits, int):
        raise ValueError("bits is not an integer")
    if not isinstance(known.versions, dict):
        raise ValueError("versions is not an object")
    axes = range(len(known.box))
    if not all(axis in axes for axis in known.splits.values()):
        raise ValueError("a box is divided along an input that it does not have")
    if not all(isinstance(piece, dict) for piece in known.pieces):
        raise ValueError("a piece is not an object")
    if not all(-math.inf < low <= high < math.inf for low, high in known.box):
        raise ValueError("an interval of the box is not bounded, or its ends are exchanged")


def checked(certificate: Certificate) -> str:
    """Compute a certificate's statement again; return why it does not hold, empty if it does.

    The reason begins with the name of the field that is wrong.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import difflab as dl
    >>> proof = dl.prove("x^2", {"x": (1, 2)})
    >>> checked(proof), checked(replace(proof, difference=123.0))
    ('', 'difference: 123.0 is stated, and 0.0 is computed')
    """
    failures = _failures(certificate)
    return next(failures, "")


def _failures(stated: Certificate) -> Iterator[str]:
    """Yield the reasons why a certificate fails; later ones may follow from earlier ones."""
    from difflab.proof.difference import BITS

    if stated.verdict not in get_args(Verdict):
        yield f"verdict: there is no verdict {stated.verdict!r}"
    if stated.verdict == "undecided":
        yield f"verdict: it is undecided, so it proves nothing: {stated.reason}"
    if not 0 < stated.width < float("inf"):
        yield f"width: {stated.width} is no positive number"
    if stated.bits != BITS:
        yield f"bits: {stated.bits} are stated, and it is computed with {BITS}"
    known = versions()
    if set(stated.versions) != set(known):
        yield f"versions: those of {', '.join(known)} are not stated"
    if stated.reason:
        yield "reason: there is one only if the verdict is undecided"
    try:
        function = parse(stated.text)
    except DifflabError as error:
        yield f"text: it is no function that can be differentiated: {error}"
        return
    try:
        derivative = jacobian(function, stated.mode)  # type: ignore[arg-type]
    except DifflabError as error:
        yield f"mode: the function cannot be differentiated: {error}"
        return
    if len(stated.box) != function.n:
        yield f"box: it has {len(stated.box)} intervals for {function.n} inputs"
        return
    check = _Check(stated, function, derivative, same=stated.versions == known)
    yield from check.refuted() if stated.verdict == "refuted" else check.proved()


@dataclass(frozen=True)
class _Check:
    """A certificate and the graphs of its text.

    Attributes
    ----------
    same : bool
        Whether the versions that made it are those that check it.
    """

    stated: Certificate
    function: Function
    derivative: Function
    same: bool

    def refuted(self) -> Iterator[str]:
        """Yield why the graph may be right."""
        from difflab.proof.difference import least_at

        stated, x = self.stated, self.stated.point
        inside = len(x) == self.function.n and all(
            low <= number <= high for number, (low, high) in zip(x, stated.box, strict=True)
        )
        if not inside:
            what = "point: it is" if x else "verdict: it is refuted at a point, which is"
            yield f"{what} not in the box"
            return
        if stated.splits or stated.pieces:
            yield "pieces: the box of a refuted certificate is not divided"
        least = least_at(self.function, self.derivative, x)
        if not least > stated.width:
            yield f"verdict: at its point the graph may differ by only {least:.3g}"
        yield from self._compared("difference", stated.difference, least, least_claimed=True)

    def proved(self) -> Iterator[str]:
        """Yield why the graph may be wrong, or the statement another one."""
        from difflab.proof.difference import bounded

        stated = self.stated
        if stated.point:
            yield "point: a proved certificate has none"
        pieces = list(leaves(stated.box, stated.splits))
        if len(self._divided()) != len(stated.splits):
            yield "splits: a box is divided that is no part of the whole one"
        if len(pieces) != len(stated.pieces):
            yield f"splits: they make {len(pieces)} pieces, and {len(stated.pieces)} are stated"
            return
        largest = 0.0
        for number, ((_, box), piece) in enumerate(zip(pieces, stated.pieces, strict=True)):
            bounds = bounded(self.function, self.derivative, box)
            if not bounds.smooth:
                yield f"verdict: the function may not be smooth on {box}"
                return
            if not bounds.difference <= stated.width:
                yield f"width: on {box} the graph may differ by {bounds.difference:.3g}"
            yield from self._piece(f"pieces[{number}]", piece, bounds)
            largest = max(largest, bounds.difference)
        yield from self._compared("difference", stated.difference, largest)
        yield from self._needless()

    def _divided(self) -> list[Box]:
        """Return the boxes that are divided."""
        splits = self.stated.splits
        return [box for path, box in _parts(self.stated.box, splits) if path in splits]

    def _needless(self) -> Iterator[str]:
        """Yield a box that was divided although it is proved whole: for a smaller width."""
        from difflab.proof.difference import bounded

        if not self.same:  # other versions may bound less closely
            return
        for box in self._divided():
            bounds = bounded(self.function, self.derivative, box)
            if bounds.smooth and bounds.difference <= self.stated.width:
                yield f"width: {self.stated.width:g} needs no division of {box}"

    def _piece(self, where: str, piece: dict[str, Any], bounds: Any) -> Iterator[str]:
        """Yield the differences between the statement about a piece and the computed one."""
        if set(piece) != {"lower", "upper", "difference"}:
            yield f"{where}: it does not consist of lower, upper and difference"
            return
        for name, known in (("lower", bounds.lower), ("upper", bounds.upper)):
            values = piece[name]
            if not isinstance(values, list) or len(values) != len(known):
                yield f"{where}.{name}: it is no list of {len(known)} numbers"
                return
            for k, (claim, number) in enumerate(zip(values, known, strict=True)):
                low = name == "lower"
                yield from self._compared(f"{where}.{name}[{k}]", claim, number, least_claimed=low)
        yield from self._compared(f"{where}.difference", piece["difference"], bounds.difference)

    def _compared(
        self, name: str, claim: Any, computed: float, *, least_claimed: bool = False
    ) -> Iterator[str]:
        """Yield how a stated bound differs; it is a lower one if the least is claimed."""
        number = isinstance(claim, int | float) and not isinstance(claim, bool)
        implied = number and (claim <= computed if least_claimed else claim >= computed)
        if not (claim == computed if number and self.same else implied):
            yield f"{name}: {claim!r} is stated, and {computed!r} is computed"
