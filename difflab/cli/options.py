"""Arguments and options of several commands, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from math import isfinite
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from difflab.cli.output import check_picture
from difflab.cli.program_text import read_expression
from difflab.core.place import SourceLocation
from difflab.core.system import check_destination
from difflab.core.wording import unknown_name
from difflab.errors import InputError, ParseError, PointError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from difflab.graph.function import Function


ExpressionArgument = Annotated[
    str,
    typer.Argument(
        metavar="EXPR",
        help="A formula; - reads standard input, @file a file; or a Python function,"
        " module:function, with --at; or problem:SET/NAME.",
    ),
]
PointOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="x1=2,x2=5",
        help="The point: numbers, pi/2, [1,2,3] or x=@file.npy; @file reads many from"
        " .txt (lines name=value), .json or .npz. By default one is chosen.",
    ),
]
ShapesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="x1=2,x2=5",
        help="Numbers, [1,2,3] or @file.npy with the shapes of module:function's arguments.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", parser=check_destination, metavar="FILE", help="Write to this file."
    ),
]
KindsOption = Annotated[
    str | None, typer.Option("--kind", metavar="a,b", help="Only these kinds of problem.")
]
InputsOption = Annotated[
    str | None,
    typer.Option(
        "--inputs", metavar="LOW:HIGH", help="Only with a number of inputs in this range."
    ),
]
PlotOption = Annotated[
    Path | None,
    typer.Option(
        parser=check_picture, metavar="FILE", help="Also draw a picture: .svg, .png or .pdf."
    ),
]
StabiliseOption = Annotated[
    bool,
    typer.Option("--stabilise", help="Rewrite what overflows or cancels, and report where."),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        min=0.01, metavar="SECONDS", help="The time limit of each method and of the referee."
    ),
]


class DerivativeKind(StrEnum):
    """The derivative of a function."""

    GRADIENT = "gradient"
    JACOBIAN = "jacobian"
    HESSIAN = "hessian"

    @classmethod
    def first(cls, function: Function) -> DerivativeKind:
        """Return the kind of a function's first derivative."""
        return cls.GRADIENT if function.m == 1 else cls.JACOBIAN

    def derivative(self, function: Function) -> Function:
        """Return the derivative of this kind.

        Raises
        ------
        InputError
            The function has no input.
        """
        from difflab import autodiff

        if function.n == 0:
            raise InputError("the expression has no variable to differentiate by")

        transform: Callable[[Function], Function] = getattr(autodiff, self.value)
        return transform(function)


TextSpan = tuple[int, int]

_DEPTH = 32  # NumPy's limit on dimensions is 64
# A bracket of an array, or an element: what lies between brackets and commas, without spaces.
_TOKEN = re.compile(r"[\[\]]|[^\[\],\s](?:[^\[\],]*[^\[\],\s])?")


class ExpressionCommand(TyperCommand):
    """A command whose expression may begin with a minus, as in ``difflab compare -x^2``."""

    implied: Mapping[str, str] = MappingProxyType({"--simplify": "proved"})
    """The values of options that are written without one, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move arguments that look like expressions behind ``--``, so that none is an option."""
        end = args.index("--") if "--" in args else len(args)
        args = [
            f"{word}={self.implied[word]}" if word in self.implied and position < end else word
            for position, word in enumerate(args)
        ]
        options = {
            name: bool(getattr(parameter, "is_flag", False))
            for parameter in self.get_params(ctx)
            for name in (*parameter.opts, *parameter.secondary_opts)
        }
        kept, moved = _separated(args, options)
        return super().parse_args(ctx, [*kept, "--", *moved] if moved else kept)


def _separated(args: Sequence[str], options: dict[str, bool]) -> tuple[list[str], list[str]]:
    """Split the arguments into the others and the expressions that begin with a minus."""
    kept: list[str] = []
    moved: list[str] = []
    value_follows = False
    for position, argument in enumerate(args):
        if argument == "--":
            return kept, [*moved, *args[position + 1 :]]
        single = argument.startswith("-") and not argument.startswith("--") and argument != "-"
        if not value_follows and single and argument[:2] not in options:
            moved.append(argument)
        else:
            kept.append(argument)
        value_follows = not value_follows and options.get(argument) is False
    return kept, moved


def parse_names(text: str | None) -> list[str] | None:
    """Return the names of a comma-separated list without duplicates; None for None."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(
            "an empty name in the list",
            text=text or None,
            span=_empty_name(text),
            hint="write a,b,c",
        )
    return list(dict.fromkeys(names))


def _empty_name(text: str) -> TextSpan:
    start = 0
    for part in text.split(","):
        if not part.strip():
            break
        start += len(part) + 1
    return start, start + 1


def one_of(name: str, allowed: Sequence[str], what: str) -> str:
    """Return `name` if it is allowed.

    Raises
    ------
    InputError
        It is not; the message suggests the most similar allowed name.
    """
    if name in allowed:
        return name
    raise unknown_name(what, name, allowed)


def parse_point(texts: Sequence[str], *, trees: bool = False) -> dict[str, Any] | None:
    """Return the point of the ``--at`` options, or None without any.

    A value is a number, a constant expression such as ``pi/2``, an array ``[1, 2, 3]``, or
    ``@file.npy``. In place of ``name=value``, ``@file`` gives the values of a file: an object in
    ``.json``, arrays in ``.npz``, else lines of ``name=value``. A file and the options after it
    replace earlier values. With `trees`, the values of a ``.json`` file may be objects too.

    Raises
    ------
    PointError
        An option or a file cannot be read, or gives a name twice; the error names the place.
    """
    if not texts:
        return None
    point: dict[str, Any] = {}
    plain: set[str] = set()
    for text in texts:
        for start, end in _items(text):
            item = text[start:end].strip()
            if item.startswith("@"):
                begin = text.index("@", start)
                values = _file(item[1:], SourceLocation(text, (begin, begin + len(item))), trees)
                point |= values
                plain -= values.keys()
                continue
            location = SourceLocation(text, (start, end))
            name, value = _assignment(location)
            if name in plain:
                raise location.error(PointError, f"{name!r} is given twice")
            point[name] = value
            plain.add(name)
    return point


def _file(name: str, location: SourceLocation, trees: bool) -> dict[str, Any]:
    """Return the values of a file, by the ending of its name."""
    ending = PurePath(name).suffix.lower()
    if ending == ".npz":
        from difflab.cli.point_files import arrays_in

        return arrays_in(name, location)
    if ending == ".npy":
        raise location.error(PointError, "an array needs a name", f"x=@{name}")
    try:
        content = read_expression(f"@{name}")
    except InputError as error:
        raise location.error(PointError, error.message, error.hint) from error
    if ending == ".json":
        from difflab.cli.point_files import numbers_in

        return numbers_in(content, name, trees=trees)
    return _lines(content, PurePath(name).name)


def _lines(content: str, name: str) -> dict[str, Any]:
    """Read lines of ``name=value``, or several with commas between them."""
    values: dict[str, Any] = {}
    for number, line in enumerate(content.splitlines(), 1):
        text = line.partition("#")[0].rstrip()
        for start, end in _items(text) if text.strip() else ():
            location = SourceLocation(text, (start, end), f"{name}, line {number}")
            key, value = _assignment(location)
            if key in values:
                raise location.error(PointError, f"{key!r} is given twice")
            values[key] = value
    if not values:
        raise PointError(f"{name!r} has no value", hint="write a line x1=2 for each input")
    return values


def _items(text: str) -> Iterator[TextSpan]:
    """Yield the spans between the commas outside brackets."""
    depth = start = 0
    for position, character in enumerate(text):
        if character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif character == "," and depth <= 0:
            yield start, position
            start = position + 1
    yield start, len(text)


def _assignment(item: SourceLocation) -> tuple[str, Any]:
    """Read one ``name=value``."""
    assert item.span is not None
    start, end = item.span
    name, equals, value = item.part.partition("=")
    if not equals or not name.strip() or not value.strip():
        location = replace(item, text=item.text or None, span=(start, max(end, start + 1)))
        raise location.error(PointError, "a point is written as name=value", "x1=2,x2=5")
    begin = start + len(name) + 1
    begin += len(value) - len(value.lstrip())
    return name.strip(), _value(replace(item, span=(begin, begin + len(value.strip()))))


def _value(location: SourceLocation) -> Any:
    if location.part.startswith("@"):
        from difflab.cli.point_files import array_in

        return array_in(location.part[1:], location)
    return _array(location) if location.part.startswith("[") else _number(location)


def _number(location: SourceLocation) -> float:
    """Return a number, or the value of an expression without variables."""
    value = location.part
    try:
        # Python's floats also allow 1_000, which is more likely a typing error.
        number = float(value) if "_" not in value else _constant(location)
    except ValueError:
        number = _constant(location)
    if not isfinite(number):
        raise location.error(PointError, f"{value!r} is not a finite number")
    return number


def _constant(location: SourceLocation) -> float:
    from difflab.language import parse

    value = location.part
    try:
        constant = parse(value)
        if constant.n == 0 and constant.m == 1:
            return float(constant())
    except ParseError as error:
        raise location.error(PointError, f"{value!r} is not a number: {error.message}") from error
    hint = "a number, pi/2, [1, 2, 3] or @file.npy"
    raise location.error(PointError, f"{value!r} is not a number", hint)


def _array(location: SourceLocation) -> NDArray[np.float64]:
    """Read nested brackets of scalars, without recursion."""
    import numpy as np

    assert location.span is not None
    start = location.span[0]
    stack: list[list[Any]] = [[]]
    for match in _TOKEN.finditer(location.part):
        token = replace(location, span=(start + match.start(), start + match.end()))
        if match[0] == "[":
            stack.append([])
            if len(stack) > _DEPTH:
                raise token.error(PointError, "too many nested brackets")
        elif match[0] != "]":
            stack[-1].append(_number(token))
        elif len(stack) < 2:
            raise token.error(PointError, "unmatched ']'")
        else:
            inner = stack.pop()
            stack[-1].append(inner)
    if len(stack) != 1 or len(stack[0]) != 1 or not isinstance(stack[0][0], list):
        raise location.error(PointError, "the brackets of the array are not closed")
    try:
        return np.array(stack[0][0], dtype=np.float64)
    except ValueError as error:
        raise location.error(PointError, "the rows of the array differ in length") from error
