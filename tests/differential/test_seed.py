"""One seed of random programs for each state of the code, and for all processes of a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.code_seed import code_seed
from tests.support.documents import ROOT


def test_the_head_of_a_report_names_the_seed_that_its_processes_inherit(
    seed_of_the_code: int,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "tests/support/test_draws.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        f"DIFFLAB_SEED={seed_of_the_code} repeats the random programs of this code" in done.stdout
    )


def test_the_seed_changes_with_the_code_alone(tmp_path: Path) -> None:
    source = tmp_path / "difflab" / "a.py"
    source.parent.mkdir()
    source.write_text("a = 1\n")
    first = code_seed(tmp_path)
    (tmp_path / "README.md").write_text("text")
    assert code_seed(tmp_path) == first
    source.write_text("a = 2\n")
    changed = code_seed(tmp_path)
    source.rename(source.with_name("b.py"))
    assert len({first, changed, code_seed(tmp_path)}) == 3
