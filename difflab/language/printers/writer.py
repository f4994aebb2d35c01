"""Expressions to strings, with an explicit stack and only the parentheses needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["Part", "write"]

Part = str | tuple[int, int]
"""Literal text, or a node and the precedence that it needs to be written without parentheses."""


def write(
    parts: Sequence[Part],
    names: dict[int, str],
    describe: Callable[[int], tuple[Sequence[Part], int]],
    brackets: tuple[str, str] = ("(", ")"),
) -> str:
    """Return the expression given by `parts` as text.

    Parameters
    ----------
    parts : sequence
        Literal text and nodes; nodes are expanded recursively.
    names : dict of int to str
        The nodes that are written as a name.
    describe : callable
        Returns the parts and the precedence of a node.
    brackets : (str, str)
        The parentheses of the notation.

    Examples
    --------
    >>> parts = {1: ((0, 6), "*", (0, 7)), 2: ((1, 9), "^", (0, 9))}
    >>> write([(2, 0)], {0: "x"}, lambda node: (parts[node], 6))
    '(x*x)^x'
    """
    out: list[str] = []
    stack: list[Part] = list(reversed(parts))
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            out.append(part)
            continue
        node, need = part
        name = names.get(node)
        if name is not None:
            out.append(name)
            continue
        below, level = describe(node)
        if level < need:
            stack.append(brackets[1])
            stack.extend(reversed(below))
            stack.append(brackets[0])
        else:
            stack.extend(reversed(below))
    return "".join(out)
