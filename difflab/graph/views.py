"""What a function shows of itself: its text, its graph, its evaluation, its passes.

Text, pictures and reports lie above the graph. Each view is found at its home when it is first
asked for, as the public names of the package are, so that a graph alone loads none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from difflab.errors import UnsupportedError

if TYPE_CHECKING:
    from difflab.drawing.drawing import Drawing
    from difflab.explore.shown import ExplorePage
    from difflab.report.passes import PassesReport
    from difflab.report.trace.shown import ShownTrace

__all__ = ["Views"]

_HOMES = {
    "text": "difflab.language.printers",
    "readable_latex": "difflab.interop.formats.tidy_latex",
    "draw": "difflab.report.drawn",
    "explore": "difflab.explore.shown",
    "trace": "difflab.report.trace.shown",
    "passes": "difflab.report.passes",
    "to_sympy": "difflab.interop.simplification",
}


_FORMULA = 200
"""Most nodes of a function that a notebook shows as mathematics."""
_PLAIN = 100
"""Most nodes of one that is shown as it is computed."""
_LINE = 3000
"""Most characters of its LaTeX."""
_REPR_FORMULA = 40
"""Most nodes of a function whose program is a part of its repr."""
_REPR_LINE = 72
"""Most characters of that program."""


def _view(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(_HOMES[name]), name)
    return found


def _is_short(function: Any, most: int) -> bool:
    """Return whether nodes, held functions' too, and constant elements are at most `most`.

    Notebooks and terminals print a function unasked, so that must take no time.
    """
    size, pending = 0, [function]
    while pending and size <= most:
        graph = pending.pop().graph
        size += len(graph)
        for params in graph.param_table:
            size += sum(len(value) // 8 for _, value in params if isinstance(value, bytes))
        for row in graph.primitives:
            pending += getattr(row.holds, "functions", ())
    return size <= most


class Views:
    """The methods of a `Function` that show it."""

    def __str__(self) -> str:
        """Return a program of the language that computes the function.

        ``dl.parse(str(f))`` is a function of the same values and shapes, also of arrays and with
        several outputs, which are in no structure. Its inputs are in natural order, and names that
        the language reserves get an underscore. What a call of a function or a layer in traced code
        returns has its own line, with a comment that names the call. The text is read back unless
        an array has no elements, or an operation consists of functions or Python code that cannot
        be written out (`while_loop`, a `scan` of many steps, a custom function that calls other
        libraries); a comment in the text names those.

        Examples
        --------
        >>> import numpy as np
        >>> import difflab as dl
        >>> print(dl.gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)")))
        gradient = [x2 + 1/x1, x1 - cos(x2)]
        >>> print(dl.trace(lambda x: (np.sum(x * x), x[1:] * 2), np.ones(3)))
        x: [3]
        [sum(x*x), x[1:]*2]
        """
        text: str = _view("text")(self, whole=True)
        return text

    def _line(self) -> str:
        """Return the program in one line for the repr; empty if it is too long for that."""
        if not _is_short(self, _REPR_FORMULA):
            return ""
        text = "; ".join(str(self).splitlines())
        return text if len(text) <= _REPR_LINE and "#" not in text else ""

    def _repr_latex_(self) -> str | None:
        r"""Return the mathematics that notebooks display; None for what is too long to be read.

        Examples
        --------
        >>> import difflab as dl
        >>> print(dl.parse("x1/x2")._repr_latex_())
        $$\frac{x_{1}}{x_{2}}$$
        """
        function: Any = self
        if not _is_short(function, _FORMULA):
            return None
        try:
            text: str = _view("readable_latex")(function, plain=_is_short(function, _PLAIN))
        except UnsupportedError:  # a loop, code of other libraries, or too many lines
            return None
        return f"$${text}$$" if len(text) <= _LINE else None

    def to_sympy(self) -> Any:
        """Return the formula as an expression of SymPy, with a symbol for each input.

        The symbols are real and have the inputs' names.

        Returns
        -------
        sympy.Expr or list of sympy.Expr
            The elements of the outputs in order; the only one alone.

        Raises
        ------
        UnsupportedError
            An input is an array, or SymPy cannot express the function.

        Examples
        --------
        >>> import difflab as dl
        >>> dl.parse("x*sin(y)/2").to_sympy()
        x*sin(y)/2
        """
        return _view("to_sympy")(self)

    def draw(
        self,
        at: Mapping[str, Any] | None = None,
        *,
        values: bool = False,
        title: str | None = None,
        depth: int = 0,
        open: str | Iterable[str] | None = None,
    ) -> Drawing:
        """Return the picture of the graph that ``difflab graph`` writes.

        Parameters
        ----------
        at : mapping, optional
            A value for every input; the boxes then show their values.
        values : bool
            Whether the arrows carry the values, and the cotangents of the sum of the outputs,
            instead.
        title : str, optional
            The heading, by default the function's text.
        depth : int
            How many levels of loops, branches and custom functions are opened. Each is one box;
            opened, its functions are drawn in frames below.
        open : str or iterable of str, optional
            What is opened: names, ``"all"`` or ``"none"``. A composition, which is a call of a
            Python function in the traced code, of a layer, or of a function of several operations
            such as ``layer_norm``, is one box, or opened its operations and the compositions among
            them; a loop, branch or custom function is opened in a frame below. By default those are
            closed, and compositions are open as far as the picture stays readable.

        Returns
        -------
        Drawing
            Shows itself in a notebook; ``svg()``, ``png()``, ``dot()`` and ``mermaid()`` are its
            forms, and ``save("graph.svg")`` writes a file.

        Raises
        ------
        InputError
            `values` without a point, a negative depth, or nothing of a name in `open`.
        PointError
            A value is missing, unknown or of the wrong shape.

        Examples
        --------
        >>> import difflab as dl
        >>> dl.parse("x*sin(y)").draw()
        <drawing of x*sin(y): 2 inputs · 2 operations · 1 output · depth 2>
        >>> boxes = dl.parse("x: [3]; sum(layer_norm(x))").draw(open="none").diagram.boxes
        >>> [box.lines[0] for box in boxes]
        ['x', 'layer_norm', 'Σ', 'y']
        """
        drawing: Drawing = _view("draw")(
            self, at, values=values, title=title, depth=depth, open=open
        )
        return drawing

    def trace(
        self,
        at: Mapping[str, Any] | None = None,
        *,
        mode: Literal["both", "forward", "reverse"] = "both",
        seed: str | None = None,
        open: str | Iterable[str] | None = None,
    ) -> ShownTrace:
        """Return the evaluation trace of value and derivative that ``difflab trace`` prints.

        Parameters
        ----------
        at : mapping, optional
            A value for every input; by default a point inside the domain is chosen.
        mode : {"both", "forward", "reverse"}
            Which derivatives to show: tangents, cotangents, or both.
        seed : str, optional
            In forward mode the input to differentiate by, in reverse mode the output to
            differentiate; an element of an array as ``x[3]``. The first one by default.
        open : str or iterable of str, optional
            What is opened: names, ``"all"`` or ``"none"``, as of `draw`. A composition that is not
            opened has one step for each of its results, and one contribution to each argument. An
            opened loop has the steps of all of its turns, an opened branch those of the function
            that is chosen at the point. By default compositions are open, and loops closed. Custom
            functions keep their own derivative and stay closed.

        Returns
        -------
        ShownTrace
            Its `str` is the table, and it shows itself in a notebook; ``table()``,
            ``markdown()``, ``html()`` and ``to_dict()`` are its forms. If the traced code calls
            functions or layers, a column names the call that each step belongs to.

        Raises
        ------
        InputError
            `mode` or `seed` is unknown, nothing has a name in `open`, or a loop in it has too many
            turns.
        PointError
            A value is missing, unknown, not finite or of the wrong shape.
        DomainError
            The function is undefined at the point.

        Examples
        --------
        >>> import difflab as dl
        >>> steps = dl.parse("x*sin(y)").trace({"x": 2, "y": 0})
        >>> dict(steps.gradient)
        {'x': 0.0, 'y': 2.0}
        >>> f = dl.parse("iterate(y = x; 2 times; y*y)")
        >>> [step.formula for step in f.trace({"x": 3}, open="all").primal]
        ['x', 'v₀ × v₀', 'v₁ × v₁']
        """
        trace: ShownTrace = _view("trace")(self, at, mode=mode, seed=seed, open=open)
        return trace

    def explore(self, at: Mapping[str, Any] | None = None) -> ExplorePage:
        """Return the page of ``difflab explore``, on which the derivative is followed by steps.

        Arrays are followed element by element. The page computes in the browser, at any point, with
        the JavaScript that difflab prints; the verdicts on the methods are those at `at`.

        Parameters
        ----------
        at : mapping, optional
            A value for every input; by default a point inside the domain is chosen.

        Returns
        -------
        ExplorePage
            Shows itself in a notebook; ``html()`` is the page, and ``save("page.html")`` writes it.

        Raises
        ------
        InputError
            An operation on arrays or a loop cannot be followed on numbers, or the page would be
            too large.
        PointError
            A value is missing, unknown, not finite or of the wrong shape.
        UnsupportedError
            JavaScript has no function for an operation, such as ``digamma``.

        Examples
        --------
        >>> import difflab as dl
        >>> dl.parse("x*sin(y)").explore({"x": 2, "y": 0})
        <page of x*sin(y) at x = 2, y = 0>
        """
        page: ExplorePage = _view("explore")(self, at)
        return page

    def passes(self) -> PassesReport:
        """Return what each pass of the pipeline changes, as ``difflab graph --passes`` prints it.

        Returns
        -------
        PassesReport
            A sequence of steps, each with the pass (``done``), the function ``before`` and
            ``after``, and their ``sizes``. Its `str` is the table, and it shows itself in a
            notebook.

        Examples
        --------
        >>> import difflab as dl
        >>> [step.done.name for step in dl.parse("x^1 + 2*3").passes() if step.changed]
        ['constant folding', 'simplification']
        """
        report: PassesReport = _view("passes")(self)
        return report
