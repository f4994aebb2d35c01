"""The input to differentiate by and the output to differentiate, as a trace names them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from difflab.drawing.order import output_labels
from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.graph.names import shortened

__all__ = ["ElementIndex", "chosen_elements", "element_name"]

ElementIndex = tuple[int, tuple[int, ...]]
"""The position of an input or output, and the indices of an element of it."""


def chosen_elements(
    function: Function, mode: str, seed: str | None
) -> tuple[ElementIndex, ElementIndex]:
    """Return the input to differentiate by and the output to differentiate."""
    sides = {
        "input": (function.inputs, function.input_shapes),
        "output": (output_labels(function), function.output_shapes),
    }
    found = {what: _element(*side, seed) for what, side in sides.items()}
    sought = {"forward": ["input"], "reverse": ["output"], "both": ["input", "output"]}[mode]
    if seed is not None and all(found[what] is None for what in sought):
        names = [name for what in sought for name in sides[what][0]]
        near = get_close_matches(seed, names[:1000], 1)
        raise InputError(
            f"the function has no {' or '.join(sought)} {seed!r} for the seed",
            hint=f"did you mean {near[0]!r}?" if near else f"one of: {shortened(names)}",
        )
    first = {what: _element(*side, None) for what, side in sides.items()}
    return found["input"] or first["input"] or (0, ()), found["output"] or first["output"] or (
        0,
        (),
    )


def _element(
    names: Sequence[str], shapes: Sequence[tuple[int, ...]], text: str | None
) -> ElementIndex | None:
    """Return the variable and the element that `text` names; the first ones for None."""
    if text is None:
        return (0, (0,) * len(shapes[0])) if names else None
    name, bracket, rest = text.strip().partition("[")
    if name not in names:
        return None
    shape = shapes[names.index(name)]
    key = (0,) * len(shape)
    if bracket:
        parts = [part.strip() for part in rest.removesuffix("]").split(",")]
        key = tuple(int(part) if part.isdecimal() else -1 for part in parts)
    inside = len(key) == len(shape) and all(0 <= k < n for k, n in zip(key, shape, strict=True))
    return (names.index(name), key) if inside else None


def element_name(names: Sequence[str], element: ElementIndex) -> str:
    """Return ``x`` or ``x[3]``."""
    if not names:
        return ""
    which, key = element
    return names[which] + (f"[{','.join(map(str, key))}]" if key else "")
