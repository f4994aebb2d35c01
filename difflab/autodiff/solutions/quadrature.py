r"""Adaptive quadrature as a function of the bounds and the parameters, and its derivative.

.. math:: \frac{d}{dp} \int_a^b f(x, p)\,dx = \int_a^b f_p\,dx + f(b, p)\,b' - f(a, p)\,a'

The integral of the derivative is computed by a quadrature of its own, to its own accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.autodiff.control.rows import zeros
from difflab.autodiff.control.solutions import Rule, solution
from difflab.autodiff.engine.argnums import cotangents_of, tangents_of
from difflab.autodiff.engine.batching import batched
from difflab.autodiff.recording import Contents
from difflab.autodiff.solutions.implicit import finite, nan_unless
from difflab.autodiff.solutions.newton import number, repeat
from difflab.graph.custom.rows import unpacked
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined
from difflab.primitives import where

_POSITIVE = [
    0.995657163025808080735527280689003,
    0.973906528517171720077964012084452,
    0.930157491355708226001207180059508,
    0.865063366688984510732096688423493,
    0.780817726586416897063717578345042,
    0.679409568299024406234327365114874,
    0.562757134668604683339000099272694,
    0.433395394129247190799265943165784,
    0.294392862701460198131126603103866,
    0.148874338981631210884826001129720,
]
_KRONROD = [
    0.011694638867371874278064396062192,
    0.032558162307964727478818972459390,
    0.054755896574351996031381300244580,
    0.075039674810919952767043140916190,
    0.093125454583697605535065465083366,
    0.109387158802297641899210590325805,
    0.123491976262065851077958109585166,
    0.134709217311473325928054001771707,
    0.142775938577060080797094273138717,
    0.147739104901338491374841515972068,
    0.149445554002916905664936468389821,
]
_GAUSS = [
    0.066671344308688137593568809893332,
    0.149451349150580593145863397657697,
    0.219086362515982043995534934228163,
    0.269266719309996355091226921569469,
    0.295524224714752870173815619188769,
]
NODES = np.array([*(-one for one in _POSITIVE), 0.0, *_POSITIVE[::-1]])
"""Nodes of the rule of Kronrod with 21 points; every other one is of Gauss's rule of 10."""
KRONROD = np.array([*_KRONROD, *_KRONROD[-2::-1]])
GAUSS = np.zeros(21)
GAUSS[1::2] = [*_GAUSS, *_GAUSS[::-1]]
SHORT = 2.0**-5
"""Length of an interval at a bound, relative to the whole, below which it is singular there."""
ROUNDING = 50 * 2.0**-52
"""Error of a sum of 21 terms, relative to the integral of the absolute value."""


def _places(low: Any, high: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the nodes in an interval of [a, b], and the slopes of them by those of the rule.

    In a short interval at a bound, which is singular there, x moves with the square of the distance
    s from it: an integrand like 1/√(x - a), as the slope of √(x - a) is, becomes smooth.
    """
    half, short = 0.5 * (high - low), np.abs(high - low) < SHORT * np.abs(b - a)
    at_a, at_b = (np.logical_and(short, edge) for edge in (low == a, high == b))
    s, t = 0.5 * (1 + NODES), 0.5 * (1 - NODES)
    bent = where(at_a, low + 2 * half * s**2, high - 2 * half * t**2)
    bound = np.logical_or(at_a, at_b)
    x = where(bound, bent, 0.5 * (low + high) + half * NODES)
    return x, where(bound, where(at_a, 2 * s, 2 * t), 1.0)


@dataclass(frozen=True)
class Quadrature(Rule):
    """The integral over [a, b] by halving the interval with the largest error (QUADPACK's QAG).

    Its arguments are a, b and the parameters; its outputs the integral, an estimate
    of the error, and the number of intervals (Piessens et al., *QUADPACK*, 1983).

    Attributes
    ----------
    contents : Contents
        Of the integrand, a function of a number and the parameters.
    epsabs, epsrel : float
        The error, absolute or relative to the largest part, at which it ends.
    limit : int
        The largest number of intervals.
    """

    contents: Contents
    epsabs: float
    epsrel: float
    limit: int
    name = "quad"

    @property
    def integrand(self) -> Function:
        """The integrand."""
        function: Function = self.contents.function
        return function

    @property
    def parameters(self) -> list[Shape]:
        """The shapes of the parameters."""
        return list(self.integrand.input_shapes[1:])

    @property
    def results(self) -> list[Shape]:
        """The shapes of the integrand's results."""
        return list(self.integrand.output_shapes)

    def function(self) -> Function:
        """Return the quadrature; the integral is nan if it does not converge."""
        return composed(self._integrated, [(), (), *self.parameters])

    def integral(self, nodes: Sequence[Node]) -> list[Node]:
        """Append the integral to the graph of its arguments; return the outputs."""
        return solution(self.function(), self, nodes)

    # --- the derivative -----------------------------------------------------------------------

    def pushed(self, moving: tuple[int, ...]) -> Function:
        """Return the tangents of the outputs, as `Rule.pushed`."""
        own = [index - 1 for index in moving if index > 1]
        inner = self._of(tangents_of(self.integrand, own)) if own else None
        count = len(self.results)

        def tangents(nodes: list[Node]) -> list[Node]:
            (a, b, *params), dots = self._divided(nodes)
            by_index = dict(zip(moving, dots, strict=True))
            rest = zeros(a.builder, [*self.results, (), ()])
            total = rest[:count]
            if inner is not None:
                more = [by_index[index + 1] for index in own]
                total = inner.integral([a, b, *params, *more])[:count]
            for index, (end, sign) in enumerate([(a, -1.0), (b, 1.0)]):
                if index in by_index:
                    edge = inlined(self.integrand, [end, *params])
                    weight = sign * by_index[index]
                    total = [one + weight * other for one, other in zip(total, edge, strict=True)]
            solved = finite(nodes[:count])
            return [*[nan_unless(solved, one) for one in total], *rest[count:]]

        return composed(tangents, self._inputs([self._arguments[index] for index in moving]))

    def pulled(self, wanted: tuple[int, ...]) -> Function:
        """Return the cotangents of some arguments, as `Rule.pulled`."""
        own = [index - 1 for index in wanted if index > 1]
        inner = self._of(cotangents_of(self.integrand, own)) if own else None
        count = len(self.results)

        def cotangents(nodes: list[Node]) -> list[Node]:
            (a, b, *params), bars = self._divided(nodes)
            bars = bars[:count]
            integrals = iter([] if inner is None else inner.integral([a, b, *params, *bars]))

            def edge(end: Node) -> Any:
                values = inlined(self.integrand, [end, *params])
                return sum(np.sum(bar * one) for bar, one in zip(bars, values, strict=True))

            solved = finite(nodes[:count])
            return [
                nan_unless(solved, next(integrals) if index > 1 else edge(b) if index else -edge(a))
                for index in wanted
            ]

        return composed(cotangents, self._inputs([*self.results, (), ()]))

    def _of(self, integrand: Function) -> Quadrature:
        """Return the quadrature of another integrand."""
        return Quadrature(Contents(integrand), self.epsabs, self.epsrel, self.limit)

    @property
    def _arguments(self) -> list[Shape]:
        return [(), (), *self.parameters]

    def _inputs(self, more: Sequence[Shape]) -> list[Shape]:
        return [*self.results, (), (), *self._arguments, *more]

    def _divided(self, nodes: list[Node]) -> tuple[list[Node], list[Node]]:
        """Return the arguments, and the values after them."""
        first = len(self.results) + 2
        second = first + len(self._arguments)
        return nodes[first:second], nodes[second:]

    # --- the value ----------------------------------------------------------------------------

    def _integrated(self, nodes: list[Node]) -> list[Node]:
        a, b = nodes[:2]
        one = np.arange(self.limit) == 0
        part, error = self._segment(a, b, nodes)
        zero = np.zeros(self.limit)
        first = [
            where(one, a, zero), where(one, b, zero), where(one[:, None], part, zero[:, None]),
            where(one, error, zero), number(a, 1.0),
        ]  # fmt: skip
        *_, parts, errors, count = repeat(self._going, self._halved, first, nodes)
        total, error = np.sum(parts, axis=0), np.sum(errors)
        integral = nan_unless(error <= self._allowed(total), total)
        return [*unpacked(integral, self.results), error, count]

    def _allowed(self, total: Any) -> Any:
        return np.maximum(self.epsabs, self.epsrel * np.max(np.abs(total)))

    def _going(self, value: list[Node], inputs: Sequence[Node]) -> Any:
        _, _, parts, errors, count = value
        more = np.sum(errors) > self._allowed(np.sum(parts, axis=0))
        return np.logical_and(more, count < float(self.limit))

    def _halved(self, value: list[Node], inputs: Sequence[Node]) -> list[Any]:
        """Replace the interval with the largest error by its halves."""
        starts, ends, parts, errors, count = value
        largest = where(errors == np.max(errors), 1.0, 0.0)
        worst = np.logical_and(largest > 0, np.cumsum(largest) == 1.0)
        new = np.arange(float(self.limit)) == count
        a, b = (np.sum(where(worst, edges, 0.0)) for edges in (starts, ends))
        middle = 0.5 * (a + b)
        left, left_error = self._segment(a, middle, inputs)
        right, right_error = self._segment(middle, b, inputs)
        return [
            where(new, middle, starts),
            where(worst, middle, where(new, b, ends)),
            where(worst[:, None], left, where(new[:, None], right, parts)),
            where(worst, left_error, where(new, right_error, errors)),
            count + 1.0,
        ]

    def _segment(self, low: Any, high: Any, inputs: Sequence[Node]) -> tuple[Any, Any]:
        """Return the integrals over one interval, and the largest estimate of their errors."""
        a, b, *params = inputs
        half = 0.5 * (high - low)
        x, slope = _places(low, high, a, b)
        stack = batched(self.integrand, [True, *[False] * len(params)], len(NODES))
        outputs = inlined(stack, [x, *params])
        values = np.concatenate([one.reshape((len(NODES), -1)) for one in outputs], axis=1)
        values = slope[:, None] * values
        kronrod, gauss = half * (KRONROD @ values), half * (GAUSS @ values)
        width = np.abs(half)
        mean = KRONROD @ values / 2
        spread = width * (KRONROD @ np.abs(values - mean))
        size = width * (KRONROD @ np.abs(values))
        error = np.abs(kronrod - gauss)
        ratio = np.minimum(1.0, (200 * error / where(spread > 0, spread, 1.0)) ** 1.5)
        error = where(spread > 0, spread * ratio, error)
        return kronrod, np.max(np.maximum(error, ROUNDING * size))
