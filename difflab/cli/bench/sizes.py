"""Families of functions as arguments of commands: a formula with sizes, or ``module:function``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from difflab.cli.functions import code_digest, is_function, load_function, user_code
from difflab.cli.options import parse_names
from difflab.cli.program_text import expression_key, read_expression
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.lab.problems.sized import SizedFamily


_LARGEST = 10**7
_MOST = 1000  # sizes of one range

Ranges = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True)
class ChosenFamily:
    """The family of a command, and the context in which its code runs."""

    family: SizedFamily
    running: Callable[[], AbstractContextManager[None]]

    @property
    def guarded(self) -> SizedFamily:
        """The family, whose members are built within `running`."""

        def member(n: int, m: int) -> Any:
            with self.running():
                return self.family.member(n, m)

        return replace(self.family, member=member)

    def try_smallest(self, ranges: Ranges) -> None:
        """Build the smallest member, so that a wrong family is an error and not rows.

        Raises
        ------
        InputError
            It cannot be built, or has no input.
        """
        with self.running():
            function, _ = self.family.member(ranges[0][0], ranges[1][0])
        if function.n == 0:
            raise InputError("the family has no input to differentiate with respect to")


def size_family(argument: str) -> ChosenFamily:
    """Read the argument FAMILY of a command.

    Raises
    ------
    InputError
        The formula has no size; or the module or the function cannot be used.
    """
    from difflab.lab.code import Parameters
    from difflab.lab.problems.sized import formula_family, python_family

    if not is_function(argument):
        text = read_expression(argument)
        return ChosenFamily(formula_family(text, expression_key(text)), nullcontext)
    with user_code(argument):
        build = load_function(argument)
    parameters = Parameters.of(argument, build)
    names = [*parameters.required, *parameters.optional]
    family = python_family(f"{argument} ({code_digest(build)})", build, names)
    return ChosenFamily(family, lambda: user_code(argument))


def sizes(family: SizedFamily, n: str, m: str | None) -> Ranges:
    """Return the values of n and m; a size that the family does not have is 1.

    Raises
    ------
    InputError
        A range cannot be read, or is given for a size that the family does not have.
    """
    if m is not None and "m" not in family.sizes:
        raise InputError("--m is given, but the family has no size m", text=family.text)
    n_sizes = doubled(n) if "n" in family.sizes else [1]
    return n_sizes, doubled(m or "1:16") if "m" in family.sizes else [1]


def doubled(text: str) -> list[int]:
    """Return the sizes of a list ``1,10,100``, or of a range ``1:4096``: doubled, and its end.

    Examples
    --------
    >>> doubled("1:20"), doubled("5,3")
    ([1, 2, 4, 8, 16, 20], [3, 5])
    """
    first, colon, last = text.partition(":")
    if not colon:
        return integers(text)
    low, high = _ends(text, first, last)
    doublings = []
    while low < high:
        doublings.append(low)
        low *= 2
    return [*doublings, high]


def integers(text: str) -> list[int]:
    """Return the integers of a list ``1,10,100`` or a range ``1:40``, sorted.

    Examples
    --------
    >>> integers("2:5"), integers("8,2")
    ([2, 3, 4, 5], [2, 8])
    """
    first, colon, last = text.partition(":")
    if colon:
        low, high = _ends(text, first, last)
        if high - low >= _MOST:
            raise InputError(f"{text!r} has more than {_MOST:,} sizes", hint="give a list 1,10,100")
        return list(range(low, high + 1))
    return sorted({_size(text, word) for word in parse_names(text) or []})


def _ends(text: str, first: str, last: str) -> tuple[int, int]:
    low, high = _size(text, first), _size(text, last)
    if low > high:
        raise InputError(f"the range {text!r} ends before it begins", hint=f"{high}:{low}")
    return low, high


def _size(text: str, word: str) -> int:
    word = word.strip()
    if (
        not (word.isascii() and word.isdecimal())
        or not 1 <= int(word[:9]) <= _LARGEST
        or len(word) > 8
    ):
        raise InputError(
            f"{word!r} in {text!r} is not a size",
            hint=f"give integers from 1 to {_LARGEST:,}: a range 1:64 or a list 1,10,100",
        )
    return int(word)
