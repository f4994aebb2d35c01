"""The builder: one node per computation, exact identities, shapes, dead nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from difflab.errors import ShapeError
from difflab.graph.builder import Builder
from difflab.primitives import (
    add,
    constant_array,
    divide,
    dpower,
    greater,
    index,
    log,
    logical_not,
    multiply,
    negative,
    not_equal,
    power,
    sin,
    subtract,
    where,
)


@pytest.fixture
def plain() -> Builder:
    return Builder()


@pytest.fixture
def simplifying() -> Builder:
    return Builder(simplify=True)


def test_one_computation_is_one_node(plain: Builder) -> None:
    x, y = plain.input("x"), plain.input("y")
    assert plain.emit(add, (x, y)) == plain.emit(add, (y, x))
    assert plain.emit(subtract, (x, y)) != plain.emit(subtract, (y, x))
    assert plain.input("x") == x


def test_constants_are_told_apart_by_kind_and_sign(plain: Builder) -> None:
    assert len({plain.constant(v) for v in (0, 0.0, -0.0, 1, 1.0)}) == 5
    assert plain.constant(3.141592653589793) != plain.constant(3.141592653589793, "pi")
    assert plain.constant(0.5) == plain.constant(0.5)


def test_a_plain_builder_keeps_what_is_written(plain: Builder) -> None:
    x = plain.input("x")
    assert plain.emit(multiply, (x, plain.constant(1))) != x
    assert plain.emit(subtract, (x, x)) not in plain.constants


@pytest.mark.parametrize(
    ("row", "order", "number"),
    [(add, "xc", 0), (add, "cx", 0), (subtract, "xc", 0), (multiply, "xc", 1),
     (multiply, "cx", 1), (divide, "xc", 1), (power, "xc", 1)],
)  # fmt: skip
def test_neutral_elements_vanish(
    simplifying: Builder, row: object, order: str, number: int
) -> None:
    x, c = simplifying.input("x"), simplifying.constant(number)
    args = tuple({"x": x, "c": c}[letter] for letter in order)
    assert simplifying.emit(row, args) == x


def test_signs_move_outward_and_cancel(simplifying: Builder) -> None:
    b = simplifying
    x, y = b.input("x"), b.input("y")
    minus_x, minus_y = b.emit(negative, (x,)), b.emit(negative, (y,))
    assert b.emit(negative, (minus_x,)) == x
    assert b.emit(add, (x, minus_y)) == b.emit(subtract, (x, y))
    assert b.emit(add, (minus_x, y)) == b.emit(subtract, (y, x))
    assert b.emit(subtract, (x, minus_y)) == b.emit(add, (x, y))
    assert b.emit(multiply, (minus_x, minus_y)) == b.emit(multiply, (x, y))
    assert b.emit(divide, (minus_x, y)) == b.emit(negative, (b.emit(divide, (x, y)),))
    assert b.emit(multiply, (b.constant(-1), x)) == minus_x
    assert b.emit(negative, (b.emit(subtract, (x, y)),)) == b.emit(subtract, (y, x))


def test_constants_fold_where_that_is_exact(simplifying: Builder) -> None:
    b = simplifying
    three = b.emit(add, (b.constant(1), b.constant(2)))
    assert b.constants[three] == (3, None)
    pole = b.emit(divide, (b.constant(1), b.constant(0)))
    assert pole not in b.constants
    assert b.constants[b.emit(sin, (b.constant(0),))][0] == 0
    assert b.constants[b.emit(divide, (b.constant(3), b.constant(8)))][0] == 0.375
    for rounded in (
        b.emit(sin, (b.constant(1.0),)),
        b.emit(divide, (b.constant(1), b.constant(7))),
        b.emit(subtract, (b.constant(0.1), b.constant(1))),
        b.emit(multiply, (b.constant(0.1), b.constant(0.1))),
        b.emit(multiply, (b.constant(math.pi, "pi"), b.constant(2))),
        b.emit(log, (b.constant(10),)),
    ):
        assert b.primitive(rounded) is not None


def test_a_known_exponent_gives_plain_operations(simplifying: Builder) -> None:
    b = simplifying
    x = b.input("x")
    assert b.emit(dpower, (x, b.constant(2))) == b.emit(multiply, (b.constant(2), x))
    assert b.constants[b.emit(dpower, (x, b.constant(0)))][0] == 0


def test_a_negated_condition_swaps_the_branches(simplifying: Builder) -> None:
    b = simplifying
    x, y = b.input("x"), b.input("y")
    above = b.emit(greater, (x, y))
    below = b.emit(logical_not, (above,))
    assert b.emit(where, (below, x, y)) == b.emit(where, (above, y, x))
    assert b.emit(where, (above, x, x)) == x


def test_truth_values_and_numbers_convert_where_the_other_is_taken(plain: Builder) -> None:
    x, y = plain.input("x"), plain.input("y")
    above = plain.emit(greater, (x, y))
    total = plain.emit(add, (above, above))
    (left, _) = plain.arguments(total)
    assert repr(plain.primitive(left)) == "<primitive as_number>"
    chosen = plain.emit(where, (x, x, y))
    assert plain.primitive(plain.arguments(chosen)[0]) is not_equal


def test_shapes_are_known_and_mismatches_name_them(plain: Builder) -> None:
    x, y = plain.input("x", (4, 1)), plain.input("y", (3,))
    assert plain.shape(plain.emit(multiply, (x, y))) == (4, 3)
    z = plain.input("z", (5,))
    with pytest.raises(ShapeError, match=r"add cannot combine the shapes \(3,\) and \(5,\)"):
        plain.emit(add, (y, z))


def test_freezing_keeps_what_is_needed_and_every_input(plain: Builder) -> None:
    x, unused = plain.input("x"), plain.input("unused")
    wanted = plain.emit(sin, (x,))
    plain.emit(multiply, (wanted, wanted))
    graph, (output,) = plain.freeze([wanted])
    assert len(graph) == 3
    assert graph.primitive(output) is sin
    assert sorted(graph.names.values()) == ["unused", "x"]
    assert unused == 1


def test_continuing_a_graph_finds_its_nodes_again(plain: Builder) -> None:
    x = plain.input("x", (3,))
    part = plain.emit(index, (x,), (("key", (1,)), ("rank", 1)), (2, 6))
    wanted = plain.emit(multiply, (part, plain.constant(2.5)))
    graph, (output,) = plain.freeze([wanted])
    again = Builder.continuing(graph)
    assert again.input("x", (3,)) == 0
    found = again.emit(index, (0,), (("key", (1,)), ("rank", 1)))
    assert again.emit(multiply, (found, again.constant(2.5))) == output
    assert len(again) == len(graph)
    assert graph.span(found) == (2, 6)
    assert graph.span(output) is None


def test_a_number_picked_from_constants_is_a_constant(simplifying: Builder) -> None:
    values = np.array([[1.0, 2.5], [-3.0, math.inf]])
    params = (("shape", (2, 2)), ("values", values.tobytes()))
    array = simplifying.emit(constant_array, (), params)

    def picked(*key: int | tuple[int, int, int]) -> int:
        return simplifying.emit(index, (array,), (("key", key), ("rank", 2)))

    assert simplifying.constants[picked(0, 1)] == (2.5, None)
    assert simplifying.constants[picked(1, -2)] == (-3, None)
    assert picked(1, 1) not in simplifying.constants
    assert simplifying.shape(picked(0, (0, 2, 1))) == (2,)


def test_a_difference_is_not_the_difference_the_other_way() -> None:
    builder = Builder()
    a, b = builder.input("a"), builder.input("b")
    assert builder.emit(subtract, (a, b)) != builder.emit(subtract, (b, a))
    assert builder.emit(multiply, (a, b)) == builder.emit(multiply, (b, a))
    again = Builder.continuing(builder.graph())
    assert again.emit(multiply, (b, a)) == again.emit(multiply, (a, b)) == 4
    assert again.emit(subtract, (b, a)) == 3


def test_a_graph_without_nodes_is_pruned() -> None:
    graph, kept = Builder().graph().pruned(())
    assert len(graph) == 0
    assert kept == ()
