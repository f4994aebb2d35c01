"""Chains of steps, of whose states the optimal schedule of checkpoints keeps some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import comb, isqrt
from typing import Any, Literal

from difflab.autodiff.control.checkpoints import MOST_NESTED
from difflab.autodiff.control.rows import is_traced
from difflab.core.wording import counted
from difflab.eager.checkpoints import checkpointed
from difflab.eager.recording.tape import MODE
from difflab.errors import InputError, TapeError
from difflab.graph.checks import require_callable
from difflab.graph.pytree import Structure, flatten


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
        `difflab.eager.chains`). With ``"sqrt"``, about √l states are kept at equal
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
    traced = is_traced(leaves)
    if steps < 2 or ((MODE.whole or not MODE.enabled) and not traced):
        return _run_loop(step, 0, steps, state)
    if snapshots == "sqrt":
        return _run_segments(step, steps, state)
    deep = repetitions(steps, snapshots)
    if traced and deep > MOST_NESTED:
        raise InputError(
            f"a chain of {steps} steps with {counted(snapshots, 'snapshot')} is {deep} checkpoints"
            f" inside each other, and a trace can nest {MOST_NESTED}",
            hint="keep more snapshots, or run it on difflab.tensor",
        )
    return _reversible(partial(_checked, step, structure), 0, steps, snapshots - 1, state)


def _checked(step: Callable[[int, Any], Any], structure: Structure, k: int, state: Any) -> Any:
    """Run a step; raise `TapeError` if its result has another structure than the state."""
    result = step(k, state)
    returned = flatten(result)[1]
    if returned != structure:
        raise TapeError(
            f"step {k} of the chain returns the structure {returned}, and the state has {structure}"
        )
    return result


def _run_loop(step: Callable[[int, Any], Any], start: int, end: int, state: Any) -> Any:
    for k in range(start, end):
        state = step(k, state)
    return state


def _run_segments(step: Callable[[int, Any], Any], steps: int, state: Any) -> Any:
    """Run segments of √l steps; only the last is recorded in the forward run."""
    size = isqrt(steps - 1) + 1
    for start in range(0, steps - size, size):
        state = checkpointed(partial(_run_loop, step, start, start + size), state, "checkpoint")
    done = (steps - 1) // size * size
    return _run_loop(step, done, steps, state)


def _reversible(
    step: Callable[[int, Any], Any], start: int, end: int, free: int, state: Any
) -> Any:
    """Run some steps so that at most `free` states beside the first are kept at a time.

    The values between two kept states are computed again when the later one is reversed, in a
    checkpoint that may keep the states that are free by then. An unrecorded run keeps none.
    """
    if (MODE.whole or not MODE.enabled) and not is_traced(flatten(state)[0]):
        return _run_loop(step, start, end, state)
    here = start
    for place in (*kept_states(start, end, free), end - 1):
        if place > here:
            part = partial(_reversible, step, here, place, free)
            state = checkpointed(part, state, "checkpoint_chain")
        here, free = place, free - 1
    return step(end - 1, state)


# --- the schedule of a chain ---------------------------------------------------------------------


def beta(snapshots: int, repeats: int) -> int:
    r"""Return the length of the longest chain that s snapshots reverse with r repetitions at most.

    .. math:: \beta(s, r) = \binom{s + r}{s}

    Examples
    --------
    >>> beta(3, 2)
    10
    """
    return comb(snapshots + repeats, snapshots) if repeats >= 0 else 0


def repetitions(steps: int, snapshots: int) -> int:
    """Return r with β(s, r - 1) < steps ≤ β(s, r): the largest number of repetitions of a step.

    Examples
    --------
    >>> repetitions(10, 3), repetitions(11, 3)
    (2, 3)
    """
    if steps < 1 or snapshots < 1:
        raise InputError(
            f"revolve needs at least 1 step and 1 snapshot, not {steps} and {snapshots}",
            hint="the initial state counts as a snapshot",
        )
    low, high = -1, 0
    while beta(snapshots, high) < steps:
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        if beta(snapshots, middle) < steps:
            low = middle
        else:
            high = middle
    return high


def forward_steps(steps: int, snapshots: int) -> int:
    r"""Return the minimal number of forward steps beside the recorded ones.

    .. math:: t(l, s) = r\,l - \beta(s + 1, r - 1)

    with r as in `repetitions`; the initial state counts as one of the s snapshots.

    Examples
    --------
    >>> forward_steps(10, 3)
    15
    """
    repeats = repetitions(steps, snapshots)
    return repeats * steps - beta(snapshots + 1, repeats - 1)


def kept_states(start: int, end: int, free: int) -> Iterator[int]:
    """Yield the steps before which to keep states, from the kept state `start` to ``end - 1``.

    Parameters
    ----------
    start, end : int
        The steps from `start` up to `end` (exclusive) are still to be reversed.
    free : int
        The number of further states that may be kept.

    Examples
    --------
    >>> list(kept_states(0, 10, 2))
    [4, 7]
    """
    while free > 0:
        start += _first_part(end - start, free + 1)
        if start >= end - 1:  # the last step is recorded immediately: its state is not kept
            return
        yield start
        free -= 1


def _first_part(steps: int, snapshots: int) -> int:
    """Return the number of steps to the next state to keep; `snapshots` includes the current one.

    Both parts then stay within their own optimum: β(s, r-2) ≤ k ≤ β(s, r-1) for the first,
    and β(s-1, r-1) ≤ l - k ≤ β(s-1, r) for the rest.
    """
    repeats = repetitions(steps, snapshots)
    return max(1, beta(snapshots, repeats - 2), steps - beta(snapshots - 1, repeats))
