"""`grad`: the gradients of tensors, returned instead of added to the attributes `grad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from difflab.core.apply import module_of
from difflab.eager.custom import leads_beyond_its_edges, make_multi_output_step
from difflab.eager.recording.tape import MODE, WATCHED, Accumulation, TapeStep, history
from difflab.eager.sweep.backward import Calculator, Route, TensorCalculator, hooked, pull_back
from difflab.eager.tensors.tensor import Tensor
from difflab.errors import InputError, TapeError

Tensors = Tensor | Sequence[Tensor]
Gradient = Tensor | ArrayLike | None


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Gradient | Sequence[Gradient] = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    r"""Return the sum of the gradients of `outputs` with respect to `inputs`.

    The result is :math:`\bar x_j = \sum_i J_{ij}^T \bar y_i`, for every input. The attributes
    `grad` stay as they are, and only the part of the tape between inputs and outputs is visited.

    Parameters
    ----------
    outputs : tensor or sequence of tensors
        The results to differentiate.
    inputs : tensor or sequence of tensors
        The variables: leaves or results of recorded operations.
    grad_outputs : tensor, array or None, or a sequence of them
        The cotangent :math:`\bar y_i` of each output; None, for one element, is 1.
    retain_graph : bool, optional
        Keep the tape for another sweep; by default as `create_graph`.
    create_graph : bool
        Record the sweep, so that the gradients can be differentiated.
    allow_unused : bool
        Return None for an input that no output depends on, instead of raising an error.

    Returns
    -------
    tuple of Tensor or None
        One for each input, of its shape.

    Raises
    ------
    TapeError
        An output or input does not require grad, an input is not used, or the tape was freed.
    InputError
        Something is no tensor, or there are more or fewer cotangents than outputs.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.eager import grad
    >>> x = dl.tensor(2.0, requires_grad=True)
    >>> (slope,) = grad(x**3, x, create_graph=True)
    >>> slope.item(), grad(slope, x)[0].item(), x.grad
    (12.0, 12.0, None)
    """
    ys, xs = _tensors(outputs, "outputs"), _tensors(inputs, "inputs")
    bars: Any = [None] * len(ys) if grad_outputs is None else grad_outputs
    if isinstance(outputs, Tensor) and not isinstance(bars, list | tuple):
        bars = [bars]
    if not isinstance(bars, list | tuple) or len(bars) != len(ys):
        raise InputError(f"grad_outputs of grad has one cotangent for each of {len(ys)} outputs")
    keep = create_graph if retain_graph is None else retain_graph or create_graph
    seeds = [y._seed(bar, create_graph) for y, bar in zip(ys, bars, strict=True)]
    if WATCHED and MODE.watch is not None:
        for y in ys:
            MODE.watch.check(y, keep=True)
    before, MODE.enabled = MODE.enabled, create_graph
    try:
        cotangents = _swept(ys, xs, seeds, keep=keep, create_graph=create_graph)
        return tuple([_gradient(x, cotangents, seeds, allow_unused) for x in xs])
    finally:
        MODE.enabled = before


def _tensors(given: Any, what: str) -> list[Tensor]:
    """Return tensors that require grad, as a list."""
    tensors = list(given) if isinstance(given, list | tuple) else [given]
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise InputError(f"{what} of grad are tensors, not {type(tensor).__name__}")
        if tensor._step is None:
            raise TapeError(
                f"{what}[{place}] of grad does not require grad",
                hint="create the inputs with dl.tensor(…, requires_grad=True), and do not compute"
                " under no_grad() or from detached values",
            )
    if not tensors:
        raise InputError(f"grad needs at least one tensor as {what}")
    return tensors


def _swept(
    ys: list[Tensor], xs: list[Tensor], seeds: list[Any], *, keep: bool, create_graph: bool
) -> dict[Any, Any]:
    """Return the cotangents of steps and leaves that were reached."""
    edges = [y._step for y in ys]
    starts = [(edge, seed, None) for edge, seed in zip(edges, seeds, strict=True)]
    root = make_multi_output_step("grad", edges, (), lambda *_: starts)
    xp = module_of(ys[0]._data)
    calculator = TensorCalculator(Tensor, xp) if create_graph else Calculator(xp)

    def shown(step: TapeStep, bar: Any) -> Any:
        return hooked(step.hooks, bar, Tensor) if step.hooks else bar

    route = _route(root, {x._step for x in xs})
    with np.errstate(all="ignore"):
        cotangents = pull_back(
            root, seeds[0], keep=keep, calculator=calculator, show=shown, route=route
        )
    return dict(cotangents)


def _route(root: TapeStep, wanted: set[Any]) -> Route:
    """Return the part of the tape from `root` that leads to `wanted` steps and leaves.

    A step's number exceeds those of its arguments, so one loop in their order suffices.
    """
    steps = history(root)
    leaves = {e for step in steps for e in step.edges or () if isinstance(e, Accumulation)}
    needed: set[Any] = leaves & wanted
    ends: set[Any] = set()
    for step in steps:
        hidden = step.edges is None or leads_beyond_its_edges(step)  # None: freed, an error
        behind = hidden or any(edge in needed for edge in step.edges or ())
        if not behind and step in wanted:
            ends.add(step)
        if behind or step in wanted:
            needed.add(step)
    return Route(wanted & set(steps), ends, {*steps, *leaves} - needed)


def _gradient(
    x: Tensor, cotangents: dict[Any, Any], seeds: list[Any], allow_unused: bool
) -> Tensor | None:
    """Return the gradient of one input, which shares no memory with others."""
    bar = cotangents.get(x._step)
    if bar is None:
        if allow_unused:
            return None
        raise TapeError(
            f"no output of grad depends on the input of shape {x.shape}",
            hint="pass allow_unused=True, and its gradient is None",
        )
    step = x._step
    if isinstance(step, Accumulation) and step.hooks:
        bar = hooked(step.hooks, bar, Tensor)
    return bar.copy() if isinstance(bar, Tensor) else Tensor(module_of(bar).array(bar))
