"""The columns of a sparse derivative: the elements of all inputs, or of those chosen by name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.functions.flat import ChosenInputs, Names, of_inputs, with_inputs
from difflab.autodiff.sparsity.compressed import selected
from difflab.autodiff.sparsity.dependence import dependence
from difflab.autodiff.sparsity.reach import Pattern, reached
from difflab.graph.function import Function

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Columns:
    """A function, and the columns of its Jacobian that are wanted.

    Attributes
    ----------
    whole : Function
        Of all inputs.
    part : Function
        Of the chosen inputs only. It is differentiated, and cannot be evaluated.
    chosen : array of int, optional
        The columns among the elements of the inputs of `part`; None for all of them.
    """

    whole: Function
    part: Function
    chosen: Indices | None = None

    @classmethod
    def of(cls, function: Function, wrt: Names | None, what: str) -> Columns:
        """Return the columns that names choose; all of them when None.

        Raises
        ------
        InputError
            A name is unknown or repeated, or there is none.
        """
        if wrt is None:
            return cls(function, function)
        names = ChosenInputs.of(function, wrt, what)
        chosen = None if names.columns is None else np.array(names.columns, np.int64)
        return cls(function, of_inputs(function, names.inputs), chosen)

    @property
    def count(self) -> int:
        """The number of columns."""
        return self.part.n if self.chosen is None else len(self.chosen)

    def pattern(self) -> Pattern:
        """Return the structural nonzeros of the columns."""
        edges, sources, targets = dependence(self.part)
        tails, heads = edges.ends()
        if self.chosen is not None:
            sources = sources[self.chosen]
        found = reached(edges.count, tails, heads, sources, targets)
        found.sort_indices()
        return found

    def with_outputs_alike(self) -> Columns:
        """Return the function with those elements of its output vector that are its columns."""
        if self.chosen is None:
            return self
        return replace(self, part=selected(self.part, self.chosen, (self.count,)))

    def seeded(self, colors: Indices) -> Indices:
        """Return a color for each element of the inputs of `part`; −1 for those not chosen."""
        if self.chosen is None:
            return colors
        found = np.full(self.part.n, -1)
        found[self.chosen] = colors
        return found

    def kept(self, compressed: Function, before: int, count: int) -> Function:
        """Return compressed products as a function of all inputs, with the chosen columns only.

        Parameters
        ----------
        compressed : Function
            Of `part`; its output has the elements of the forward sweeps, then those of the
            reverse sweeps, one for each element of the inputs.
        before, count : int
            The elements of forward sweeps; the number of reverse sweeps.
        """
        if self.chosen is not None and count:
            starts = before + self.part.n * np.arange(count)[:, None]
            places = np.concatenate([np.arange(before), (starts + self.chosen).ravel()])
            shape = (len(places),) if before else (count, self.count)
            compressed = selected(compressed, places, shape)
        return with_inputs(compressed, self.whole)
