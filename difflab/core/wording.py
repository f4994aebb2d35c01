"""Wording of counts and of program texts in messages and reports."""

from __future__ import annotations

import re

PROBLEM = "problem:"
"""Before the name of a problem of the library, where a formula is expected."""

_COMMENT = re.compile(r"#[^\n]*")


def counted(number: int, noun: str) -> str:
    """Return ``1 input``, ``2,048 inputs``.

    Examples
    --------
    >>> counted(1, "input"), counted(2048, "input")
    ('1 input', '2,048 inputs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
