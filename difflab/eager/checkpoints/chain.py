"""`checkpoint_chain`: the gradient of a long loop with few of its states kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Any, Literal, NamedTuple

from difflab.autodiff.control.checkpoints import MOST_NESTED
from difflab.autodiff.control.rows import is_traced
from difflab.core.wording import counted
from difflab.eager.checkpoints.checkpoint import checkpoint, unrecorded
from difflab.eager.checkpoints.revolve import kept_states, repetitions
from difflab.eager.multi_output import Edge, Recomputed, make_multi_output_step, make_output
from difflab.eager.recording.mode import MODE, enable_grad
from difflab.eager.recording.tape import TapeStep, require_recordable
from difflab.eager.tensors.tensor import Tensor
from difflab.errors import InputError, TapeError
from difflab.graph.checks import require_callable
from difflab.graph.pytree import Structure, flatten, unflatten

__all__ = ["checkpoint_chain"]

ChainState = list[Any]
"""The leaves of a state; tensors among them are detached from their steps."""


class _SnapshotStack(NamedTuple):
    """A stack of kept states; the steps on the tape share its lower part."""

    position: int
    state: ChainState
    size: int
    below: _SnapshotStack | None

    def before(self, step: int) -> _SnapshotStack:
        """Return the stack up to the last state before `step`."""
        top = self
        while top.position >= step and top.below is not None:
            top = top.below
        return top

    def arrays(self) -> list[Any]:
        """Return the arrays of all states."""
        found: list[Any] = []
        top: _SnapshotStack | None = self
        while top is not None:
            found += [leaf._data for leaf in top.state if isinstance(leaf, Tensor)]
            top = top.below
        return found


def checkpoint_chain(
    step: Callable[[int, Any], Any],
    state: Any,
    steps: int,
    snapshots: int | Literal["sqrt"] = "sqrt",
) -> Any:
    r"""Return the state after many steps, keeping few of the intermediate states.

    The result is that of the loop ``for k in range(steps): state = step(k, state)``, and so are
    the gradients, bit for bit, also of tensors that `step` uses without taking them as
    arguments. `backward` recomputes the states that were not kept.

    Parameters
    ----------
    step : callable
        ``(k, state) -> state``. It must do the same each time it is run for the same k.
    state : tree of tensors
        The initial state: a tensor, or tuples, lists and dicts of them. All states have one
        structure.
    steps : int
        The length l of the chain.
    snapshots : int or "sqrt"
        The largest number of states kept at a time, including the initial one. The schedule is
        optimal: beside the l recorded steps it runs `forward_steps` (see
        `difflab.eager.checkpoints.revolve`). With ``"sqrt"``, about √l states are kept at equal
        distances and about √l steps are recorded at a time; every step is run at most twice.

    Returns
    -------
    tree of tensors
        The final state.

    Raises
    ------
    InputError
        `steps` is negative, `snapshots` is neither "sqrt" nor a positive integer, or a trace would
        have to nest too many checkpoints.
    TapeError
        A step returns a state with another structure.

    Notes
    -----
    A chain of :math:`\binom{s + r}{s}` steps is reversed with s snapshots by running each step
    at most r times beside its recorded run. In a trace the schedule becomes checkpoints inside each
    other, r deep. With ``create_graph=True`` the whole chain is
    recorded, and with ``retain_graph=True`` the snapshots of the forward run stay beside those
    of the reverse sweep. All floating-point tensors of a state require grad if any tensor that
    the chain uses does.

    References
    ----------
    A. Griewank, A. Walther, *Algorithm 799: revolve*, ACM TOMS 26, 2000; for √l segments
    T. Chen et al., *Training Deep Nets with Sublinear Memory Cost*, 2016.

    Examples
    --------
    The logistic map with r = 2.5 settles at 1 - 1/r, whose derivative is 1/r². Ten of a
    thousand states are kept:

    >>> import difflab as dl
    >>> r = dl.tensor(2.5, requires_grad=True)
    >>> x = dl.tensor(0.4, requires_grad=True)
    >>> y = dl.checkpoint_chain(lambda k, x: r * x * (1 - x), x, 1000, snapshots=10)
    >>> y.backward()
    >>> round(y.item(), 12), round(r.grad.item(), 12)
    (0.6, 0.16)
    """
    require_callable(step, "checkpoint_chain")
    if not isinstance(steps, int) or steps < 0:
        raise InputError(f"a chain has a whole number of steps from 0, not {steps!r}")
    if snapshots != "sqrt" and (not isinstance(snapshots, int) or snapshots < 1):
        raise InputError(
            f'snapshots is "sqrt" or a positive integer, not {snapshots!r}',
            hint="the initial state counts as one",
        )
    leaves, structure = flatten(state)
    if steps < 2 or (not is_traced(leaves) and (not MODE.enabled or MODE.watch is not None)):
        return _run_loop(step, 0, steps, state)
    if snapshots == "sqrt":
        return _run_segments(step, steps, state)
    if is_traced(leaves):
        return _nested(step, steps, state, snapshots)
    chain = _Chain(step, structure, snapshots, list(map(_own, leaves)))
    first = [_detached(leaf) for leaf in leaves]
    last, kept, saw_grad = chain.advanced(_SnapshotStack(0, first, 1, None), steps)
    if is_traced(last):  # the steps read traced values
        return _nested(step, steps, state, snapshots)
    flows = saw_grad or any(isinstance(leaf, Tensor) and leaf._step is not None for leaf in leaves)
    for leaf in leaves if flows else ():
        if isinstance(leaf, Tensor):
            require_recordable(leaf, "checkpoint_chain")
    return step(steps - 1, chain.state_on_tape(steps - 1, last, kept, flows, kept.arrays()))


def _run_loop(step: Callable[[int, Any], Any], start: int, end: int, state: Any) -> Any:
    for k in range(start, end):
        state = step(k, state)
    return state


def _run_segments(step: Callable[[int, Any], Any], steps: int, state: Any) -> Any:
    """Run segments of √l steps; only the last is recorded in the forward run."""
    size = isqrt(steps - 1) + 1
    for start in range(0, steps - size, size):
        state = checkpoint(partial(_run_loop, step, start, start + size), state)
    done = (steps - 1) // size * size
    return _run_loop(step, done, steps, state)


def _nested(step: Callable[[int, Any], Any], steps: int, state: Any, snapshots: int) -> Any:
    """Run the chain in a trace: the schedule as checkpoints inside each other.

    Raises
    ------
    InputError
        They would nest deeper than Python's stack.
    """
    deep = repetitions(steps, snapshots)
    if deep > MOST_NESTED:
        raise InputError(
            f"a chain of {steps} steps with {counted(snapshots, 'snapshot')} is {deep} checkpoints"
            f" inside each other, and a trace can nest {MOST_NESTED}",
            hint="keep more snapshots, or run it on difflab.tensor",
        )
    return _reversible(step, 0, steps, snapshots - 1, state)


def _reversible(
    step: Callable[[int, Any], Any], start: int, end: int, free: int, state: Any
) -> Any:
    """Run some steps so that at most `free` states beside the first are kept at a time.

    The values between two kept states are computed again when the later one is reversed, in a
    checkpoint that may keep the states that are free by then.
    """
    here = start
    for place in (*kept_states(start, end, free), end - 1):
        if place > here:
            state = checkpoint(partial(_reversible, step, here, place, free), state)
        here, free = place, free - 1
    return step(end - 1, state)


@dataclass(frozen=True, eq=False)
class _Chain:
    """A chain: its step, its initial state and the number of snapshots."""

    step: Callable[[int, Any], Any]
    structure: Structure
    snapshots: int
    origin: list[Any]

    def advanced(self, kept: _SnapshotStack, end: int) -> tuple[ChainState, _SnapshotStack, bool]:
        """Run from the last kept state to the state before step ``end - 1``, unrecorded.

        Returns
        -------
        state, kept, saw_grad
            The state, the stack of kept states, and whether a tensor used requires grad.
        """
        here, state, size, _ = kept
        used = False
        for index in [*kept_states(here, end, self.snapshots - size), end - 1]:
            state, saw_grad = unrecorded(partial(self._run, here, index, state))
            used |= saw_grad
            here = index
            if index < end - 1:
                kept = _SnapshotStack(index, state, kept.size + 1, kept)
        return state, kept, used

    def _run(self, start: int, end: int, state: ChainState) -> ChainState:
        for k in range(start, end):
            tree = unflatten(self.structure, [_tensor(leaf) for leaf in state])
            leaves, structure = flatten(self.step(k, tree))
            if structure != self.structure:
                raise TapeError(
                    f"step {k} of the chain returns the structure {structure}, and the state"
                    f" has {self.structure}"
                )
            state = [_detached(leaf) for leaf in leaves]
        return state

    def state_on_tape(
        self,
        k: int,
        state: ChainState,
        kept: _SnapshotStack,
        flows: bool,
        listed: Sequence[Any] = (),
    ) -> Any:
        """Return the state before step k as tensors that backpropagate to step ``k - 1``.

        The `listed` arrays are those that `memory` counts as kept by the step on the tape.
        """
        if k == 0:
            return unflatten(self.structure, list(map(_own, self.origin)))
        if not flows:
            return unflatten(self.structure, [_tensor(leaf) for leaf in state])
        producer = make_multi_output_step(
            "checkpoint", [], [(k, kept.before(k)), *listed], Recomputed(self._rerun)
        )
        leaves = [
            make_output(Tensor, producer, index, leaf._data)
            if isinstance(leaf, Tensor) and leaf.dtype.kind == "f"
            else _tensor(leaf)
            for index, leaf in enumerate(state)
        ]
        return unflatten(self.structure, leaves)

    def _rerun(self, producer: TapeStep, differentiable: bool) -> Sequence[Edge]:
        """Record the step before the kept state, or all steps if the sweep is recorded."""
        end, kept = producer.slots[0]
        if differentiable:
            with enable_grad():
                origin = list(map(_own, self.origin))
                result = _run_loop(self.step, 0, end, unflatten(self.structure, origin))
        else:
            state, kept, _ = self.advanced(kept, end)
            with enable_grad():
                result = self.step(end - 1, self.state_on_tape(end - 1, state, kept, flows=True))
        return [leaf._step if isinstance(leaf, Tensor) else None for leaf in flatten(result)[0]]


def _detached(leaf: Any) -> Any:
    """Return a leaf detached from its step."""
    return Tensor(leaf._data) if isinstance(leaf, Tensor) else leaf


def _tensor(leaf: Any) -> Any:
    """Return a leaf for a step to use; changes in place do not affect the stored one."""
    return Tensor(leaf._data) if isinstance(leaf, Tensor) else leaf


def _own(leaf: Any) -> Any:
    """Return a leaf for a step to use: the same value and tape, changed in place on its own."""
    return Tensor(leaf._data, leaf._step) if isinstance(leaf, Tensor) else leaf
