"""`checkpoint_with`: a checkpoint that keeps the values which a policy chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from difflab.autodiff.control.checkpoints import called_on, traced_checkpoint
from difflab.autodiff.control.rows import is_traced
from difflab.autodiff.engine.masked import either
from difflab.autodiff.policies.policy import Policy, nothing, require_policy
from difflab.autodiff.policies.reversal import backward_from, with_values
from difflab.autodiff.recording import Recording, as_real, computed, record
from difflab.core.attributes import like
from difflab.eager.checkpoints.checkpoint import checkpointed
from difflab.eager.multi_output import OutputCotangents, make_multi_output_step, make_output
from difflab.eager.recording.mode import MODE
from difflab.eager.recording.tape import TapeStep
from difflab.eager.sweep.backward import Contributions
from difflab.eager.sweep.values import Calculator
from difflab.eager.tensors.tensor import Tensor
from difflab.graph.checks import require_callable
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.precision import precision_of
from difflab.graph.pytree import Structure, flatten, unflatten

F = TypeVar("F", bound=Callable[..., Any])


def checkpoint_with(policy: Policy) -> Callable[[F], F]:
    r"""Return a transform whose functions keep what a policy chooses for the reverse sweep.

    ``checkpoint_with(policy)(function)(*args)`` is ``function(*args)``. The reverse sweep computes
    again what it reads and the policy did not keep, from the arguments and the kept values.

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
    found = computed(run.derived(_whole, policy), data)
    outputs = run.typed(found[: run.results])
    edges = [getattr(value, "_step", None) for value in inputs]
    flows = any(edge is not None for edge in edges)
    slots = [*data, *found[run.results :]]
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
        found = computed(back, [*values, *bars])
        live = self._live([cotangents[index][1] for index in reached], calculator)
        return [
            (edges[k], bar, None if live is None else calculator.reached(live, bar.shape))
            if type(edges[k]) is TapeStep
            else (edges[k], bar, None)
            for k, bar in zip(sources, found, strict=True)
        ]

    def _live(self, masks: Sequence[Any], calculator: Calculator) -> Any:
        """Return whether any element of the outputs counts; None if all do."""
        if any(mask is None for mask in masks):
            return None
        return either(calculator, [calculator.reached(mask, ()) for mask in masks])
