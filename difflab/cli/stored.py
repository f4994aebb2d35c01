"""The commands about stored records: ``study``, ``report`` and ``diff``.

A study is a grid of comparisons whose records are kept in one SQLite file.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from difflab.cli.documented import CommandGroup, documented
from difflab.cli.options import OutputOption
from difflab.cli.output import (
    CommandProgressLine,
    deliver,
    emit,
    formatted,
    report_format,
    say,
    write_files,
)
from difflab.core.system import check_destination, open_regular, reason
from difflab.core.wording import counted
from difflab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from difflab.graph.function import Function
    from difflab.lab.problems.sized import SizedFamily
    from difflab.lab.record import Comparison
    from difflab.lab.study.cases import Domain, StudyStore
    from difflab.lab.study.run import Cluster, Plan


_STUDY_EXAMPLES = """\b
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
        code = code_at(name, arrays)
        return verified(name, code, domains) if self.verify else required(name, code)

    def family(self, name: str) -> SizedFamily | None:
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
    epilog=_STUDY_EXAMPLES,
    help="Compare every case of FILE.toml; keep the records in one SQLite file.",
)


@study.command("run", epilog=_STUDY_EXAMPLES)
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
        from difflab.lab.study.cases import StudyStore

        store = stack.enter_context(StudyStore(path, new=True))
        _run(store, planned, cluster)
    say(f"{path} has {counted(len(planned.keys), 'record')} of this study")
    return 0


def _run(store: StudyStore, planned: Plan, cluster: Cluster | None) -> None:
    """Run a study with progress; after Ctrl-C, report what is kept and how to resume."""
    from difflab.lab.study.run import run

    stopped = f"stopped; the records are kept in {store.path}; run the same command again to resume"
    with CommandProgressLine(stopped=stopped) as progress:
        if cluster is None:
            run(store, planned, progress, say)
        else:
            cluster.run(store, planned, progress, say)


def _counted(planned: Plan, path: Path) -> str:
    """Return the count of cases and records, and how many of them a store lacks."""
    from difflab.lab.study.cases import StudyStore

    done: set[str] = set()
    if path.is_file():
        with StudyStore(path) as store:
            done = store.known(planned.keys)
    cases = counted(len(planned.works), "case")
    total = counted(len(planned.keys), "record")
    return f"{cases}, {total}: {len(done)} in {path}, {len(planned.keys) - len(done)} left\n"


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
    from difflab.lab.study.cases import StudyStore, to_csv, to_parquet

    if form is None:
        named = output is not None and Path(output).suffix.lower() == ".parquet"
        form = "parquet" if named else "csv"
    path = check_destination(output or str(Path(store).with_suffix(f".{form}")))
    with StudyStore(Path(store)) as opened:
        records = opened.records()
    content = to_csv(records) if form == "csv" else to_parquet(records)
    write_files({path: content})
    say(f"wrote {path}: {counted(len(records), 'record')}")
    return 0


def report(directory: str, /, output: str | None = None) -> int:
    """Write a page about the comparisons saved in DIR, or the site of a study.

    Parameters
    ----------
    directory : DIR|STORE
        The folder of files from `compare -o NAME.json`, or the file of a study.
    output : FILE|FOLDER
        By default DIR/index.html, or a folder named like STORE.
    """
    folder = Path(directory)
    if folder.is_file():
        return _site(folder, Path(output or folder.with_suffix("")))
    try:
        files = sorted(folder.glob("*.json")) if folder.is_dir() else None
    except (OSError, ValueError):
        files = None
    if files is None:
        raise InputError(
            f"there is no directory of comparisons and no study {directory!r}",
            hint="difflab study FILE.toml",
        )
    if not files:
        raise InputError(
            f"there is no comparison in {directory!r}",
            hint=f'difflab compare "sin(x)" -o {directory}/sin.json',
        )
    destination = check_destination(output or str(folder / "index.html"))
    from difflab.report.comparison.formats import index

    saved: list[tuple[str, Comparison]] = []
    faults: dict[str, str] = {}
    for path in files:
        try:
            saved.append((path.name, _load(path)))
        except InputError as error:
            faults[path.name] = error.message
            say(f"skipped {path}: {error.message}")
    write_files({destination: index(saved, faults).encode("utf-8")})
    say(f"wrote {destination}: {len(saved)} comparisons")
    return 0


def _site(path: Path, folder: Path) -> int:
    """Write the site of a study into a folder, which is made if it is absent."""
    from difflab.lab.diff.sides import STORE_IN_SITE
    from difflab.lab.study.cases import StudyStore
    from difflab.report.site.site import site

    with StudyStore(path) as store:
        pages = site(store.records())
        try:
            (folder / "records").mkdir(parents=True, exist_ok=True)
            (folder / STORE_IN_SITE).unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot write {str(folder)!r}: {reason(error)}") from error
        store.copy(folder / STORE_IN_SITE)
    write_files({folder / name: content for name, content in pages.items()})
    say(f"wrote {folder / 'index.html'}: {counted(len(pages) - 1, 'comparison')}")
    return 0


def _load(path: Path) -> Comparison:
    from difflab.lab.record import from_json

    try:
        with open_regular(path) as file:
            return from_json(file.read().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"it cannot be read: {error}") from error


DiffFormat = Literal["table", "json", "md", "html"]
"""The output format of a difference."""


def diff(
    old: str, new: str, /, form: DiffFormat | None = None, destination: OutputOption = None
) -> int:
    """Report what became wrong, less accurate or slower; exit with 1 if anything did.

    Parameters
    ----------
    old : OLD
        The earlier records: the store of a study, or STORE:VERSION; a comparison as JSON; a
        folder of those.
    new : NEW
        The later records, likewise.
    form
        By default the ending of -o's name, else a table.

    Examples
    --------
    difflab diff main.db branch.db
    difflab diff study.db:0.1 study.db:this --format md
    difflab diff saved.json now.json
    """
    chosen = report_format(form, destination, DiffFormat)
    from difflab.lab.diff.difference import difference
    from difflab.lab.diff.sides import load
    from difflab.report import differences

    result = difference(load(old), load(new))
    deliver(formatted(result, chosen, differences, to_file=destination is not None), destination)
    return 1 if result.worse else 0
