"""Evaluation order and node names of pictures and evaluation traces.

Evaluation traces (Baydin, Pearlmutter, Radul & Siskind 2018, Table 2; Griewank & Walther
2008) number the n inputs v₁₋ₙ … v₀ and the operations v₁, v₂, … by level: first what needs
inputs only, then what needs that. Pictures and traces use the same names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from unicodedata import normalize

from difflab.core.wording import exact, shape_text, significant
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, Graph
from difflab.graph.names import FreshNames, display_names

COMPACT = 4
DOT, BAR = "\u0307", "\u0304"
"""The marks of tangents, v̇, and of adjoints, v̄."""
GENERATED = re.compile("v(?:-?[0-9]+)")
SUBSCRIPTS = str.maketrans("0123456789-", "₀₁₂₃₄₅₆₇₈₉₋")


def levels(graph: Graph) -> list[int]:
    """Return the level of every node: the longest path from an input or a constant.

    Linear in the size of the graph, without recursion.
    """
    level: list[int] = []
    for _, arguments in graph.rows():
        level.append(max(map(level.__getitem__, arguments)) + 1 if arguments else 0)
    return level


def evaluation_order(function: Function, level: Sequence[int] | None = None) -> list[int]:
    """Return the needed nodes: inputs, constants, then the operations level by level."""
    graph = function.graph
    level = levels(graph) if level is None else level
    mark, opcode = graph.needed_for(function.outputs), graph.opcode.tolist()
    inputs = list(function.input_nodes)
    constants = [node for node in range(len(graph)) if mark[node] and opcode[node] == CONSTANT]
    operations = [node for node in range(len(graph)) if mark[node] and opcode[node] > CONSTANT]
    operations.sort(key=level.__getitem__)
    return inputs + constants + operations


def trace_names(function: Function, order: Sequence[int]) -> dict[int, str]:
    """Return the name of every node in `order`: ``v-1``, ``v0``, ``v1``, …; constants' values.

    Values that the program names keep their names.
    """
    graph, n = function.graph, len(function.input_nodes)
    names = {node: f"v{position + 1 - n}" for position, node in enumerate(function.input_nodes)}
    displayed = display_names(graph.labels, [*function.inputs, *names.values()])
    generated = FreshNames([*function.inputs, *displayed.values()])
    for node in order:
        if graph.opcode[node] == CONSTANT:
            names[node] = constant_text(graph, node)
        elif graph.opcode[node] > CONSTANT:
            names[node] = displayed.get(node) or generated.numbered("v")
    return names


def output_labels(function: Function) -> tuple[str, ...]:
    """Return the names of the outputs, which differ from those of the inputs.

    Examples
    --------
    >>> import difflab as dl
    >>> output_labels(dl.parse("x + 1")), output_labels(dl.parse("x + y"))
    (('y',), ('f',))
    """
    reserved = set(function.inputs)
    if len(function.outputs) == 1 and "f" not in reserved:
        return tuple("f" if name in reserved else name for name in function.output_names)
    return tuple(f"{name} (output)" if name in reserved else name for name in function.output_names)


def constant_text(graph: Graph, node: int) -> str:
    """Return the name of a constant, or its value with the digits that tell it from all others.

    Examples
    --------
    >>> import difflab as dl
    >>> graph = dl.parse("a*1.000000000000001 + 1e6/3").graph
    >>> [constant_text(graph, node) for node in graph.constants]
    ['1.000000000000001', '1e6', '3']
    """
    name = graph.constant_name(node)
    if name is not None:
        return {"pi": "π"}.get(name, name)
    value = graph.constant(node)
    text = short(value)
    same = isinstance(value, bool) or float(text.replace("−", "-")) == value
    return text if same else exact(value).replace("-", "−")


def key_text(key: tuple[Any, ...]) -> str:
    """Return an indexing key as it is written: ``[0]``, ``[1:5]``."""
    parts = []
    for part in key:
        if isinstance(part, tuple):
            start, stop, step = part
            ends = f"{'' if start is None else start}:{'' if stop is None else stop}"
            parts.append(ends if step in (None, 1) else f"{ends}:{step}")
        else:
            parts.append(str(part))
    return f"[{', '.join(parts)}]"


def subscript(name: str, mark: str = "") -> str:
    r"""Return ``v-1`` as ``v₋₁`` and other names as they are, their first letter under `mark`.

    Examples
    --------
    >>> subscript("v-1"), subscript("v12"), subscript("h"), subscript("0.5")
    ('v₋₁', 'v₁₂', 'h', '0.5')
    >>> [ascii(subscript(name, DOT)) for name in ("v2", "x1")]
    ["'v\\u0307\\u2082'", "'\\u1e8b1'"]
    """
    if GENERATED.fullmatch(name):
        return f"v{mark}{name[1:].translate(SUBSCRIPTS)}"
    return marked(name, mark)


def marked(name: str, mark: str) -> str:
    """Return ẋ1 for x1, in one character where there is one."""
    return normalize("NFC", name[:1] + mark + name[1:])


def short(value: Any, digits: int = 6) -> str:
    """Return a number with at most `digits` digits, an array by its first and last entries.

    Examples
    --------
    >>> short(0.6931471805599453), short(True), short(-0.0), short([1.0, 2.0, 3.5, 4.0, 9.0])
    ('0.693147', 'true', '0', '[1, 2, …, 9]')
    """
    import numpy as np

    array = np.asarray(value)
    if array.ndim == 0:
        return _number(array.item(), digits)
    entries = [_number(entry, digits) for entry in _ends(array)]
    if array.size > 4:
        entries.insert(2, "…")
    shape = f" ({shape_text(array.shape)})" if array.ndim > 1 else ""
    return f"[{', '.join(entries)}]{shape}"


def compact(value: Any) -> str:
    """Return a number with four digits; of a larger array the shape and the range.

    Examples
    --------
    >>> import numpy as np
    >>> compact(11.652071455223084), compact([0.5, 2.0]), compact(np.arange(12.0).reshape(4, 3))
    ('11.65', '[0.5, 2]', '4×3: 0 … 11')
    >>> compact([1.0, np.nan, 3.0, 4.0, 5.0])
    '5: 1 … 5, nan'
    """
    import numpy as np

    array = np.asarray(value)
    if array.ndim == 0 or (array.size <= 3 and array.ndim == 1):
        return short(value, COMPACT)
    shape = shape_text(array.shape)
    real = array[~np.isnan(array)]
    if not real.size:
        return f"{shape}: nan" if array.size else f"{shape}: empty"
    low, high = (_number(end.item(), COMPACT) for end in (real.min(), real.max()))
    span = low if low == high else f"{low} … {high}"
    return f"{shape}: {span}{', nan' if real.size < array.size else ''}"


def _ends(array: Any) -> list[Any]:
    flat = array.reshape(-1)
    return list(flat.tolist() if flat.size <= 4 else [*flat[:2].tolist(), flat[-1].item()])


def _number(value: Any, digits: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < 10**digits:
        return str(value).replace("-", "−")
    return significant(value, digits).replace("-", "−")
