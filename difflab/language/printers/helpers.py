"""Functions of scalars that printed code defines before it calls them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.ir import FIRST_ROW
from difflab.language.printers.expressions import TemplateForm
from difflab.lower.recorded import recorded

if TYPE_CHECKING:
    from difflab.language.printers.straight import StraightLinePrinter


_WORD = re.compile(r"[A-Za-z_]\w*")
_SHORT, _REPEATED = 5, 2
"""Operations of an expression that needs no function, and how often it reads an argument."""


@dataclass
class Helpers:
    """The functions that the code defines.

    Attributes
    ----------
    templates : dict of Primitive to str
        The templates of their calls, or of the inlined expressions.
    texts : dict of str to str
        Their definitions by name, each behind those that it calls.
    forms : list of TemplateForm
        The forms of the functions that they consist of.
    """

    templates: dict[Primitive, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    forms: list[TemplateForm] = field(default_factory=list)


def helper(printer: StraightLinePrinter, row: Primitive) -> str:
    """Return the template of a row that a language lacks, and define its function.

    Raises
    ------
    UnsupportedError
        The row's kernel is no array code.
    """
    helpers = printer.helpers
    if row not in helpers.templates:
        helpers.templates[row] = ""  # until it is complete: functions do not call themselves
        helpers.templates[row] = _recorded(printer, row)
    return helpers.templates[row]


def _recorded(printer: StraightLinePrinter, row: Primitive) -> str:
    function, helpers = recorded(row), printer.helpers
    if function is None:
        raise UnsupportedError(f"{printer.language} has no function for '{row.name}'")
    name = printer.fresh.fresh(printer.spelled(row.name))
    while name in helpers.texts:
        name += printer.suffix
    inner = type(printer)(function, name, None, helpers)
    fields = [f"{{{k}}}" for k in range(function.n)]
    nodes, (output,) = inner.view.function.input_nodes, inner.view.outputs
    parameters = [inner.fresh.fresh(inner.spelled(each)) for each in function.inputs]
    inner.names = dict(zip(nodes, parameters, strict=True))
    inner.compute()
    value = inner.expression(output)
    helpers.forms += inner.forms.values()
    counts = [len(re.findall(rf"\b{re.escape(each)}\b", value)) for each in parameters]
    operations = np.array(inner.view.uses, dtype=bool) & (inner.graph.opcode >= FIRST_ROW)
    if not inner.lines and np.sum(operations) <= _SHORT and max(counts) <= _REPEATED:
        marks = [f"@{k}@" for k in range(function.n)]
        inner.names = dict(zip(nodes, marks, strict=True))
        braces = inner.expression(output).replace("{", "{{").replace("}", "}}")
        return re.sub(r"@(\d+)@", r"{\1}", braces)
    helpers.texts[name] = inner.defined(name, parameters, value)
    return f"{name}({', '.join(fields)})"


def used(texts: Iterable[str], definitions: Mapping[str, str]) -> dict[str, str]:
    """Return the functions that `texts` call, each after the functions that it calls.

    Examples
    --------
    >>> list(used(["half(x) + 1"], {"third": "", "half": "half(x) = third(x)"}))
    ['third', 'half']
    """
    called: dict[str, str] = {}
    words = {word for text in texts for word in _WORD.findall(text)}
    for name, text in definitions.items():
        if name in words:
            others = {other: body for other, body in definitions.items() if other != name}
            called |= used([text], others) | {name: text}
    return called
