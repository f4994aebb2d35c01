"""The public `error_budget`: an error budget with a table, a picture and a display in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from difflab.core.strict_json import dumps, strict
from difflab.drawing import Drawing
from difflab.graph.function import Function
from difflab.report.displayed import Displayed
from difflab.report.rounding import budget as reports
from difflab.rounding.advice import advised
from difflab.rounding.budget import Budget, ErrorBudget
from difflab.rounding.budget import error_budget as budgeted

__all__ = ["ErrorBudgetResult", "error_budget"]


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
            for each in part.contributions
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
    |∂y/∂vᵢ| δᵢ to first order. The gradient is computed by a graph of its own, which has a budget
    of its own.

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
        ``"float64"``, ``"float32"``, ``"float16"`` or ``"bfloat16"`` (which needs ``ml_dtypes``).
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
    >>> found = dl.error_budget("(1 - cos(x))/x^2", at={"x": 1e-4})
    >>> worst = found.value.contributions[0]
    >>> worst.text, f"{worst.ulps:.1e} ULP", found.value.proved
    ('cos(x)', '8.0e+08 ULP', True)
    >>> print(found.stable[-1])
    gradient: gains 16.5 decimal digits (1.31e17 → 4 ULP)
    """
    found = budgeted(f, at, over=over, points=points, dtype=dtype, prove=prove, seed=seed)
    return ErrorBudgetResult.of(advised(found))
