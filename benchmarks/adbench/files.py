"""Readers of ADBench's text files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.errors import InputError

__all__ = ["Ba", "Gmm", "HandModel", "HandTask", "Lstm"]
__all__ += ["read_ba", "read_gmm", "read_hand", "read_hand_model", "read_lstm"]

Array = NDArray[np.float64]
_LARGEST = 1 << 32  # the largest size that is accepted


class Gmm(NamedTuple):
    """A mixture and its points; `x` has one row if all `n` points are equal."""

    alphas: Array
    means: Array
    icf: Array
    x: Array
    n: int
    gamma: float
    m: int


class Ba(NamedTuple):
    """The camera, point, weight and observation that an instance repeats, and their counts."""

    cameras: int
    points: int
    observations: int
    camera: Array
    point: Array
    weight: float
    feature: Array


class Lstm(NamedTuple):
    """Parameters of the gates, of input and output, the initial state, and the sequence."""

    gates: Array
    ends: Array
    state: Array
    sequence: Array


class HandModel(NamedTuple):
    """A hand: bones with their parents and frames, and vertices weighted among bones."""

    parents: tuple[int, ...]
    relatives: Array
    inverse_absolutes: Array
    positions: Array
    weights: Array
    triangles: NDArray[np.int64]


class HandTask(NamedTuple):
    """Points, the vertex or triangle matched to each, and the pose.

    `inside` has the coordinates inside the triangles; None if points match vertices.
    """

    matches: NDArray[np.int64]
    points: Array
    inside: Array | None
    theta: Array


class _Lines:
    """A reader of the nonempty lines of a file."""

    def __init__(self, path: Path, separator: str | None = None) -> None:
        self.path = path
        self.separator = separator
        self.line = 0
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise InputError(f"cannot read {path}: {reason}") from error
        self._lines = [(k, line) for k, line in enumerate(text.splitlines(), 1) if line.strip()]
        self._lines.reverse()

    def more(self, beyond: int = 0) -> bool:
        """Return whether more than `beyond` lines are left."""
        return len(self._lines) > beyond

    def fault(self, message: str) -> InputError:
        """Return an error that names the current line."""
        return InputError(f"{self.path}, line {self.line}: {message}")

    def words(self) -> list[str] | None:
        """Return the words of the next line, None at the end."""
        self.line, line = self._lines.pop() if self._lines else (self.line + 1, "")
        return line.strip().split(self.separator) if line else None

    def numbers(self, count: int) -> list[float]:
        """Return the `count` numbers of the next line."""
        words = self.words()
        if words is None:
            raise self.fault(f"expected {_counted(count)}, found the end of the file")
        if len(words) != count:
            raise self.fault(f"expected {_counted(count)}, found {len(words)}")
        return [self.number(word) for word in words]

    def number(self, word: str) -> float:
        """Return the finite number that a word spells."""
        try:
            value = float(word)
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            raise self.fault(f"{word[:40]!r} is not a finite number")
        return value

    def whole(self, word: float | str, least: int = 0, most: int = _LARGEST) -> int:
        """Return an integer from `least` to `most`."""
        value = self.number(word) if isinstance(word, str) else word
        if value != int(value) or not least <= value <= most:
            raise self.fault(f"expected an integer from {least} to {most}, found {value:g}")
        return int(value)

    def sizes(self, count: int) -> list[int]:
        """Return the sizes in the next line, each at least 1."""
        return [self.whole(value, 1) for value in self.numbers(count)]

    def table(self, rows: int, columns: int) -> Array:
        """Return the next `rows` lines; they are read before the array is allocated."""
        return np.array([self.numbers(columns) for _ in range(rows)]).reshape(rows, columns)

    def end(self) -> None:
        """Raise if lines are left."""
        if self.words() is not None:
            raise self.fault("expected the end of the file")


def _counted(count: int) -> str:
    return "one number" if count == 1 else f"{count} numbers"


def read_gmm(path: Path) -> Gmm:
    """Read a mixture; a single point is repeated as often as the file says.

    Raises
    ------
    InputError
        The file cannot be read or has another format; the message names the line.
    """
    lines = _Lines(path)
    d, k, n = lines.sizes(3)
    alphas = lines.table(k, 1)[:, 0]
    means = lines.table(k, d)
    icf = lines.table(k, d + d * (d - 1) // 2)
    x = []
    while lines.more(beyond=1):
        x.append(lines.numbers(d))
    gamma, m = lines.numbers(2)
    if len(x) not in (1, n):
        raise lines.fault(f"expected gamma and m after {n} points, or one, found {len(x)} points")
    if gamma <= 0:
        raise lines.fault(f"gamma must be positive, not {gamma:g}")
    return Gmm(alphas, means, icf, np.array(x), n, gamma, lines.whole(m))


def read_ba(path: Path) -> Ba:
    """Read an instance of bundle adjustment.

    Raises
    ------
    InputError
        The file cannot be read or has another format; the message names the line.
    """
    lines = _Lines(path)
    n, m, p = lines.sizes(3)
    camera, point, weight, feature = (lines.table(1, count)[0] for count in (11, 3, 1, 2))
    lines.end()
    return Ba(n, m, p, camera, point, float(weight[0]), feature)


def read_lstm(path: Path) -> Lstm:
    """Read a network and a sequence.

    Raises
    ------
    InputError
        The file cannot be read or has another format; the message names the line.
    """
    lines = _Lines(path)
    layers, count, b = lines.sizes(3)
    if count < 2:
        raise lines.fault("a sequence has at least two characters")
    gates = lines.table(2 * layers, 4 * b).reshape(layers, 2, 4, b)
    ends = lines.table(3, b)
    state = lines.table(2 * layers, b).reshape(layers, 2, b)
    sequence = lines.table(count, b)
    lines.end()
    return Lstm(gates, ends, state, sequence)


def read_hand_model(folder: Path) -> HandModel:
    """Read a hand from ``bones.txt``, ``vertices.txt`` and ``triangles.txt`` of a folder.

    Raises
    ------
    InputError
        A file cannot be read or has another format; the message names the line.
    """
    parents, frames = _read_bones(folder / "bones.txt")
    positions, weights = _read_vertices(folder / "vertices.txt", len(parents))
    lines, triangles = _Lines(folder / "triangles.txt", ":"), []
    while (words := lines.words()) is not None:
        if len(words) != 3:
            raise lines.fault(f"expected three vertices, found {len(words)}")
        triangles.append([lines.whole(word, 0, len(positions) - 1) for word in words])
    relatives, inverses = frames[:, 0], frames[:, 1]
    corners = np.array(triangles, dtype=np.int64).reshape(-1, 3)
    return HandModel(tuple(parents), relatives, inverses, positions, weights, corners)


def _read_bones(path: Path) -> tuple[list[int], Array]:
    lines = _Lines(path, ":")
    parents: list[int] = []
    frames = []
    while (words := lines.words()) is not None:
        if len(words) != 34:
            raise lines.fault(f"expected a name, a parent and 32 numbers, found {len(words)} words")
        parents.append(lines.whole(words[1], -1, len(parents) - 1))
        frames.append([lines.number(word) for word in words[2:]])
    if not parents:
        raise lines.fault("there are no bones")
    return parents, np.array(frames).reshape(-1, 2, 4, 4)


def _read_vertices(path: Path, bones: int) -> tuple[Array, Array]:
    lines = _Lines(path, ":")
    positions, weights = [], []
    while (words := lines.words()) is not None:
        count = lines.whole(words[8], 0, bones) if len(words) > 8 else -1
        if len(words) != 9 + 2 * count:
            raise lines.fault("expected eight numbers, n, and n bones with their weights")
        positions.append([lines.number(word) for word in words[:3]])
        weight = [0.0] * bones
        for bone, value in zip(words[9::2], words[10::2], strict=True):
            weight[lines.whole(bone, 0, bones - 1)] = lines.number(value)
        weights.append(weight)
    if not positions:
        raise lines.fault("there are no vertices")
    return np.array(positions), np.array(weights)


def read_hand(path: Path, model: HandModel, *, complicated: bool) -> HandTask:
    """Read the points that a hand is compared with.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    model : HandModel
        The hand, for the numbers of its vertices and triangles.
    complicated : bool
        Whether points match positions inside triangles instead of vertices.

    Raises
    ------
    InputError
        The file cannot be read or has another format; the message names the line.
    """
    lines = _Lines(path)
    count, angles = lines.sizes(2)
    if angles != 26:
        raise lines.fault(f"a hand has 26 angles, not {angles}")
    last = len(model.triangles if complicated else model.positions) - 1
    matches, points = [], []
    for _ in range(count):
        match, *point = lines.numbers(4)
        matches.append(lines.whole(match, 0, last))
        points.append(point)
    inside = lines.table(count, 2) if complicated else None
    theta = lines.table(angles, 1)[:, 0]
    lines.end()
    return HandTask(np.array(matches, dtype=np.int64), np.array(points), inside, theta)
