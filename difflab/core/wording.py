"""Wording of counts, of unknown names and of program texts in messages and reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from difflab.errors import InputError

PROBLEM = "problem:"
"""Before the name of a problem of the library, where a formula is expected."""

_LISTED = 12  # names that a message lists
_COMPARED = 1000  # names among which a similar one is sought
_COMMENT = re.compile(r"#[^\n]*")


def counted(number: int, noun: str) -> str:
    """Return ``1 input``, ``2,048 inputs``.

    Examples
    --------
    >>> counted(1, "input"), counted(2048, "input")
    ('1 input', '2,048 inputs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def similar_names(
    name: object, known: Iterable[str], count: int = 1, cutoff: float = 0.6
) -> list[str]:
    """Return the known names most similar to an unknown one, at most `count`.

    Exchanged letters are the likeliest mistake: ``sni`` is sin rather than si.
    """
    from difflib import get_close_matches  # most names are known

    text = str(name)
    near = get_close_matches(text, list(islice(known, _COMPARED)), max(count, 5), cutoff)
    return sorted(near, key=lambda each: sorted(each) != sorted(text))[:count]


def did_you_mean(
    name: object,
    known: Iterable[str],
    count: int = 1,
    cutoff: float = 0.6,
    spelled: Callable[[str], str] = repr,
) -> str:
    """Return the question whether a similar name is meant; empty if none is similar.

    Examples
    --------
    >>> did_you_mean("sni", ["si", "sin", "cos"]), did_you_mean("q", ["sin", "cos"])
    ("did you mean 'sin'?", '')
    """
    near = similar_names(name, known, count, cutoff)
    return f"did you mean {' or '.join(map(spelled, near))}?" if near else ""


def unknown_name(kind: str, name: object, known: Sequence[str]) -> InputError:
    """Return the error for a name of a kind of which others are known.

    Examples
    --------
    >>> print(unknown_name("format", "cvs", ["csv", "json"]).render())
    unknown format 'cvs'; did you mean 'csv'?
    hint: one of: csv, json
    """
    guess = did_you_mean(name, known)
    listed = ", ".join(known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
    message = f"unknown {kind} {name!r}" + (f"; {guess}" if guess else "")
    return InputError(message, hint=f"one of: {listed}")


def names_problem(text: str) -> bool:
    """Return whether a text names a problem of the library instead of being a formula.

    Examples
    --------
    >>> names_problem("problem:mgh/beale"), names_problem("x^2"), names_problem("problem:loss")
    (True, False, False)
    """
    return text.startswith(PROBLEM) and "/" in text and "\n" not in text


def without_comments(text: str) -> str:
    r"""Return a program without its comments, whose lines stay.

    Examples
    --------
    >>> without_comments("# Kepler\nx - e*sin(x)  # anomaly")
    '\nx - e*sin(x)  '
    """
    return _COMMENT.sub("", text)


def joined(text: str) -> str:
    r"""Return a text of several lines in one; a comment would swallow what follows it.

    Examples
    --------
    >>> joined("# Kepler\n a = sin(x)  # of the anomaly\nx - 0.1*a  # rad")
    'a = sin(x); x - 0.1*a  # rad'
    >>> joined("(\n  a\n  + b\n)")
    '(a + b)'
    """
    lines = [line.strip() for line in text.splitlines()]
    if len(lines) > 1:
        lines = [without_comments(line).rstrip() for line in lines[:-1]] + lines[-1:]
    parts: list[str] = []
    depth = 0
    for line in filter(None, lines):
        # Inside brackets a line end is a blank, and none is needed beside them.
        tight = line.startswith((")", "]")) or bool(parts and parts[-1].endswith(("(", "[")))
        if parts:
            parts.append("; " if depth <= 0 else "" if tight else " ")
        parts.append(line)
        depth += sum(map(line.count, "([")) - sum(map(line.count, ")]"))
    return "".join(parts)
