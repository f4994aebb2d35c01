"""The reverse sweep: cotangents from the outputs back to the inputs.

For y = φ(a, b, …) every argument receives ā += ȳ · ∂φ/∂a. One sweep gives the derivative of
one output with respect to every input, in a number of operations that does not depend on how
many inputs there are (Griewank & Walther, *Evaluating Derivatives*, 2nd ed., §3.2-3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from difflab.autodiff.engine.argumentwise import pulled
from difflab.autodiff.engine.custom import pulled_all
from difflab.autodiff.engine.masked import Masked, accumulate, both, moved, resolved
from difflab.autodiff.engine.sweep import Sweep, element_origins, filled, packed, spread, unit
from difflab.core.primitive import ByArgument, Custom, Elementwise, LinearMap, Select
from difflab.graph.function import Function
from difflab.graph.ir import INPUT
from difflab.graph.node import Node
from difflab.primitives import not_equal, scatter


def by_reverse(function: Function) -> tuple[Sweep, Node]:
    """Return the entries of the Jacobian, packed, by one reverse sweep per output element."""
    sweep = Sweep(function)
    bars: list[Node] = []
    origins = element_origins(sweep.builder, function.outputs)
    for number, key in origins:
        seed, alone = unit(sweep, sweep.builder.shape(number), key), len(origins) == 1
        bars += cotangents(sweep, {number: seed}, function.input_nodes, alone=alone)
    return sweep, packed(sweep, bars)


def cotangents(
    sweep: Sweep, seeds: Mapping[int, Node], sources: Sequence[int], *, alone: bool = False
) -> list[Node]:
    """Return the cotangents of `sources`, of their shapes; zeros where no seed depends on them."""
    bars, builder = {}, sweep.builder
    for number, bar in pull_back(sweep, seeds, sources).items():
        sweep.at(number)
        bars[number] = Node(builder, resolved(builder, bar))
    return filled(sweep, bars, sources, alone=alone)


def pull_back(sweep: Sweep, seeds: Mapping[int, Node], sources: Iterable[int]) -> dict[int, Masked]:
    """Return the cotangents of `sources` given those of other nodes, under their masks.

    Parameters
    ----------
    sweep : Sweep
        The graph and the builder to append to.
    seeds : mapping of int to Node
        The cotangents ȳ to start from.
    sources : iterable of int
        The nodes whose cotangents are wanted, inputs as a rule.

    Returns
    -------
    dict of int to Masked
        The cotangents; sources that no seed depends on are absent.
    """
    wanted, builder = set(sources), sweep.builder
    active = sweep.reached_from(wanted)
    arriving: dict[int, list[Masked]] = {
        number: [start]
        for number, seed in seeds.items()
        # Nodes that the sweep itself appended are constants: no cotangent flows from them.
        if number < len(active) and active[number]
        if (start := sweep.seeded(seed.id)) is not None
    }
    bars: dict[int, Masked] = {}
    # The last node comes first; a heap, since one output of many may need few nodes of the graph.
    order = [-number for number in arriving]
    heapify(order)
    while order:
        number = -heappop(order)
        sweep.at(number)
        parts = arriving.pop(number)
        y_bar = parts[0] if len(parts) == 1 else accumulate(builder, parts)
        if y_bar.mask is not None:
            simpler = sweep.zeros.simplified(y_bar)
            if simpler is None:
                continue
            y_bar = simpler
        if y_bar.element is not None or (y_bar.negated and number in wanted):
            y_bar = Masked(resolved(builder, y_bar))
        if number in wanted:
            bars[number] = y_bar
        for arg, part in _contributions(sweep, number, y_bar, active):
            earlier = arriving.get(arg)
            if earlier is None:
                arriving[arg] = [part]
                heappush(order, -arg)
                continue
            earlier.append(part)
            if sweep.joins and len(earlier) == 2:
                _join(sweep, earlier)
    return bars


def _join(sweep: Sweep, parts: list[Masked]) -> None:
    """Add two cotangents, unless a later one could join them better."""
    rows = [sweep.builder.primitive(part.value) for part in parts]
    pending = any(part.mask is not None or part.element is not None for part in parts)
    if not pending and scatter not in rows:
        parts[:] = [accumulate(sweep.builder, parts)]


def _contributions(
    sweep: Sweep, number: int, y_bar: Masked, active: bytearray
) -> list[tuple[int, Masked]]:
    """Return the contributions of a node's cotangent to those of its active arguments."""
    rule = sweep.rules[sweep.opcode[number]]
    if rule is None:  # an input or a constant
        return []
    kind = type(rule)
    if y_bar.negated and kind is not Elementwise and kind is not LinearMap:
        y_bar = Masked(resolved(sweep.builder, y_bar))
    if isinstance(rule, Custom):
        return list(pulled_all(sweep, number, rule, y_bar, active))
    pull = _PULLS[kind]
    contributions: list[tuple[int, Masked]] = []
    args = sweep.args(number)
    for position, arg in enumerate(args):
        if not active[arg]:
            continue
        part = pull(sweep, number, args, rule, position, y_bar)
        if part is None:
            continue
        if part.mask is not None and sweep.resolves and sweep.opcode[arg] == INPUT:
            part = Masked(resolved(sweep.builder, part))
        contributions.append((arg, part))
    return contributions


def _by_argument(
    sweep: Sweep, number: int, args: list[int], rule: ByArgument, position: int, y_bar: Masked
) -> Masked | None:
    """Send a cotangent through the transpose of a tangent map, which a sweep finds."""
    return pulled(sweep, number, rule, position, y_bar, pull_back)


def _passed(
    sweep: Sweep, number: int, args: list[int], rule: Select, position: int, y_bar: Masked
) -> Masked | None:
    """Send a cotangent to an argument that a selection passes on where a condition holds.

    If it ends there, reaches the next selection or comes from one, it is made zero at once:
    masks of masks would cost more than the selections themselves.
    """
    chosen = rule.conditions[position]
    if chosen is None:
        return None
    arg, condition = args[position], chosen(*map(sweep.node, args)).id
    builder = sweep.builder
    mask = both(builder, y_bar.mask, condition)
    row = sweep.graph.primitive(arg)
    selected_again = row is not None and isinstance(row.rule, Select)
    if sweep.opcode[arg] == INPUT or selected_again or y_bar.clean:
        zeroed = resolved(builder, Masked(resolved(builder, y_bar), condition))
        return Masked(zeroed, mask, clean=True)
    return Masked(y_bar.value, mask)


def _transposed(
    sweep: Sweep, number: int, args: list[int], rule: LinearMap, position: int, y_bar: Masked
) -> Masked:
    """Send a cotangent through the transpose of a linear primitive."""
    transpose, params = rule.transpose, sweep.graph.params(number)
    shape, shapes = sweep.graph.shape(number), sweep.shapes(number)
    if rule.element is not None and y_bar.mask is None:
        value = sweep.builder.spread(y_bar.value, shape)
        return Masked(value, negated=y_bar.negated, element=rule.element(shapes, **params))

    def move(bar: int) -> int:
        transposed: Node = transpose(spread(sweep.node(bar), shape), position, shapes, **params)
        return transposed.id

    final = sweep.resolves and sweep.opcode[args[position]] == INPUT
    part = moved(sweep.builder, y_bar, move, final=final)
    if position not in rule.selects or final:
        return part
    ones: Node = spread(sweep.constant(1), shape)
    read = sweep.builder.emit(not_equal, (move(ones.id), sweep.constant(0).id))
    sweep.zeros.branches.add(read)
    return Masked(part.value, both(sweep.builder, part.mask, read), clean=True)


_PULLS: dict[type, Callable[..., Masked | None]] = {
    Elementwise: Sweep.stamped,
    Select: _passed,
    ByArgument: _by_argument,
    LinearMap: _transposed,
}
"""How each kind of rule sends a cotangent to one argument."""
