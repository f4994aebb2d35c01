"""The benchmark over the library of problems."""

from __future__ import annotations

from difflab.cli.bench.running import (
    Destination,
    QuickOption,
    run,
    wide,
)
from difflab.cli.options import InputsOption, KindsOption, TimeoutOption, parse_names
from difflab.cli.problems import chosen_problems


def problems(
    sets: str | None = None,
    kinds: KindsOption = None,
    inputs: InputsOption = None,
    methods: str | None = None,
    quick: QuickOption = False,
    timeout: TimeoutOption = 10.0,
    *,
    to: Destination,
) -> int:
    """Run every method on problems of the library.

    Parameters
    ----------
    sets : a,b
        Only these sets; by default all.
    methods : a,b
        Only these of `difflab methods`; or peers, or all.
    """
    from difflab.bench.problems import bench as module

    found = chosen_problems(sets, kinds, inputs)
    tasks = module.tasks(found, parse_names(methods), quick=quick, timeout=timeout)
    rows = run("problems", module, tasks, to, wide(module.text), {".html": module.page})
    return int(any(row["verdict"] == "disagree" for row in rows))
