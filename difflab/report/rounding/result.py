"""The public `error_budget` and `cheapest_dtypes`: results with tables, pictures and displays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from difflab.core.strict_json import dumps, strict
from difflab.drawing import Drawing
from difflab.graph.function import Function
from difflab.report.rounding import budget as reports
from difflab.report.rounding import dtypes as dtype_reports
from difflab.report.terminal import Displayed
from difflab.rounding.advice import advised
from difflab.rounding.assignment import DtypeAssignment
from difflab.rounding.budget import Budget, ErrorBudget
from difflab.rounding.budget import error_budget as budgeted
from difflab.rounding.dtypes import cheapest_dtypes as assigned


@dataclass(frozen=True, eq=False, repr=False)
class ErrorBudgetResult(Displayed, ErrorBudget):
    """A `difflab.rounding.budget.ErrorBudget` with a display.

    Its `repr` is the table; as the result of a notebook's cell it is shown as HTML.
    """

    _reports: ClassVar[Any] = reports

    def draw(self) -> Drawing:
        """Return the graphs of value and gradient, each operation marked by its contribution."""
        return reports.drawn(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the budget as strict JSON values, schema ``difflab.error_budget/1``."""
        return {
            "schema": "difflab.error_budget/1",
            "function": self.function.text or str(self.function),
            "dtype": self.dtype,
            "over": {name: list(ends) for name, ends in self.over.items()},
            "points": self.points,
            "point": strict(self.point),
            "parts": [_part(part) for part in self.parts],
            "advice": list(self.advice),
            "stabilise": list(self.stable),
        }

    def to_json(self) -> str:
        """Return `to_dict` as strict JSON text."""
        return dumps(self.to_dict())


def _part(part: Budget) -> dict[str, Any]:
    names = ("name", "value", "bound", "ulps", "remainder", "error", "proved")
    columns = ("node", "operation", "text", "ulps", "worst", "local", "share")
    return {
        "kind": part.kind,
        "proved": part.proved,
        "reason": part.reason,
        "omitted": part.omitted,
        "outputs": [{name: strict(getattr(each, name)) for name in names} for each in part.outputs],
        "contributions": [
            {name: strict(getattr(each, name)) for name in columns} | {"where": str(each.site)}
            for each in part.contributions[: reports.WRITTEN]
        ],
    }


def error_budget(
    f: str | Function,
    at: Mapping[str, Any] | None = None,
    *,
    over: Mapping[str, tuple[float, float]] | None = None,
    points: int = 64,
    dtype: str = "float64",
    prove: bool | None = None,
    seed: int = 0,
) -> ErrorBudgetResult:
    """Return how much of the rounding error of value and gradient each operation contributes.

    Every operation i is computed with an error of at most δᵢ: half a unit in the last place if
    IEEE 754 rounds it correctly, the documented units of its row for a function such as `sin`, γₙ
    times the sum of absolute values for a sum of n terms. It moves a result y by at most
    abs(∂y/∂vᵢ)·δᵢ to first order. The gradient is computed by a graph of its own, which has a
    budget of its own.

    At the point (over a domain, at the worst point) the budget is proved by ball arithmetic: an
    enclosure of the exact result minus the computed one lies in the sum of the contributions and
    of a proved bound of the terms of higher order. Value and derivatives in that are FLINT's.

    Parameters
    ----------
    f : str or Function
        A formula or a program, or a result of `parse` or `trace`, of n flattened inputs and m
        flattened outputs. It is budgeted as NumPy computes it, operation by operation.
    at : mapping, optional
        A value for every input, which is exact once it is rounded to the dtype. If None, a point
        inside the domain is chosen.
    over : mapping of str to (float, float), optional
        An interval for each input that varies; contributions are then summed over `points` points.
    points : int
        The number of points of the domain.
    dtype : str
        ``"float64"``, ``"float32"``, ``"float16"`` or ``"bfloat16"``, which is computed in float32.
    prove : bool, optional
        Whether to compute the proof; by default only for graphs of moderate size.
    seed : int
        Of the points.

    Returns
    -------
    ErrorBudgetResult
        With ``value`` and ``gradient``, each with ``contributions`` (the largest first),
        ``outputs`` and ``proved``; ``advice``, the three worst in words, and ``stable``, what
        `stabilise` gains; ``draw()``, ``table()`` and ``to_dict()``.

    Raises
    ------
    InputError
        The formula, the point, the domain or the dtype is invalid.
    DomainError
        The function is undefined at the point, or an operation overflows in the dtype; the message
        names it.
    UnsupportedError
        The error of an operation is not known.

    See Also
    --------
    cheapest_dtypes : the cheapest dtypes that keep value and gradient within a tolerance.
    stabilise : rewrites what cancels or overflows.

    References
    ----------
    S. Linnainmaa, Taylor expansion of the accumulated rounding error, BIT 16, 1976.
    N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, ch. 1-4.
    H. Menon et al., ADAPT: algorithmic differentiation applied to floating-point precision tuning,
    SC 2018. G. Singh et al., Fast and automatic floating point error analysis with CHEF-FP,
    IPDPS 2023.

    Examples
    --------
    >>> import difflab as dl
    >>> budget = dl.error_budget("(1 - cos(x))/x^2", at={"x": 1e-4})
    >>> worst = budget.value.contributions[0]
    >>> worst.text, f"{worst.ulps:.1e} ULP", budget.value.proved
    ('cos(x)', '8.0e+08 ULP', True)
    >>> print(budget.stable[-1])
    gradient: gains 16.2 decimal digits (1.31e17 → 8 ULP)
    """
    budget = budgeted(f, at, over=over, points=points, dtype=dtype, prove=prove, seed=seed)
    return ErrorBudgetResult.of(advised(budget))


@dataclass(frozen=True, eq=False, repr=False)
class DtypeResult(Displayed, DtypeAssignment):
    """A `difflab.rounding.assignment.DtypeAssignment` with a display.

    Its `repr` is the table; as the result of a notebook's cell it is shown as HTML.
    """

    _reports: ClassVar[Any] = dtype_reports

    def to_dict(self) -> dict[str, Any]:
        """Return the assignment as strict JSON values, schema ``difflab.dtypes/1``."""
        columns = ("node", "operation", "text", "dtype", "saved", "error", "refused")
        return {
            "schema": "difflab.dtypes/1",
            "function": self.original.text or str(self.original),
            "over": {name: list(ends) for name, ends in self.over.items()},
            "tolerance": self.tolerance,
            "bits": self.bits,
            "bits_float64": self.bits_of_double,
            "error": strict(self.verified),
            "points": self.points,
            "verified": self.compared,
            "worst": strict(self.worst),
            "operations": [
                {name: strict(getattr(each, name)) for name in columns} | {"where": str(each.site)}
                for each in self.operations
            ],
            "code": self.code,
        }

    def to_json(self) -> str:
        """Return `to_dict` as strict JSON text."""
        return dumps(self.to_dict())


def cheapest_dtypes(
    f: str | Function,
    over: Mapping[str, tuple[float, float]],
    at: Mapping[str, Any] | None = None,
    *,
    tolerance: float,
    dtypes: Sequence[str] = ("float64", "float32", "float16"),
    floor: float | None = None,
    scale: Mapping[str, str] | None = None,
    points: int = 1024,
    seed: int = 0,
) -> DtypeResult:
    """Return the cheapest dtypes of operations that keep value and gradient within a tolerance.

    Every input and every operation of value and gradient is rounded to its dtype; an operation is
    computed in the widest dtype of its result and its operands. The cost is the number of bits of
    all of them. The error of an output is relative to its size, or to `floor` if that is larger;
    the elements of a gradient share the size of the largest of them.

    The search goes by the error budget (`error_budget`). An assignment is accepted if the graph,
    run with these roundings, keeps half of the tolerance against float64 at all points, and if the
    printed code keeps the tolerance against mpmath at the worst points that a search finds.

    Parameters
    ----------
    f : str or Function
        A formula or a program, or a result of `parse` or `trace`.
    over : mapping of str to (float, float)
        An interval for each input that varies; the elements of an array share it.
    at : mapping, optional
        The values of the other inputs.
    tolerance : float
        The error that is allowed, relative to the size of a result.
    dtypes : sequence of str
        Those to choose from: ``"float64"``, ``"float32"``, ``"float16"`` and ``"bfloat16"``, which
        needs ``ml_dtypes`` and is computed in float32.
    floor : float, optional
        Smaller results are judged as if they had this size; by default the median size of each
        over the domain, so that a result may cross 0. At 0 every error is relative to the result.
    scale : mapping of str to str, optional
        ``"log"`` for an input whose points are even in the logarithm.
    points : int
        The number of points of the domain.
    seed : int
        Of the points.

    Returns
    -------
    DtypeResult
        With ``operations`` (each with its ``dtype``, the bits ``saved``, and why it is not
        narrower), ``code``, NumPy code with casts that returns value and Jacobian, ``counts``,
        ``bits`` and ``verified``, the largest error as a part of the tolerance.

    Raises
    ------
    PointError
        The domain is invalid, or float64 does not keep the tolerance: the message names the point
        and the output.
    DomainError
        The function is undefined in the domain; the message names the operation.
    InputError
        Another argument is invalid.

    See Also
    --------
    error_budget : what each operation's rounding contributes.

    References
    ----------
    H. Menon et al., ADAPT: algorithmic differentiation applied to floating-point precision tuning,
    SC 2018. G. Singh et al., Fast and automatic floating point error analysis with CHEF-FP,
    IPDPS 2023. S. Graillat et al., Auto-tuning for floating-point precision with Discrete
    Stochastic Arithmetic (PROMISE), J. Comput. Sci. 36, 2019.

    Examples
    --------
    >>> import difflab as dl
    >>> assignment = dl.cheapest_dtypes("exp(x)*y", {"x": (0, 15), "y": (1, 2)}, tolerance=1e-2)
    >>> assignment.counts
    {'float32': 2, 'float16': 2}
    >>> print(assignment.code)
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def f(x, y):
        t1 = np.float16(x)
        t2 = np.float16(y)
        t3 = np.exp(np.float32(t1))
        t4 = t3 * np.float32(t2)
        return t4, np.float32(np.stack((t4, t3)))
    """
    assignment = assigned(
        f, over, at, tolerance=tolerance, dtypes=dtypes, floor=floor, scale=scale, points=points,
        seed=seed,
    )  # fmt: skip
    return DtypeResult.of(assignment)
