r"""The derivative of a solution x(p) of the equations F(x, p) = 0.

.. math:: \dot x = -F_x^{-1} F_p \dot p, \qquad \bar p = -F_p^T F_x^{-T} \bar x

One linear system for each tangent, or for each cotangent (Griewank and Walther, *Evaluating
Derivatives*, 2008, chapter 15; Blondel et al., *Efficient and modular implicit differentiation*,
2022). Both are functions of the solution itself, so they can be differentiated again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from difflab.arrays import linalg
from difflab.autodiff.control.rows import zeros
from difflab.autodiff.control.solutions import Rule, Solver
from difflab.autodiff.engine.argnums import cotangents_of, jacobians, tangents_of
from difflab.autodiff.recording import Contents
from difflab.graph.control import prepared
from difflab.graph.custom.rows import packed, unpacked
from difflab.graph.evaluate import Interpreter
from difflab.graph.function import Function
from difflab.graph.interpreters import MpmathInterpreter
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined
from difflab.primitives import where

STATISTICS = 3
"""Outputs of a solver behind the solution: steps, relative correction, change of the Jacobian."""

MOST_CHANGE = 1e-3
"""Relative change of the Jacobian in the last correction above which it counts as singular.

It is a half at a double root, where each step of Newton halves the error, and of the size of the
correction at a simple one.
"""


@dataclass(frozen=True)
class Equations:
    """Equations F(x, p) = 0, as many as unknowns.

    Attributes
    ----------
    contents : Contents
        Of the residual F, a function of the unknowns and then the parameters, whose outputs have
        the shapes of the unknowns.
    """

    contents: Contents

    @property
    def residual(self) -> Function:
        """The residual F."""
        function: Function = self.contents.function
        return function

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the unknowns."""
        return tuple(self.residual.output_shapes)

    @property
    def parameters(self) -> list[Shape]:
        """The shapes of the parameters."""
        return list(self.residual.input_shapes[len(self.shapes) :])

    @property
    def vector(self) -> Shape:
        """The shape of all unknowns: a number for a single one, otherwise a vector."""
        return () if self.shapes == ((),) else (sum(map(math.prod, self.shapes)),)

    def joined(self, leaves: Sequence[Node]) -> Any:
        """Return values of the unknowns' shapes as one."""
        return packed(leaves, self.vector == ())

    def parts(self, whole: Node) -> list[Node]:
        """Return the inverse of `joined`."""
        return unpacked(whole, self.shapes, self.vector == ())

    @cached_property
    def flat(self) -> Function:
        """The residual as a function of all unknowns as one, and the parameters."""
        return composed(
            lambda nodes: [
                self.joined(inlined(self.residual, [*self.parts(nodes[0]), *nodes[1:]]))
            ],
            [self.vector, *self.parameters],
        )

    @cached_property
    def slope(self) -> Function:
        """The Jacobian of `flat` by the unknowns."""
        return jacobians(self.flat, (0,), (0,), forward=True)


def divided(slope: Any, right: Any) -> Any:
    """Return the solution of a linear system; of scalars, the quotient."""
    return linalg.solve(slope, right) if slope.shape else right / slope


def norm(vector: Any) -> Any:
    """Return the Euclidean norm of a vector or the absolute value of a number.

    Its slope at zero is zero, not 0/0: solvers whose steps are differentiated end there.
    """
    if not vector.shape:
        return np.abs(vector)
    largest = np.max(np.abs(vector)) if vector.size else np.sum(vector)
    # Squares of numbers below 1e-160 are 0, and those above 1e154 infinite.
    scale = where(np.logical_and(largest > 0, largest < np.inf), largest, 1.0)
    ratio = vector / scale
    square = np.sum(ratio * ratio)
    return where(square == 0, 0.0, scale * np.sqrt(where(square == 0, 1.0, square)))


def nan_unless(holds: Any, x: Any) -> Any:
    """Return x where a condition holds; else nan, and so are its derivatives."""
    return x * where(holds, 1.0, np.nan)


def no_derivatives(arguments: Sequence[Node]) -> Any:
    """Return nan, whose derivatives of every order by all arguments are nan."""
    return np.nan * np.exp(reduce(np.add, map(np.sum, arguments)))


def finite(values: Sequence[Any]) -> Any:
    """Return whether all elements of some values are finite."""
    return reduce(np.logical_and, [norm(one) < np.inf for one in values])


@dataclass(frozen=True)
class Implicit(Rule):
    """The derivative of a solution; see `difflab.autodiff.control.solutions.Rule`.

    The arguments are the first values of the unknowns, of which the solution is independent, and
    the parameters; the outputs are the solution, and statistics without a derivative.

    Attributes
    ----------
    name : str
        The name of the row.
    equations : Equations
        What is solved.
    statistics : int
        The number of statistics among the outputs; without them a solution whose Jacobian counts as
        singular is nan.
    """

    name: str
    equations: Equations
    statistics: int = STATISTICS

    @property
    def written(self) -> bool:
        """Whether it is a root of the language."""
        return not self.statistics

    def solved(
        self, on: Interpreter, solve: Solver, values: Sequence[Any], batch: Shape
    ) -> list[Any]:
        """Return the solution; in mpmath, to its working precision."""
        roots = solve()
        return self._refined(on, roots, values) if isinstance(on, MpmathInterpreter) else roots

    def _refined(
        self, on: MpmathInterpreter, outputs: list[Any], values: Sequence[Any]
    ) -> list[Any]:
        """Return the solution after steps of Newton that no longer become shorter."""
        equations, count, mp = self.equations, len(self.equations.shapes), on.mp
        flat, slope = (prepared(one, on) for one in (equations.flat, equations.slope))
        x = np.concatenate([np.ravel(np.asarray(one, dtype=object)) for one in outputs[:count]])
        size = mp.inf
        while not any(mp.isnan(one) for one in x):
            at = [x[0] if equations.vector == () else x, *values[count:]]
            right = mp.matrix(np.ravel(np.asarray(flat(at)[0], dtype=object)).tolist())
            matrix = np.reshape(np.asarray(slope(at)[0], dtype=object), (len(x), len(x)))
            try:
                step = mp.lu_solve(mp.matrix(matrix.tolist()), right)
            except ZeroDivisionError:
                break
            shorter, size = mp.norm(step) < size / 2, mp.norm(step)
            if not shorter:
                break
            x = x - np.array(list(step), dtype=object)
        parts = np.split(x, np.cumsum([math.prod(shape) for shape in equations.shapes])[:-1])
        shaped = [p.reshape(s)[()] for p, s in zip(parts, equations.shapes, strict=True)]
        return [*shaped, *outputs[count:]]

    def pushed(self, moving: tuple[int, ...]) -> Function:
        """Return the tangents of the outputs, as `Rule.pushed`."""
        equations, count = self.equations, len(self.equations.shapes)
        own = [index for index in moving if index >= count]
        push = tangents_of(equations.residual, own)

        def tangents(nodes: list[Node]) -> list[Node]:
            outputs, args, dots = self._divided(nodes)
            rest = zeros(nodes[0].builder, [node.shape for node in outputs])
            if not own:
                return rest
            point = [*outputs[:count], *args[count:]]
            dots = [dot for dot, index in zip(dots, moving, strict=True) if index >= count]
            right = equations.joined(inlined(push, [*point, *dots]))
            x_dot = equations.parts(-divided(self._slope(point), right))
            return [*self._known(outputs, args, x_dot), *rest[count:]]

        return composed(tangents, self._inputs([self._arguments[index] for index in moving]))

    def pulled(self, wanted: tuple[int, ...]) -> Function:
        """Return the cotangents of some arguments, as `Rule.pulled`."""
        equations, count = self.equations, len(self.equations.shapes)
        own = [index for index in wanted if index >= count]
        pull = cotangents_of(equations.residual, own)

        def cotangents(nodes: list[Node]) -> list[Node]:
            outputs, args, bars = self._divided(nodes)
            point = [*outputs[:count], *args[count:]]
            bar, slope = equations.joined(bars[:count]), self._slope(point)
            weights = equations.parts(-divided(slope.T if slope.shape else slope, bar))
            pulled = inlined(pull, [*point, *weights]) if own else []
            param_bars = iter(self._known(outputs, args, pulled))
            none = iter(zeros(nodes[0].builder, self._arguments[:count]))
            return [next(param_bars if index >= count else none) for index in wanted]

        return composed(cotangents, self._inputs(self._outputs))

    def _slope(self, point: Sequence[Node]) -> Any:
        """Return the Jacobian at the solution."""
        equations, count = self.equations, len(self.equations.shapes)
        (slope,) = inlined(equations.slope, [equations.joined(point[:count]), *point[count:]])
        return slope

    def _known(
        self, outputs: Sequence[Node], args: Sequence[Node], derivatives: Sequence[Any]
    ) -> list[Any]:
        """Return derivatives, nan where the Jacobian counts as singular or there is no solution.

        There the derivatives of theirs are nan, too.
        """
        if not self.statistics:
            return list(derivatives)
        x = outputs[: len(self.equations.shapes)]
        solved = np.logical_and(outputs[-1] <= MOST_CHANGE, finite(x))
        none = where(solved, 0.0, no_derivatives(args))
        return [one + none for one in derivatives]

    @property
    def _arguments(self) -> list[Shape]:
        return [*self.equations.shapes, *self.equations.parameters]

    @property
    def _outputs(self) -> list[Shape]:
        return [*self.equations.shapes, *[()] * self.statistics]

    def _inputs(self, more: Sequence[Shape]) -> list[Shape]:
        return [*self._outputs, *self._arguments, *more]

    def _divided(self, nodes: list[Node]) -> tuple[list[Node], list[Node], list[Node]]:
        """Return the outputs, the arguments and the rest."""
        first = len(self._outputs)
        second = first + len(self._arguments)
        return nodes[:first], nodes[first:second], nodes[second:]
