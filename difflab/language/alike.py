"""Terms of a sum that are written alike, but for the elements of vectors in them.

Large programs are sums of such terms. The first one of a form makes a template: the nodes that
the parser emits for it, with a slot for each element. The terms that follow are recognised by their
text and emitted from the template, without tokens; nodes and spans are those that the parser gives
them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from difflab.core.primitive import Primitive
from difflab.errors import DifflabError
from difflab.graph.ir import Number
from difflab.language.lexer import TokenKind
from difflab.language.operators import PRIMITIVE
from difflab.language.placing import indexed

if TYPE_CHECKING:
    from difflab.language.parser import Parser


_ELEMENT = re.compile(r"(?<![\w.])([A-Za-z_][A-Za-z0-9_]*\[)[0-9]{1,15}\]")
_OTHER = re.compile(r"[\[\];,:=#\n\r\u2028\u2029]")
"""What a term with a template does not contain besides its elements."""
_LONGEST = 1000
"""Characters of a term that may have a template."""
_WORTH = 4
"""Terms that follow, at least, with the beginning of a term whose template is worth making."""
SHORTEST = 30
"""Characters of a program in which as many terms may follow."""
_FORMS = 16
"""Forms that are remembered; a program of more is no repetition."""
_KEPT = 64
"""Forms of programs whose templates are kept: a program is often parsed for several sizes."""
_SIGNS = {"+": int(TokenKind.PLUS), "-": int(TokenKind.MINUS)}

Place = tuple[int, int]
"""A place in a term: after which element, 0 for the beginning, and by how many characters."""


class _Step(NamedTuple):
    """A node of a term: an operation, or without a row the element with a number.

    Attributes
    ----------
    slot : int
        Its slot.
    row : Primitive or None
        What it applies, to the values in the slots `args`.
    first, before, last, behind : int
        The places where its text begins and ends.
    """

    slot: int
    row: Primitive | None
    args: tuple[int, ...]
    first: int
    before: int
    last: int
    behind: int


class _Template(NamedTuple):
    """The nodes that a term emits.

    Attributes
    ----------
    heads : list of (str, int)
        The text before the index of each element, and how much of it is the element's name.
    tail : str
        The text after the last element.
    size : int
        The number of slots, one for each node.
    leaves : list of (int, (number, str or None) or None, str)
        The slot of each node that is the same in every term, its constant, if it is one, its name.
    steps : list of _Step
        The other nodes in their order.
    end : Place
        Where the term ends, without blanks.
    result : int
        The slot of the value.
    """

    heads: list[tuple[str, int]]
    tail: str
    size: int
    leaves: list[tuple[int, tuple[Number, str | None] | None, str]]
    steps: list[_Step]
    end: Place
    result: int


@lru_cache(maxsize=_KEPT)
def _template(
    parser: type[Parser], form: tuple[str, ...], variables: frozenset[str]
) -> _Template | None:
    """Return the template of a form; None if terms of it are left to the parser."""
    literals, names = form[::2], form[1::2]
    if _OTHER.search("".join(literals)):
        return None
    text, ends, slots = _slotted(literals)
    try:
        small = parser(text, variables)
        small.read()
    except DifflabError:  # an operator before the term gives it another meaning
        return None
    made = small.builder
    if made.has_truths or made.param_ids or made.shape_ids:
        return None

    def place(position: int) -> Place:
        number = bisect_right(ends, position) - 1
        return number, position - ends[number]

    leaves, steps = [], []
    for node, span in enumerate(made.spans):
        name, row = made.names.get(node, ""), made.primitive(node)
        places = *place(span >> 32), *place(span & 0xFFFFFFFF)
        if name in slots:
            steps.append(_Step(node, None, (slots[name],), *places))
        elif row is None:
            leaves.append((node, made.constants.get(node), name))
        else:
            steps.append(_Step(node, row, made.arguments(node), *places))
    result, _, right = small.outputs[0]
    heads = [(before + name, len(name)) for before, name in zip(literals, names, strict=False)]
    return _Template(heads, literals[-1], len(made), leaves, steps, place(right), result)


def _slotted(literals: Sequence[str]) -> tuple[str, list[int], dict[str, int]]:
    """Return a form with names for its elements, where each ends, and their numbers from 1."""
    slot, text, ends = "element", literals[0], [0]
    while any(slot in literal for literal in literals):
        slot += "_"
    for number, literal in enumerate(literals[1:], 1):
        text += f"{slot}{number}"
        ends.append(len(text))
        text += literal
    return text, ends, {f"{slot}{number}": number for number in range(1, len(ends))}


class AlikeTerms:
    """The templates of a program's terms.

    Parameters
    ----------
    parser : Parser
        Whose terms they are.
    """

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.templates: dict[str, tuple[_Template, list[int]] | None] = {}
        self.seen: set[tuple[str, ...]] = set()
        self.begin = 0

    def follow(self, start: int, end: int) -> int:
        """Emit the terms after the sign at ``text[start:end]`` that have templates.

        Returns the position at which the parser continues.
        """
        text, position = self.parser.text, end
        self._remember(text[max(self.begin, self.parser.starts[-1]) : start].lstrip(" "), start)
        while True:
            bracket = text.find("[", position, position + _LONGEST) + 1
            head = text[position:bracket].lstrip(" ")
            template = self.templates.get(head)
            after = template and self._emitted(*template, bracket - len(head))
            if not after:
                self.begin = position
                return position
            position = after

    def _remember(self, term: str, stop: int) -> None:
        """Make a template of a term that was read before `stop`, if its form comes again."""
        text = self.parser.text
        if not 0 < len(term) <= _LONGEST:
            return
        form = tuple(_ELEMENT.split(term))
        if len(form) == 1 or (head := form[0] + form[1]) in self.templates:
            return
        if form in self.seen or self._follows(form, text.find(head, stop)):
            worth = text.count(head, stop) >= _WORTH
            self.templates[head] = self._bound(form) if worth else None
        elif len(self.seen) < _FORMS:
            self.seen.add(form)

    def _follows(self, form: tuple[str, ...], begin: int) -> bool:
        """Whether a term of a form begins at a position, which is -1 for none."""
        *before, last = form
        pieces = _ELEMENT.split(self.parser.text[begin : begin + _LONGEST], len(form) // 2)
        return begin >= 0 and pieces[:-1] == before and pieces[-1].startswith(last)

    def _bound(self, form: tuple[str, ...]) -> tuple[_Template, list[int]] | None:
        """Return a form's template and the nodes of its slots; None where there is none.

        The slots of nodes that differ from term to term are 0.
        """
        scope, builder = self.parser.scope, self.parser.builder
        kind: Any = type(self.parser)  # whose hash is the interpreter's: mypy takes an instance's
        variables = frozenset(scope.variables)
        template = None if builder.has_truths else _template(kind, form, variables)
        if template is None:
            return None
        slots = [0] * template.size
        for slot, constant, name in template.leaves:
            slots[slot] = builder.constant(*constant) if constant else scope.nodes[name]
            if builder.shape(slots[slot]):
                return None
        return template, slots

    def _emitted(self, template: _Template, slots: list[int], position: int) -> int:
        """Emit a term and its sum with those before it; return where the next term begins.

        Nothing is emitted, and the result is 0, unless a sign follows.
        """
        parser, text, at = self.parser, self.parser.text, position
        names, ends = [""], [position]
        for head, size in template.heads:
            index = at + len(head)
            at = text.find("]", index, index + 16) + 1
            digits = text[index : at - 1]
            if not (at and digits.isascii() and digits.isdecimal()):
                return 0
            if not text.startswith(head, ends[-1]):
                return 0
            names.append(text[index - size : at])
            ends.append(at)
        stop = at + len(template.tail)
        sign = _SIGNS.get(text[stop : stop + 1])
        if sign is None or not text.startswith(template.tail, at):
            return 0
        if not all(map(self._is_element, names[1:])):
            return 0
        emit, slots, elements = parser.builder.emit, slots.copy(), parser.elements
        for slot, row, args, first, before, last, behind in template.steps:
            span = ends[first] + before, ends[last] + behind
            if row is None:
                name = names[args[0]]
                slots[slot] = elements.get(name) or self._element(name, span)
            elif len(args) == 2:  # most steps
                slots[slot] = emit(row, (slots[args[0]], slots[args[1]]), (), span)
            elif len(args) == 1:
                slots[slot] = emit(row, (slots[args[0]],), (), span)
            else:
                slots[slot] = emit(row, [slots[arg] for arg in args], (), span)
        last, behind = template.end
        self._add(slots[template.result], ends[last] + behind)
        parser.operators[-1], parser.positions[-1] = sign, stop
        return stop + 1

    def _add(self, term: int, end: int) -> None:
        """Add a term that ends at `end` to the terms before it, or subtract it."""
        parser = self.parser
        row = PRIMITIVE[parser.operators[-1]]
        assert row is not None
        span = parser.starts[-1], end
        parser.nodes[-1] = parser.builder.emit(row, (parser.nodes[-1], term), (), span)
        parser.ends[-1] = end

    def _is_element(self, name: str) -> bool:
        """Whether there is such an element of a vector."""
        if name in self.parser.elements:
            return True
        array, _, index = name[:-1].partition("[")
        node = self.parser.scope.nodes.get(array)
        shape = () if node is None else self.parser.builder.shape(node)
        return len(shape) == 1 and int(index) < shape[0]

    def _element(self, name: str, span: Place) -> int:
        """Return the node of an element, which the parser reads where it comes again."""
        elements = self.parser.elements
        node = elements.get(name)
        if node is None:
            array, _, index = name[:-1].partition("[")
            key, scope = (int(index),), self.parser.scope
            node = elements[name] = indexed(self.parser.builder, scope.nodes[array], key, span)
        return node
