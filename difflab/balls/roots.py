"""Roots in ball arithmetic: a box in which there is exactly one, by the operator of Krawczyk.

For an approximate root x and an approximate inverse Y of the Jacobian J, a box X around x whose
image x - Y F(x) + (1 - Y J(X)) (X - x) lies inside X contains exactly one root (Neumaier, *Interval
Methods for Systems of Equations*, 1990, chapter 5). Its derivatives follow from one and two steps
of Newton on expansions about all points of the box.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from difflab.balls import matrices
from difflab.balls.jets import Fault, Jet, Undecided, jet
from difflab.balls.library import arb, arb_mat, working_bits
from difflab.graph.control import prepared
from difflab.graph.evaluate import ArrayInterpreter, Interpreter
from difflab.graph.ir import packed_slices

__all__ = ["System", "enclosed_root", "solved"]

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
    x, inverse = _approximated(middle or system, [arb(float(value)) for value in near])
    step = _times(inverse, system(x)[0])
    floor = arb(2) ** (4 - working_bits())
    radii = [
        2 * abs(one).upper() + floor * (abs(at) + floor) for one, at in zip(step, x, strict=True)
    ]
    for _ in range(TRIES):
        box = [at + arb(0, r) for at, r in zip(x, radii, strict=True)]
        image = _image(x, step, inverse, system(box)[1], box)
        if all(one.contains_interior(other) for one, other in zip(box, image, strict=True)):
            return _image(x, step, inverse, system(image)[1], image)
        radii = [4 * abs(one - at).upper() + r for one, at, r in zip(image, x, radii, strict=True)]
    raise Undecided(Fault("undecided", "it is not proved that there is one root", False))


def _approximated(system: System, x: list[Any]) -> tuple[list[Any], list[list[Any]]]:
    """Return a root by Newton's iteration on midpoints, and the inverse of the Jacobian there."""
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
        x = [(at - one).mid() for at, one in zip(x, step, strict=True)]
        if size < accurate * sum(map(abs, x)) or (last is not None and not size < last / 2):
            break
        last = size
    return x, rows


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
    params = [_mapped(jet, np.asarray(arg, dtype=object)) for arg in args[count:]]
    with np.errstate(all="ignore"):
        near = control.run(ArrayInterpreter(), [_floats(arg) for arg in args], ())[:count]
    first = np.concatenate([np.ravel(one) for one in near]).tolist()
    if not np.isfinite(first).all():
        raise Undecided(Fault("undecided", "the solver does not converge", False))

    def jets(parameters: list[Any], unknowns: Sequence[Jet]) -> list[Jet]:
        found = compute([*_shaped(unknowns, shapes), *parameters])
        return [jet(entry) for one in found for entry in np.ravel(np.asarray(one, dtype=object))]

    def system_of(parameters: list[Any]) -> System:
        def system(x: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
            found = jets(parameters, [Jet(at, {k: arb(1)}) for k, at in enumerate(x)])
            for one in found:
                if one.fault is not None:
                    raise Undecided(one.fault)
            columns = range(len(x))
            slopes = [[arb(one.slopes.get(k, 0)) for k in columns] for one in found]
            return [arb(one.value) for one in found], slopes

        return system

    fixed, middles = ([_mapped(one, p) for p in params] for one in (_value, _middle))
    box = enclosed_root(system_of(fixed), first, system_of(middles))
    _, slopes = system_of(fixed)(box)
    matrix = np.array([[Jet(entry) for entry in line] for line in slopes], dtype=object)
    unknowns = [Jet(at) for at in box]
    second = any(one.curves is not None for p in params for one in p.ravel())
    for _ in range(2 if second else 1):
        right = np.fromiter(jets(params, unknowns), dtype=object)
        steps = matrices.solve(matrix, right, ranks=(2, 1))
        unknowns = [
            _of_value(at, before - step)
            for at, before, step in zip(box, unknowns, steps, strict=True)
        ]
    rest = [Jet(arb.nan()) for _ in control.output_shapes[count:]]
    return [*_shaped(unknowns, shapes), *rest]


def _of_value(value: Any, found: Jet) -> Jet:
    return Jet(value, found.slopes, found.curves, found.fault)


def _mapped(change: Callable[[Any], Any], array: Any) -> Any:
    return np.fromiter(map(change, array.ravel().tolist()), dtype=object).reshape(array.shape)


def _value(one: Jet) -> Jet:
    return Jet(arb(one.value))


def _middle(one: Jet) -> Jet:
    return Jet(arb(one.value).mid())


def _floats(value: Any) -> Any:
    return np.vectorize(lambda one: float(arb(jet(one).value).mid()), otypes=[float])(
        np.asarray(value, dtype=object)
    )


def _shaped(entries: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
    """Return entries as values of the given shapes."""
    flat = np.fromiter(entries, dtype=object)
    parts = zip(packed_slices(shapes), shapes, strict=True)
    return [flat[part].reshape(shape)[()] for part, shape in parts]
