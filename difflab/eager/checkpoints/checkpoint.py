"""`checkpoint`: keep the inputs of a piece of code instead of what is between, and run it twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from difflab.eager.multi_output import Edge, make_multi_output_step, make_output, recomputed
from difflab.eager.recording.mode import MODE, enable_grad, no_grad
from difflab.eager.recording.tape import TapeStep, storage_of
from difflab.eager.tensors.tensor import Tensor
from difflab.errors import TapeError
from difflab.graph.checks import require_callable
from difflab.graph.pytree import Structure, flatten, unflatten

__all__ = ["checkpoint", "unrecorded"]

SAME = 1e-6
"""How far, relative to their size, the sums of a result may differ between the two runs."""


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return ``function(*args, **kwargs)`` without keeping what is computed on the way.

    Nothing is recorded inside. When `backward` comes to the result, the function is run once
    more on the same arguments, recorded, and gone back through: less memory for a second run.
    The gradients are those of the plain call bit for bit, also of tensors that the function
    uses without taking them as arguments, such as parameters.

    Parameters
    ----------
    function : callable
        Of tensors and anything else. It must do the same the second time: randomness is drawn
        outside and passed in.
    *args, **kwargs
        Its arguments; tensors are also found inside of tuples, lists and dicts.

    Returns
    -------
    Any
        The function's result: tensors, also inside of tuples, lists and dicts. They require
        grad if anything does that the function uses.

    Raises
    ------
    TapeError
        The function changes an argument in place. And, by `backward`: an argument was changed
        since, or the second run gave something else.

    Notes
    -----
    Checkpoints nest: what is inside is kept while the outer one is gone through. With
    ``create_graph=True`` the second run stays on the tape, so that memory is not saved then,
    and derivatives of the gradient are the plain ones up to the order of their sums. Under
    `detect_anomaly` nothing is saved: every operation is recorded, so that it can be looked into.
    For chains see `checkpoint_chain`, which keeps fewer values still.

    References
    ----------
    T. Chen, B. Xu, C. Zhang, C. Guestrin, *Training Deep Nets with Sublinear Memory Cost*, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> w = dl.tensor(0.5, requires_grad=True)
    >>> x = dl.tensor([1.0, 2.0], requires_grad=True)
    >>> y = dl.checkpoint(lambda x: np.sum(np.sin(w * x)), x)
    >>> y.backward()
    >>> x.grad, w.grad
    (tensor([0.43879128, 0.27015115]), tensor(1.95818717))
    """
    require_callable(function, "checkpoint")
    if not MODE.enabled or MODE.watch is not None:  # what is watched is recorded at once
        return function(*args, **kwargs)
    leaves, structure = flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    inputs: list[Tensor] = [leaves[place] for place in places]
    before = [storage_of(tensor).changes for tensor in inputs]
    others = [None if isinstance(leaf, Tensor) else _as_it_is(leaf) for leaf in leaves]
    result, met = unrecorded(lambda: function(*args, **kwargs))
    guards = tuple(
        (storage_of(tensor), count) for tensor, count in zip(inputs, before, strict=True)
    )
    for storage, count in guards:
        if storage.changes != count:
            raise TapeError(
                f"the checkpointed function changes its argument, by {storage.last}",
                hint="it is run twice, so let it return a new value instead: t = t + 1",
            )
    if not met and all(tensor._step is None for tensor in inputs):
        return result
    block = _CheckpointedCall(function, structure, others, places)
    edges, data = [t._step for t in inputs], [t._data for t in inputs]
    gate = make_multi_output_step("checkpoint", edges, data, recomputed(block.again))
    gate.guards = guards
    return block.returned(gate, result)


def unrecorded(run: Callable[[], Any]) -> tuple[Any, bool]:
    """Return what `run` does unrecorded, and whether it used anything that requires grad."""
    before, MODE.saw_grad = MODE.saw_grad, False
    try:
        with no_grad():
            return run(), MODE.saw_grad
    finally:
        MODE.saw_grad = before


def _as_it_is(leaf: Any) -> Any:
    """Return a leaf that nobody can change before the second run."""
    return leaf.copy() if isinstance(leaf, np.ndarray) and leaf.flags.writeable else leaf


class _Checksums(NamedTuple):
    """What is remembered of a result, to see whether the second run gives the same."""

    shape: tuple[int, ...]
    total: float
    size: float

    @classmethod
    def of(cls, data: Any) -> _Checksums:
        with np.errstate(all="ignore"):
            return cls(data.shape, float(data.sum()), float(abs(data).sum()))

    def fits(self, other: _Checksums) -> bool:
        if self.shape != other.shape:
            return False
        if not np.isfinite(self.total + other.total):  # nan and inf have no nearness
            return bool(np.array_equal(self[1:], other[1:], equal_nan=True))
        return abs(self.total - other.total) <= SAME * max(self.size, other.size)


class _CheckpointedCall:
    """A function that is run twice, and its arguments apart from the tensors."""

    def __init__(
        self,
        function: Callable[..., Any],
        structure: Structure,
        others: list[Any],
        places: list[int],
    ) -> None:
        self.function = function
        self.structure = structure
        self.others = others
        self.places = places
        self.wanted: list[tuple[int, _Checksums]] = []

    def returned(self, gate: TapeStep, result: Any) -> Any:
        """Return the result with portals in place of what has been computed inside."""
        leaves, structure = flatten(result)
        portals: dict[int, Tensor] = {}
        for position, leaf in enumerate(leaves):
            if not isinstance(leaf, Tensor) or leaf._step is not None or leaf.dtype.kind != "f":
                continue
            if id(leaf) not in portals:
                place = len(self.wanted)
                portals[id(leaf)] = make_output(Tensor, gate, place, leaf._data, storage_of(leaf))
                self.wanted.append((position, _Checksums.of(leaf._data)))
        return unflatten(structure, [portals.get(id(leaf), leaf) for leaf in leaves])

    def again(self, gate: TapeStep, differentiable: bool) -> list[Edge]:
        """Run the function recorded, and return the steps of what the portals stand for."""
        leaves = list(self.others)
        edges = gate.edges or ()
        for place, data, edge in zip(self.places, gate.slots, edges, strict=True):
            leaves[place] = Tensor(data, edge)
        args, kwargs = unflatten(self.structure, leaves)
        with enable_grad():
            results, _ = flatten(self.function(*args, **kwargs))
        found: list[Edge] = []
        for position, sums in self.wanted:
            result = results[position] if position < len(results) else None
            if not isinstance(result, Tensor) or not sums.fits(_Checksums.of(result._data)):
                raise TapeError(
                    "the checkpointed function gave another result when it was run again",
                    hint="draw random numbers outside and pass them in, and do not change what it"
                    " uses before backward()",
                )
            found.append(result._step)
        return found
