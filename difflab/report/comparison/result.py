"""The public `compare`: a comparison with a table, a picture and a display in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack, overload

from difflab.core.system import write_whole
from difflab.core.wording import names_problem
from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.lab.compare import compare as compared
from difflab.lab.options import CompareOptions, DomainOptions, chosen, stated
from difflab.lab.problems.library import problem
from difflab.lab.recommend import recommend
from difflab.lab.record import Comparison
from difflab.lab.side_by_side import SideBySide, compare_stabilised
from difflab.report.comparison import formats, side_by_side
from difflab.report.terminal import Displayed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from difflab.report.domain.result import DomainResult


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result(Displayed, Comparison):
    """A `difflab.lab.record.Comparison` with a display.

    Its `repr` is the table; as the result of a notebook's cell it is shown as HTML.
    """

    _reports: ClassVar[Any] = formats

    def recommendation(self) -> str:
        """Return one sentence: the method to use for this function, and the evidence."""
        return recommend(self)

    def plot(self, path: str | Path | Axes) -> None:
        """Draw accuracy against cost.

        Parameters
        ----------
        path : str, path or matplotlib Axes
            A file that ends in ``.svg``, ``.png`` or ``.pdf``; or axes of your own figure, on
            which the panel of accuracy against cost is drawn.

        Raises
        ------
        difflab.errors.InputError
            The name has another ending, or the file cannot be written.
        """
        from difflab.report.comparison.plots import draw_on, picture

        if not isinstance(path, str | Path):
            draw_on(path, self)
            return
        path = Path(path)
        drawn = picture(self, path.suffix[1:].lower())
        write_whole({path: drawn})


@dataclass(frozen=True, eq=False, repr=False)
class StabilisedResult(Displayed, SideBySide):
    """A `difflab.lab.side_by_side.SideBySide` with a display."""

    _reports: ClassVar[Any] = side_by_side


@overload
def compare(
    expression: str | Function | Callable[..., Any],
    at: Mapping[str, Any] | None = None,
    *,
    stabilise: Literal[False] = False,
    **options: Unpack[CompareOptions],
) -> Result: ...


@overload
def compare(
    expression: str | Function,
    at: Mapping[str, Any] | None = None,
    *,
    stabilise: Literal[True],
    **options: Unpack[CompareOptions],
) -> StabilisedResult: ...


@overload
def compare(
    expression: str | Function | Callable[..., Any],
    at: Mapping[str, Any] | None = None,
    *,
    over: Mapping[str, Any],
    **options: Unpack[DomainOptions],
) -> DomainResult: ...


@stated(CompareOptions, DomainOptions)
def compare(
    expression: str | Function | Callable[..., Any],
    at: Mapping[str, Any] | None = None,
    *,
    stabilise: bool = False,
    over: Mapping[str, Any] | None = None,
    **options: Any,
) -> Result | StabilisedResult | DomainResult:
    """Differentiate a function by every method; judge and measure each result.

    Parameters
    ----------
    expression : str, Function or callable
        A formula or a program of the language, ``problem:SET/NAME`` (`difflab.problem`), a
        function from `difflab.trace`, or Python code, which is traced at the point. Methods that
        see only values call that code itself. If it cannot be traced, they are compared alone,
        with a referee that has float64 values only and states its digits.
    at : mapping, optional
        A value for every input; for Python code by the names of its parameters. By default, not
        for code, a point inside the domain and away from kinks is chosen, which depends on `seed`;
        that of a problem is its start.
    methods : sequence of str, optional
        Names of `difflab.methods`; ``"peers"`` selects the installed peers, ``"all"`` selects
        every method. By default every method except the peers.
    timing : bool
        Whether to time calls; the derivatives are always judged.
    order : int
        1 for the Jacobian; 2 for the Hessian of a scalar function.
    timeout : float
        Seconds for each method (to prepare, call and time it) and for the referee.
    seed : int
        Seed for choosing the point.
    target : str
        The target to which `forward` and `reverse` are compiled; see `difflab.compile`.
    stabilise : bool
        Whether to compare also the stabilised function; see `difflab.stabilise`.
    over : mapping of str to (float, float), optional
        The interval of each input that varies: the methods are judged at many points of this
        domain, a scrambled Sobol sequence of `seed`, and the worst point of each is searched by a
        further scan and differential evolution. `at` then gives the other inputs, and `timeout`
        is the time limit of each block of points, and of the referee at each point.
    points : int
        How many points, with `over`.
    scale : mapping of str to str, optional
        ``"log"`` for an input whose points are even in the logarithm, with `over`.
    resume : str or path, optional
        With `over`, a file that keeps finished blocks of points until the comparison is done:
        an interrupted one goes on from it.
    dtype : str or sequence of str, optional
        The dtypes in which methods compute, of ``"float64"``, ``"float32"``, ``"float16"`` and
        ``"bfloat16"``: a row for each method and dtype. The point is rounded to the dtype, the
        truth is that of the rounded point, and errors are counted in its ULP; operations that
        overflow, underflow or give nan are named. Calls are timed in float64 only.
    progress : callable, optional
        Called as ``progress(done, total, label)`` before each step, instead of the progress on
        standard error, which a comparison of more than two seconds shows.
    verify : bool
        Whether Python code is run once at the point, and at the points of a domain as long as
        the time limit allows, and its values compared with those of its graph.

    Returns
    -------
    Result, StabilisedResult or DomainResult
        A row per method; the row of a method that is unsupported, times out or fails says why.
        With `stabilise` it has `plain`, `stabilised` and `rewriting`. With `over` a row has the
        share of each verdict, the errors at 50, 99 and 100 % of the points, and the worst point.

    Raises
    ------
    difflab.errors.InputError
        The expression, the point, a method's name or the order is invalid.
    difflab.errors.GraphMismatchError
        The graph of Python code does not compute what the code does.

    Examples
    --------
    >>> result = compare("sin(x)", {"x": 0.5}, methods=["forward"], timing=False)
    >>> result.agreed, result.methods[0].jacobian
    (True, array([[0.87758256]]))
    >>> print(result.table().splitlines()[0])
    f         sin(x)
    >>> result = compare("sin(x)", over={"x": (0, 3)}, points=20, methods=["forward"])
    >>> result.methods[0].shares["agree"]
    1.0
    >>> both = compare("1 - cos(x)", {"x": 1e-9}, timing=False, stabilise=True)
    >>> both.plain.value, both.stabilised.value
    (array([0.]), array([5.e-19]))
    """
    if over is not None:
        if stabilise:
            raise InputError("stabilise is for one point, and over gives a domain")
        from difflab.lab.domain.compare import compare_domain
        from difflab.report.domain.result import DomainResult

        settings = chosen(options, DomainOptions)
        return DomainResult.of(compare_domain(expression, over, at, **settings))
    options = chosen(options, CompareOptions)
    if isinstance(expression, str) and names_problem(expression):
        entry = problem(expression)
        expression, at = entry.text, entry.start if at is None else at
    if stabilise:
        if not isinstance(expression, str | Function):
            raise InputError(
                "stabilise is for a formula or a Function, and this is Python code",
                hint="record it with difflab.trace(callable, *example_arguments)",
            )
        both = compare_stabilised(expression, at, **options)
        return StabilisedResult(Result.of(both.plain), Result.of(both.stabilised), both.rewriting)
    return Result.of(compared(expression, at, **options))
