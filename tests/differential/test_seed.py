"""One seed of the fresh programs for all processes of a run."""

from __future__ import annotations

import subprocess
import sys

from tests.support.documents import ROOT


def test_the_head_of_a_report_names_the_seed_that_its_processes_inherit(fresh_seed: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "tests/support/test_draws.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"DIFFLAB_SEED={fresh_seed} repeats the fresh random programs" in done.stdout
