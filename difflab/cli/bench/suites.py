"""The benchmarks over collections that exist elsewhere, or come with difflab."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from difflab.cli.bench.running import (
    REPORTS,
    FolderOption,
    FormatOption,
    PictureFormat,
    QuickOption,
    run,
)
from difflab.cli.options import InputsOption, KindsOption, TimeoutOption, parse_names
from difflab.cli.output import screen
from difflab.cli.problems import chosen_problems
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.lab.sweep import SweepRow

__all__ = ["adbench", "gradbench", "graders", "problems"]


def adbench(
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder `data` of Microsoft ADBench.")
    ],
    problems: Annotated[
        str, typer.Option(metavar="gmm,ba,…", help="The problems to measure.")
    ] = "gmm,ba,lstm,hand",
    peers: Annotated[
        str, typer.Option(metavar="jax,…", help="The packages to compare with.")
    ] = "torch,jax,autograd",
    large: Annotated[
        bool, typer.Option("--large", help="Also instances of more than 100,000 points.")
    ] = False,
    output: FolderOption = REPORTS,
    form: FormatOption = PictureFormat.SVG,
) -> None:
    """Run Microsoft's ADBench."""
    from difflab.bench.adbench import bench as module
    from difflab.bench.adbench.drawing import text

    instances = module.chosen(data, parse_names(problems) or [], large=large)
    others = parse_names(peers or None) or []
    tools = ["difflab", *(name for name in others if name != "difflab")]
    tasks = module.tasks(data, instances, tools)

    def document(rows: Sequence[SweepRow]) -> str:
        return json.dumps(module.document(rows), indent=1, allow_nan=False) + "\n"

    rows = run("adbench", module, tasks, output, form, _table(text), {".json": document})
    if any(row["status"] == "wrong" for row in rows):
        raise typer.Exit(1)


def gradbench(
    checkout: Annotated[
        Path, typer.Option("--gradbench", metavar="DIR", help="A checkout of GradBench.")
    ],
    evals: Annotated[
        str | None, typer.Option(metavar="gmm,ba,…", help="Only these; by default all.")
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(metavar="jax,…", help="Only these; by default all that can run."),
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="GradBench's branch ci/refs/heads/nightly, to draw."),
    ] = None,
    output: FolderOption = REPORTS,
    quick: QuickOption = False,
    form: FormatOption = PictureFormat.SVG,
    timeout: Annotated[
        float, typer.Option(min=0.01, metavar="SECONDS", help="The time limit of one answer.")
    ] = 600.0,
) -> int:
    """Run GradBench's evals."""
    from difflab.bench.gradbench import bench as module
    from difflab.bench.gradbench.checkout import EVALS, Checkout
    from difflab.bench.gradbench.drawing import text

    if quick and published is not None:
        raise InputError("published figures are those of full sizes: leave out --quick")
    names = parse_names(evals) or list(EVALS)
    found = Checkout.of(checkout, names)
    chosen = module.chosen_tools(found, parse_names(tools))
    tasks = module.tasks(found, names, chosen, published, quick=quick, timeout=timeout)
    rows = run("gradbench", module, tasks, output, form, _table(text))
    own = [row for row in rows if row["tool"] == "difflab" and row["origin"] == "measured"]
    return int(any(row["status"] != "ok" for row in own))


def graders(
    output: FolderOption = REPORTS,
    quick: Annotated[
        bool, typer.Option("--quick", help="One of 23 cases: minutes instead of hours.")
    ] = False,
    every: Annotated[
        int, typer.Option(min=1, metavar="N", help="One of N cases; by default all.")
    ] = 1,
    form: FormatOption = PictureFormat.SVG,
) -> None:
    """Grade the checkers of gradients."""
    from difflab.bench.graders import bench as module
    from difflab.bench.graders.drawing import text

    run("graders", module, module.tasks(quick=quick, every=every), output, form, _table(text))


def problems(
    sets: Annotated[
        str | None, typer.Option("--set", metavar="a,b", help="Only these sets; by default all.")
    ] = None,
    kinds: KindsOption = None,
    inputs: InputsOption = None,
    methods: Annotated[
        str | None,
        typer.Option(metavar="a,b", help="Only these of `difflab methods`; or peers, or all."),
    ] = None,
    output: FolderOption = REPORTS,
    quick: QuickOption = False,
    form: FormatOption = PictureFormat.SVG,
    timeout: TimeoutOption = 10.0,
) -> int:
    """Run every method on problems of the library."""
    from difflab.bench.problems import bench as module

    found = chosen_problems(sets, kinds, inputs)
    tasks = module.tasks(found, parse_names(methods), quick=quick, timeout=timeout)
    rows = run("problems", module, tasks, output, form, _table(module.text), {".html": module.page})
    return int(any(row["verdict"] == "disagree" for row in rows))


def _table(text: Callable[..., str]) -> Callable[[Sequence[SweepRow]], str]:
    """Return `text` for the terminal; its tables are wide, so that a pipe gets more than 80."""
    return partial(text, **screen(usual=110))
