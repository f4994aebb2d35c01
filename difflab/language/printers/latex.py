r"""Graph to LaTeX: ``\frac``, ``x_{1}``, cases, and aligned lines for shared subexpressions.

The result is for math mode and needs amsmath.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from functools import cache

from difflab.autodiff.solutions.written import written_root
from difflab.core.primitive import Primitive
from difflab.graph.control import Solution
from difflab.graph.function import Function
from difflab.graph.names import FreshNames
from difflab.language.printers.arrays import ArrayForms
from difflab.language.printers.expressions import (
    ANYTHING,
    ATOM,
    NEGATIVE,
    POWER,
    PRODUCT,
    SUM,
    ExpressionPrinter,
    Part,
    TemplateForm,
    make_form,
)
from difflab.language.printers.view import PrintedGraph
from difflab.primitives import power

_SPINE = 20
"""Maximum depth at which the first factor of a product is searched."""


def latex(function: Function) -> str:
    r"""Return `function` in LaTeX.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.

    Returns
    -------
    str
        One expression, or an ``aligned`` block if there are several outputs or shared
        subexpressions.

    Examples
    --------
    >>> import difflab as dl
    >>> print(latex(dl.parse("ln(x1) + x1/(x2+1)^2")))
    \ln\left(x_{1}\right) + \frac{x_{1}}{\left(x_{2} + 1\right)^{2}}
    """
    return _Latex(function).block()


def latex_name(name: str) -> str:
    r"""Return a name in LaTeX: an index as a subscript, Greek letters as commands.

    Examples
    --------
    >>> latex_name("x12"), latex_name("alpha_1"), latex_name("rate"), latex_name("x_dot")
    ('x_{12}', '\\alpha_{1}', '\\mathrm{rate}', 'x_{\\mathrm{dot}}')
    """
    match = re.fullmatch(r"([^\W\d_]+)_?(\d+|(?<=_)[^\W_]+)?", name)
    if match is None:
        return _upright(name)
    base, below = match.groups()
    shown = _letter(base)
    if below is None:
        return shown
    return f"{shown}_{{{below if below.isdigit() else _letter(below)}}}"


_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega"
)


def _letter(word: str) -> str:
    """Return LaTeX for a word: a letter in italics, a Greek letter as a command, others upright."""
    if len(word) == 1 and not word.isascii():
        parts = unicodedata.name(word, "").split()
        if parts[:1] == ["GREEK"] and len(parts) == 4:
            spelled = parts[3].capitalize() if parts[1] == "CAPITAL" else parts[3].lower()
            word = spelled.replace("amda", "ambda") if spelled in {"lamda", "Lamda"} else spelled
    if word in _GREEK.split():
        return f"\\{word}"
    return word if len(word) == 1 else _upright(word)


def _called(name: str) -> str:
    escaped = name.replace("_", "\\_")
    return f"\\operatorname{{{escaped}}}"


def _upright(word: str) -> str:
    escaped = word.replace("_", "\\_")
    return f"\\mathrm{{{escaped}}}"


def distinct_names(names: Sequence[str]) -> list[str]:
    r"""Return names in LaTeX, set upright if they would look like an earlier one.

    Examples
    --------
    >>> distinct_names(["x_1", "x1"])
    ['x_{1}', '\\mathrm{x1}']
    """
    distinct: list[str] = []
    for name in names:
        command = latex_name(name)
        distinct.append(_upright(name) if command in distinct else command)
    return distinct


def number(value: float) -> str:
    r"""Return a number, a whole one without a point, with explicit powers of ten.

    Examples
    --------
    >>> number(1.0), number(0.1), number(-2.5e-7)
    ('1', '0.1', '-2.5 \\cdot 10^{-7}')
    """
    mantissa, _, exponent = repr(value).partition("e")
    mantissa = mantissa.removesuffix(".0")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def constant_name(name: str, inputs: Container[str]) -> str:
    r"""Return the constant ``pi`` or ``e``, set upright beside an input of its name."""
    command = "\\pi" if name == "pi" else name
    return _upright(name) if name in inputs else command


class _Latex(ExpressionPrinter):
    """Printer of one block: the names and the LaTeX of each node.

    The equation of a root is another; `last` is the LaTeX of its parameters, the last inputs.
    """

    brackets = ("\\left(", "\\right)")

    def __init__(self, function: Function, last: Sequence[str] = ()) -> None:
        super().__init__(PrintedGraph(function, implied=frozenset(), written=(Solution,)))
        self.arrays = ArrayForms(self.view, _called)
        self.used: set[str] = {*last}
        own = self.view.function.inputs[: len(function.inputs) - len(last)]
        names = [*map(self._set, own), *last]
        self.names = dict(zip(self.view.function.input_nodes, names, strict=True))
        self.roots = {
            node: residual
            for node, row in enumerate(self.view.rows)
            if row is not None and (residual := written_root(row.holds)) is not None
        }

    def block(self) -> str:
        """Return the expression, or its lines."""
        lines: list[tuple[str, str]] = []
        named = self.view.named_values()
        fresh = FreshNames([*self.view.function.inputs, *named.values()])
        own = named.keys() | self._parameters()
        for node in self.view.own_lines(own, repeats=not self.roots):
            name = self._set(named.get(node) or fresh.numbered("t"))
            lines.append((name, self.expression(node)))
            self.names[node] = name
        if len(self.view.outputs) == 1 and not lines:
            return self.expression(self.view.outputs[0])
        for position, (node, name) in enumerate(self._outputs(), 1):
            if named.get(node) != name:
                shown = fresh.fresh(f"f{position}" if name in self.view.function.inputs else name)
                lines.append((self._set(shown), self.expression(node)))
        body = " \\\\\n".join(f"{name} &= {value}" for name, value in lines)
        return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"

    def _parameters(self) -> set[int]:
        """Return the nodes that equations of roots name."""
        used = (arg for node in self.roots for arg in self.view.children[node][1:])
        return set(used) - self.names.keys()

    def _root(self, node: int) -> list[Part]:
        """Return the parts of a root: its unknown, the equation, and the first value."""
        first, *parameters = self.view.children[node]
        inner = _Latex(self.roots[node], [self.names[arg] for arg in parameters])
        unknown = inner.names[inner.view.function.input_nodes[0]]
        head = f"\\operatorname{{root}}_{{{unknown}}}\\left({inner.block()},\\ "
        return [head, (first, ANYTHING), "\\right)"]

    def _outputs(self) -> Iterator[tuple[int, str]]:
        return zip(self.view.outputs, self.view.function.output_names, strict=True)

    def _set(self, name: str) -> str:
        """Return the LaTeX of a name; set it upright if it would look like an earlier one."""
        command = latex_name(name)
        if command in self.used:
            command = _upright(name)
        self.used.add(command)
        return command

    def describe(self, node: int) -> tuple[Sequence[Part], int]:
        row = self.view.rows[node]
        children = self.view.children[node]
        if node in self.roots:
            return self._root(node), ATOM
        if row is not None and row.shape is not None and not row.latex:
            return self._structure(node)
        described, level = super().describe(node)
        if row is None:
            return described, min(level, PRODUCT) if "\\cdot" in described[0] else level
        parts = list(described)
        if row.degrees == (1, 1):
            parts[1] = " \\cdot " if self._digit(children[1]) else " "
        if level in {SUM, PRODUCT} and self._minus(children[-1]):
            # Avoid two adjacent signs: a - (-b).
            parts[-1] = (children[-1], POWER)
        if row.signs == (-1,):
            parts[-1] = (children[0], NEGATIVE + 1 if self._minus(children[0]) else PRODUCT)
        return parts, level

    def form(self, row: Primitive) -> TemplateForm:
        return _form(row)

    def number(self, value: float, name: str | None) -> str:
        """Return a constant, with explicit powers of ten."""
        return number(value) if name is None else constant_name(name, self.view.function.inputs)

    def _minus(self, node: int) -> bool:
        """Whether a node's LaTeX begins with a minus."""
        for _ in range(_SPINE):
            row = self.view.rows[node]
            if node in self.names or row is None or row.degrees != (1, 1):
                break
            node = self.view.children[node][0]
        if node in self.names:
            return False
        row = self.view.rows[node]
        return self.describe(node)[1] < ATOM if row is None else row.signs == (-1,)

    def _digit(self, node: int) -> bool:
        """Whether a factor's LaTeX begins with a digit, which would continue a number before it."""
        if node not in self.names and self.view.rows[node] is power:
            node = self.view.children[node][0]
        if node in self.names:
            return False
        row = self.view.rows[node]
        begin = row.latex if row is not None else self.number(*self.graph.constants[node])
        return begin[:1].isdigit()

    def _structure(self, node: int) -> tuple[Sequence[Part], int]:
        """Return lists as column vectors and matrices, other array operations as calls."""
        shape = self.graph.shape(node)
        cells = self.arrays.cells(node)
        if cells is None or len(shape) > 2:
            return self.arrays.describe(node), ATOM
        across = shape[1] if len(shape) == 2 else 1
        parts: list[Part] = ["\\begin{pmatrix} "]
        for position, cell in enumerate(cells, 1):
            parts += [cell, " & " if position % across else " \\\\ "]
        return [*parts[:-1], " \\end{pmatrix}"], ATOM


@cache
def _form(row: Primitive) -> TemplateForm:
    return make_form(row.latex, row.name)
