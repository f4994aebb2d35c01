"""Statements of printed code, by their forms in a language: loops, branches and checkpoints.

The function inside becomes a block, printed with the names of the enclosing code: a `scan` is a
``for``, a `while_loop` a ``while``, a `cond` an ``if``.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.control import Branches, Checkpoint, Loop, WhileLoop, WhileLoopVjp
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.names import FreshNames
from difflab.language.printers.array_loops import flat_index
from difflab.language.printers.expressions import ANYTHING, Notation

if TYPE_CHECKING:
    from difflab.language.printers.straight import StraightLinePrinter

Change = tuple[str, str, int | None]
"""A variable, its next value, and the size of an array."""

# --- the forms of a language: templates, and methods where templates do not suffice --------------


class StatementForms(ABC):
    """The forms of a language's statements; `lines` are those written so far.

    Attributes
    ----------
    end, assigns : str
        The end of a statement, and the text between a variable and its value.
    adds, added : str, int
        How ``{1}`` is added to ``{0}``, and the precedence that ``{1}`` needs there.
    for_loop, backwards : str
        The head of a loop of the counter ``{0}`` from ``{1}`` to ``{2}``, or from there back;
        ``{3}`` is behind the last.
    while_loop, leaving, branch : str
        The heads of a loop and of a branch under the condition ``{0}``, and the statement that
        leaves a loop unless it holds.
    otherwise : str
        The head of the other branch.
    opening : str
        The opening of a block behind such a head; a loop over one statement does without.
    end_loop, end_branch : str
        The ends of loops and branches.
    new_tape : str
        The line that creates the list ``{0}``, whose items are ``{1}`` floats; empty if there are
        no lists that grow.
    """

    language: str
    notation: ClassVar[Notation]
    indent = "    "
    base = 0
    """The index of the first element of an array, from which loops count as well."""
    subscript = ("[", "]")
    end: ClassVar[str] = ""
    assigns: ClassVar[str] = "="
    adds: ClassVar[str] = "{0} += {1}"
    added = ANYTHING
    for_loop: ClassVar[str]
    backwards: ClassVar[str]
    while_loop: ClassVar[str]
    leaving: ClassVar[str]
    branch: ClassVar[str]
    otherwise: ClassVar[str]
    opening: ClassVar[str] = ""
    end_loop: ClassVar[str] = ""
    end_branch: ClassVar[str] = ""
    new_tape: ClassVar[str] = ""
    lines: list[str]
    fresh: FreshNames

    def add(self, *lines: str, indent: str | None = None) -> None:
        """Append lines, or, with their further indentation, those of a block."""
        for line in lines:
            if indent is None:
                self.lines.append(self.indent + line)
            else:
                self.lines.append("\n".join(indent + each for each in line.split("\n")))

    def number(self, value: float, name: str | None) -> str:
        """Return a constant."""
        return self.notation.literal(value)

    def definition(self, *, truth: bool) -> str:
        """Return the line that defines a number, with ``%s`` for its name and its value."""
        return f"%s {self.assigns} %s{self.end}"

    def declare_scalars(self, names: Sequence[str], *, truths: bool) -> None:  # noqa: B027
        """Declare scalars, in a language with separate declarations."""

    def scalar(self, name: str, value: str, row: Primitive | None) -> str:
        """Return the line that defines the result of a row."""
        truth = row is not None and row.boolean
        self.declare_scalars([name], truths=truth)
        return self.definition(truth=truth) % (name, value)

    @abstractmethod
    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        """Return the line that creates an array of zeros, or of truth values."""

    @abstractmethod
    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        """Return the line that creates a constant array, of indices if `places`."""

    def loop(self, counter: str, size: int) -> str:
        """Return the head of a loop over one statement."""
        return self._counted(self.for_loop, counter, size)

    def _counted(self, head: str, counter: str, size: int) -> str:
        first, behind = self.base, self.base + size
        return head.format(counter, first, behind - 1, behind)

    def assignment(self, target: str, sign: str, value: str) -> str:
        """Return the line ``target = value`` or ``target += value``."""
        new = f"{target} {self.assigns} {value}"
        text = new if sign == "=" else self.adds.format(target, value)
        return text + self.end

    @abstractmethod
    def carry(self, name: str, value: str, size: int | None) -> None:
        """Write a variable that changes, and its first value; `size` is an array's."""

    def assigned_later(self, name: str) -> None:
        """Declare a number that branches assign."""
        self.carry(name, self.number(0.0, None), None)

    def ignore(self, name: str) -> None:  # noqa: B027
        """Write that a value is not used, where compilers warn."""

    def collected(self, elements: Sequence[str]) -> str:
        """Return an array of elements."""
        return f"[{', '.join(elements)}]"

    @abstractmethod
    def advance(self, changes: Sequence[Change]) -> None:
        """Write assignments as if at once."""

    @abstractmethod
    def part(self, name: str, array: str, counter: str, size: int) -> str:
        """Return the line that names the `size` elements of an array at a step of a loop."""

    def counting(self, counter: str, steps: int, reverse: bool) -> str:
        """Return the head of a block that is repeated."""
        head = self.backwards if reverse else self.for_loop
        return self._counted(head, counter, steps) + self.opening

    def zeros(self, shape: Shape) -> str:
        """Return a value of zeros."""
        if not shape:
            return self.notation.literal(0.0)
        name = self.fresh.numbered("t")
        self.add(self.array(name, math.prod(shape)))
        return name

    def tape(self, shapes: Sequence[Shape]) -> TapeVariables:
        """Declare a tape that stores values of these shapes in each iteration."""
        if not self.new_tape:
            raise UnsupportedError(
                f"{self.language} has no array that grows, which the derivative of a while loop "
                "needs; use a loop of a fixed number of steps, or another language"
            )
        name = self.fresh.numbered("t")
        self.add(self.new_tape.format(name, sum(map(math.prod, shapes))))
        return TapeVariables(name, "", "", shapes)

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        """Write the statements that append the current values to a tape."""
        raise NotImplementedError

    @abstractmethod
    def unwind(self, tape: TapeVariables) -> tuple[str, list[str]]:
        """Return the head of a loop over a tape in reverse order, and the names of its values."""

    def going(self, condition: str) -> str:
        """Return the head of a block that is repeated while a condition holds."""
        return self.while_loop.format(condition) + self.opening

    def leave(self, condition: str) -> str:
        """Return the line that leaves a loop unless a condition holds."""
        return self.leaving.format(condition)

    def when(self, condition: str) -> str:
        """Return the head of a branch."""
        return self.branch.format(condition) + self.opening

    def when_true(self, condition: str) -> str:
        """Return the head of a branch, given a truth value."""
        return self.when(condition)

    def close(self, *, branch: bool = False) -> None:
        """Write the end of a loop, or of a branch."""
        end = self.end_branch if branch else self.end_loop
        if end:
            self.add(end)

    def at(self, name: str, affine: tuple[int, Shape], counters: Sequence[str]) -> str:
        """Return the element of an array at an offset and strides, counted from 0."""
        return self.element(name, self.place(affine, counters))

    def place(self, affine: tuple[int, Shape], counters: Sequence[str]) -> str:
        """Return an index, at an offset and strides, counted from 0."""
        offset, strides = affine
        first = offset + self.base * (1 - sum(strides))
        return flat_index((first, strides), counters)

    def element(self, name: str, index: int | str) -> str:
        """Return the element of an array at an index from 0, or at one written in counters."""
        text = index if isinstance(index, str) else str(index + self.base)
        return f"{name}{self.subscript[0]}{text}{self.subscript[1]}"


# --- statements of a graph -----------------------------------------------------------------------

PRINTED = (Branches, Checkpoint, Loop, WhileLoop, WhileLoopVjp)
"""What rows hold that is printed as statements."""

RESULT = "value"
"""The name of what a branch computes."""

Target = tuple[str, int]
"""An array, and where in it an output begins."""


@dataclass(frozen=True, slots=True)
class TapeVariables:
    """Variables of the tape of a while loop: the values, their count, and the capacity.

    In Fortran the last one is not the capacity, but the larger array that replaces a full one.
    """

    values: str
    count: str
    capacity: str
    shapes: Sequence[Shape]


def statements(printer: StraightLinePrinter, control: Any, values: Sequence[str], out: str) -> None:
    """Write the statements that fill the array `out` with the outputs.

    Parameters
    ----------
    printer : StraightLinePrinter
        The printer of the function around.
    control : Branches, Checkpoint, Loop, WhileLoop or WhileLoopVjp
        The control flow of the row.
    values : sequence of str
        The arguments.
    out : str
        The name of the array.
    """
    for value, read in zip(values, _read(control), strict=True):
        if not read:
            printer.ignore(value)
    if isinstance(control, Checkpoint):
        printer.add(*_filled(printer, control.function, values, out), indent="")
    elif isinstance(control, Branches):
        yes = _filled(printer, control.true, values[1:], out)
        no = _filled(printer, control.false, values[1:], out)
        printer.add(printer.when(values[0]))
        printer.add(*yes, indent=printer.indent)
        printer.add(printer.otherwise)
        printer.add(*no, indent=printer.indent)
        printer.close(branch=True)
    elif isinstance(control, WhileLoopVjp):
        _swept(printer, control, values, out)
    else:
        _repeated(printer, control, values, out)


def on_numbers(
    printer: StraightLinePrinter,
    control: Branches | WhileLoop,
    values: Sequence[str],
    names: list[str] | None,
) -> list[str]:
    """Write a branch or a loop on scalars, and return the variables of its outputs.

    A branch assigns `names`, or new variables where that is None.
    """
    if isinstance(control, WhileLoop):
        return _while(printer, control, values, None, named=True)
    if names is None:
        names = [printer.fresh.fresh(RESULT) for _ in control.output_shapes]
        for name in names:
            printer.assigned_later(name)
    heads = printer.when_true(values[0]), printer.otherwise
    for head, function in zip(heads, control.functions, strict=True):
        block = printer.block(function, values[1:])
        inner = block.last_branch()
        if inner is not None:
            block.targets[inner] = names
        block.compute()
        if inner is None:
            for name, node in zip(names, block.view.outputs, strict=True):
                block.add(block.assignment(name, "=", block.expression(node)))
        printer.add(head)
        printer.add(*block.lines, indent=printer.indent)
    printer.close(branch=True)
    return names


def in_sequence(changes: Sequence[Change]) -> Sequence[Change] | None:
    """Return scalar assignments in an order in which none reads a variable assigned before it.

    None if there is no such order, or one assigns an array.

    Examples
    --------
    >>> in_sequence([("k", "k + 1", None), ("total", "total + k", None)])
    [('total', 'total + k', None), ('k', 'k + 1', None)]
    """
    pending, ordered = list(changes), list[Change]()
    while pending:
        for change in pending:
            word = re.compile(rf"\b{re.escape(change[0])}\b")
            if not any(word.search(other[1]) for other in pending if other is not change):
                break
        else:
            return None
        ordered.append(change)
        pending.remove(change)
    return None if any(size is not None for _, _, size in changes) else ordered


def _read(control: Any) -> list[bool]:
    """Return for each argument whether it is read."""
    reads = []
    for function in control.functions:
        needed = function.graph.needed_for(function.outputs)
        reads.append([bool(needed[node]) for node in function.input_nodes])
    either = list(map(any, zip(*reads[:2], strict=True)))
    if isinstance(control, Checkpoint):
        return either
    if isinstance(control, Branches):
        return [True, *either]
    if isinstance(control, Loop):
        runs = control.steps > 0
        return [True] * control.carries + [read and runs for read in either[control.carries :]]
    count = len(control.loop.output_shapes if len(reads) == 3 else control.output_shapes)
    constants = either[count:]
    if len(reads) == 3:  # the last arguments of the step back are the constants
        back = reads[2][len(reads[2]) - len(constants) :]
        constants = list(map(any, zip(constants, back, strict=True)))
    return [True] * count + constants + [True] * (count * (len(reads) == 3))


def _targets(out: str, shapes: Sequence[Shape]) -> list[Target]:
    """Return where each output begins."""
    targets, start = [], 0
    for shape in shapes:
        targets.append((out, start))
        start += math.prod(shape)
    return targets


def _filled(
    printer: StraightLinePrinter, function: Function, values: Sequence[str], out: str
) -> list[str]:
    """Return the lines of a block that fills an array with the outputs of a function."""
    block = printer.block(function, values)
    block.compute()
    store_outputs(block, out)
    return block.lines


def store_outputs(printer: StraightLinePrinter, out: str) -> None:
    """Write the outputs of a function into an array, one after the other."""
    start = 0
    for node in printer.view.outputs:
        _stored(printer, node, out, (start, (1,)), [])
        start += math.prod(printer.graph.shape(node))


def _stored(
    block: StraightLinePrinter,
    node: int,
    out: str,
    affine: tuple[int, Shape],
    counters: Sequence[str],
) -> None:
    """Write an output of a block into an array; the last stride of `affine` is its elements'."""
    start, strides = affine
    if block.graph.shape(node) and node not in block.listed:
        size = math.prod(block.graph.shape(node))
        target = block.at(out, affine, [*counters, "i"])
        block.loops([("i", size)], target, "=", block.value(node, block.at_place(node, "i")))
        return
    for position, element in enumerate(block.elements(node), start):
        target = block.at(out, (position, strides[:-1]), counters)
        block.loops([], target, "=", element)


def _repeated(
    printer: StraightLinePrinter, loop: Loop | WhileLoop, values: Sequence[str], out: str
) -> None:
    """Print a loop; its carried values have variables of their own."""
    if isinstance(loop, WhileLoop):
        carried = _while(printer, loop, values, None)
        _results(printer, carried, loop.output_shapes, out)
        return
    shapes = loop.output_shapes[: loop.carries]
    carried = _variables(printer, shapes, values)
    if not loop.steps:  # its arrays are empty, and have no names
        _results(printer, carried, shapes, out)
        return
    counter = printer.fresh.numbered("k")
    body = _step(printer, loop, [*carried, *values[loop.carries :]], counter)
    starts = _targets(out, loop.output_shapes)[loop.carries :]
    for node, (_, start) in zip(body.view.outputs[loop.carries :], starts, strict=True):
        size = math.prod(body.graph.shape(node))
        _stored(body, node, out, (start, (size, 1)), [counter])
    head = printer.counting(counter, loop.steps, loop.reverse)
    _closed(printer, head, body, carried)
    _results(printer, carried, shapes, out)


def _while(
    printer: StraightLinePrinter,
    loop: WhileLoop,
    values: Sequence[str],
    tape: TapeVariables | None,
    *,
    named: bool = False,
) -> list[str]:
    """Write a while loop and return the variables of its last value; a tape keeps the others.

    They have the names of the inputs of the step if `named`.
    """
    shapes = loop.output_shapes
    carried = _variables(printer, shapes, values, loop.body.inputs if named else ())
    names = [*carried, *values[len(shapes) :]]
    test = printer.block(loop.test, names)
    test.compute()
    going = test.condition(test.view.outputs[0])
    body = printer.block(loop.body, names)
    if tape is not None:
        body.keep(tape, carried)
    body.compute()
    if test.lines:
        body.lines[:0] = [*test.lines, test.indent + test.leave(going)]
        going = printer.forever
    _closed(printer, printer.going(going), body, carried)
    return carried


def _swept(
    printer: StraightLinePrinter, sweep: WhileLoopVjp, values: Sequence[str], out: str
) -> None:
    """Write a while loop that keeps its values, and the steps back."""
    loop, shapes = sweep.loop, sweep.output_shapes
    count = len(loop.output_shapes)
    inputs, bars = values[: len(shapes)], values[len(shapes) :]
    tape = printer.tape(loop.output_shapes)
    _while(printer, loop, inputs, tape)
    zeros = [printer.zeros(shape) for shape in loop.constants]
    carried = _variables(printer, shapes, [*bars, *zeros])
    head, before = printer.unwind(tape)
    body = printer.block(sweep.back, [*carried, *before, *inputs[count:]])
    body.compute()
    _closed(printer, head, body, carried)
    _results(printer, carried, shapes, out)


def _variables(
    printer: StraightLinePrinter,
    shapes: Sequence[Shape],
    values: Sequence[str],
    names: Sequence[str] = (),
) -> list[str]:
    """Write variables with their first values, and return their names."""
    carried = [printer.fresh.fresh(printer.spelled(name)) for name in names[: len(shapes)]]
    carried = carried or [printer.fresh.numbered("t") for _ in shapes]
    for name, value, shape in zip(carried, values, shapes, strict=False):
        printer.carry(name, value, math.prod(shape) if shape else None)
    return carried


def _closed(
    printer: StraightLinePrinter, head: str, body: StraightLinePrinter, carried: Sequence[str]
) -> None:
    """Write a loop: its body, then the assignments of the next values."""
    _advanced(body, carried)
    printer.add(head)
    printer.add(*body.lines, indent=printer.indent)
    printer.close()


def _results(
    printer: StraightLinePrinter, carried: Sequence[str], shapes: Sequence[Shape], out: str
) -> None:
    """Write the last values of variables into an array."""
    for name, (_, start), shape in zip(carried, _targets(out, shapes), shapes, strict=True):
        if shape:
            target = printer.at(out, (start, (1,)), ["i"])
            printer.loops([("i", math.prod(shape))], target, "=", printer.element(name, "i"))
        else:
            printer.loops([], printer.element(out, start), "=", name)


def _step(
    printer: StraightLinePrinter, loop: Loop, values: Sequence[str], counter: str
) -> StraightLinePrinter:
    """Return the block of one step, in which looped arrays stand for their current elements."""
    names, slices = list(values), []
    for index in range(loop.carries, loop.carries + loop.arrays):
        shape = loop.body.input_shapes[index]
        names[index] = printer.element(values[index], counter)
        if shape:
            names[index] = printer.fresh.numbered("t")
            slices.append((index, names[index], math.prod(shape)))
    body = printer.block(loop.body, names)
    for index, name, size in slices:
        if body.view.uses[body.view.function.input_nodes[index]]:
            body.add(body.part(name, values[index], counter, size))
    body.compute()
    return body


def _advanced(body: StraightLinePrinter, carried: Sequence[str]) -> None:
    """Write the assignments of the next values, all of which are computed before the first."""
    changes: list[Change] = []
    for name, node in zip(carried, body.view.outputs, strict=False):
        shape = body.graph.shape(node)
        if node in body.listed:
            value = body.collected(body.elements(node))
        else:
            value = body.names[node] if shape else body.expression(node)
        if value != name:
            changes.append((name, value, math.prod(shape) if shape else None))
    body.advance(changes)
