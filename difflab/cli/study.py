"""``difflab study``: a grid of comparisons whose records are kept in one SQLite file."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from difflab.cli.documented import documented
from difflab.cli.groups import CommandGroup
from difflab.cli.output import ProgressLine, emit, say, write_files
from difflab.core.files import check_destination
from difflab.core.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from difflab.graph.function import Function
    from difflab.lab.problems.sized import Family
    from difflab.lab.study.cases import Domain, Store
    from difflab.lab.study.run import Cluster, Plan


EXAMPLES = """\b
difflab study nightly.toml --dry-run
difflab study nightly.toml -o nightly.db
difflab study export nightly.db --format parquet -o nightly.parquet
"""


ExportFormat = Literal["csv", "parquet"]
"""The file format of exported records."""


@dataclass(frozen=True)
class _UserCode:
    """``module:function`` in a study, imported from the current folder."""

    verify: bool = True

    def function(
        self, name: str, point: Mapping[str, Any] | None, domains: Sequence[Domain] = ()
    ) -> Function | None:
        """Return a Python function traced at a point, or in the middle of a domain."""
        import numpy as np

        from difflab.cli.functions import code_at, is_function, required, verified
        from difflab.lab.domain.compare import middle_of

        if not is_function(name):
            return None
        # The nested lists of TOML.
        arrays = point and {key: np.asarray(value, dtype=float) for key, value in point.items()}
        if domains:
            arrays = {**middle_of(domains[0].over), **(arrays or {})}
        found = code_at(name, arrays)
        return verified(name, found, domains) if self.verify else required(name, found)

    def family(self, name: str) -> Family | None:
        """Return a Python function of sizes."""
        from difflab.cli.bench.sizes import size_family
        from difflab.cli.functions import is_function

        return size_family(name).guarded if is_function(name) else None


class _RunByDefault(CommandGroup):
    """A group whose command ``run`` need not be named: ``difflab study FILE.toml``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert ``run`` before arguments that name no command."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the use without a command first."""
        formatter.write_usage(ctx.command_path, "[OPTIONS] FILE.toml")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="   or: ")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options of ``run``, then the commands."""
        run: Any = self.get_command(ctx, "run")
        run.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


study = typer.Typer(
    cls=_RunByDefault,
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXAMPLES,
    help="Compare every case of FILE.toml; keep the records in one SQLite file.",
)


@study.command("run", epilog=EXAMPLES)
@documented
def run(
    file: str,
    /,
    output: str | None = None,
    dry_run: bool = False,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    scheduler: str | None = None,
    no_verify: bool = False,
) -> int:
    """Compute the records that STORE lacks; run it again to resume.

    Parameters
    ----------
    file : FILE.toml
        The study.
    output : STORE
        By default FILE.db.
    dry_run
        Only count the records, and those left.
    workers : N
        Judge on a local Dask cluster of N processes.
    scheduler : tcp://…
        Use a running Dask cluster.
    no_verify
        Do not run module:function to compare its values with its graph's.
    """
    from difflab.lab.study.study import read

    described = read(Path(file), _UserCode(not no_verify))
    path = check_destination(output or str(Path(file).with_suffix(".db")))
    with ExitStack() as stack:
        cluster = None
        if workers is not None or scheduler is not None:
            from difflab.lab.study.run import opened

            cluster = stack.enter_context(opened(workers, scheduler))
        from difflab.lab.study.run import plan

        planned = plan(described, None if cluster is None else cluster.sources(described.cases))
        if dry_run:
            emit(_counted(planned, path))
            return 0
        from difflab.lab.study.cases import Store

        store = stack.enter_context(Store(path, new=True))
        _run(store, planned, cluster)
    say(f"{path} has {counted(len(planned.keys), 'record')} of this study")
    return 0


def _run(store: Store, planned: Plan, cluster: Cluster | None) -> None:
    """Run a study with progress; after Ctrl-C, report what is kept and how to resume."""
    from difflab.lab.study.run import run

    stopped = f"stopped; the records are kept in {store.path}; run the same command again to resume"
    with ProgressLine(stopped=stopped) as progress:
        if cluster is None:
            run(store, planned, progress, say)
        else:
            cluster.run(store, planned, progress, say)


def _counted(planned: Plan, path: Path) -> str:
    """Return the numbers of cases and records, and how many of them a store lacks."""
    from difflab.lab.study.cases import Store

    known: set[str] = set()
    if path.is_file():
        with Store(path) as store:
            known = store.known(planned.keys)
    cases = counted(len(planned.works), "case")
    total = counted(len(planned.keys), "record")
    return f"{cases}, {total}: {len(known)} in {path}, {len(planned.keys) - len(known)} left\n"


@study.command("export")
@documented
def export(store: str, /, form: ExportFormat | None = None, output: str | None = None) -> int:
    """Write the records as one table, without the derivatives.

    Parameters
    ----------
    store : STORE
        The file of a study.
    form
        By default the ending of -o's name, else csv.
    output : FILE
        By default STORE.csv.
    """
    from difflab.lab.study.cases import Store, to_csv, to_parquet

    if form is None:
        named = output is not None and Path(output).suffix.lower() == ".parquet"
        form = "parquet" if named else "csv"
    path = check_destination(output or str(Path(store).with_suffix(f".{form}")))
    with Store(Path(store)) as opened:
        records = opened.records()
    written = to_csv(records) if form == "csv" else to_parquet(records)
    write_files({path: written})
    say(f"wrote {path}: {counted(len(records), 'record')}")
    return 0
