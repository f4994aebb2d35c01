"""``difflab bench memory --policies``: every policy's bytes and seconds, predicted and measured.

The network is differentiated in difflab, JAX and PyTorch, each row in a process of its own. Every
layer is checkpointed under the policy, so that the reverse sweep holds the kept values of all
layers, and all values of one. The peak is that of resident memory, as Linux counts it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import difflab
from difflab.bench.shared import BLUE, PURPLE, RED, SKY, layout, picture
from difflab.core.system import environment_variables
from difflab.core.wording import bytes_text
from difflab.core.worker import Handlers, ReportProgress, Worker
from difflab.errors import DifflabError
from difflab.lab import provenance
from difflab.lab.sweep import Cell, SweepRow, Task, trial
from difflab.methods.timer import FREED_AT_ONCE, resident_peak
from difflab.report.canvas import Axes, Figure, Label, label_ends, seconds_tick, titled_figure

CHECKED = 32  # rows of the call that comes before the measured one, and is compared
REPEATED = 5


class NetworkSize(NamedTuple):
    """The network: rows of a batch, columns of a state, and layers."""

    rows: int
    columns: int
    layers: int


def layer(xp: Any, name: Callable[..., Any], state: Any, weight: Any) -> Any:
    """Return the next state; its product and its bend are named."""
    bent = name(xp.tanh(name(state @ weight, "z")), "a")
    wave = xp.sin(3.0 * bent)
    return 0.5 * state + bent * xp.exp(-wave * wave)


def _arrays(size: NetworkSize) -> tuple[Any, list[Any]]:
    draw = np.random.default_rng(0)
    state = draw.normal(size=(size.rows, size.columns))
    scale = size.columns**0.5
    shape = (size.columns, size.columns)
    return state, [draw.normal(size=shape) / scale for _ in range(size.layers)]


def _policy(text: str) -> Any:
    """Return the policy of difflab that a row names; None for no checkpoint."""
    from difflab.autodiff import policies

    name, _, argument = text.partition(" ")
    if name == "optimal":
        return policies.optimal(bytes=int(argument))
    if name == "save_only":
        return policies.save_only(*argument.split(","))
    return None if name == "none" else getattr(policies, name)


def predicted(text: str, size: NetworkSize) -> tuple[int, int]:
    """Return the bytes kept beside the layers' states, and the operations computed again."""
    from difflab.autodiff import policies

    policy = _policy(text) or policies.everything
    state, weights = _arrays(size._replace(layers=1))
    account = policies.account(policy, partial(layer, np, policies.name), state, weights[0])
    return size.layers * account.bytes, size.layers * account.operations


def _checkpointed(text: str) -> Callable[[Any, Any], Any]:
    """Return a layer under a policy of difflab."""
    from difflab.autodiff import policies
    from difflab.eager import checkpoint_with

    policy, step = _policy(text), partial(layer, np, policies.name)
    return step if policy is None else checkpoint_with(policy)(step)


def _difflab(text: str, size: NetworkSize) -> Callable[[], Any]:
    from difflab.eager import tensor

    step = _checkpointed(text)
    state, weights = _arrays(size)

    def call() -> Any:
        leaves, now = [tensor(weight, requires_grad=True) for weight in weights], state
        for leaf in leaves:
            now = step(now, leaf)
        np.sum(now).backward()
        return sum(float(leaf.grad.numpy().sum()) for leaf in leaves if leaf.grad is not None)

    return call


def _difflab_compiled(text: str, size: NetworkSize) -> Callable[[], Any]:
    step = _checkpointed(text)
    state, weights = _arrays(size)

    def loss(weights: Any) -> Any:
        now = state
        for weight in weights:
            now = step(now, weight)
        return np.sum(now)

    fast = difflab.compile(difflab.trace(difflab.grad(loss), weights))
    return lambda: sum(float(slope.sum()) for slope in fast(*weights))


def _jax(text: str, size: NetworkSize) -> Callable[[], Any]:
    import jax
    from jax.ad_checkpoint import checkpoint_name

    jax.config.update("jax_enable_x64", True)
    jax_policies = jax.checkpoint_policies
    name, _, argument = text.partition(" ")
    policies = {
        "nothing": jax_policies.nothing_saveable,
        "everything": jax_policies.everything_saveable,
        "dots": jax_policies.dots_saveable,
        "save_only": jax_policies.save_only_these_names(*argument.split(",")),
    }
    step = partial(layer, jax.numpy, checkpoint_name)
    if name != "none":
        step = jax.checkpoint(step, policy=policies[name])
    state, weights = _arrays(size)
    stack, first = jax.numpy.stack(weights), jax.numpy.asarray(state)

    # Of a loop in Python XLA would see that values are computed twice, and keep them.
    def loss(stack: Any, first: Any) -> Any:
        last = jax.lax.scan(lambda now, weight: (step(now, weight), None), first, stack)[0]
        return jax.numpy.sum(last)

    fast = jax.jit(jax.grad(loss)).lower(stack, first).compile()
    return lambda: float(fast(stack, first).sum())


def _torch(text: str, size: NetworkSize) -> Callable[[], Any]:
    import torch
    from torch.utils.checkpoint import (
        checkpoint,
        create_selective_checkpoint_contexts,
    )

    torch.set_num_threads(1)
    step = partial(layer, torch, lambda value, name: value)
    state, arrays = _arrays(size)
    first, kept = torch.as_tensor(state), {}
    if text == "dots":
        saved = [torch.ops.aten.mm.default]
        kept = {"context_fn": partial(create_selective_checkpoint_contexts, saved)}

    def call() -> Any:
        leaves, now = [torch.tensor(weight, requires_grad=True) for weight in arrays], first
        for leaf in leaves:
            if text == "none":
                now = step(now, leaf)
            else:
                now = checkpoint(step, now, leaf, use_reentrant=False, **kept)
        now.sum().backward()
        return sum(float(leaf.grad.sum()) for leaf in leaves)

    return call


LIBRARIES: Mapping[str, Callable[[str, NetworkSize], Callable[[], Any]]] = {
    "difflab": _difflab,
    "difflab compiled": _difflab_compiled,
    "jax": _jax,
    "torch": _torch,
}
OWN = ("difflab", "difflab compiled")
"""On tensors, which keep what a tape keeps; and as a compiled function."""
_NAMED = ("none", "everything", "dots", "save_only z,a", "save_only a", "nothing")
POLICIES: Mapping[str, tuple[str, ...]] = {
    "difflab": _NAMED,
    "difflab compiled": _NAMED,
    "jax": _NAMED,
    "torch": ("none", "dots", "nothing"),
}
"""Those that a library has by name; difflab's optimal choices are added."""


def measure(library: str, policy: str, size: tuple[int, int, int]) -> dict[str, float]:
    """Return the peak of one call in bytes, the seconds of several, and a sum of a gradient."""
    prepare = LIBRARIES[library]
    checked = prepare(policy, NetworkSize(CHECKED, *size[1:]))()
    call = prepare(policy, NetworkSize(*size))
    peak, _ = resident_peak(call)
    seconds = []
    for _ in range(REPEATED):
        began = perf_counter()
        call()
        seconds.append(perf_counter() - began)
    spread = (sorted(seconds)[-2] - sorted(seconds)[1]) / median(seconds)
    return {"peak": peak, "seconds": min(seconds), "spread": spread, "total": checked}


def handlers(report: ReportProgress) -> Handlers:
    """Return the handlers of the process of one row."""
    return {"measure": measure}


LAYOUT = layout(
    "rows columns layers library policy status message predicted_bytes recomputed peak_bytes "
    "seconds",
    key="rows columns layers library policy",
)

SIZE = NetworkSize(4096, 128, 12)
"""A state has 4 MiB, and a layer reads five values of this size in its reverse sweep."""
QUICK = NetworkSize(1024, 64, 6)
WITHIN = 1e-9
"""The largest relative difference between the sums of the libraries' gradients."""
_ENVIRONMENT = {**FREED_AT_ONCE, "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}


def tasks(
    size: NetworkSize | None = None, *, quick: bool = False, timeout: float = 120.0
) -> Iterator[Task]:
    """Yield a task for every library and policy.

    Parameters
    ----------
    size : NetworkSize, optional
        The network, by default `SIZE`, or a smaller one with `quick`.
    timeout : float
        Seconds of one row.
    """
    size = size or (QUICK if quick else SIZE)
    for library in LIBRARIES:
        own = library in OWN
        if not own and find_spec(library) is None:
            continue
        named = [*POLICIES[library], *(_optimal(size) if own else ())]
        uses = () if own else (library,)
        source = provenance.source(uses=uses, timeout=timeout)
        for policy in named:
            key = {**size._asdict(), "library": library, "policy": policy}
            yield trial(key, partial(_measured, library, policy, size, timeout), source)


def _optimal(size: NetworkSize) -> list[str]:
    """Return the optimal choices for a layer, between none and all that it reads."""
    from difflab.autodiff import policies

    state, weight = np.ones((size.rows, size.columns)), np.ones((size.columns, size.columns))
    front = policies.front(partial(layer, np, policies.name), state, weight)
    return [f"optimal {choice.bytes}" for choice in front[1:-1]]


def _measured(library: str, policy: str, size: NetworkSize, timeout: float) -> dict[str, Cell]:
    """Measure one row in a process of its own; its gradient must be difflab's."""
    figures = _in_process(library, policy, size, timeout)
    if not math.isclose(figures["total"], _expected(size), rel_tol=WITHIN):
        raise DifflabError(f"{library} gives another gradient under {policy}")
    kept, again = predicted(policy, size)
    return {
        "status": "ok",
        "predicted_bytes": kept,
        "recomputed": again,
        "peak_bytes": int(figures["peak"]),
        "seconds": figures["seconds"],
        "spread": figures["spread"],
        "repetitions": 5,
    }


@lru_cache
def _expected(size: NetworkSize) -> float:
    """Return the sum of the gradient of a few rows without checkpoints."""
    total: float = LIBRARIES["difflab"]("none", size._replace(rows=CHECKED))()
    return total


def _in_process(library: str, policy: str, size: NetworkSize, timeout: float) -> dict[str, Any]:
    request = (library, policy, tuple(size))
    with environment_variables(_ENVIRONMENT), Worker("difflab.bench.policies") as worker:
        figures: dict[str, Any] = worker.request("measure", *request, timeout=timeout)
    return figures


# --- the picture -----------------------------------------------------------------------------

_LOOKS = {
    "difflab": (SKY, "o"),
    "difflab compiled": (BLUE, "D"),
    "jax": (RED, "s"),
    "torch": (PURPLE, "^"),
}


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the measured peak against the seconds, and against the predicted bytes."""
    size = NetworkSize(*(int(rows[0][name] or 0) for name in NetworkSize._fields))
    canvas = titled_figure(
        5.6,
        "memory against time: checkpoint policies on one network",
        f"{size.layers} layers, each checkpointed · a state of {size.rows} × {size.columns} has "
        f"{bytes_text(8 * size.rows * size.columns)} · peak of one gradient, fastest of 5"
        " · filled: nothing of the library is better in both",
        right=0.3,
    )
    done = [row for row in rows if row["status"] == "ok"]
    space = {"width_ratios": (1.7, 1), "wspace": 0.6}
    left, right = canvas.subplots(1, 2, sharey=True, gridspec_kw=space)
    for library, (colour, mark) in _LOOKS.items():
        own = [row for row in done if row["library"] == library]
        if own:
            _front(left, own, library, colour, mark)
            x = [float(row["predicted_bytes"] or 0) for row in own]
            y = [float(row["peak_bytes"] or 0) for row in own]
            right.plot(x, y, mark, color=colour, ms=6, mfc="none", mew=1.4)
    _frame(left, right)
    label_ends(left, _names(left, done), gap=3)
    return canvas


def _front(axes: Axes, rows: Sequence[SweepRow], library: str, colour: str, mark: str) -> None:
    """Draw one library's policies; a line joins those that no other one of it beats."""
    points = sorted((float(r["seconds"] or 0), float(r["peak_bytes"] or 0)) for r in rows)
    best: list[tuple[float, float]] = []
    for point in points:
        if not best or point[1] < best[-1][1]:
            best.append(point)
    axes.plot(*zip(*points, strict=True), mark, color=colour, ms=6, mfc="none", mew=1.4)
    axes.plot(*zip(*best, strict=True), f"{mark}-", color=colour, ms=6, lw=1.3, label=library)


def _frame(left: Axes, right: Axes) -> None:
    from matplotlib.ticker import MaxNLocator, MultipleLocator

    left.set(xlabel="time of a gradient", ylabel="peak of resident memory")
    right.set_xlabel("predicted bytes that the policy keeps")
    left.set_xlim(left=0)
    left.xaxis.set_major_locator(MaxNLocator(6))
    left.xaxis.set_major_formatter(seconds_tick)
    step = 2.0 ** round(math.log2(left.get_ylim()[1] / 6))
    for axes in (left, right):
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MultipleLocator(step))
        axes.yaxis.set_major_formatter(lambda value, _: bytes_text(value))
        axes.grid(visible=True)
    right.xaxis.set_major_locator(MultipleLocator(2 * step))
    right.xaxis.set_major_formatter(lambda value, _: bytes_text(value))
    left.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False)


def _names(axes: Axes, rows: Sequence[SweepRow]) -> list[Label]:
    """Return the policies' names at the right margin, at the height of difflab's peaks."""
    edge = axes.get_xlim()[1]
    own = [row for row in rows if row["library"] == OWN[-1]]
    return [Label(_short(row), edge, float(row["peak_bytes"] or 0), BLUE) for row in own]


def _short(row: SweepRow) -> str:
    name, _, argument = str(row["policy"]).partition(" ")
    if name == "optimal":
        return f"optimal, {bytes_text(float(argument))} a layer"
    return f"{name} {argument}".strip()
