"""The problems that come with difflab: sets, and finding problems by name, set, kind and size.

A problem is a text file ``sets/SET/NAME.txt`` (`difflab.lab.problems.file`). Title, source and
licence of every set stand in ``sets/sets.toml``. Only the heads of the files are read for a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from difflab.core.wording import PROBLEM, did_you_mean
from difflab.errors import InputError
from difflab.lab.problems.file import KINDS, Problem, read_header, read_text

SETS = Path(__file__).parent / "sets"
"""The folder of the sets."""


@dataclass(frozen=True)
class ProblemSet:
    """A set of problems: its title, sources, and the terms of its contents."""

    name: str
    title: str
    source: str
    licence: str
    terms: str


@cache
def problem_sets() -> dict[str, ProblemSet]:
    """Return the sets by name, in the order of ``sets.toml``.

    Examples
    --------
    >>> problem_sets()["mgh"].licence
    'MIT'
    """
    import tomllib

    listed = tomllib.loads(read_text(SETS / "sets.toml"))
    return {name: ProblemSet(name, **entry) for name, entry in listed.items()}


@cache
def _names(set_name: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (SETS / set_name).glob("*.txt")))


@cache
def _read(name: str) -> Problem:
    path = SETS / f"{name}.txt"
    return Problem(name, path, read_header(path))


def problem(name: str) -> Problem:
    """Return a problem of the library.

    Parameters
    ----------
    name : str
        ``"mgh/rosenbrock"``; the prefix ``problem:`` may stand before it.

    Returns
    -------
    Problem
        Its `function`, `start`, `domain`, and the `jacobian` at the start.

    Raises
    ------
    InputError
        There is no such problem; the message names the nearest ones.

    Examples
    --------
    >>> import difflab as dl
    >>> found = dl.problem("mgh/rosenbrock")
    >>> found.start
    {'x1': -1.2, 'x2': 1.0}
    >>> dl.gradient(found.function)(**found.start)
    array([-215.6,  -88. ])
    >>> found.reference.elements[1, "x1"]
    '-215.5999999999999409361350899416748893621'
    """
    if not isinstance(name, str):
        raise InputError(
            f"a problem is named by text, not {type(name).__name__}",
            hint='problem("mgh/rosenbrock"); `difflab problems` lists them',
        )
    name = name.removeprefix(PROBLEM)
    chosen, _, own = name.partition("/")
    if chosen not in problem_sets():
        raise _unknown(f"there is no set of problems {chosen!r}", chosen, list(problem_sets()))
    if own not in _names(chosen):
        known = [f"{chosen}/{other}" for other in _names(chosen)]
        raise _unknown(f"there is no problem {name!r}", name, known)
    return _read(name)


def problems(
    sets: Sequence[str] | None = None,
    *,
    kinds: Sequence[str] | None = None,
    inputs: tuple[int, int] | None = None,
) -> list[Problem]:
    """Return the problems of some sets and kinds, by set and name.

    Parameters
    ----------
    sets, kinds : sequence of str, optional
        By default all.
    inputs : (int, int), optional
        The smallest and largest number of inputs.

    Raises
    ------
    InputError
        There is no such set or kind.

    Examples
    --------
    >>> len(problems(["nist"]))
    27
    >>> {found.kind for found in problems(["mgh"])}
    {'least-squares'}
    """
    chosen = _chosen(sets, "sets", "set of problems", list(problem_sets()))
    wanted = _chosen(kinds, "kinds", "kind of problem", list(KINDS))
    low, high = (0, 10**9) if inputs is None else _range(inputs)
    found = (_read(f"{name}/{own}") for name in chosen for own in _names(name))
    return [one for one in found if one.kind in wanted and low <= one.n <= high]


def _chosen(given: Any, setting: str, what: str, known: list[str]) -> list[str]:
    """Return the names that are given, without duplicates; all that are known where none is."""
    if given is None:
        return known
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise InputError(
            f"{setting} of problems must be a list of names, not {given!r:.60}",
            hint=f"one or more of {', '.join(known)}",
        )
    for name in given:
        if name not in known:
            raise _unknown(f"there is no {what} {name!r}", name, known)
    return list(dict.fromkeys(given)) or known


def _range(inputs: Any) -> tuple[int, int]:
    """Return the smallest and largest number of inputs."""
    pair = isinstance(inputs, list | tuple) and len(inputs) == 2
    if not pair or not all(isinstance(number, int) for number in inputs):
        raise InputError(
            f"inputs of problems must be two integers, the fewest and the most, not {inputs!r:.60}"
        )
    return inputs[0], inputs[1]


def _unknown(message: str, name: str, known: Sequence[str]) -> InputError:
    guess = did_you_mean(name, known, count=3, spelled=str) or f"one of {', '.join(known[:16])}."
    return InputError(message, hint=f"{guess} `difflab problems` lists them")
