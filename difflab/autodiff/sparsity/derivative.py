"""`SparseDerivative`: the compressed derivative and how its entries are read from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from difflab.autodiff.sparsity.acyclic import Substitution
from difflab.autodiff.sparsity.reach import Pattern
from difflab.core.wording import counted
from difflab.errors import PointError
from difflab.graph.function import Function

Indices = NDArray[np.int64]
Direction = Literal["forward", "reverse", "bidirectional"]


@dataclass(frozen=True, eq=False)
class SparseDerivative:
    """A Jacobian or Hessian that is called at a point and returns a SciPy sparse matrix.

    Attributes
    ----------
    function : Function
        The compressed derivative, one direction per color, from which every entry can be
        read; it can be compiled, printed or differentiated. Its output has the shape batch +
        (number of colors, m), or (number of colors, n) for reverse sweeps. Bidirectional sweeps
        give one vector: m elements of each forward sweep, then n of each reverse sweep.
    pattern : csr_array of bool, (m, n)
        The structural nonzeros: all other entries are zero at every point.
    colors : array of int
        The color of each column; of each row for reverse sweeps. For bidirectional sweeps, of
        each column and then of each row; −1 for those in no sweep.
    places : (nonzeros,) array of int
        The index of each entry in the flattened output of `function`.
    mode : {"forward", "reverse", "bidirectional"}
        The direction of the sweeps.
    substitution : Substitution, optional
        For an acyclic coloring: the entries that are subtracted from the elements read.

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
    mode: Direction
    substitution: Substitution | None = None

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
        flat = values.ravel()
        rule = self.substitution
        data = flat[self.places] if rule is None else rule.entries(flat)
        indices, indptr = self.pattern.indices.copy(), self.pattern.indptr.copy()
        return sparse.csr_array((data, indices, indptr), shape=self.pattern.shape)

    @property
    def sweeps(self) -> tuple[int, int]:
        """The number of forward and of reverse sweeps."""
        count = int(self.colors.max(initial=-1)) + 1
        if self.mode == "bidirectional":
            forward = int(self.colors[: self.pattern.shape[1]].max(initial=-1)) + 1
            return forward, count - forward
        return (count, 0) if self.mode == "forward" else (0, count)

    @property
    def directions(self) -> Indices:
        """The direction, a color, from which each entry is read."""
        m, n = self.pattern.shape
        forward = self.sweeps[0]
        pulled = forward + (self.places - forward * m) // max(n, 1)
        return np.where(self.places < forward * m, self.places // max(m, 1), pulled)

    def __repr__(self) -> str:
        return (
            f"<sparse {self.pattern.shape} derivative, {self.pattern.nnz} nonzeros, "
            f"{counted(sum(self.sweeps), 'color')}, {self.mode}>"
        )
