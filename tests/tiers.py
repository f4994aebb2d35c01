"""Two tiers of tests: the quick one runs by default, ``--full`` runs everything.

``tests/full_only.txt`` lists what the quick tier leaves out, a file or a test function a line. It
is measured, not written by hand: ``python -m tests.tiers`` writes it from the CPU times of a full
run (see there). The quick tier applies to the whole suite only, and so does the choice of one
process per core (pytest-xdist): files and tests that are named on the command line all run, in
one process.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import hashlib
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("full_only.txt")
# CPU seconds of the quick tier's tests; collecting them in each process comes on top.
BUDGET = 235.0
# Tests that ask for this fixture do less in the quick tier, and so are always part of it.
SCALED = "full"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the tiers."""
    group = parser.getgroup("difflab")
    group.addoption("--full", action="store_true", help="run every test, not the quick tier")
    group.addoption("--measure", metavar="FILE", help="write the CPU time of each test to FILE")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run the whole suite in one process per core, unless ``-n`` says otherwise."""
    worker = hasattr(config, "workerinput")
    unset = getattr(config.option, "numprocesses", 0) is None
    if is_whole_suite(config) and unset and not worker:
        alone = config.option.usepdb or config.option.collectonly
        config.option.numprocesses = 0 if alone else cores()
        config.option.dist = "no" if alone else "worksteal"


def pytest_configure(config: pytest.Config) -> None:
    """Register the tiers for the whole suite, docstring examples included."""
    config.pluginmanager.register(Tiers(config), "difflab-tiers")


class Tiers:
    """Selects the tests of a tier; records the CPU time of each test if `measure` names a file."""

    def __init__(self, config: pytest.Config) -> None:
        self.whole_suite = is_whole_suite(config)
        self.quick = self.whole_suite and not config.getoption("full")
        self.full_only = frozenset(full_only()) if self.quick else frozenset()
        self.measure: str | None = config.getoption("measure")
        self.seconds: dict[str, float] = defaultdict(float)
        self.scaled: set[str] = set()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a process of pytest-xdist, which gets its tests as arguments, what they are."""
        node.workerinput["whole_suite"] = self.whole_suite

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Collect without the garbage collector.

        Modules and tests are millions of objects that live to the end: walking them again and again
        took a third of the collection. They are not frozen, since Hypothesis looks for referrers.
        """
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Skip files that the quick tier leaves out, which are not even imported."""
        return True if name_of(collection_path) in self.full_only else None

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[Any], list[Any]]:
        """Look for docstring examples only in files that have some.

        Packages are always collected: pytest would import a module that comes before its package
        a second time, beside the one that the package imports.
        """
        collectors = yield
        if file_path.name == "__init__.py" or has_examples(file_path):
            return collectors
        return [found for found in collectors if not isinstance(found, DoctestModule)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Collector, name: str) -> list[Any] | None:
        """Skip test functions that the quick tier leaves out, with all their parameters."""
        return [] if self.quick and f"{collector.nodeid}::{name}" in self.full_only else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None]:
        """Select the tests; all of them run in an order of the seed, dear files first.

        No outcome may depend on what ran before. What is dear comes first, so that no process ends
        alone.
        """
        left_out = [item for item in items if function_of(item.nodeid) in self.full_only]
        if left_out:  # docstring examples: test functions are skipped before items are made
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if function_of(item.nodeid) not in self.full_only]
        if self.whole_suite and not self.quick:
            dear = {entry.partition("::")[0] for entry in full_only()}
            items.sort(
                key=lambda item: (
                    name_of(item.path) not in dear,
                    shuffled(name_of(item.path)),
                    shuffled(item.nodeid),
                )
            )
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Note the CPU time before the test, and give memory back after the last one of a file."""
        item.stash[_STARTED] = cpu_seconds()
        found = yield
        if nextitem is None or nextitem.path != item.path:
            release_memory()
        return found

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the CPU time of each phase to its report, which pytest-xdist passes on."""
        report = yield
        now = cpu_seconds()
        report.cpu_seconds = now - item.stash[_STARTED]  # type: ignore[attr-defined]
        report.scaled = SCALED in getattr(item, "fixturenames", ())  # type: ignore[attr-defined]
        item.stash[_STARTED] = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # pytest-xdist writes the report of a process that crashed itself, without these two.
        self.seconds[report.nodeid] += getattr(report, "cpu_seconds", 0.0)
        if getattr(report, "scaled", False):
            self.scaled.add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.measure and not hasattr(session.config, "workerinput"):
            rows = {"seconds": self.seconds, "scaled": sorted(self.scaled)}
            Path(self.measure).write_text(json.dumps(rows, indent=0), encoding="utf-8")


_STARTED = pytest.StashKey[float]()


def is_whole_suite(config: pytest.Config) -> bool:
    """Return whether no files or tests are named on the command line."""
    given = getattr(config, "workerinput", {})  # of a process that pytest-xdist started
    by_default = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return bool(given.get("whole_suite", by_default))


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_seconds() -> float:
    """Return the CPU time of this process, its threads and its children.

    Of children that live, and of those that these have had, only Linux tells.
    """
    ended = os.times()
    living = sum(map(seconds_of, Path("/proc/self/task").glob("*/children")))
    return time.process_time() + ended.children_user + ended.children_system + living


def seconds_of(children: Path) -> float:
    """Return the CPU time of the processes that are listed in a file, and of their children."""
    ticks = 0
    processes: list[str] = []
    with suppress(OSError):  # the thread has ended
        processes = children.read_text().split()
    for process in processes:
        with suppress(OSError):  # it has ended
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, state[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def release_memory() -> None:
    """Give freed memory back to the system, and drop what JAX has compiled.

    The C library keeps what is freed between what is not: a whole run would hold twice as much.
    """
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
        if trim is not None:
            trim(0)


def shuffled(name: str) -> bytes:
    """Return what orders names at random, as the seed of the tests decides."""
    return hashlib.sha256(f"{os.environ.get('DIFFLAB_SEED')} {name}".encode()).digest()


def has_examples(path: Path) -> bool:
    """Return whether a module contains a docstring example."""
    return b">>> " in path.read_bytes()


def full_only() -> list[str]:
    """Return the files and test functions that the quick tier leaves out."""
    return LIST.read_text(encoding="utf-8").split() if LIST.exists() else []


def name_of(path: Path) -> str:
    """Return the name of a file in ``full_only.txt``."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""


def function_of(nodeid: str) -> str:
    """Return the test function of a node, without its parameters."""
    return nodeid.partition("[")[0]


def chosen(seconds: Mapping[str, float], scaled: Iterable[str], budget: float) -> list[str]:
    """Return the entries of ``full_only.txt``: the dearest functions, until the rest fits.

    A file whose functions are all left out is one entry.

    Parameters
    ----------
    seconds
        CPU seconds of each test, by node identifier.
    scaled
        Tests that are part of the quick tier whatever they cost.
    budget
        CPU seconds for the tests of the quick tier.
    """
    cost: dict[str, float] = defaultdict(float)
    for nodeid, spent in seconds.items():
        cost[function_of(nodeid)] += spent
    kept = {function_of(nodeid) for nodeid in scaled}
    total = 0.0
    for function in sorted(cost.keys() - kept, key=lambda name: (cost[name], name)):
        total += cost[function]
        if total <= budget:
            kept.add(function)
    files: dict[str, set[str]] = defaultdict(set)
    for function in cost:
        files[function.partition("::")[0]].add(function)
    entries: set[str] = set()
    for file, functions in files.items():
        entries |= {file} if not functions & kept else functions - kept
    return sorted(entries)


def main() -> None:
    """Write ``tests/full_only.txt`` from the file of ``pytest --full --measure FILE``."""
    parser = argparse.ArgumentParser(prog="python -m tests.tiers", description=main.__doc__)
    parser.add_argument("measured", type=Path)
    parser.add_argument(
        "--budget", type=float, default=BUDGET, help="CPU seconds of the quick tier"
    )
    given = parser.parse_args()
    measured = json.loads(given.measured.read_text(encoding="utf-8"))
    entries = chosen(measured["seconds"], measured["scaled"], given.budget)
    LIST.write_text("".join(f"{entry}\n" for entry in entries), encoding="utf-8")
    print(f"{len(entries)} entries in {name_of(LIST)}")


if __name__ == "__main__":
    main()
