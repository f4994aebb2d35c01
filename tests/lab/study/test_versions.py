"""Other versions of difflab in a study: here this one again, as the command of an interpreter."""

import sys

import pytest

from difflab.errors import InputError
from difflab.lab.diff.difference import difference
from difflab.lab.diff.sides import load
from difflab.lab.study.cases import StudyStore
from difflab.lab.study.run import plan, run
from difflab.lab.study.study import read
from difflab.lab.study.versions import command

STUDY = """
[versions]
other = 'PYTHON'
[[grid]]
formulas = ["-x^2*sin(y)"]
at = {x = 1.5, y = 0.25}
methods = ["reverse", "finite-central"]
versions = ["this", "other"]
timing = false
"""


def planned(tmp_path, interpreter):
    (tmp_path / "a.toml").write_text(STUDY.replace("PYTHON", str(interpreter)), encoding="utf-8")
    return plan(read(tmp_path / "a.toml"))


def test_the_same_version_gives_the_same_records(tmp_path, monkeypatch):
    # A package of that name in the current folder is not the version that was asked for.
    (tmp_path / "difflab").mkdir()
    (tmp_path / "difflab" / "__init__.py").write_text("raise SystemExit('the wrong difflab')")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.db"
    with StudyStore(path, new=True) as store:
        run(store, planned(tmp_path, sys.executable))
        records = store.records()
    assert sorted(record["version"] for record in records) == ["other"] * 2 + ["this"] * 2
    assert len({record["code"] for record in records}) == 1
    found = difference(load(f"{path}:this"), load(f"{path}:other"))
    assert (found.compared, found.changes) == (2, ())
    with pytest.raises(InputError, match="several versions"):
        load(str(path))


def test_an_interpreter_without_difflab_is_refused(tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'No module named difflab' >&2; exit 1\n")
    script.chmod(0o755)
    with pytest.raises(InputError, match=r"'other' does not run with .*No module named difflab"):
        planned(tmp_path, script)


def test_the_command_names_what_differs_from_the_defaults(tmp_path):
    case = planned(tmp_path, sys.executable).works[0].subject
    assert command(case, ["reverse"]) == [
        *("compare", "--at", "x=1.5", "--at", "y=0.25", "--methods", "reverse"),
        *("--no-timing", "--", "-x^2*sin(y)"),
    ]
