"""Roots in ball arithmetic: a box in which there is exactly one, by the operator of Krawczyk.

For an approximate root x and an approximate inverse Y of the Jacobian J, a box X around x whose
image x - Y F(x) + (1 - Y J(X)) (X - x) lies inside X contains exactly one root (Neumaier, *Interval
Methods for Systems of Equations*, 1990, chapter 5). Its derivatives follow from one and two steps
of Newton on expansions about all points of the box.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.arrays import solve
from difflab.balls.jets import Fault, Jet, Undecided, jet
from difflab.balls.library import arb, arb_mat, working_bits
from difflab.core.primitive import Primitive
from difflab.graph.control import Solution, prepared
from difflab.graph.evaluate import ArrayInterpreter, Interpreter
from difflab.graph.function import Function
from difflab.graph.ir import packed_slices

Array = NDArray[np.float64]

System = Callable[[Sequence[Any]], tuple[list[Any], list[list[Any]]]]
"""Returns the values of the equations, and their Jacobian, on a box."""

TRIES = 12
"""How often a box is enlarged before it is undecided whether there is a root."""
REFINEMENTS = 40


def enclosed_root(system: System, near: Sequence[float], middle: System | None = None) -> list[Any]:
    """Return a box that contains exactly one root near a point.

    Parameters
    ----------
    system : callable
        The equations on a box.
    near : sequence of float
        Approximate values of the unknowns.
    middle : callable, optional
        The equations for one point of the parameters, by which the root is approximated.

    Raises
    ------
    Undecided
        It is not proved that there is exactly one.

    Examples
    --------
    >>> (x,) = enclosed_root(lambda x: ([x[0] ** 2 - 2], [[2 * x[0]]]), [1.41])
    >>> bool((x**2).contains(2)), float(x.rad()) < 1e-14
    (True, True)
    """
    return _enclosed(system, near, middle)[0]


def _enclosed(
    system: System, near: Sequence[float], middle: System | None
) -> tuple[list[Any], list[list[Any]]]:
    """Return the box, and the Jacobian on a box that contains it."""
    x, inverse, values = _approximated(middle or system, [arb(float(value)) for value in near])
    step = _times(inverse, values if middle is None else system(x)[0])
    floor = arb(2) ** (4 - working_bits())
    radii = [
        2 * abs(one).upper() + floor * (abs(at) + floor) for one, at in zip(step, x, strict=True)
    ]
    for _ in range(TRIES):
        box = [at + arb(0, r) for at, r in zip(x, radii, strict=True)]
        image = _image(x, step, inverse, system(box)[1], box)
        if all(one.contains_interior(other) for one, other in zip(box, image, strict=True)):
            slopes = system(image)[1]
            return _image(x, step, inverse, slopes, image), slopes
        radii = [4 * abs(one - at).upper() + r for one, at, r in zip(image, x, radii, strict=True)]
    raise Undecided(Fault("undecided", "it is not proved that there is one root", False))


def _approximated(system: System, x: list[Any]) -> tuple[list[Any], list[list[Any]], list[Any]]:
    """Return a root by Newton's iteration on midpoints; the inverse Jacobian and values there."""
    last, accurate = None, arb(2) ** -(working_bits() // 2 + 8)  # the next step is its square
    for _ in range(REFINEMENTS):
        values, slopes = system(x)
        try:
            inverse = arb_mat([[entry.mid() for entry in line] for line in slopes]).inv()
        except ZeroDivisionError:
            raise Undecided(Fault("pole", "the Jacobian at a root is singular", False)) from None
        rows = [[inverse[i, j].mid() for j in range(len(x))] for i in range(len(x))]
        step = _times(rows, values)
        size = sum(abs(one.mid()) for one in step)
        if size < accurate * sum(map(abs, x)) or (last is not None and not size < last / 2):
            break
        last = size
        x = [(at - one).mid() for at, one in zip(x, step, strict=True)]
    else:
        values, _ = system(x)
    return x, rows, values


def _image(
    x: Sequence[Any], step: Sequence[Any], inverse: Any, slopes: Any, box: Sequence[Any]
) -> list[Any]:
    """Return the image of a box under the operator of Krawczyk."""
    moved = [one - at for one, at in zip(box, x, strict=True)]
    columns = list(zip(*slopes, strict=True))
    rest = [
        [int(i == j) - _times([line], column)[0] for j, column in enumerate(columns)]
        for i, line in enumerate(inverse)
    ]
    return [at - one + by for at, one, by in zip(x, step, _times(rest, moved), strict=True)]


def _times(matrix: Sequence[Sequence[Any]], vector: Sequence[Any]) -> list[Any]:
    return [
        sum((one * other for one, other in zip(line, vector, strict=True)), arb(0))
        for line in matrix
    ]


@contextmanager
def approximated(function: Function, points: Array) -> Iterator[None]:
    """Run the solvers of a function's roots at all points ``(N, n)`` in one batch.

    Within the context `solved` takes the approximate roots from there, and verifies them only.
    """
    global _starts
    before, _starts = _starts, _batch(function, points)
    try:
        yield
    finally:
        _starts = before


_starts: Mapping[tuple[int, bytes], Any] = {}  # global, as FLINT's precision is


def _batch(function: Function, points: Array) -> Mapping[tuple[int, bytes], Any]:
    """Return the solutions at points, by solver and the bytes of its arguments."""
    graph, starts = function.graph, dict[tuple[int, bytes], Any]()
    nodes = np.flatnonzero(graph.matching(_has_equations)).tolist()
    if not nodes:
        return starts
    shown = list(dict.fromkeys([one for node in nodes for one in (*graph.arguments(node), node)]))
    names = tuple([f"node {node}" for node in shown])
    part = Function(graph, function.input_nodes, tuple(shown), names)
    with np.errstate(all="ignore"):
        values = dict(zip(shown, part.on_arrays(part.split(points)), strict=True))
    for node in nodes:
        row = graph.primitive(node)
        assert row is not None
        args = [np.asarray(values[arg], dtype=np.float64) for arg in graph.arguments(node)]
        solutions = np.reshape(values[node], (len(points), -1))[:, : _size(row.holds)]
        for index, solution in enumerate(solutions):
            key = b"".join([arg[index].tobytes() for arg in args])
            starts[id(row.holds), key] = solution
    return starts


def _has_equations(row: Primitive) -> bool:
    return isinstance(row.holds, Solution) and hasattr(row.holds.rule, "equations")


def _size(control: Solution) -> int:
    """Return the number of unknowns."""
    return sum(map(math.prod, control.rule.equations.shapes))


def _started(control: Solution, args: Sequence[Any]) -> Any:
    """Return the approximate root, and run the solver if it is not known."""
    floats = [_floats(arg) for arg in args]
    known = _starts.get((id(control), b"".join([one.tobytes() for one in floats])))
    if known is not None:
        return known
    with np.errstate(all="ignore"):
        near = control.run(ArrayInterpreter(), floats, ())
    return np.concatenate([np.ravel(one) for one in near])[: _size(control)]


def solved(on: Interpreter, control: Any, args: Sequence[Any]) -> list[Any]:
    """Return the outputs of a solution whose rule has equations, as expansions.

    Raises
    ------
    Undecided
        It is not proved that there is exactly one near that of the solver.
    """
    equations = control.rule.equations
    residual, shapes = equations.residual, equations.shapes
    compute, count = prepared(residual, on), len(equations.shapes)
    first = _started(control, args).tolist()
    if not np.isfinite(first).all():
        raise Undecided(Fault("undecided", "the solver does not converge", False))
    params = [_jets(arg) for arg in args[count:]]

    def jets(parameters: list[Any], unknowns: Sequence[Jet]) -> list[Jet]:
        outputs = compute([*_shaped(unknowns, shapes), *parameters])
        if len(outputs) == 1 and isinstance(outputs[0], Jet):
            return outputs
        return [jet(entry) for one in outputs for entry in np.ravel(np.asarray(one, dtype=object))]

    unit = arb(1)

    def system_of(parameters: list[Any]) -> System:
        def system(x: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
            residuals = jets(parameters, [Jet(at, {k: unit}) for k, at in enumerate(x)])
            for value in residuals:
                if value.fault is not None:
                    raise Undecided(value.fault)
            slopes = [[arb(value.slopes.get(k, 0)) for k in range(len(x))] for value in residuals]
            return [arb(value.value) for value in residuals], slopes

        return system

    fixed = [_mapped(_value, p) for p in params]
    middle = None
    if not all(one.value.is_exact() for p in fixed for one in _entries(p)):
        middle = system_of([_mapped(_middle, p) for p in params])
    box, slopes = _enclosed(system_of(fixed), first, middle)
    matrix = [[Jet(entry) for entry in line] for line in slopes]
    unknowns = [Jet(at) for at in box]
    second = any(one.curves is not None for p in params for one in _entries(p))
    for _ in range(2 if second else 1):
        steps = _divided(matrix, jets(params, unknowns))
        unknowns = [
            _of_value(at, before - step)
            for at, before, step in zip(box, unknowns, steps, strict=True)
        ]
    rest = [Jet(arb.nan()) for _ in control.output_shapes[count:]]
    return [*_shaped(unknowns, shapes), *rest]


def _of_value(value: Any, derivatives: Jet) -> Jet:
    return Jet(value, derivatives.slopes, derivatives.curves, derivatives.fault)


def _jets(value: Any) -> Any:
    """Return an expansion, or the elements of an argument as an array of expansions."""
    return jet(value) if np.shape(value) == () else _mapped(jet, value)


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return change(value)
    return np.fromiter(map(change, value.ravel().tolist()), dtype=object).reshape(value.shape)


def _entries(value: Any) -> list[Any]:
    return value.ravel().tolist() if isinstance(value, np.ndarray) else [value]


def _divided(matrix: list[list[Jet]], right: list[Jet]) -> list[Jet]:
    """Return the solution of a linear system; of one equation, the quotient."""
    if len(right) == 1:
        return [right[0] / matrix[0][0]]
    whole, column = np.array(matrix, dtype=object), np.fromiter(right, dtype=object)
    solution: list[Jet] = solve(whole, column, ranks=(2, 1)).tolist()
    return solution


def _value(one: Jet) -> Jet:
    return Jet(arb(one.value))


def _middle(one: Jet) -> Jet:
    return Jet(arb(one.value).mid())


def _floats(value: Any) -> Array:
    """Return the midpoints, rounded to float64."""
    midpoints = [float(arb(jet(one).value).mid()) for one in _entries(value)]
    return np.array(midpoints).reshape(np.shape(value))


def _shaped(entries: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
    """Return entries as values of the given shapes."""
    flat = np.fromiter(entries, dtype=object)
    parts = zip(packed_slices(shapes), shapes, strict=True)
    return [flat[part].reshape(shape)[()] for part, shape in parts]
