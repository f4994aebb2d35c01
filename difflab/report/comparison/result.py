"""`compare` as Python has it: a comparison that shows itself as a table, a picture or a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from difflab.core.files import write_whole
from difflab.lab.compare import compare as compared
from difflab.lab.recommend import recommend
from difflab.lab.record import Comparison
from difflab.lab.side_by_side import SideBySide, compare_stabilised
from difflab.report.comparison import side_by_side
from difflab.report.comparison import table as tables
from difflab.report.terminal import WIDTH

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["Result", "StabilisedResult", "compare"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result(Comparison):
    """A `difflab.lab.record.Comparison` that can show itself.

    Printed it is its table; as the result of a notebook's cell it is what its page shows.
    """

    def table(self, *, width: int = WIDTH) -> str:
        """Return the table that ``difflab compare`` prints."""
        return tables.table(self, width=width)

    def recommendation(self) -> str:
        """Return one sentence: which method to use here, and the evidence for it."""
        return recommend(self)

    def plot(self, path: str | Path) -> None:
        """Draw accuracy against cost.

        Parameters
        ----------
        path : str or path
            A file that ends in ``.svg``, ``.png`` or ``.pdf``.

        Raises
        ------
        difflab.errors.InputError
            The name ends otherwise, or the file cannot be written.
        """
        from difflab.report.comparison.plots import picture

        path = Path(path)
        drawn = picture(self, path.suffix[1:].lower())
        write_whole({path: drawn})

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return a part of a page, as notebooks ask for it."""
        from difflab.report.comparison.html import fragment

        return fragment(self)


@dataclass(frozen=True, eq=False, repr=False)
class StabilisedResult(SideBySide):
    """A `difflab.lab.side_by_side.SideBySide` that can show itself."""

    def table(self, *, width: int = WIDTH) -> str:
        """Return the table that ``difflab compare --stabilise`` prints."""
        return side_by_side.table(self, width=width)

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return a part of a page, as notebooks ask for it."""
        return side_by_side.fragment(self)


@overload
def compare(
    expression: str | Function,
    at: Mapping[str, Any] | None = None,
    *,
    methods: Sequence[str] | None = None,
    timing: bool = True,
    order: int = 1,
    timeout: float = 10.0,
    seed: int = 0,
    target: str = "auto",
    stabilise: Literal[False] = False,
) -> Result: ...


@overload
def compare(
    expression: str | Function,
    at: Mapping[str, Any] | None = None,
    *,
    methods: Sequence[str] | None = None,
    timing: bool = True,
    order: int = 1,
    timeout: float = 10.0,
    seed: int = 0,
    target: str = "auto",
    stabilise: Literal[True],
) -> StabilisedResult: ...


def compare(
    expression: str | Function,
    at: Mapping[str, Any] | None = None,
    *,
    methods: Sequence[str] | None = None,
    timing: bool = True,
    order: int = 1,
    timeout: float = 10.0,
    seed: int = 0,
    target: str = "auto",
    stabilise: bool = False,
) -> Result | StabilisedResult:
    """Differentiate a function by every method: what is right, and what it costs.

    Parameters
    ----------
    expression : str or Function
        A formula or a program of the language, or what `difflab.trace` made.
    at : mapping, optional
        A value for every input. Without it a point inside the domain and away from kinks is
        chosen; the same for the same `seed`.
    methods : sequence of str, optional
        Names of `difflab.methods`; all when None.
    timing : bool
        Whether to measure calls; the derivatives are judged in any case.
    order : int
        1 for the Jacobian; 2 for the Hessian of a function with one output number.
    timeout : float
        Seconds for each method, to prepare, to be called and to be measured, and for the referee.
    seed : int
        Chooses the point.
    target : str
        What the derivatives of `forward` and `reverse` are compiled to; see `difflab.compile`.
    stabilise : bool
        Whether to compare the function in stable forms, too; see `difflab.stabilise`.

    Returns
    -------
    Result or StabilisedResult
        A row per method. One that cannot differentiate the function, takes too long or fails
        has a row that says why. With `stabilise` it has `plain`, `stabilised` and `rewriting`.

    Raises
    ------
    difflab.errors.InputError
        The text, the point, the names of the methods or the order are at fault.

    Examples
    --------
    >>> result = compare("sin(x)", {"x": 0.5}, methods=["forward"], timing=False)
    >>> result.agreed, result.methods[0].jacobian
    (True, array([[0.87758256]]))
    >>> print(result.table().splitlines()[0])
    f         sin(x)
    >>> both = compare("1 - cos(x)", {"x": 1e-9}, timing=False, stabilise=True)
    >>> both.plain.value, both.stabilised.value
    (array([0.]), array([5.e-19]))
    """
    options: dict[str, Any] = {
        "methods": methods,
        "timing": timing,
        "order": order,
        "timeout": timeout,
        "seed": seed,
        "target": target,
    }
    if stabilise:
        both = compare_stabilised(expression, at, **options)
        return StabilisedResult(_shown(both.plain), _shown(both.stabilised), both.rewriting)
    return _shown(compared(expression, at, **options))


def _shown(found: Comparison) -> Result:
    return Result(**{item.name: getattr(found, item.name) for item in fields(found)})
