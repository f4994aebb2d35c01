"""``python -m benchmarks NAME``: a subcommand for every benchmark of `BENCHMARKS`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.gpu_command import gpu
from difflab.cli.bench.commands import standard_command
from difflab.cli.bench.running import (
    Destination,
    QuickOption,
    RowTimeoutOption,
    run,
    wide,
    writes,
)
from difflab.cli.documented import CommandGroup, add
from difflab.cli.options import parse_names
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.lab.sweep import SweepRow

__all__ = ["BENCHMARKS", "app"]

BENCHMARKS: Mapping[str, str] = {
    "adbench": "Jacobian time over objective time on ADBench's problems, beside peers.",
    "gradbench": "GradBench's evals, answered by difflab and by the tools of a checkout.",
    "graders": "Planted faults that gradient checkers find, and their false alarms.",
    "graphs": "Calls of jit, scans, forward mode and checkpointed memory beside JAX and PyTorch.",
    "ivp": "ODEs solved to small tolerances, beside heyoka, diffrax and torchdiffeq.",
    "points": "Scalar code at one point, by the fastest call of difflab, CasADi and heyoka.",
    "sparsity": "Patterns and colorings of sparse Jacobians beside CasADi, asdex and sparsediffpy.",
}
"""The benchmarks that are sweeps; ``gpu`` is one measurement."""

app = typer.Typer(
    name="benchmarks",
    cls=CommandGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
"""The command with its subcommands."""


@app.callback()
def _root() -> None:
    """Measure difflab beside others, for what its documentation states."""


def adbench(
    *,
    data: Path,
    problems: str = "gmm,ba,lstm,hand",
    peers: str = "torch,jax,autograd",
    large: bool = False,
    to: Destination,
) -> None:
    """Run Microsoft's ADBench.

    Parameters
    ----------
    data : DIR
        The folder `data` of Microsoft ADBench.
    problems : gmm,ba,…
        The problems to measure.
    peers : jax,…
        The packages to compare with.
    large
        Also instances of more than 100,000 points.
    """
    from benchmarks.adbench import bench as module
    from benchmarks.adbench.drawing import text

    instances = module.chosen(data, parse_names(problems) or [], large=large)
    others = parse_names(peers or None) or []
    tools = ["difflab", *(name for name in others if name != "difflab")]
    tasks = module.tasks(data, instances, tools)

    def document(rows: Sequence[SweepRow]) -> str:
        return json.dumps(module.document(rows), indent=1, allow_nan=False) + "\n"

    rows = run("adbench", module, tasks, to, wide(text), {".json": document})
    if any(row["status"] == "wrong" for row in rows):
        raise typer.Exit(1)


def gradbench(
    *,
    gradbench: Path,
    evals: str | None = None,
    tools: str | None = None,
    published: Path | None = None,
    quick: QuickOption = False,
    timeout: RowTimeoutOption = 600.0,
    to: Destination,
) -> int:
    """Run GradBench's evals.

    Parameters
    ----------
    gradbench : DIR
        A checkout of GradBench.
    evals : gmm,ba,…
        Only these; by default all.
    tools : jax,…
        Only these; by default all that can run.
    published : DIR
        GradBench's branch ci/refs/heads/nightly, to draw.
    timeout : SECONDS
        The time limit of one answer.
    """
    from benchmarks.gradbench import bench as module
    from benchmarks.gradbench.checkout import EVALS, Checkout
    from benchmarks.gradbench.drawing import text

    if quick and published is not None:
        raise InputError("published figures are those of full sizes: leave out --quick")
    names = parse_names(evals) or list(EVALS)
    found = Checkout.of(gradbench, names)
    chosen = module.chosen_tools(found, parse_names(tools))
    tasks = module.tasks(found, names, chosen, published, quick=quick, timeout=timeout)
    rows = run("gradbench", module, tasks, to, wide(text))
    own = [row for row in rows if row["tool"] == "difflab" and row["origin"] == "measured"]
    return int(any(row["status"] != "ok" for row in own))


def graders(
    *,
    quick: bool = False,
    every: Annotated[int, typer.Option(min=1)] = 1,
    to: Destination,
) -> None:
    """Grade the checkers of gradients.

    Parameters
    ----------
    quick
        One of 23 cases: minutes instead of hours.
    every : N
        One of N cases; by default all.
    """
    from benchmarks.graders import bench as module
    from benchmarks.graders.drawing import text

    run("graders", module, module.tasks(quick=quick, every=every), to, wide(text))


def gradbench_tool(*, shared_minors: bool = False) -> int:
    """Answer GradBench's protocol on standard input and output, as one of its tools.

    Parameters
    ----------
    shared_minors
        Answer det by another algorithm, which computes equal minors once.
    """
    from benchmarks.gradbench.tool.protocol import SHARED_MINORS, serve

    return serve(sys.stdin, sys.stdout, sys.stderr, SHARED_MINORS if shared_minors else {})


_COMMANDS: Mapping[str, Callable[..., int | None]] = {
    "adbench": adbench,
    "gradbench": gradbench,
    "graders": graders,
}
for _name, _summary in BENCHMARKS.items():
    _command = _COMMANDS.get(_name) or standard_command(_name, "benchmarks")
    add(app, writes(_command), name=_name, help=_summary)
add(app, gpu)
add(app, gradbench_tool)
