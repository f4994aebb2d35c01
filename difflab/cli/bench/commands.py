"""``difflab bench NAME``: a subcommand for every benchmark of `difflab.bench.registry`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import typer

from difflab.bench.registry import BENCHMARKS, MOVED, load
from difflab.cli.bench.formulas import accuracy, peers, precision
from difflab.cli.bench.running import Destination, MethodsOption, QuickOption, run, wide, writes
from difflab.cli.documented import add
from difflab.cli.groups import CommandGroup
from difflab.cli.options import InputsOption, KindsOption, TimeoutOption, parse_names
from difflab.cli.problems import chosen_problems
from difflab.cli.program_text import expression_key, read_expression
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.bench.solvers.problem import SolverProblem


def dimensions(
    family: str = "",
    /,
    n: str = "1:64",
    m: str | None = None,
    methods: MethodsOption = None,
    quick: QuickOption = False,
    timeout: TimeoutOption = 10.0,
    *,
    to: Destination,
) -> None:
    """Run the benchmark of the cost against sizes.

    Parameters
    ----------
    family : FAMILY
        A formula with the sizes n and m, as in 'x: [n]; W: [m, n]; W@x', or module:function of
        sizes that returns a function and its example arguments.
    n : 1:4096
        A range of sizes, doubled; or a list 1,10,100.
    m : 1:256
        Likewise; by default 1:16.
    """
    from difflab.bench.dimensions import bench as module
    from difflab.cli.bench.sizes import size_family, sizes
    from difflab.methods.registry import select

    chosen = size_family(family or module.DEFAULT)
    ranges = sizes(chosen.family, n, m)
    if quick:
        ranges = ranges[0][:4], ranges[1][:2]
    chosen.try_smallest(ranges)
    tasks = module.tasks(chosen.family, ranges, select(parse_names(methods) or "all"), timeout)
    with chosen.running():
        run("dimensions", module, tasks, to, pages={".html": module.page})


def memory(policies: bool = False, quick: QuickOption = False, *, to: Destination) -> None:
    """Run the benchmark of memory against recomputation.

    Parameters
    ----------
    policies : bool
        The policies of checkpoints on one network, beside those of JAX and PyTorch, instead of
        chains.
    """
    if policies:
        from difflab.bench.policies import bench

        run("policies", bench, bench.tasks(quick=quick), to)
        return
    from difflab.bench import memory as module

    run("memory", module, module.tasks(quick=quick), to)


def solvers(
    problems: str | None = None,
    quick: QuickOption = False,
    timeout: TimeoutOption = 60.0,
    *,
    to: Destination,
) -> None:
    """Run the benchmark of derivatives of solutions.

    Parameters
    ----------
    problems : a,b
        Only problems whose names begin like one of these, as ode or root-kepler.
    """
    from difflab.bench.solvers import bench as module
    from difflab.bench.solvers.problem import problems as listed

    chosen = None
    if problems is not None:
        begins = tuple(parse_names(problems) or ())
        chosen = [problem for problem in listed() if problem.name.startswith(begins)]
        if not chosen:
            raise InputError(
                f"no problem's name begins with {' or '.join(begins)}",
                hint=f"they begin with {', '.join(_families(listed()))}",
            )
    run("solvers", module, module.tasks(chosen, timeout=timeout, quick=quick), to)


def swell(
    repeat: str | None = None,
    depth: str | None = None,
    quick: QuickOption = False,
    timeout: TimeoutOption = 10.0,
    *,
    to: Destination,
) -> None:
    """Run the benchmark of the size of expressions against the depth.

    Parameters
    ----------
    repeat : 'y = 4*y*(1-y)'
        A recurrence, in place of the families.
    depth : 1:40
        How often it is repeated: a range or a list; by default 1:16.
    """
    from difflab.bench import swell as module
    from difflab.bench.swell import recurrence
    from difflab.cli.bench.sizes import integers

    if repeat is None:
        if depth is not None:
            raise InputError("--depth is given without a recurrence", hint="add --repeat")
        tasks = module.tasks(quick=quick, timeout=timeout)
    else:
        text = read_expression(repeat)
        key, depths = expression_key(text), integers(depth or "1:16")
        depths = depths[: 1 + len(depths) // 2] if quick else depths
        tasks = module.tasks({key: depths}, timeout, families={key: recurrence(text)})
    run("swell", module, tasks, to)


def _families(problems: Iterable[SolverProblem]) -> list[str]:
    """Return the first words of the names of problems."""
    return list(dict.fromkeys(problem.name.partition("-")[0] for problem in problems))


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


bench = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run a benchmark; print its table, or write its picture, rows or page.",
)


def standard_command(name: str, package: str = "difflab.bench") -> Callable[..., None]:
    """Return the subcommand of a benchmark without options of its own."""

    def command(
        quick: QuickOption = False, timeout: TimeoutOption = 10.0, *, to: Destination
    ) -> None:
        module = load(name, package)
        run(name, module, module.tasks(quick=quick, timeout=timeout), to)

    return command


_OWN_COMMANDS: Mapping[str, Callable[..., int | None]] = {
    command.__name__: command
    for command in (accuracy, dimensions, memory, peers, precision, problems, solvers, swell)
}
"""The subcommands with options of their own; those of the other benchmarks are alike."""

for _name, _summary in BENCHMARKS.items():
    _command = _OWN_COMMANDS.get(_name) or standard_command(_name)
    add(bench, writes(_command), name=_name, help=_summary)


def _moved(name: str) -> Callable[[], None]:
    """Return the subcommand of a benchmark that is no longer one: it says where it went."""

    def command() -> None:
        raise InputError(
            f"'difflab bench {name}' is 'python -m benchmarks {name}' now",
            hint="in a checkout of difflab's repository, with the same options",
        )

    return command


_ANY_OPTIONS = {"ignore_unknown_options": True, "allow_extra_args": True}
for _name in MOVED:
    bench.command(_name, hidden=True, context_settings=_ANY_OPTIONS)(_moved(_name))
