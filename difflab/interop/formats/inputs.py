"""The inputs and the function of a graph that a reader builds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from difflab.errors import InputError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.names import natural_order, output_names
from difflab.graph.node import Node
from difflab.language.lexer import is_name

__all__ = ["EXACT", "built", "checked_name", "cleaned_name"]

EXACT = 2**53
"""Integers beyond it are rounded to float64."""


def checked_name(name: str, what: str) -> str:
    """Return a name that difflab's language can write.

    Raises
    ------
    InputError
        It contains anything other than letters, digits and ``_``.

    Examples
    --------
    >>> checked_name("x_1", "the symbol")
    'x_1'
    """
    if not is_name(name):
        raise InputError(
            f"{what} {name!r} is no name in difflab's language",
            hint="names contain letters, digits and _, and do not begin with a digit: rename it",
        )
    return name


def cleaned_name(name: str) -> str:
    """Return a name with ``_`` for what a name of difflab's language cannot contain.

    Examples
    --------
    >>> cleaned_name("layer.1/bias"), cleaned_name("2nd")
    ('layer_1_bias', 'x2nd')
    """
    cleaned = re.sub(r"\W", "_", name)
    return f"x{cleaned}" if not cleaned or cleaned[0].isdigit() else cleaned


def built(builder: Builder, outputs: Sequence[Node], names: Sequence[str] = ()) -> Function:
    """Return the function of all inputs of `builder`, in natural order.

    Parameters
    ----------
    builder : Builder
        Holds the inputs and the nodes.
    outputs : sequence of Node
        The values to return.
    names : sequence of str, optional
        The names of the outputs.
    """
    inputs = sorted(builder.names, key=lambda node: natural_order(builder.names[node]))
    labels = names or output_names([None] * len(outputs), builder.names.values())
    return Function.build(builder, inputs, [node.id for node in outputs], labels)
