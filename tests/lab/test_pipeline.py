"""Exact passes keep every value, bit for bit, and leave a well-formed graph."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import difflab as dl
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.graph.passes.exact import common, dead, fold, simplify
from difflab.graph.passes.fusion import fusion_groups
from difflab.graph.passes.layout import layout, transposes
from difflab.primitives import add, sin
from difflab.report.passes import EXACT, STABILISE, Pass, run
from difflab.stabilisation.rewriting import stabilised
from tests.support.programs import VARIABLES, expressions

VALUES = st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.0, 1e-300, -2.5, 1e200, np.inf, np.nan])


def well_formed(function: Function) -> bool:
    """Whether every node takes earlier nodes, is there once, and is needed."""
    graph = function.graph
    seen = set()
    for node, (opcode, args) in enumerate(graph.rows()):
        if any(arg >= node for arg in args):
            return False
        if opcode >= FIRST_ROW:
            seen.add((opcode, tuple(args), int(graph.param_ids[node])))
    used = {*graph.args.tolist(), *function.outputs, *function.input_nodes}
    return len(seen) == int((graph.opcode >= FIRST_ROW).sum()) and len(used) == len(graph)


def same_bits(one: Function, other: Function, point: dict[str, float]) -> bool:
    assert one.inputs == other.inputs
    values = [point[name] for name in one.inputs]
    return np.array_equal(one(*values), other(*values), equal_nan=True)


@pytest.mark.parametrize("item", EXACT, ids=lambda item: item.name)
@settings(max_examples=60)
@given(program=expressions(), values=st.tuples(*[VALUES] * len(VARIABLES)))
def test_exact_pass_keeps_values_and_form(
    item: Pass, program: str, values: tuple[float, ...]
) -> None:
    function = dl.parse(program)
    after = item.apply(function)
    point = dict(zip(VARIABLES, values, strict=True))
    assert well_formed(after)
    assert same_bits(function, after, point)
    if function.n:
        jacobian = dl.jacobian(function)
        assert same_bits(jacobian, item.apply(jacobian), point)


@settings(max_examples=60)
@given(program=expressions())
def test_stabilisation_leaves_a_well_formed_graph(program: str) -> None:
    function = dl.parse(program)
    stable, rewrites = stabilised(function)
    assert well_formed(stable)
    assert stable.inputs == function.inputs
    assert all(0 <= item.after < len(stable.graph) for item in rewrites)


def test_folding_gives_the_value_that_evaluation_gives() -> None:
    function = dl.parse("x + exp(1/3)*sqrt(2)")
    folded = fold(function)
    assert dl.count(folded).operations == 1
    assert folded(0.1) == function(0.1)


def test_zero_does_not_annihilate_what_may_be_undefined() -> None:
    function = dl.parse("0*log(x) + 0/x")
    assert np.isnan(simplify(function)(-1.0)) == np.isnan(function(-1.0)) == np.True_
    assert np.isnan(simplify(function)(0.0))


def test_constants_keep_the_shape_of_what_they_replace() -> None:
    function = dl.parse("v: [3]; v^0")
    assert simplify(function).output_shapes == ((3,),)


def test_common_finds_what_two_graphs_put_side_by_side_share() -> None:
    builder = Builder()
    x, y = builder.input("x"), builder.input("y")
    first = builder.emit(add, (x, y))
    builder.index.clear()
    second = builder.emit(add, (y, x))
    total = builder.emit(add, (first, builder.emit(sin, (second,))))
    doubled = Function.build(builder, [x, y], [total], ["y"])
    (step,) = run(doubled, [item for item in EXACT if item.apply is common])
    assert step.changed
    assert [size.operations for size in step.sizes] == [4, 3]


def test_dead_drops_what_no_output_needs() -> None:
    function = dl.parse("exp(sin(x)) + y")
    exponential = function.graph.arguments(function.outputs[0])[0]
    part = Function(function.graph, function.input_nodes, (exponential,), ("y",))
    assert len(dead(part).graph) == len(part.graph) - 1
    assert dead(part).inputs == ("x", "y")


@pytest.mark.parametrize(
    ("code", "left"),
    [
        (lambda a, b: a.T.T, 0),
        (lambda a, b: np.exp(a.T).T, 0),
        (lambda a, b: (np.sin(a.T) * b.T + 2).T, 0),
        (lambda a, b: (a.T + b.T) @ a, 1),
        (lambda a, b: a.T + b.reshape(3, 2), 1),
        (lambda a, b: (a @ b.T).T, 2),
        (lambda a, b: np.sum(np.exp(a.T), axis=0), 1),
    ],
)
def test_layout_merges_transposes(code: object, left: int) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 2, 3))
    function = dl.trace(code, a, b)  # type: ignore[arg-type]
    after = layout(function)
    assert transposes(after) == left
    np.testing.assert_array_equal(after(a, b), function(a, b))


def test_layout_leaves_differently_transposed_operands_apart() -> None:
    def code(a: object) -> object:
        turned = np.transpose(a, (1, 0, 2)) + np.transpose(a, (2, 1, 0))
        return np.transpose(turned, (1, 0, 2))

    cube = np.arange(8.0).reshape(2, 2, 2)
    function = dl.trace(code, cube)
    np.testing.assert_array_equal(layout(function)(cube), function(cube))


def test_layout_changes_nothing_where_it_saves_nothing() -> None:
    function = dl.trace(lambda a: np.exp(a.T) @ a, np.ones((2, 3)))
    assert layout(function) is function


def names(function: Function) -> list[list[str]]:
    return [[function.graph.primitive(n).name for n in group] for group in fusion_groups(function)]


def test_fusion_groups_end_where_a_whole_array_is_needed() -> None:
    function = dl.parse("v: [5]; w = exp(2*v); s = sum(w); sum(w*sin(v)/s) + s")
    assert names(function) == [["multiply", "exp", "sin", "multiply"], ["divide"], ["add"]]


def test_a_way_through_a_whole_array_of_the_same_shape_ends_a_group() -> None:
    assert names(dl.parse("v: [5]; a = exp(v); a + softmax(a)")) == [["exp"], ["add"]]


@settings(max_examples=40)
@given(program=expressions())
def test_fusion_groups_are_a_partition_without_a_way_back(program: str) -> None:
    function = dl.jacobian(dl.parse(f"{program} + x"))
    graph, groups = function.graph, fusion_groups(function)
    group_of = {node: k for k, group in enumerate(groups) for node in group}
    fusible = [
        row is not None and row.shape is None for row in map(graph.primitive, range(len(graph)))
    ]
    assert sorted(group_of) == [node for node, is_one in enumerate(fusible) if is_one]
    # A way that leaves a group must not come back to it.
    left: list[set[int]] = []
    for node, (_, args) in enumerate(graph.rows()):
        behind = set().union(*(left[arg] for arg in args)) if args else set()
        behind |= {group_of[arg] for arg in args if arg in group_of} - {group_of.get(node, -1)}
        assert group_of.get(node, -1) not in behind
        left.append(behind)


def test_pipeline_keeps_every_step() -> None:
    steps = run(dl.parse("x^1 + 2*3 + log(1 + x)"), (STABILISE, *EXACT))
    assert [step.done.name for step in steps if step.changed] == [
        "stabilisation",
        "constant folding",
        "simplification",
    ]
    assert all(left.after is right.before for left, right in itertools.pairwise(steps))
    assert [item.exact for item in (STABILISE, *EXACT)] == [False, *[True] * len(EXACT)]
