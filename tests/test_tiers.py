"""The tiers of tests: what is left out exists, and the dearest tests are left out."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import tiers

SUITE = """
import pytest

@pytest.mark.parametrize("value", ["a", "b"])
def test_dear(value):
    pass

def test_cheap():
    pass
"""


def functions(file: Path) -> set[str]:
    """Return the names of a file's test functions and docstring examples, as pytest writes them."""
    module = ".".join(file.with_suffix("").parts[len(tiers.ROOT.parts) :]).removesuffix(".__init__")
    names = {module}

    def visit(node: ast.AST, test: str, example: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                names.update((f"{test}{child.name}", f"{example}{child.name}"))
                visit(child, f"{test}{child.name}::", f"{example}{child.name}.")

    visit(ast.parse(file.read_text(encoding="utf-8")), "", f"{module}.")
    return names


def exists(entry: str) -> bool:
    """Return whether an entry names a file, or a test function of a file, that is there."""
    name, _, function = entry.partition("::")
    file = tiers.ROOT / name
    return file.is_file() and (not function or function in functions(file))


def test_what_is_left_out_exists():
    gone = [entry for entry in tiers.full_only() if not exists(entry)]
    assert not gone, "take these out of tests/full_only.txt, or measure again: " + ", ".join(gone)


def test_what_does_not_exist_is_seen():
    assert exists("tests/test_tiers.py::test_what_does_not_exist_is_seen")
    assert not exists("tests/test_tiers.py::test_what_nobody_wrote")
    assert not exists("tests/test_nowhere.py")


def test_the_list_is_in_order_without_repetition():
    entries = tiers.full_only()
    assert entries == sorted(set(entries))


def test_the_dearest_functions_are_left_out_until_the_rest_fits():
    seconds = {"a.py::f[1]": 3.0, "a.py::f[2]": 3.0, "a.py::g": 1.0, "b.py::h": 5.0, "c.py::k": 2.0}
    assert tiers.chosen(seconds, (), 3.0) == ["a.py::f", "b.py"]
    assert tiers.chosen(seconds, (), 8.0) == ["a.py::f"]
    assert tiers.chosen(seconds, ["a.py::f[1]"], 3.0) == ["b.py"]
    assert tiers.chosen(seconds, (), 0.0) == ["a.py", "b.py", "c.py"]


@pytest.fixture
def suite(tmp_path):
    """A project of two files of tests with these tiers, one file left out."""
    folder = tmp_path / "tests"
    folder.mkdir()
    shutil.copy(tiers.__file__, folder)
    hooks = "from tests.tiers import pytest_addoption, pytest_cmdline_main, pytest_configure\n"
    (folder / "conftest.py").write_text(hooks, encoding="utf-8")
    for name in ("test_one.py", "test_two.py"):
        (folder / name).write_text(SUITE, encoding="utf-8")
    (folder / "full_only.txt").write_text("tests/test_one.py::test_dear\ntests/test_two.py\n")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\naddopts = --import-mode=importlib\n"
    )

    def count(*arguments: str, whole: bool = False) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        # Of the plug-ins that are installed only this one matters here; all of them take seconds.
        plugins = ["-p", "xdist.plugin"] if find_spec("xdist") else []
        done = subprocess.run(
            [*command, *plugins],
            cwd=tmp_path,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if whole:
            return done.stdout
        return (done.stdout or done.stderr).splitlines()[-1].partition(" in ")[0]

    return count


@pytest.mark.parametrize("processes", ["0", "2"])
def test_the_quick_tier_leaves_out_what_is_listed(suite, processes):
    pytest.importorskip("xdist", reason="needs pytest-xdist: pip install 'difflab[test]'")
    assert suite("-n", processes).startswith("1 passed")
    assert suite("-n", processes, "--full") == "6 passed"


def test_the_whole_suite_has_a_process_for_each_core(suite, monkeypatch):
    pytest.importorskip("xdist", reason="needs pytest-xdist: pip install 'difflab[test]'")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-v")  # together with -q: the usual report
    assert f"{tiers.cores()} worker" in suite("--full", whole=True)
    assert "worker" not in suite("tests/test_one.py", whole=True)


def test_files_that_are_named_run_whole(suite):
    assert suite("tests/test_one.py", "tests/test_two.py") == "6 passed"
    assert suite("tests/test_two.py") == "3 passed"


def test_a_process_that_crashes_is_a_failure_and_the_rest_goes_on(suite, tmp_path):
    pytest.importorskip("xdist", reason="needs pytest-xdist: pip install 'difflab[test]'")
    crash = "import os\n\n\ndef test_crash():\n    os._exit(1)\n\n\ndef test_after():\n    pass\n"
    (tmp_path / "tests" / "test_crash.py").write_text(crash, encoding="utf-8")
    assert suite("-n", "1", "--full") == "1 failed, 7 passed"


@pytest.mark.skipif(not list(Path("/proc/self/task").glob("*/children")), reason="needs Linux")
def test_the_time_of_children_that_live_is_counted() -> None:
    before = tiers.cpu_seconds()
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert tiers.cpu_seconds() - before > 0.25
        child.communicate(b"\n")
    assert tiers.cpu_seconds() - before > 0.25


def test_the_seed_decides_the_order_of_all_tests(suite, monkeypatch):
    def order(seed: str, *arguments: str) -> list[str]:
        monkeypatch.setenv("DIFFLAB_SEED", seed)
        report = suite("-n", "0", "-vv", *arguments, whole=True)
        return [line.partition(" ")[0] for line in report.splitlines() if " PASSED " in line]

    orders = {tuple(order(str(seed), "--full")) for seed in range(4)}
    assert len(orders) > 1
    assert len({frozenset(order) for order in orders}) == 1
    assert order("1", "--full") == order("1", "--full")
    assert order("1") == order("2")


def test_a_thread_that_has_ended_has_no_children(tmp_path):
    assert tiers.seconds_of(tmp_path / "children") == 0
