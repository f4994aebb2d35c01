r"""A problem of the library: a program of the language, with metadata in comments.

The file of a problem is a program that difflab reads as it stands::

    # name: Rosenbrock
    # source: Moré, Garbow, Hillstrom, ACM TOMS 7 (1981) 17-41, problem 1
    # licence: MIT
    # kind: least-squares
    # size: 2 -> 1
    # start: x1 = -1.2, x2 = 1
    # optimum: 0
    (10*(x2 - x1^2))^2 + (1 - x1)^2
    # value: 24.19999999999999042543663565260131086786
    # derivative:
    #   1 x1 = -215.5999999999999409361350899416748893621
    #   1 x2 = -87.99999999999997868371792719699481829672

``size`` is the number of inputs and of outputs. ``start`` gives every input, and decimals stand for
the nearest double. ``derivative`` lists the Jacobian at the start by output and input, rounded to
40 digits; elements that are not listed are zero. Where there is no derivative the word `kink`,
`singular`, `undefined` or the like follows, with the one-sided derivatives of a kink in brackets.
The part behind the program is written by `tests.lab.problems.references`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.function import Function


DIGITS = 40
"""Significant digits of values and derivatives."""
KINDS = (
    "scalar",
    "least-squares",
    "constrained",
    "system",
    "ode",
    "pde",
    "neural",
    "kink",
    "cancellation",
)

_HEADER = re.compile(r"# (\w+): (.*)")
_SIZE = re.compile(r"(\d+) -> (\d+)")
_ELEMENT = re.compile(r"#   (\d+) (\S+) = (\S+)(?: \[(\S+), (\S+)\])?")
_VALUE = "# value: "
_DERIVATIVE = "# derivative:"


@dataclass(frozen=True)
class Reference:
    """Value and derivative at the start, as decimal texts of 40 digits.

    Attributes
    ----------
    value : tuple of str
        The outputs.
    elements : mapping of (int, str) to str
        The elements of the Jacobian that are not zero, by the number of the output, from 1, and
        the input, such as ``x1`` or ``x[3]``; a word where there is no derivative.
    sides : mapping of (int, str) to (str, str)
        The left and right derivatives at kinks.
    """

    value: tuple[str, ...]
    elements: Mapping[tuple[int, str], str]
    sides: Mapping[tuple[int, str], tuple[str, str]]


@dataclass(frozen=True)
class Problem:
    """A problem of the library.

    Attributes
    ----------
    name : str
        ``set/name``.
    path : pathlib.Path
        Its file.
    header : mapping of str to str
        The lines ``# key: value`` before the program.
    """

    name: str
    path: Path
    header: Mapping[str, str]

    @property
    def set(self) -> str:
        """The name of its set."""
        return self.name.partition("/")[0]

    @property
    def title(self) -> str:
        """The name that its source gives it."""
        return self.header["name"]

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return self.header["kind"]

    @property
    def n(self) -> int:
        """The number of inputs."""
        return self._size[0]

    @property
    def m(self) -> int:
        """The number of outputs."""
        return self._size[1]

    @cached_property
    def _size(self) -> tuple[int, int]:
        match = _SIZE.fullmatch(self.header.get("size", ""))
        if match is None:
            raise self.fault("the line '# size: n -> m'")
        return int(match[1]), int(match[2])

    @property
    def formula(self) -> str:
        """The problem of which this is another size or instance; its own name if there is none."""
        return self.header.get("formula", self.name)

    @cached_property
    def content(self) -> str:
        """The whole file."""
        return read_text(self.path)

    @cached_property
    def text(self) -> str:
        """The program, without comments before and behind it."""
        lines = self.content.splitlines()
        kept = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
        return "\n".join(lines[kept[0] : kept[-1] + 1])

    @cached_property
    def function(self) -> Function:
        """The program, parsed."""
        from difflab.language import parse

        return parse(self.text)

    @cached_property
    def start(self) -> dict[str, Any]:
        """The point of the reference: a number or an array for every input."""
        return {
            name: value if isinstance(value, float) else np.array(value, dtype=float64)
            for name, value in assignments(self.header["start"], self)
        }

    @cached_property
    def domain(self) -> dict[str, tuple[float, float]]:
        """The ranges of the inputs that its source states."""
        ranges = assignments(self.header.get("domain", ""), self)
        return {name: (float(value[0]), float(value[1])) for name, value in ranges}

    @cached_property
    def certified(self) -> dict[str, float]:
        """The certified or optimal inputs that its source states, empty if it states none."""
        pairs = assignments(self.header.get("solution", ""), self)
        return {name: value for name, value in pairs if isinstance(value, float)}

    @cached_property
    def reference(self) -> Reference:
        """Value and derivative at the start.

        Raises
        ------
        InputError
            The file does not contain them.
        """
        lines = self.content.splitlines()
        value = next((line for line in reversed(lines) if line.startswith(_VALUE)), None)
        if value is None or _DERIVATIVE not in lines:
            raise self.fault("its value and derivative")
        matches = [_ELEMENT.fullmatch(line) for line in lines[lines.index(_DERIVATIVE) + 1 :]]
        keys = [(int(e[1]), e[2], e) for e in matches if e is not None]
        return Reference(
            tuple(value.removeprefix(_VALUE).split(", ")),
            {(row, name): e[3] for row, name, e in keys},
            {(row, name): (e[4], e[5]) for row, name, e in keys if e[4]},
        )

    @cached_property
    def jacobian(self) -> NDArray[float64]:
        """The derivative at the start, ``(m, n)``; nan where there is none."""
        column_of = {name: column for column, name in enumerate(element_names(self.function))}
        derivative = np.zeros((self.m, self.n))
        for (row, name), value in self.reference.elements.items():
            derivative[row - 1, column_of[name]] = _number(value)
        return derivative

    def fault(self, what: str) -> InputError:
        """Return the error of a file that lacks something."""
        return InputError(f"problem:{self.name}: {self.path} lacks {what}")

    def to_dict(self) -> dict[str, Any]:
        """Return everything that is known, for JSON.

        Examples
        --------
        >>> from difflab.lab.problems import problem
        >>> problem("mgh/rosenbrock").to_dict()["start"]
        {'x1': -1.2, 'x2': 1.0}
        """
        named = {key: self.header.get(key, "") for key in ("source", "licence", "optimum")}
        reference = self.reference
        elements = (
            {
                "output": row,
                "input": name,
                "value": value,
                "sides": list(reference.sides.get((row, name), ())),
            }
            for (row, name), value in reference.elements.items()
        )
        return {
            "problem": self.name,
            "name": self.title,
            **named,
            "kind": self.kind,
            "inputs": self.n,
            "outputs": self.m,
            "formula": self.formula,
            "domain": {name: list(pair) for name, pair in self.domain.items()},
            "start": {name: np.asarray(value).tolist() for name, value in self.start.items()},
            "solution": self.certified,
            "text": self.text,
            "value": list(reference.value),
            "derivative": list(elements),
        }


def read_text(path: Path) -> str:
    """Return the content of a file of the library."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        why = error.strerror or error
        hint = "install difflab again"
        raise InputError(f"cannot read the problem {path}: {why}", hint=hint) from error


def read_header(path: Path) -> dict[str, str]:
    """Return the comments before the program; the rest of the file is not read."""
    header: dict[str, str] = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            match = _HEADER.match(line)
            if match is None:
                break
            header[match[1]] = match[2].strip()
    return header


def element_names(function: Function) -> list[str]:
    """Return the names of the packed inputs: ``x1``, ``x[3]``, ``W[0,2]``.

    Examples
    --------
    >>> from difflab.language import parse
    >>> element_names(parse("x: [2]; sum(x)*y"))
    ['x[0]', 'x[1]', 'y']
    """
    return list(_named(function.inputs, function.input_shapes))


def _named(inputs: Iterable[str], shapes: Iterable[Sequence[int]]) -> Iterator[str]:
    for name, shape in zip(inputs, shapes, strict=True):
        if not shape:
            yield name
        else:
            for index in np.ndindex(*shape):
                yield f"{name}[{','.join(map(str, index))}]"


def assignments(text: str, problem: Problem) -> list[tuple[str, Any]]:
    """Read ``a = 1, x = [1, 2]``; numbers are floats and arrays nested lists."""
    pairs = []
    try:
        for part in re.split(r", (?=[^\W\d]\w* = )", text) if text else ():
            name, _, value = part.partition(" = ")
            read = json.loads(value)
            pairs.append((name, float(read) if isinstance(read, int | float) else read))
    except ValueError as error:
        raise problem.fault(f"a point that can be read; it has {text!r}") from error
    return pairs


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # a word, where there is no derivative
        return math.nan
