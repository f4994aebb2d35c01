"""Sparse Jacobians and Hessians: pattern, colors, and one sweep for each color."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from difflab.autodiff.engine.custom import goes_forward
from difflab.autodiff.engine.jacobian_entries import SweepMode, check_mode, packed
from difflab.autodiff.engine.sweep import Sweep
from difflab.autodiff.functions.transforms import gradient, require_scalar
from difflab.autodiff.sparsity.coloring import color_columns, color_symmetric
from difflab.autodiff.sparsity.compressed import pulled_together, pushed_together
from difflab.autodiff.sparsity.dependence import dependence
from difflab.autodiff.sparsity.reach import reached
from difflab.core.wording import counted
from difflab.errors import PointError
from difflab.graph.checks import require_function
from difflab.graph.function import Function
from difflab.graph.repetition import rolled

__all__ = ["SparseDerivative", "sparse_hessian", "sparse_jacobian", "sparsity"]

Pattern = sparse.csr_array[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SparseDerivative:
    """A Jacobian or Hessian that is called at a point and returns a SciPy sparse matrix.

    Attributes
    ----------
    function : Function
        The compressed derivative, one direction per color, from which every entry can be
        read; it can be compiled, printed or differentiated. Its output has the shape batch +
        (number of colors, m), or (number of colors, n) for reverse sweeps.
    pattern : csr_array of bool, (m, n)
        The structural nonzeros: all other entries are zero at every point.
    colors : array of int
        The color of each column; of each row for reverse sweeps.
    places : (nonzeros,) array of int
        The index of each entry in the flattened output of `function`.
    mode : {"forward", "reverse"}
        The direction of the sweeps.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x: [5]; x[1:]^2 - 3*x[:-1]")
    >>> J = dl.sparse_jacobian(f)
    >>> J
    <sparse (4, 5) derivative, 8 nonzeros, 2 colors, forward>
    >>> J(np.arange(5.0)).toarray()
    array([[-3.,  2.,  0.,  0.,  0.],
           [ 0., -3.,  4.,  0.,  0.],
           [ 0.,  0., -3.,  6.,  0.],
           [ 0.,  0.,  0., -3.,  8.]])
    >>> fast = dl.compile(J.function)
    >>> J.expand(fast(np.arange(5.0))).nnz
    8
    """

    function: Function
    pattern: Pattern
    colors: Indices
    places: Indices
    mode: SweepMode

    def __call__(self, *args: Any, **kwargs: Any) -> sparse.csr_array[Any]:
        """Return the matrix at one point.

        Parameters
        ----------
        *args, **kwargs
            A value for each input, by position or by name.

        Returns
        -------
        csr_array, (m, n)
            The matrix with all entries of `pattern` stored, including zeros.

        Raises
        ------
        PointError
            A value is missing, unknown or of the wrong shape, or the values are a batch of points.
        """
        return self.expand(self.function(*args, **kwargs))

    def expand(self, compressed: Any) -> sparse.csr_array[Any]:
        """Return the matrix from an output of `function`, compiled or not, at one point.

        Raises
        ------
        PointError
            The output belongs to a batch of points, or is not numeric.
        """
        values = np.asarray(compressed)
        shape = self.function.output_shapes[0]
        if values.shape != shape:
            raise PointError(
                f"a sparse matrix is the derivative at one point, not at a batch of the shape "
                f"{values.shape[: -len(shape)]}",
                hint="call the attribute `function` with the batch, then `expand` its parts",
            )
        if values.dtype.kind not in "fc":
            raise PointError("a sparse matrix requires floating-point or complex values")
        data = values.ravel()[self.places]
        indices, indptr = self.pattern.indices.copy(), self.pattern.indptr.copy()
        return sparse.csr_array((data, indices, indptr), shape=self.pattern.shape)

    @property
    def directions(self) -> Indices:
        """The direction, an index into the output of `function`, from which each entry is read."""
        return self.places // max(self.function.output_shapes[0][1], 1)

    def __repr__(self) -> str:
        count = self.function.output_shapes[0][0]
        return (
            f"<sparse {self.pattern.shape} derivative, {self.pattern.nnz} nonzeros, "
            f"{counted(count, 'color')}, {self.mode}>"
        )


def sparsity(function: Function) -> Pattern:
    """Return the structural nonzeros of the Jacobian, from the graph alone.

    An entry is absent where no chain of derivatives leads from the input element to the output
    element at any point; conditions and comparisons have no derivative. An entry that is
    present may still be zero, as for ``x - x``.

    Parameters
    ----------
    function : Function

    Returns
    -------
    csr_array of bool, (m, n)

    Raises
    ------
    UnsupportedError
        The pattern has too many entries to be stored.

    Examples
    --------
    >>> import difflab as dl
    >>> sparsity(dl.parse("[x*y, where(x > 0, y, z)]")).astype(int).toarray()
    array([[1, 1, 0],
           [0, 1, 1]])
    """
    edges, sources, targets = dependence(function)
    tails, heads = edges.ends()
    return reached(edges.count, tails, heads, sources, targets)


def sparse_jacobian(f: Function, mode: SweepMode = "auto") -> SparseDerivative:
    """Return the Jacobian of a function of many variables, where most entries are zero.

    Columns without entries in a common row share a color, and ``J s`` with the sum s of their
    unit vectors has the entries of all of them. So a banded matrix needs as many forward
    sweeps as its band is wide, independently of its size. Reverse sweeps use rows likewise.

    Parameters
    ----------
    f : Function
        With any outputs; m and n are the numbers of output and input elements.
    mode : {"auto", "forward", "reverse"}
        "forward" colors columns, "reverse" rows; "auto" uses the one with fewer colors.

    Returns
    -------
    SparseDerivative
        Called at a point it returns a ``scipy.sparse.csr_array`` of shape (m, n).

    Raises
    ------
    InputError
        `f` is not a Function, or `mode` is unknown.
    UnsupportedError
        The pattern has too many entries to be stored.

    Notes
    -----
    A. H. Gebremedhin, F. Manne and A. Pothen, *What color is your Jacobian?*, SIAM Review 47
    (2005), §3.

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
    """
    require_function(f, "sparse_jacobian")
    check_mode(mode)
    f = _joined(f)
    pattern = sparsity(f)
    chosen, colors = _colored(pattern, mode if goes_forward(f) or mode != "auto" else "reverse")
    count = int(colors.max(initial=-1)) + 1
    rows, columns = pattern.nonzero()
    if chosen == "forward":
        function = pushed_together(f, colors, count)
        places = colors[columns] * f.m + rows
    else:
        function = pulled_together(f, colors, count)
        places = colors[rows] * f.n + columns
    return SparseDerivative(function, pattern, colors, places, chosen)


def sparse_hessian(f: Function) -> SparseDerivative:
    """Return the matrix of second derivatives, where most entries are zero.

    Its pattern is that of the gradient's Jacobian. Since it is symmetric, an entry may be read
    from either of its two positions, for which a star coloring suffices; each color needs a
    forward sweep over the gradient.

    Parameters
    ----------
    f : Function
        With one scalar output.

    Returns
    -------
    SparseDerivative
        Called at a point it returns a ``scipy.sparse.csr_array`` of shape (n, n).

    Raises
    ------
    InputError
        `f` is not a Function, or has several outputs.
    UnsupportedError
        The pattern has too many entries to be stored.

    Notes
    -----
    T. F. Coleman and J. J. Moré, *Estimation of sparse Hessian matrices and graph coloring
    problems*, Mathematical Programming 28 (1984).

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
    """
    require_function(f, "sparse_hessian")
    require_scalar(f, "sparse_hessian", "sparse_jacobian(jacobian(f))")
    slope = rolled(gradient(f))
    one_sided = sparsity(slope)
    pattern = sparse.csr_array(one_sided + one_sided.T)
    pattern.sort_indices()
    colors = color_symmetric(pattern)
    count = int(colors.max(initial=-1)) + 1
    rows, columns = pattern.nonzero()
    # Entry (i, j) is read alone where no other column of j's color has an entry in row i.
    _, group, times = np.unique(
        rows * count + colors[columns], return_inverse=True, return_counts=True
    )
    alone = times[group] == 1
    places = np.where(alone, colors[columns] * f.n + rows, colors[rows] * f.n + columns)
    if goes_forward(slope):
        function = pushed_together(slope, colors, count)
        return SparseDerivative(function, pattern, colors, places, "forward")
    function = pulled_together(slope, colors, count)
    return SparseDerivative(function, pattern, colors, places, "reverse")


def _joined(f: Function) -> Function:
    """Return a function with all output elements in one vector, and repeated terms as vectors.

    A hundred thousand outputs of the same form are then one slice, with few operations.
    """
    sweep = Sweep(f)
    vector = packed(sweep, [sweep.node(output) for output in f.outputs])
    return rolled(Function.build(sweep.builder, f.input_nodes, [vector.id], ["outputs"]))


def _colored(pattern: Pattern, mode: SweepMode) -> tuple[SweepMode, Indices]:
    """Return the direction with fewer colors, forward at a tie, and the colors."""
    if mode == "forward":
        return mode, color_columns(pattern)
    turned = sparse.csr_array(pattern.T)
    if mode == "reverse":
        return mode, color_columns(turned)
    # The fullest row, or column, needs a color for each of its entries.
    columns_least, rows_least = (
        int(np.diff(side.indptr).max(initial=0)) for side in (pattern, turned)
    )
    if rows_least < columns_least:
        rows = color_columns(turned)
        if rows.max(initial=-1) + 1 < columns_least:
            return "reverse", rows
        columns = color_columns(pattern)
    else:
        columns = color_columns(pattern)
        if columns.max(initial=-1) + 1 <= rows_least:
            return "forward", columns
        rows = color_columns(turned)
    return ("forward", columns) if columns.max() <= rows.max() else ("reverse", rows)
