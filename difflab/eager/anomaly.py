"""`detect_anomaly`: every recorded operation with its line, looked into before it goes backward.

While it watches, operations are noted beside the tape. `backward` first makes a graph of those
that the tensor came from, and `autodiff.explanation` looks for what went wrong in it: so the rules
that say which branch counts, which derivative is at fault and what cancelled are the same as
for formulas.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import ContextDecorator
from dataclasses import replace
from typing import Any

import numpy as np

from difflab.arrays.given import shape_of
from difflab.core.devices import module_of, on_host
from difflab.core.place import NOWHERE as PLACELESS
from difflab.core.place import Spot, python_spot
from difflab.core.primitive import Primitive
from difflab.diagnose.explanation import Explanation, PointExplainer
from difflab.diagnose.findings import AnomalyKind, Finding
from difflab.eager.recording.mode import MODE, WATCHED
from difflab.eager.recording.record import Recorded
from difflab.eager.recording.tape import Accumulation, Step
from difflab.errors import AnomalyError, TapeError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.source import NOWHERE

__all__ = ["Watch", "detect_anomaly"]

Note = tuple[Primitive, tuple[Any, ...], tuple[tuple[str, Any], ...], Spot | None]
"""Row, arguments, parameters and line of an operation.

An argument is the number of the step that it came from, or a pair of what it is and its values.
"""


class Watch:
    """The operations noted so far, by the numbers of their steps."""

    def __init__(self) -> None:
        self.notes: dict[int, Note] = {}

    def note(
        self, row: Primitive, args: Sequence[Any], params: Mapping[str, Any], step: Step
    ) -> None:
        """Keep what a step did, to what, and in which line of Python."""
        kept: list[Any] = []
        for arg in args:
            made = arg._step if isinstance(arg, Recorded) else None
            if isinstance(made, Step) and made.number in self.notes:
                kept.append(made.number)
            else:
                kept.append((made, arg._data if isinstance(arg, Recorded) else arg))
        self.notes[step.number] = row, tuple(kept), tuple(params.items()), python_spot()

    def explain(
        self, tensor: Recorded, leaves: Mapping[str, Recorded] | None = None
    ) -> Explanation:
        """Return what went wrong on the way to a tensor, and which leaves get no gradient.

        Parameters
        ----------
        tensor : Tensor
            What was computed, a loss as a rule; before its tape is freed.
        leaves : mapping of str to Tensor, optional
            Names for leaves. A named leaf that the tensor does not depend on is reported;
            others go by their shape and the order in which they were met.

        Returns
        -------
        Explanation

        Raises
        ------
        TapeError
            The tensor was not computed while this watched.

        Examples
        --------
        >>> import numpy as np, difflab as dl
        >>> w = dl.tensor([-3.2, 1.0], requires_grad=True)
        >>> b = dl.tensor(0.0, requires_grad=True)
        >>> with dl.detect_anomaly() as watch:
        ...     loss = np.sum(np.maximum(w, 0) ** 2)
        ...     found = watch.explain(loss, {"w": w, "b": b})
        >>> [(flat.name, flat.path, flat.element) for flat in found.flat]
        [('w', True, (0,)), ('b', False, ())]
        """
        step = tensor._step
        numbers = _before(self.notes, step.number) if isinstance(step, Step) else [0]
        if not self.notes.keys() >= set(numbers):
            raise TapeError(
                "this tensor was not computed under detect_anomaly(), or backward() freed it",
                hint="compute it inside the block, and explain it before backward()",
            )
        shadow = _Shadow(self.notes, numbers, leaves or {})
        explainer = PointExplainer(shadow.function, shadow.leaf_places, shadow.function.graph.place)
        with np.errstate(all="ignore"):
            found = explainer.single(shadow.values, None)
        if not shadow.opaque:
            return found
        # What a checkpoint holds was not noted: a path may go through it.
        return replace(found, flat=tuple(flat for flat in found.flat if flat.path))

    def check_custom(
        self, gate: Step, spot: Spot | None, bars: Sequence[Any], found: Sequence[Any]
    ) -> None:
        """Raise if a custom function's backward made a nan or an infinity of finite cotangents.

        Else what came before it is looked into, before the sweep goes on there.
        """
        edges = gate.edges or ()
        flowing = [bar for edge, bar in zip(edges, found, strict=True) if edge is not None]
        if _finite(bars) and not _finite(flowing):
            place = PLACELESS if spot is None else spot.read()
            raise place.error(
                AnomalyError,
                f"the backward of {gate.name} made a nan or an infinity of finite cotangents",
            )
        for edge in edges:
            if isinstance(edge, Step) and edge.number in self.notes:
                self.check(Recorded(None, edge), keep=True)

    def check(self, tensor: Recorded, *, keep: bool) -> None:
        """Raise or warn of what went wrong on the way to a tensor, before it goes backward.

        Unless it is to `keep` them, the notes go with the tape. Where some went before, the
        tape did too, and `backward` says so.
        """
        step = tensor._step
        if not isinstance(step, Step) or step.number not in self.notes:
            return
        numbers = _before(self.notes, step.number)
        if not all(number in self.notes for number in numbers):
            return
        found = self.explain(tensor)
        if not keep:
            for number in numbers:
                del self.notes[number]
        for finding in found.findings:
            if finding.kind is not AnomalyKind.CANCELLATION:
                raise _error(finding)
        for finding in found.findings:
            warnings.warn(finding.render(), stacklevel=3)


def _finite(values: Sequence[Any]) -> bool:
    """Whether all numbers of those that are some are finite."""
    arrays = (getattr(value, "_data", value) for value in values if value is not None)
    return all(bool(module_of(array).isfinite(array).all()) for array in arrays)


def _error(finding: Finding) -> AnomalyError:
    site = finding.site
    return AnomalyError(str(finding), text=site.text, span=site.span)


def _before(notes: Mapping[int, Note], last: int) -> list[int]:
    """Return the noted steps that a step came from, itself included, as they were made."""
    seen, pending = {last}, [last]
    while pending:
        note = notes.get(pending.pop())
        for arg in note[1] if note is not None else ():
            if type(arg) is int and arg not in seen:
                seen.add(arg)
                pending.append(arg)
    return sorted(seen)


class _Shadow:
    """The graph of what a tensor came from.

    Attributes
    ----------
    function : Function
        Its inputs are leaves and the arrays that nothing flows through.
    values : list
        Theirs.
    leaf_places : list of int
        Which of the inputs are leaves.
    opaque : bool
        Whether an input was computed in a way that was not noted, as by a checkpoint.
    """

    def __init__(
        self,
        notes: Mapping[int, Note],
        numbers: Sequence[int],
        leaves: Mapping[str, Recorded],
    ) -> None:
        self.builder = Builder()
        self.names = {id(leaf._step): name for name, leaf in leaves.items() if leaf._step}
        self.inputs: dict[int, int] = {}
        self.values: list[Any] = []
        self.leaf_places: list[int] = []
        self.opaque = False
        self.kept: list[Any] = []
        nodes: dict[int, int] = {}
        for leaf in leaves.values():
            if isinstance(leaf._step, Accumulation):
                self._operand(leaf._step, leaf._data)
        for number in numbers:
            row, args, params, spot = notes[number]
            self.builder.span = NOWHERE if spot is None else self.builder.source.at(spot)
            operands = [nodes[arg] if type(arg) is int else self._operand(*arg) for arg in args]
            nodes[number] = self.builder.emit(row, operands, params)
        inputs = list(self.inputs.values())
        self.function = Function.build(self.builder, inputs, [nodes[numbers[-1]]], ["loss"])

    def _operand(self, made: Any, value: Any) -> int:
        """Return the node of a leaf, of a number or of an array."""
        if made is None and isinstance(value, int | float):
            return self.builder.constant(value)
        key = id(value) if made is None else id(made)
        if key not in self.inputs:
            place, shape = len(self.inputs), shape_of(value)
            leaf = isinstance(made, Accumulation)
            self.opaque |= made is not None and not leaf
            kind = "leaf" if leaf else "array" if made is None else f"result of {made.name}"
            of = f" of shape {shape}" if shape else ""
            name = self.names.get(key, f"{kind} {place + 1}{of}")
            self.kept.append(value)  # so that no other array gets its id
            self.inputs[key] = self.builder.input(name, shape)
            self.values.append(on_host(value))  # looked into there
            if leaf:
                self.leaf_places.append(place)
        return self.inputs[key]


class detect_anomaly(ContextDecorator):  # noqa: N801  # PyTorch's spelling: used like a statement
    """Find the operation behind a nan or an infinity: ``with dl.detect_anomaly():``.

    Every recorded operation is noted with its line of Python. Before `backward` starts, what
    the tensor came from is looked into, value and gradient: the first operation that made a
    nan or an infinity of finite operands (at a pole, or by overflow) raises an error that shows
    the line, for a gradient the line of the forward operation. What an untaken branch of
    `where` holds does not count. A total cancellation, a sum of which no digit is right, is a
    warning: sums that keep less than half of their digits are computed once more with 60.

    A custom function's own forward and backward are taken as one operation; what comes before it
    is looked into when the sweep comes to it.

    It costs a second, slower pass and memory for all values; switched off it costs nothing. It
    holds for the current thread, and what was before returns, also after an error. The block's
    `Watch` explains a tensor without going backward: `Watch.explain`.

    Examples
    --------
    >>> import numpy as np, difflab as dl
    >>> x = dl.tensor(0.0, requires_grad=True)
    >>> with dl.detect_anomaly():
    ...     np.sqrt(x).backward()
    Traceback (most recent call last):
        ...
    difflab.errors.AnomalyError: in the gradient of leaf 1, from the derivative
    of sqrt(0) ...
    """

    def __init__(self) -> None:
        self.before: list[Watch | None] = []

    def __enter__(self) -> Watch:
        self.before.append(MODE.watch)
        watch = MODE.watch = Watch()
        WATCHED.append(None)
        return watch

    def __exit__(self, *exception: object) -> None:
        WATCHED.pop()
        MODE.watch = self.before.pop()
