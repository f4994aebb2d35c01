"""Checkpoints: values recomputed in the reverse sweep instead of being kept.

`checkpoint` keeps nothing of a call, `checkpoint_with` the values that a policy selects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from difflab.autodiff.control.checkpoints import called_on, traced_checkpoint
from difflab.autodiff.control.rows import is_traced
from difflab.autodiff.engine.masked import either
from difflab.autodiff.policies.policy import (
    Policy,
    backward_from,
    nothing,
    require_policy,
    with_values,
)
from difflab.autodiff.recording import Recording, as_real, computed, record
from difflab.core.attributes import like
from difflab.eager.custom import (
    Edge,
    OutputCotangents,
    Recomputed,
    make_multi_output_step,
    make_output,
)
from difflab.eager.recording.tape import (
    MODE,
    Accumulation,
    TapeStep,
    enable_grad,
    no_grad,
    require_recordable,
)
from difflab.eager.sweep.backward import Calculator, Contributions
from difflab.eager.tensors.tensor import Tensor
from difflab.errors import TapeError
from difflab.graph.checks import require_callable
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.pytree import Structure, flatten, unflatten
from difflab.graph.values import precision_of

# --- calls that are run again --------------------------------------------------------------------


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return ``function(*args, **kwargs)`` without keeping the intermediate values.

    Nothing is recorded inside. When `backward` reaches the result, the function is run again
    on the same arguments, recorded, and backpropagated through: less memory for a second run.
    The gradients are those of the plain call bit for bit, also of tensors that the function
    uses without taking them as arguments, such as parameters.

    Parameters
    ----------
    function : callable
        A function of tensors and other arguments. It must do the same the second time: draw
        random numbers outside and pass them in.
    *args, **kwargs
        Its arguments; tensors may be nested in tuples, lists and dicts.

    Returns
    -------
    Any
        The function's result; tensors may be nested in tuples, lists and dicts. They require
        grad if any tensor that the function uses does.

    Raises
    ------
    InputError
        In a trace more than 100 checkpoints are inside each other.
    TapeError
        The function changes a leaf that requires grad in place. Raised by `backward`: the second
        run returned a different result.

    Notes
    -----
    The function runs on copies of its arguments: its in-place changes affect the copies alone.

    In a trace, and so under `grad`, `jit` and the other transforms, the call is one node, and the
    reverse sweep appends the operations of the function once more; its results other than
    traced values pass through.

    Checkpoints nest: inner values are kept while the outer checkpoint is backpropagated through.
    With ``create_graph=True`` the second run stays on the tape, so no memory is saved, and
    derivatives of the gradient equal the plain ones up to the order of summation. Under
    `detect_anomaly` no memory is saved: every operation is recorded, to be examined.
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

    def run(tree: Any) -> Any:
        return function(*tree[0], **tree[1])

    return checkpointed(run, (args, kwargs), "checkpoint")


def checkpointed(function: Callable[[Any], Any], tree: Any, what: str) -> Any:
    """Return ``function(tree)`` as `checkpoint` does; errors name `what`."""
    leaves, structure = flatten(tree)
    if is_traced(leaves):
        return traced_checkpoint(function, leaves, structure)
    if MODE.whole or not MODE.enabled:
        return function(tree)
    indices = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    inputs: list[Tensor] = [leaves[index] for index in indices]
    edges, data = [t._step for t in inputs], [t._data for t in inputs]
    call = _CheckpointedCall(function, structure, list(map(_unchanging, leaves)), indices)
    argument, own = call.argument(data, edges)
    result, saw_grad = _unrecorded(lambda: function(argument))
    outputs, tree = flatten(result)
    if is_traced(outputs):  # the function reads traced values
        return traced_checkpoint(function, leaves, structure)
    passed = {}
    for given, tensor, edge in zip(inputs, own, edges, strict=True):
        storage = tensor._storage
        if storage is None or not storage.changes:
            passed[id(tensor)] = given
        elif not isinstance(edge, Accumulation):
            tensor._step = None  # a result, if it is returned
        else:
            raise TapeError(
                "the checkpointed function changes a leaf that requires grad, by"
                f" {storage.last_change()}",
                hint="return a new value instead: t = t + 1",
            )
    outputs = [passed.get(id(leaf), leaf) for leaf in outputs]
    if not saw_grad and all(edge is None for edge in edges):
        return unflatten(tree, outputs)
    for tensor in inputs:
        require_recordable(tensor, what)
    producer = make_multi_output_step("checkpoint", edges, data, Recomputed(call.rerun))
    return unflatten(tree, call.returned(producer, outputs))


def _unrecorded(run: Callable[[], Any]) -> tuple[Any, bool]:
    """Return the result of `run` unrecorded, and whether it used a tensor that requires grad."""
    before, MODE.saw_grad, MODE.trial = (MODE.saw_grad, MODE.trial), False, True
    try:
        with no_grad():
            return run(), MODE.saw_grad
    finally:
        MODE.saw_grad, MODE.trial = before


def _unchanging(leaf: Any) -> Any:
    """Return a leaf; a writeable array is copied, so that the second run gets the same values."""
    return leaf.copy() if isinstance(leaf, np.ndarray) and leaf.flags.writeable else leaf


_SAME = 1e-6
"""Largest relative difference between the checksums of a result in the two runs."""


class _Checksums(NamedTuple):
    """Shape and sums of a result, to check that the second run gives the same."""

    shape: tuple[int, ...]
    total: float
    size: float

    @classmethod
    def of(cls, data: Any) -> _Checksums:
        if not data.shape:
            return cls((), float(data), abs(float(data)))
        with np.errstate(all="ignore"):
            return cls(data.shape, float(data.sum()), float(abs(data).sum()))

    def fits(self, other: _Checksums) -> bool:
        if self.shape != other.shape:
            return False
        if not np.isfinite(self.total + other.total):  # no distance between nan or inf
            return bool(np.array_equal(self[1:], other[1:], equal_nan=True))
        return abs(self.total - other.total) <= _SAME * max(self.size, other.size)


class _CheckpointedCall:
    """A function that is run twice, and the leaves of its argument."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        structure: Structure,
        leaves: list[Any],
        indices: list[int],
    ) -> None:
        self.function = function
        self.structure = structure
        self.leaves = leaves
        self.indices = indices
        self.wanted: list[tuple[int, _Checksums]] = []

    def returned(self, producer: TapeStep, leaves: list[Any]) -> list[Any]:
        """Return the result's leaves with the tensors computed inside replaced by outputs."""
        outputs: dict[int, Tensor] = {}
        for position, leaf in enumerate(leaves):
            if not isinstance(leaf, Tensor) or leaf._step is not None or leaf.dtype.kind != "f":
                continue
            if id(leaf) not in outputs:
                index = len(self.wanted)
                outputs[id(leaf)] = make_output(Tensor, producer, index, leaf._data)
                self.wanted.append((position, _Checksums.of(leaf._data)))
        return [outputs.get(id(leaf), leaf) for leaf in leaves]

    def argument(self, data: Sequence[Any], edges: Sequence[Edge]) -> tuple[Any, list[Tensor]]:
        """Return the argument of one run, which may change it, and the tensors in it."""
        leaves = list(map(_unchanging, self.leaves))
        own = [Tensor(value, edge) for value, edge in zip(data, edges, strict=True)]
        for index, tensor in zip(self.indices, own, strict=True):
            leaves[index] = tensor
        return unflatten(self.structure, leaves), own

    def rerun(self, producer: TapeStep) -> list[Edge]:
        """Run the function recorded, and return the steps of its outputs.

        Checkpoints inside it save no memory if the sweep is recorded, and so the second run.
        """
        argument, _ = self.argument(producer.slots, producer.edges or ())
        before, MODE.recorded_again = MODE.recorded_again, MODE.enabled
        try:
            with enable_grad():
                results, _ = flatten(self.function(argument))
        finally:
            MODE.recorded_again = before
        steps: list[Edge] = []
        for position, sums in self.wanted:
            result = results[position] if position < len(results) else None
            if not isinstance(result, Tensor) or not sums.fits(_Checksums.of(result._data)):
                raise TapeError(
                    "the checkpointed function returned a different result when it was run again",
                    hint="draw random numbers outside and pass them in, and do not change tensors"
                    " that it uses before backward()",
                )
            steps.append(result._step)
        return steps


# --- calls that keep the values a policy selects -------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])


def checkpoint_with(policy: Policy) -> Callable[[F], F]:
    r"""Return a transform whose functions keep a policy's residuals for the reverse sweep.

    ``checkpoint_with(policy)(function)(*args)`` is ``function(*args)``. The reverse sweep
    recomputes the values that it reads and the policy did not keep, from the arguments and the
    kept values.

    Parameters
    ----------
    policy : Policy
        ``dl.policies.nothing``, ``everything``, ``dots``, ``save_only("h", ...)``,
        ``save_any_except("h", ...)`` or ``optimal(bytes=...)``.

    Returns
    -------
    callable
        A decorator.

    Raises
    ------
    InputError
        The argument is no policy; by a call: the policy does not fit the function.
    TraceError
        By a call on tensors: the function cannot be traced.

    Notes
    -----
    With ``nothing`` it is `checkpoint`. On tensors the function is traced once per call, at the
    point of the arguments. Derivatives equal those without a policy, bit for bit if no value is
    used both inside and outside; else the terms of its gradient are added in another order. Random
    numbers of `difflab.random` are the same when they are computed again. Higher derivatives,
    `vmap`, `jit`, loops and other checkpoints may be around the call and inside it; values that
    are named inside of a loop or of another checkpoint are not the function's own.

    References
    ----------
    A. Griewank, A. Walther, *Evaluating Derivatives*, 2nd ed., 2008, chapter 12; T. Chen et al.,
    *Training Deep Nets with Sublinear Memory Cost*, 2016; P. Jain et al., *Checkmate: Breaking the
    Memory Wall with Optimal Tensor Rematerialization*, MLSys 2020.

    Examples
    --------
    The product alone is kept:

    >>> import numpy as np
    >>> import difflab as dl
    >>> layer = lambda W, x: np.sum(np.tanh(dl.name(W @ x, "z")))
    >>> call = dl.checkpoint_with(dl.policies.save_only("z"))(layer)
    >>> W, x = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([0.5, -0.5])
    >>> dl.grad(call)(W, x)
    array([[ 0.39322387, -0.39322387],
           [ 0.39322387, -0.39322387]])
    >>> V = dl.tensor(W, requires_grad=True)
    >>> call(V, x).backward()
    >>> V.grad
    tensor([[ 0.39322387, -0.39322387],
            [ 0.39322387, -0.39322387]])
    """
    require_policy(policy)

    def transform(function: F) -> F:
        require_callable(function, "checkpoint_with")

        @like(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return _called(policy, lambda tree: function(*tree[0], **tree[1]), (args, kwargs))

        return call  # type: ignore[return-value]

    return transform


def _called(policy: Policy, function: Callable[[Any], Any], tree: Any) -> Any:
    """Return ``function(tree)``: as a node of a trace, or as a step of the tape."""
    leaves, structure = flatten(tree)
    if is_traced(leaves):
        return traced_checkpoint(function, leaves, structure, policy)
    if MODE.whole or not MODE.enabled:
        return function(tree)
    if policy is nothing:
        return checkpointed(function, tree, "checkpoint_with")
    return _recorded(policy, function, leaves, structure)


def _recorded(
    policy: Policy, function: Callable[[Any], Any], leaves: list[Any], structure: Structure
) -> Any:
    """Trace the function at its tensors, compute it, and record it as one step."""
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    tensors = [leaves[place] for place in places]
    call, returned = called_on(function, leaves, structure, places)
    values = [as_real(t._data, "an argument of checkpoint_with") for t in tensors]
    kinds = [precision_of(t) for t in tensors]
    run = record(call, [value.shape for value in values], False, values, kinds)
    if is_traced(run.captured):  # the function reads traced values
        return traced_checkpoint(function, leaves, structure, policy)
    results, tree = returned[0]
    inputs = [*tensors, *run.captured]
    step = _Step(policy, run)
    data = [as_real(getattr(value, "_data", value), "a value that is read") for value in inputs]
    values_and_residuals = computed(run.derived(_whole, policy), data)
    outputs = run.typed(values_and_residuals[: run.results])
    edges = [getattr(value, "_step", None) for value in inputs]
    flows = any(edge is not None for edge in edges)
    slots = [*data, *values_and_residuals[run.results :]]
    producer = make_multi_output_step("checkpoint", edges, slots, step.pull) if flows else None
    made = iter([_output(producer, index, value) for index, value in enumerate(outputs)])
    return unflatten(
        tree, [_as_result(next(made), r) if isinstance(r, Node) else r for r in results]
    )


def _output(producer: TapeStep | None, index: int, value: Any) -> Tensor:
    value = np.asarray(value) if isinstance(value, float) else value
    return Tensor(value) if producer is None else make_output(Tensor, producer, index, value)


def _as_result(made: Tensor, result: Node) -> Any:
    """Return an output, as truth values if the function's result is."""
    return Tensor(made._data != 0) if result.dtype == np.bool_ else made


def _whole(function: Function, policy: Policy) -> Function:
    """Return a function with the values that a policy keeps as further outputs."""
    return with_values(function, policy.kept(function))


def _back(
    function: Function,
    policy: Policy,
    results: int,
    sources: tuple[int, ...],
    reached: tuple[int, ...],
) -> Function:
    """Return the cotangents from the values that a policy keeps."""
    return backward_from(_whole(function, policy), results, sources, reached)


@dataclass(frozen=True)
class _Step:
    """The pull-back of one call."""

    policy: Policy
    run: Recording

    def pull(
        self, producer: TapeStep, cotangents: OutputCotangents, calculator: Calculator
    ) -> Contributions:
        """Compute the cotangents of the inputs; on tensors all values are computed again."""
        edges, run = producer.edges or (), self.run
        reached = tuple(sorted(cotangents))
        sources = tuple([k for k, edge in enumerate(edges) if edge is not None])
        bars = [calculator.masked(*cotangents[index][:2]) for index in reached]
        on_tensors = calculator.kernels is None
        policy = nothing if on_tensors else self.policy
        values = list(producer.slots)
        if on_tensors:
            inputs = zip(values, edges, strict=False)
            values = [Tensor(value, edge) for value, edge in inputs]
        back = run.derived(_back, policy, run.results, sources, reached)
        input_bars = computed(back, [*values, *bars])
        live = self._live([cotangents[index][1] for index in reached], calculator)
        return [
            (edges[k], bar, None if live is None else calculator.reached(live, bar.shape))
            if type(edges[k]) is TapeStep
            else (edges[k], bar, None)
            for k, bar in zip(sources, input_bars, strict=True)
        ]

    def _live(self, masks: Sequence[Any], calculator: Calculator) -> Any:
        """Return whether any element of the outputs counts; None if all do."""
        if any(mask is None for mask in masks):
            return None
        return either(calculator, [calculator.reached(mask, ()) for mask in masks])
