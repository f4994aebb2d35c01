"""Examples that need a package are skipped exactly where an extra that users choose installs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from difflab.errors import MissingDependencyError, PointError
from tests.support.documents import ROOT, python_failures
from tests.support.optional import needed, required_modules


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ModuleNotFoundError("", name="jax"), "needs jax: pip install 'difflab[peers]'"),
        (ModuleNotFoundError("", name="onnx.helper"), "needs onnx: pip install 'difflab[onnx]'"),
        (MissingDependencyError("torch"), "needs torch: pip install 'difflab[peers]'"),
        (ModuleNotFoundError("", name="cupy"), "needs cupy: pip install 'difflab[gpu]'"),
        (MissingDependencyError("jax", fault="broken: OSError"), ""),
        (MissingDependencyError("llvmlite", extra="native"), ""),
        (ModuleNotFoundError("", name="numpy"), ""),
        (ModuleNotFoundError("", name="difflab.gone"), ""),
        (ImportError("cannot import name", name="jax"), ""),
        (PointError("x"), ""),
        (None, ""),
    ],
)
def test_the_reason_names_the_extra(error: BaseException | None, reason: str) -> None:
    assert needed(error) == reason


def test_what_the_extra_test_installs_is_required() -> None:
    assert {"numpy", "pytest", "llvmlite", "hypothesis", "mpl_toolkits"} <= required_modules()
    assert not {"jax", "torch", "onnx", "casadi", "pyarrow"} & required_modules()


MISSING = "raise ModuleNotFoundError('', name='jax')"


def test_a_page_is_skipped_at_a_missing_package_unless_it_failed_before() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"needs jax: pip install 'difflab\[peers\]'"):
        python_failures(f"```python\n>>> 1\n1\n>>> {MISSING}\n>>> 2\n3\n```\n", "page")
    assert (
        python_failures(f"```python\n>>> 1\n2\n>>> {MISSING}\n```\n", "page").count("Failed") == 2
    )


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(MISSING, "1 skipped"), ("raise ModuleNotFoundError('', name='numpy')", "1 failed")],
)
def test_a_docstring_is_skipped_at_a_missing_package(
    code: str, outcome: str, tmp_path: Path
) -> None:
    module = tmp_path / "module.py"
    module.write_text(f'"""Example.\n\n>>> {code}\n"""\n', encoding="utf-8")
    options = ["-q", "-p", "tests.support.optional", "-p", "no:cacheprovider", "--doctest-modules"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", "-rs", str(module)],
        cwd=ROOT,
        env=None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout
    assert ("pip install 'difflab[peers]'" in done.stdout) == (outcome == "1 skipped")
