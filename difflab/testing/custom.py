"""`check_custom_function`: check the derivative rules of a custom function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from difflab.errors import InputError
from difflab.graph.custom.call import CustomCall, no_rule
from difflab.graph.custom.function import CustomFunction
from difflab.testing.checker.leaves import Array
from difflab.testing.gradient import GradientMismatch, check_gradient

DUALITY = 1e-9
"""Tolerance of the duality, relative to the sum of the absolute values of its terms."""


def check_custom_function(
    function: type[CustomFunction],
    *args: Any,
    rtol: float = 1e-8,
    atol: float = 0.0,
    seed: int = 0,
) -> None:
    r"""Raise `GradientMismatch` unless the rules of a custom function are right at `args`.

    Each rule is compared with numeric differentiation of `forward` by `check_gradient`, along
    random directions: :math:`\bar y^T J` of `backward` by the gradient of
    :math:`\bar y^T f`, and :math:`J \dot x` of `jvp` by the derivative of
    :math:`f(x + t \dot x)`. If both rules are defined, the duality
    :math:`\langle \bar y, J \dot x\rangle = \langle J^T \bar y, \dot x\rangle` is checked too.
    The number and the shapes of the returned cotangents and tangents are also checked.

    Parameters
    ----------
    function : type
        The class.
    *args
        The arguments of ``function.apply`` at which to check. The derivatives with respect to
        floats and floating-point arrays are checked; all other arguments are settings.
    rtol : float
        Relative tolerance, added to the error bar of the numeric method.
    atol : float
        Absolute tolerance, as for `check_gradient`.
    seed : int
        Seed of the random directions.

    Raises
    ------
    GradientMismatch
        A rule is wrong; the message states the rule, the argument and the values. It is an
        `AssertionError`, so tests fail with its message.
    GradientUnjudged
        The values of `forward` are too noisy, or too large, to judge a rule.
    difflab.errors.InputError
        A rule returns the wrong number of derivatives or a wrong shape, or no argument is a
        float or a floating-point array.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> class Cube(dl.CustomFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, y_bar):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x**2 * y_bar
    >>> check_custom_function(Cube, 2.0)
    Traceback (most recent call last):
        ...
    difflab.testing.gradient.GradientMismatch: Cube.backward, argument 1: the gradient is wrong ...
    """
    __tracebackhide__ = True  # pytest then shows the message and the test, not this function
    if not (isinstance(function, type) and issubclass(function, CustomFunction)):
        raise InputError(f"{function!r} is not a subclass of dl.CustomFunction")
    case = _CustomProbe(function, args, np.random.default_rng(seed))
    allowed = {"rtol": rtol, "atol": atol}
    with np.errstate(all="ignore"):
        if not no_rule(function, "backward"):
            case.check_backward(allowed)
        if not no_rule(function, "jvp"):
            case.check_jvp(allowed)
        if not no_rule(function, "backward") and not no_rule(function, "jvp"):
            case.check_duality()


def checked(*args: Any, **options: Any) -> Callable[[type[CustomFunction]], type[CustomFunction]]:
    """Return a class decorator that checks a custom function at its definition.

    Parameters
    ----------
    *args, **options
        As for `check_custom_function`, without the class.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> @checked(np.array([0.5, 1.0]))
    ... class Sine(dl.CustomFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return np.sin(x)
    ...
    ...     @staticmethod
    ...     def jvp(ctx, x_dot):
    ...         (x,) = ctx.saved_tensors
    ...         return np.cos(x) * x_dot
    """

    def decorate(function: type[CustomFunction]) -> type[CustomFunction]:
        check_custom_function(function, *args, **options)
        return function

    return decorate


class _CustomProbe:
    """A custom function at one point, with random tangents and cotangents."""

    def __init__(
        self, function: type[CustomFunction], args: Sequence[Any], draw: np.random.Generator
    ) -> None:
        arguments = [_array(arg) if _differentiable(arg) else arg for arg in args]
        self.call, self.point = CustomCall.of(function, arguments)
        if not self.point:
            raise InputError(
                f"{self.call.name} has no argument to differentiate with respect to",
                hint="pass at least one float or floating-point array",
            )
        self.shapes = [np.shape(value) for value in self.point]
        ran = self.call.run(self.point)
        self.outputs = [np.shape(output) for output in ran.outputs]
        self.dots = [draw.normal(size=shape)[()] for shape in self.shapes]
        self.bars = [draw.normal(size=shape)[()] for shape in self.outputs]

    def values(self, point: Sequence[Any]) -> list[Array]:
        """Return the outputs at a point."""
        return [np.asarray(output) for output in self.call.run(point).outputs]

    def pulled(self, point: Sequence[Any]) -> list[Any]:
        """Return x̄ = Jᵀ ȳ."""
        bars = self.call.pull(self.call.run(point).context, self.bars, self.shapes)
        pairs = zip(bars, self.shapes, strict=True)
        return [np.zeros(shape)[()] if bar is None else bar for bar, shape in pairs]

    def pushed(self, point: Sequence[Any]) -> list[Any]:
        """Return ẏ = J ẋ."""
        return self.call.push(self.call.run(point).context, self.dots, self.outputs)

    def check_backward(self, allowed: dict[str, float]) -> None:
        """Compare each cotangent with the gradient of ⟨ȳ, f⟩ with respect to its argument."""
        for index in range(len(self.point)):

            def product(x: Any, index: int = index) -> Any:
                return _dot(self.bars, self.values(self._moved(index, x)))

            def slope(x: Any, index: int = index) -> Any:
                return self.pulled(self._moved(index, x))[index]

            where = f"{self.call.name}.backward, argument {self.call.holes[index] + 1}"
            _check(where, product, slope, self.point[index], allowed)

    def check_jvp(self, allowed: dict[str, float]) -> None:
        """Compare each tangent with the derivative along the direction."""
        for index in range(len(self.outputs)):

            def along(t: float, index: int = index) -> Any:
                return self.values(self._along(t))[index]

            def slope(t: float, index: int = index) -> Any:
                return self.pushed(self._along(t))[index]

            where = f"{self.call.name}.jvp, output {index + 1}, along a random direction"
            _check(where, along, slope, 0.0, allowed)

    def check_duality(self) -> None:
        """Check the duality ⟨ȳ, Jẋ⟩ = ⟨Jᵀȳ, ẋ⟩ of the two rules."""
        forth, back = self.pushed(self.point), self.pulled(self.point)
        left, right = _dot(self.bars, forth), _dot(back, self.dots)
        terms = [
            np.abs(a * b).sum()
            for a, b in zip([*self.bars, *back], [*forth, *self.dots], strict=True)
        ]
        if not abs(left - right) <= DUALITY * sum(terms):
            raise GradientMismatch(
                f"{self.call.name}: jvp and backward are inconsistent:"
                f" ⟨ȳ, Jẋ⟩ = {float(left)!r} by jvp, and ⟨Jᵀȳ, ẋ⟩ = {float(right)!r} by backward"
            )

    def _moved(self, index: int, x: Any) -> list[Any]:
        point = list(self.point)
        point[index] = np.asarray(x)[()]
        return point

    def _along(self, t: float) -> list[Any]:
        return [x + t * dot for x, dot in zip(self.point, self.dots, strict=True)]


def _check(where: str, f: Any, slope: Any, x: Any, allowed: dict[str, float]) -> None:
    """Check one derivative numerically; prefix the error message with `where`."""
    try:
        check_gradient(f, slope, x, rtol=allowed["rtol"], atol=allowed["atol"])
    except GradientMismatch as error:
        raise type(error)(f"{where}: {error}", error.components, error.unjudged) from None


def _differentiable(arg: Any) -> bool:
    return isinstance(arg, float | np.ndarray) and np.asarray(arg).dtype.kind == "f"


def _array(arg: Any) -> Any:
    """Return a float64 scalar or array."""
    return np.asarray(arg, dtype=np.float64)[()]


def _dot(first: Sequence[Any], second: Sequence[Any]) -> Any:
    """Return the inner product ⟨a, b⟩ of two lists of arrays."""
    return sum(np.sum(a * b) for a, b in zip(first, second, strict=True))
