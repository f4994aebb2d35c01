"""What an array program is to machine code: operations, each on all points of a nest of loops.

Views are how an operand is read: a place, and a step along each axis of the nest.
May import `graph.ir`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from difflab.graph.ir import Shape

__all__ = ["COPY", "Instruction", "Instructions", "Ref"]

COPY = "copy"


class Ref(NamedTuple):
    """Numbers of a value: the place of the first, and steps along the axes of a nest."""

    root: int
    offset: int
    strides: tuple[int, ...]


class Instruction(NamedTuple):
    """One operation on every point of a nest.

    Attributes
    ----------
    name : str
        The operation, as in `SPELLINGS`, or `COPY`.
    domain : tuple of int
        The sizes of the nest.
    out : Ref
        Where results go.
    args : tuple of Ref
        What is read.
    into : str
        With what a result is joined to what is there already: ``"add"``, ``"maximum"``,
        ``"minimum"``; empty where it is stored.
    truth : bool
        Whether the result is a truth value.
    """

    name: str
    domain: Shape
    out: Ref
    args: tuple[Ref, ...]
    into: str = ""
    truth: bool = False


@dataclass
class Instructions:
    """What is computed, in order.

    Attributes
    ----------
    inputs : int
        The number of inputs, which are the values 0, 1, ….
    code : list of Instruction
        The operations.
    sizes : dict of int to int
        How many numbers each value has that an instruction writes.
    known : dict of int to int
        Values that depend on no input: where they begin in `constants`.
    constants : list of float
        Their numbers.
    outputs : list of Ref
        The results, a step for each of their axes.
    truths : set of int
        The values that are truth values, kept as 0 and 1.
    """

    inputs: int
    code: list[Instruction] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)
    known: dict[int, int] = field(default_factory=dict)
    constants: list[float] = field(default_factory=list)
    outputs: list[Ref] = field(default_factory=list)
    truths: set[int] = field(default_factory=set)
