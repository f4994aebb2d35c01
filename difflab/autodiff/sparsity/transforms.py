"""Sparse Jacobians and Hessians: pattern, colors, and one sweep for each color."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse

from difflab.autodiff.engine.custom import goes_forward
from difflab.autodiff.functions.flat import Names, gradient, in_one_vector, require_scalar
from difflab.autodiff.sparsity.acyclic import color_acyclic, substitution
from difflab.autodiff.sparsity.bicoloring import color_both, fewest_both
from difflab.autodiff.sparsity.coloring import (
    color_columns,
    color_count,
    color_symmetric,
    fullest,
    readable,
)
from difflab.autodiff.sparsity.compressed import Columns, Indices, compressed
from difflab.autodiff.sparsity.derivative import SparseDerivative
from difflab.autodiff.sparsity.reach import Pattern
from difflab.errors import InputError
from difflab.graph.checks import require_function
from difflab.graph.function import Function
from difflab.graph.repetition import LEAST_NODES, rolled

SparseMode = Literal["auto", "forward", "reverse", "bidirectional"]
HessianColoring = Literal["star", "acyclic", "auto"]
Sides = tuple[Indices | None, Indices | None]
"""The colors of columns and of rows; None for a side without sweeps."""

MANY = 1_000_000
"""Entries beyond which rows and columns are colored at once only if that halves the sweeps."""


def sparsity(function: Function, wrt: Names | None = None) -> Pattern:
    """Return the structural nonzeros of the Jacobian, from the graph alone.

    An entry is absent where no chain of derivatives leads from the input element to the output
    element at any point; conditions and comparisons have no derivative. An entry that is
    present may still be zero, as for ``x - x``.

    Parameters
    ----------
    function : Function
    wrt : str or sequence of str, optional
        The inputs and elements by name, such as ``["x", "w[0,2]"]``, whose columns are returned
        in this order; all inputs when None.

    Returns
    -------
    csr_array of bool, (m, n)

    Raises
    ------
    InputError
        `wrt` names no input.
    UnsupportedError
        The pattern has too many entries to be stored.

    Examples
    --------
    >>> import difflab as dl
    >>> sparsity(dl.parse("[x*y, where(x > 0, y, z)]")).astype(int).toarray()
    array([[1, 1, 0],
           [0, 1, 1]])
    """
    return Columns.of(function, wrt, "sparsity").pattern()


def sparse_jacobian(
    f: Function, mode: SparseMode = "auto", wrt: Names | None = None
) -> SparseDerivative:
    """Return the Jacobian of a function of many variables, where most entries are zero.

    Columns without entries in a common row share a color, and ``J s`` with the sum s of their
    unit vectors has the entries of all of them. So a banded matrix needs as many forward
    sweeps as its band is wide, independently of its size. Reverse sweeps use rows likewise. A
    matrix with dense rows and dense columns needs few sweeps in both directions: an arrowhead of
    any size needs three.

    Parameters
    ----------
    f : Function
        With any outputs; m and n are the numbers of output and input elements.
    mode : {"auto", "forward", "reverse", "bidirectional"}
        "forward" colors columns, "reverse" rows, "bidirectional" both at once; "auto" takes what
        needs the fewest sweeps.
    wrt : str or sequence of str, optional
        The inputs and elements by name, such as ``["x", "w[0,2]"]``, that are differentiated by;
        n is the number of their elements, in the order of the names. All inputs when None.

    Returns
    -------
    SparseDerivative
        Called with all inputs of a point it returns a ``scipy.sparse.csr_array`` of shape (m, n).

    Raises
    ------
    InputError
        `f` is not a Function, `mode` is unknown, or `wrt` names no input.
    UnsupportedError
        The pattern has too many entries to be stored.

    Notes
    -----
    A. H. Gebremedhin, F. Manne and A. Pothen, *What color is your Jacobian?*, SIAM Review 47
    (2005), §3 and §6; T. F. Coleman and A. Verma, *The efficient computation of sparse Jacobian
    matrices using automatic differentiation*, SIAM J. Sci. Comput. 19 (1998).

    Examples
    --------
    >>> import difflab as dl
    >>> x = np.linspace(0.0, 1.0, 100_000)
    >>> f = dl.trace(lambda x: x[:-2] - 2*x[1:-1] + x[2:] + np.exp(x[1:-1]), x)
    >>> J = dl.sparse_jacobian(f)
    >>> J
    <sparse (99998, 100000) derivative, 299994 nonzeros, 3 colors, forward>
    >>> J(x)[[0], :3].toarray().tolist() == [[1.0, np.exp(x[1]) - 2, 1.0]]
    True
    >>> arrow = dl.trace(lambda x: np.concatenate([np.sum(x**2)[None], x[1:] * x[0]]), x)
    >>> dl.sparse_jacobian(arrow)
    <sparse (100000, 100000) derivative, 299998 nonzeros, 3 colors, bidirectional>
    """
    require_function(f, "sparse_jacobian")
    _check(mode, SparseMode, "mode")
    of = Columns.of(_joined(f), wrt, "sparse_jacobian")
    pattern = of.pattern()
    if mode == "auto" and not goes_forward(of.part):
        mode = "reverse"
    sides = _cheapest(pattern) if mode == "auto" else _colored(pattern, mode)
    return _by_sweeps(of, pattern, *sides)


def sparse_hessian(
    f: Function, coloring: HessianColoring = "star", wrt: Names | None = None
) -> SparseDerivative:
    """Return the matrix of second derivatives, where most entries are zero.

    Its pattern is that of the gradient's Jacobian. Since it is symmetric, an entry may be read
    from either of its two positions, for which a star coloring suffices; each color needs a
    forward sweep over the gradient.

    An acyclic coloring needs fewer sweeps, two for a tridiagonal matrix of any size. Its entries
    follow by substitution, and each has the rounding errors of those substituted before it: beside
    an entry of 1e16, one of 1 has no correct digit.

    Parameters
    ----------
    f : Function
        With one scalar output.
    coloring : {"star", "acyclic", "auto"}
        "star" reads each entry from one product, "acyclic" substitutes; "auto" takes the one with
        fewer sweeps, "star" at a tie.
    wrt : str or sequence of str, optional
        The inputs and elements by name, such as ``["x", "w[0,2]"]``, that are differentiated by
        twice; n is the number of their elements, in the order of the names. All inputs when None.

    Returns
    -------
    SparseDerivative
        Called with all inputs of a point it returns a ``scipy.sparse.csr_array`` of shape (n, n).

    Raises
    ------
    InputError
        `f` is not a Function, or has several outputs, `coloring` is unknown, or `wrt` names no
        input.
    UnsupportedError
        The pattern has too many entries to be stored.

    Notes
    -----
    T. F. Coleman and J. J. Moré, *Estimation of sparse Hessian matrices and graph coloring
    problems*, Mathematical Programming 28 (1984); A. H. Gebremedhin, A. Tarafdar, F. Manne and
    A. Pothen, *New acyclic and star coloring algorithms with application to computing Hessians*,
    SIAM J. Sci. Comput. 29 (2007).

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x: [1000]; sum(100*(x[1:] - x[:-1]^2)^2 + (1 - x[:-1])^2)")
    >>> H = dl.sparse_hessian(f)
    >>> H
    <sparse (1000, 1000) derivative, 2998 nonzeros, 3 colors, forward>
    >>> H(np.ones(1000))[:2, :2].toarray()
    array([[ 802., -400.],
           [-400., 1002.]])
    >>> dl.sparse_hessian(f, "acyclic")
    <sparse (1000, 1000) derivative, 2998 nonzeros, 2 colors, forward>
    """
    require_function(f, "sparse_hessian")
    require_scalar(f, "sparse_hessian", "sparse_jacobian(jacobian(f))")
    _check(coloring, HessianColoring, "coloring")
    of = Columns.of(f, wrt, "sparse_hessian")
    names = None if wrt is None else of.part.inputs
    # Of a function on vectors, only scalar inputs remain to be rolled.
    least = 0 if len(f.graph) >= LEAST_NODES else None
    slopes = Columns.of(rolled(gradient(f, wrt=names), least), names, "sparse_hessian")
    of = replace(slopes, chosen=of.chosen).with_outputs_alike()
    one_sided = of.pattern()
    pattern = sparse.csr_array(one_sided + one_sided.T)
    pattern.sort_indices()
    colors = color_symmetric(pattern) if coloring != "acyclic" else color_acyclic(pattern)
    if coloring == "auto":
        fewer = color_acyclic(pattern)
        if color_count(fewer) < color_count(colors):
            colors, coloring = fewer, "acyclic"
    rows, columns = pattern.nonzero()
    rule = None
    if coloring == "acyclic":
        rule = substitution(pattern, colors)
        places = rule.reads[rule.unknowns]
    else:
        own, other = colors[columns] * of.count + rows, colors[rows] * of.count + columns
        places = np.where(readable(pattern, colors), own, other)
    if goes_forward(of.part):
        function = of.kept(compressed(of.part, of.seeded(colors), None), 0, 0)
        return SparseDerivative(function, pattern, colors, places, "forward", rule)
    function = of.kept(compressed(of.part, None, colors), 0, color_count(colors))
    return SparseDerivative(function, pattern, colors, places, "reverse", rule)


def _check(value: str, choices: Any, name: str) -> None:
    """Raise `InputError` unless `value` is one of the choices of a parameter."""
    allowed = get_args(choices)
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"unknown {name} {value!r}", hint=f"one of {', '.join(allowed)}")


def _joined(f: Function) -> Function:
    """Return a function with all output elements in one vector, and repeated terms as vectors.

    A hundred thousand outputs of the same form are then one slice, with few operations.
    """
    return rolled(in_one_vector(f, "outputs"))


def _colored(pattern: Pattern, mode: SparseMode) -> Sides:
    """Return the colors of columns, of rows, or of both."""
    if mode == "bidirectional":
        return color_both(pattern)
    if mode == "forward":
        return color_columns(pattern), None
    return None, color_columns(sparse.csr_array(pattern.T))


def _cheapest(pattern: Pattern) -> Sides:
    """Return the colors of the fewest sweeps: forward, else reverse, else both, at a tie."""
    turned = sparse.csr_array(pattern.T)
    # The fullest row, or column, needs a color for each of its entries.
    least = min(fullest(pattern), fullest(turned))
    both = None
    if fewest_both(pattern, turned) < (least if pattern.nnz <= MANY else least // 2):
        both = color_both(pattern)
        if sum(map(color_count, both)) < least:
            return both
    columns, rows = _one_sided(pattern, turned)
    side = columns if rows is None else rows
    if both is not None and side is not None and sum(map(color_count, both)) < color_count(side):
        return both
    return columns, rows


def _one_sided(pattern: Pattern, turned: Pattern) -> Sides:
    """Return the colors of columns or of rows, whichever are fewer; columns at a tie."""
    if fullest(turned) < fullest(pattern):
        rows = color_columns(turned)
        if color_count(rows) < fullest(pattern):
            return None, rows
        columns = color_columns(pattern)
    else:
        columns = color_columns(pattern)
        if color_count(columns) <= fullest(turned):
            return columns, None
        rows = color_columns(turned)
    return (columns, None) if color_count(columns) <= color_count(rows) else (None, rows)


def _by_sweeps(
    of: Columns, pattern: Pattern, by_column: Indices | None, by_row: Indices | None
) -> SparseDerivative:
    """Return the derivative by the sweeps of these colors; forward ones come first."""
    rows, columns = pattern.nonzero()
    m, seeded = of.part.m, None if by_column is None else of.seeded(by_column)
    pushes = 0 if by_column is None else color_count(by_column)
    pulls = 0 if by_row is None else color_count(by_row)
    function = of.kept(compressed(of.part, seeded, by_row), pushes * m, pulls)
    if by_column is None:
        assert by_row is not None
        places = by_row[rows] * of.count + columns
        return SparseDerivative(function, pattern, by_row, places, "reverse")
    places = by_column[columns] * m + rows
    if by_row is None:
        return SparseDerivative(function, pattern, by_column, places, "forward")
    pulled = pushes * m + by_row[rows] * of.count + columns
    places = np.where(readable(pattern, by_column), places, pulled)
    colors = np.concatenate([by_column, np.where(by_row < 0, -1, by_row + pushes)])
    return SparseDerivative(function, pattern, colors, places, "bidirectional")
