"""Terms of a sum that are written alike, but for the elements of vectors in them.

Large programs are sums of such terms. The first one of a form makes a template: the nodes that
the parser emits for it, with a slot for each element. The terms that follow are recognised by their
text and emitted from the template, without tokens; nodes and spans are those that the parser gives
them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from difflab.core.primitive import Primitive
from difflab.errors import DifflabError
from difflab.graph.ir import CONSTANT
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
_SIGNS = {"+": int(TokenKind.PLUS), "-": int(TokenKind.MINUS)}

Place = tuple[int, int]
"""A place in a term: after which element, 0 for the beginning, and by how many characters."""


class _Step(NamedTuple):
    """A node of a term: an operation, or without a row the element with a number."""

    slot: int
    row: Primitive | None
    args: tuple[int, ...]
    begin: Place
    end: Place


class _Template(NamedTuple):
    """The nodes that a term emits.

    Attributes
    ----------
    heads : list of (str, int)
        The text before the index of each element, and how much of it is the element's name.
    tail : str
        The text after the last element.
    slots : list of int
        The nodes that are the same in every term, and slots for the others.
    steps : list of _Step
        The other nodes in their order.
    end : Place
        Where the term ends, without blanks.
    result : int
        The slot of the value.
    """

    heads: list[tuple[str, int]]
    tail: str
    slots: list[int]
    steps: list[_Step]
    end: Place
    result: int


class AlikeTerms:
    """The templates of a program's terms.

    Parameters
    ----------
    parser : Parser
        Whose terms they are.
    """

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.templates: dict[str, _Template | None] = {}
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
            after = template and self._emitted(template, bracket - len(head))
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
            self.templates[head] = self._template(form) if worth else None
        elif len(self.seen) < _FORMS:
            self.seen.add(form)

    def _follows(self, form: tuple[str, ...], begin: int) -> bool:
        """Whether a term of a form begins at a position, which is -1 for none."""
        *before, last = form
        pieces = _ELEMENT.split(self.parser.text[begin : begin + _LONGEST], len(form) // 2)
        return begin >= 0 and pieces[:-1] == before and pieces[-1].startswith(last)

    def _template(self, form: tuple[str, ...]) -> _Template | None:
        """Return the template of a form; None if terms of it are left to the parser."""
        literals, names = form[::2], form[1::2]
        whole, slot = "".join(literals), "element"
        if _OTHER.search(whole):
            return None
        while slot in whole:
            slot += "_"
        text, ends = literals[0], [0]
        for number, literal in enumerate(literals[1:], 1):
            text += f"{slot}{number}"
            ends.append(len(text))
            text += literal
        scope, builder = self.parser.scope, self.parser.builder
        try:
            small = type(self.parser)(text, scope.variables)
            small.read()
        except DifflabError:  # an operator before the term gives it another meaning
            return None
        made = small.builder
        if made.has_truths or builder.has_truths or made.param_ids or made.shape_ids:
            return None

        def place(position: int) -> Place:
            number = bisect_right(ends, position) - 1
            return number, position - ends[number]

        numbers = {f"{slot}{number}": number for number in range(1, len(ends))}
        slots, steps = [0] * len(made), []
        for node, (opcode, span) in enumerate(zip(made.opcode, made.spans, strict=True)):
            name, row = made.names.get(node, ""), made.primitive(node)
            places = place(span >> 32), place(span & 0xFFFFFFFF)
            if opcode == CONSTANT:
                slots[node] = builder.constant(*made.constants[node])
            elif name in numbers:
                steps.append(_Step(node, None, (numbers[name],), *places))
            elif row is None:
                slots[node] = scope.nodes[name]
                if builder.shape(slots[node]):
                    return None
            else:
                steps.append(_Step(node, row, made.arguments(node), *places))
        result, _, right = small.outputs[0]
        heads = [(before + name, len(name)) for before, name in zip(literals, names, strict=False)]
        return _Template(heads, literals[-1], slots, steps, place(right), result)

    def _emitted(self, template: _Template, position: int) -> int:
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
        emit, slots, elements = parser.builder.emit, template.slots.copy(), parser.elements
        for slot, row, args, (first, before), (last, behind) in template.steps:
            span = ends[first] + before, ends[last] + behind
            if row is None:
                name = names[args[0]]
                slots[slot] = elements.get(name) or self._element(name, span)
            elif len(args) == 2:  # most steps
                slots[slot] = emit(row, (slots[args[0]], slots[args[1]]), (), span)
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
