"""`detect_anomaly`: find the recorded operation behind a nan, an infinity or a cancellation.

Inside the block every operation is noted beside the tape, with its line. `backward` first builds
a graph of the operations that the tensor depends on, and `diagnose.explanation` examines it: the
rules that determine the active branch, the faulty derivative and the cancellation are those of
formulas.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import ContextDecorator
from dataclasses import replace
from typing import Any

import numpy as np

from difflab.arrays.given import shape_of
from difflab.core.apply import module_of, on_host
from difflab.core.place import NOWHERE as PLACELESS
from difflab.core.place import FramePosition, user_position
from difflab.core.primitive import Primitive
from difflab.diagnose.explanation import Explanation, PointExplainer
from difflab.diagnose.findings import AnomalyKind, Finding
from difflab.eager.recording.record import TapedArray
from difflab.eager.recording.tape import MODE, WATCHED, Accumulation, TapeStep
from difflab.errors import AnomalyError, TapeError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.source import NOWHERE

Note = tuple[Primitive, tuple[Any, ...], tuple[tuple[str, Any], ...], FramePosition | None]
"""Row, arguments, parameters and line of an operation.

An argument is the number of a noted step, or a pair of its step (or None) and its values.
"""


class Watch:
    """The operations recorded so far, keyed by the index of their step on the tape."""

    def __init__(self) -> None:
        self.notes: dict[int, Note] = {}

    def note(
        self, row: Primitive, args: Sequence[Any], params: Mapping[str, Any], step: TapeStep
    ) -> None:
        """Note the row, arguments and line of Python of a step."""
        kept: list[Any] = []
        for arg in args:
            made = arg._step if isinstance(arg, TapedArray) else None
            if isinstance(made, TapeStep) and made.number in self.notes:
                kept.append(made.number)
            else:
                kept.append((made, arg._data if isinstance(arg, TapedArray) else arg))
        self.notes[step.number] = row, tuple(kept), tuple(params.items()), user_position()

    def explain(
        self, tensor: TapedArray, leaves: Mapping[str, TapedArray] | None = None
    ) -> Explanation:
        """Return the anomalies in the computation of a tensor, and the leaves without gradient.

        Parameters
        ----------
        tensor : Tensor
            The result, usually a loss; before its tape is freed.
        leaves : mapping of str to Tensor, optional
            Names for leaves. A named leaf that the tensor does not depend on is reported;
            other leaves are named by number, in order of first use, and shape.

        Returns
        -------
        Explanation

        Raises
        ------
        TapeError
            The tensor was not computed inside the block.

        Examples
        --------
        >>> import numpy as np, difflab as dl
        >>> w = dl.tensor([-3.2, 1.0], requires_grad=True)
        >>> b = dl.tensor(0.0, requires_grad=True)
        >>> with dl.detect_anomaly() as watch:
        ...     loss = np.sum(np.maximum(w, 0) ** 2)
        ...     explanation = watch.explain(loss, {"w": w, "b": b})
        >>> [(flat.name, flat.path, flat.element) for flat in explanation.flat]
        [('w', True, (0,)), ('b', False, ())]
        """
        step = tensor._step
        numbers = _before(self.notes, step.number) if isinstance(step, TapeStep) else [0]
        if not self.notes.keys() >= set(numbers):
            raise TapeError(
                "this tensor was not computed under detect_anomaly(), or backward() freed it",
                hint="compute it inside the block, and call explain() before backward()",
            )
        noted = _NotedGraph(self.notes, numbers, leaves or {})
        run = PointExplainer(noted.function, noted.leaf_indices, noted.function.graph.place)
        with np.errstate(all="ignore"):
            explanation = run.single(noted.values, None)
        if not noted.opaque:
            return explanation
        # Operations inside a checkpoint are not noted: a path may go through them.
        return replace(explanation, flat=tuple(flat for flat in explanation.flat if flat.path))

    def check_custom(
        self,
        step: TapeStep,
        spot: FramePosition | None,
        bars: Sequence[Any],
        cotangents: Sequence[Any],
    ) -> None:
        """Raise if a custom function's backward returned a nan or infinity from finite cotangents.

        Otherwise examine the operations before it, before the sweep reaches them.
        """
        edges = step.edges or ()
        flowing = [bar for edge, bar in zip(edges, cotangents, strict=True) if edge is not None]
        if _finite(bars) and not _finite(flowing):
            place = PLACELESS if spot is None else spot.read()
            raise place.error(
                AnomalyError,
                f"the backward of {step.name} made a nan or an infinity from finite cotangents",
            )
        for edge in edges:
            if isinstance(edge, TapeStep) and edge.number in self.notes:
                self.check(TapedArray(None, edge), keep=True)

    def check(self, tensor: TapedArray, *, keep: bool) -> None:
        """Raise or warn of the anomalies in the computation of a tensor, before the reverse sweep.

        Unless `keep` is set, the notes are dropped together with the tape. If some were dropped
        before, part of the tape is freed, which `backward` reports.
        """
        step = tensor._step
        if not isinstance(step, TapeStep) or step.number not in self.notes:
            return
        numbers = _before(self.notes, step.number)
        if not all(number in self.notes for number in numbers):
            return
        explanation = self.explain(tensor)
        if not keep:
            for number in numbers:
                del self.notes[number]
        for finding in explanation.findings:
            if finding.kind is not AnomalyKind.CANCELLATION:
                raise _error(finding)
        for finding in explanation.findings:
            warnings.warn(finding.render(), stacklevel=3)


def _finite(values: Sequence[Any]) -> bool:
    """Whether all elements of the values that are not None are finite."""
    arrays = (getattr(value, "_data", value) for value in values if value is not None)
    return all(bool(module_of(array).isfinite(array).all()) for array in arrays)


def _error(finding: Finding) -> AnomalyError:
    site = finding.site
    return AnomalyError(str(finding), text=site.text, span=site.span)


def _before(notes: Mapping[int, Note], last: int) -> list[int]:
    """Return the noted steps that a step depends on, itself included, in creation order."""
    seen, pending = {last}, [last]
    while pending:
        note = notes.get(pending.pop())
        for arg in note[1] if note is not None else ():
            if type(arg) is int and arg not in seen:
                seen.add(arg)
                pending.append(arg)
    return sorted(seen)


class _NotedGraph:
    """The graph of the noted operations that a tensor depends on.

    Attributes
    ----------
    function : Function
        Its inputs are the leaves and the arrays without derivative.
    values : list
        The values of the inputs.
    leaf_indices : list of int
        The indices of the inputs that are leaves.
    opaque : bool
        Whether an input is the result of operations that were not noted, as of a checkpoint.
    """

    def __init__(
        self,
        notes: Mapping[int, Note],
        numbers: Sequence[int],
        leaves: Mapping[str, TapedArray],
    ) -> None:
        self.builder = Builder()
        self.names = {id(leaf._step): name for name, leaf in leaves.items() if leaf._step}
        self.inputs: dict[int, int] = {}
        self.values: list[Any] = []
        self.leaf_indices: list[int] = []
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
        """Return the node of a leaf, a Python number or an array."""
        if made is None and isinstance(value, int | float):
            return self.builder.constant(value)
        key = id(value) if made is None else id(made)
        if key not in self.inputs:
            index, shape = len(self.inputs), shape_of(value)
            leaf = isinstance(made, Accumulation)
            self.opaque |= made is not None and not leaf
            kind = "leaf" if leaf else "array" if made is None else f"result of {made.name}"
            of = f" of shape {shape}" if shape else ""
            name = self.names.get(key, f"{kind} {index + 1}{of}")
            self.kept.append(value)  # so that its id is not reused
            self.inputs[key] = self.builder.input(name, shape)
            self.values.append(on_host(value))  # examined on the host
            if leaf:
                self.leaf_indices.append(index)
        return self.inputs[key]


class detect_anomaly(ContextDecorator):  # noqa: N801  # PyTorch's spelling: used like a statement
    """Find the operation behind a nan or an infinity: ``with dl.detect_anomaly():``.

    Every recorded operation is noted with its line of Python. Before `backward` starts, the
    computation of the tensor is examined, values and gradient: the first operation that made a
    nan or an infinity from finite operands (at a pole, or by overflow) raises an error that
    shows the line; for a gradient, the line of the forward operation. Values in an untaken
    branch of `where` do not count. A total cancellation, a sum without a single correct digit,
    is a warning: sums that keep less than half of their digits are recomputed with 60 digits.

    A custom function's forward and backward count as one operation; the operations before it
    are examined when the reverse sweep reaches it.

    It costs a second, slower pass and memory for all values; without it there is no cost. It
    holds for the current thread, and the previous state is restored, also after an error. The
    block's `Watch` explains a tensor without a reverse sweep: `Watch.explain`.

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
