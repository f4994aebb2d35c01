"""``difflab report`` and ``difflab diff``: pages about stored records, and what changed in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from difflab.cli.options import OutputOption
from difflab.cli.output import deliver, formatted, report_format, say, write_files
from difflab.core.files import check_destination, open_regular, reason
from difflab.core.wording import counted
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.lab.record import Comparison


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
    from difflab.lab.study.cases import Store
    from difflab.report.site.site import site

    with Store(path) as store:
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

    found = difference(load(old), load(new))
    deliver(formatted(found, chosen, differences, to_file=destination is not None), destination)
    return 1 if found.worse else 0
