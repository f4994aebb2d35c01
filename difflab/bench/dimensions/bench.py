"""Cost of Jacobians against input and output dimensions, for the user's own family of functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from difflab.bench.columns import layout
from difflab.bench.dimensions.drawing import draw
from difflab.bench.dimensions.measuring import SEED, FamilyMeter
from difflab.bench.dimensions.page import page
from difflab.lab import provenance
from difflab.lab.outcomes import Row, together
from difflab.lab.problems.sized import Family, formula_family
from difflab.lab.sweep import Task
from difflab.methods.protocol import Method
from difflab.methods.registry import select

__all__ = ["DEFAULT", "LAYOUT", "draw", "page", "tasks"]

LAYOUT = layout(
    "family n m method inputs outputs status message error function_operations operations "
    "prepare_seconds call_seconds peak_bytes",
    key="family n m method",
)

DEFAULT = "x: [n]; W: [m, n]; tanh(W@x/n)"
"""A layer of a neural network: m outputs, and n + m·n inputs."""


def tasks(
    family: Family | None = None,
    sizes: tuple[Sequence[int], Sequence[int]] = ((1, 4, 16), (1, 4)),
    methods: Sequence[Method] | None = None,
    timeout: float = 10.0,
) -> Iterator[Task]:
    """Yield a task for every size and method.

    Parameters
    ----------
    family : Family, optional
        By default that of `DEFAULT`.
    sizes : pair of sequences of int
        The values of n and of m; one value for a size that the family does not have.
    methods : sequence of Method, optional
        By default difflab's own and the installed peers.
    timeout : float
        Seconds for preparing and calling one method. After a method's timeout no size that is
        larger in n and m is tried; the rows of those sizes report this.
    """
    chosen = select("all") if methods is None else methods
    meter = FamilyMeter(family or formula_family(DEFAULT), chosen, timeout)
    sources = {
        method.name: provenance.source(method, target="auto", timeout=timeout, seed=SEED)
        for method in chosen
    }
    for n in sizes[0]:
        for m in sizes[1]:
            key: Row = {"family": meter.family.text, "n": n, "m": m}
            yield from together(key, sources, partial(meter.rows, n, m))
