"""What produced a row is part of its key: what another version gave is not shown as this one's."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflab.bench import accuracy
from difflab.bench.accuracy import AccuracyCase
from difflab.lab import environment, provenance
from difflab.lab.recommend import recommend
from difflab.lab.sweep import SweepRow, Task, run
from difflab.language import parse
from difflab.methods import registry
from difflab.methods.protocol import Family

LAYOUT = provenance.layout({"n": int, "square": int}, key=("n",))

PLUG_IN = '''
"""Central differences with one step."""
import numpy as np
from difflab.methods.protocol import Estimate, Family

class Method:
    name, family, summary, orders = "plugged", Family.NUMERIC, "differences", (1,)
    size = operations = None

    def missing(self):
        return None

    def prepare(self, problem):
        self.values = problem.values
        return self

    def __call__(self, x):
        ends = self.values(np.stack([x + STEP, x - STEP]))
        return Estimate((ends[0] - ends[1]).reshape(1, 1) / (2 * STEP), None, 2)
'''


def plugged_in(monkeypatch: pytest.MonkeyPatch, folder: Path, step: float) -> None:
    """Install the plug-in with a step, as an installation in place would: the version stays."""
    (folder / "plugged_differences.py").write_text(f"{PLUG_IN}\nSTEP = {step}\n")
    sys.modules.pop("plugged_differences", None)
    entry = EntryPoint("plugged", "plugged_differences:Method", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])


def errors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[SweepRow]:
    monkeypatch.setattr(accuracy, "installed", lambda: {"plugged": registry.find("plugged")})
    subject = AccuracyCase(
        parse("sin(x)"), np.array([1.0]), np.array([[np.cos(1.0)]]), "sin(x)", "x"
    )
    rows = run(folder / "accuracy.csv", accuracy.LAYOUT, accuracy.tasks(subject, []))
    return [row for row in rows if row["method"] == "plugged"]


def test_a_plug_in_that_was_changed_is_measured_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The truncation error of central differences is cos(1) h²/6."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = {}
    for step in (1e-3, 1e-1, 1e-3):
        plugged_in(monkeypatch, tmp_path, step)
        (row,) = errors(tmp_path, monkeypatch)
        assert "plugged_differences (source " in str(row["packages"])
        assert row["absolute_error"] == pytest.approx(np.cos(1.0) * step**2 / 6, rel=0.01)
        found.setdefault(step, row)
    # The first version's row is still there, and was not measured a second time.
    assert row == found[1e-3]


def squares(path: Path, source: Mapping[str, Any]) -> int:
    """Return how many rows were measured for a source."""
    measured = []

    def measure() -> dict[str, Any]:
        measured.append(4)
        return {"square": 4}

    run(path, LAYOUT, [Task({"n": 2}, measure, source)])
    return len(measured)


CHANGES: list[tuple[str, Any]] = [
    ("difflab", "0.0.9"),
    ("code", "another"),
    ("python", "3.99.0"),
    ("numpy", "1.0"),
    ("scipy", "1.0"),
    ("llvmlite", None),
    ("packages", "sympy 0.1"),
    ("system", "Plan 9"),
    ("cpu", "an abacus"),
    ("threads", 1024),
    ("target", "native"),
    ("timeout", 11.0),
    ("seed", 3),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_what_another_version_gave_is_not_shown(tmp_path: Path, name: str, value: Any) -> None:
    path = tmp_path / "squares.csv"
    here = provenance.source(target="auto", timeout=10.0, seed=0)
    assert squares(path, here) == 1
    assert squares(path, here) == 0
    assert squares(path, here | {name: value}) == 1
    assert squares(path, here | {name: value}) == squares(path, here) == 0


def test_all_that_produces_a_row_is_in_its_key() -> None:
    assert {name for name, _ in CHANGES} == set(LAYOUT.source) == set(provenance.source())


def test_a_row_states_date_repetitions_and_spread(tmp_path: Path) -> None:
    task = Task({"n": 2}, lambda: {"square": 4, "repetitions": 9, "spread": 0.25})
    (row,) = run(tmp_path / "squares.csv", LAYOUT, [task])
    assert str(row["date"]).endswith("+00:00")
    assert (row["repetitions"], row["spread"]) == (9, 0.25)


def test_difflabs_own_code_counts_and_not_when_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import difflab

    package = tmp_path / "difflab"
    (package / "inner" / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr(difflab, "__path__", [str(package)])

    def code() -> str:
        environment.own_code.cache_clear()
        return str(provenance.source()["code"])

    try:
        (package / "inner" / "a.py").write_text("x = 1")
        first = code()
        (package / "inner" / "__pycache__" / "a.pyc").write_bytes(b"compiled")
        (package / "inner" / "a.py").touch()
        assert code() == first
        (package / "inner" / "a.py").write_text("x = 2")
        assert code() != first
        (package / "inner" / "a.py").write_text("x = 1")
        assert code() == first
        (package / "problems.txt").write_text("x^2")
        assert code() != first
    finally:
        environment.own_code.cache_clear()


class Peer:
    """What a peer shows of itself."""

    name, family, packages = "numpy-peer", Family.AUTOMATIC, ("numpy", "no-such-package")
    reason: str | None = None

    def missing(self) -> str | None:
        return self.reason


def test_a_package_that_a_method_names_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = environment.packages(Peer())
    assert found[0] == f"numpy {np.__version__}"
    assert len(found) == 2
    assert "source" in found[1]
    monkeypatch.setattr(environment, "package_version", lambda name: "99")
    assert environment.packages(Peer())[:2] == ["numpy 99", "no-such-package 99"]


def test_what_becomes_usable_is_measured_anew() -> None:
    absent = Peer()
    absent.reason = "pip install it"
    assert environment.packages(absent)[-1] == "unusable"
    assert environment.packages(absent)[:-1] == environment.packages(Peer())


@pytest.mark.parametrize("value", ["no_such_module_anywhere:METHOD", "sys:path", "math:sin", ".:x"])
def test_a_plug_in_without_a_source_is_named_nevertheless(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    entry = EntryPoint("odd", value, registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    (method,) = [method for name, method in registry.installed().items() if name == "odd"]
    text = ", ".join(environment.packages(method))
    assert "source " in text
    assert "unusable" in text


def test_a_record_says_what_produced_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from difflab.lab.compare import compare
    from difflab.lab.record import from_json

    stated = compare(
        "x^2", {"x": 3}, methods=["symbolic", "reverse"], timeout=600.0, target="numpy"
    )
    found = stated.to_dict()["environment"]
    sympy = environment.package_version("sympy")
    assert found["packages"] == f"sympy {sympy}"
    assert {"difflab", "python", "numpy", "sympy", "llvmlite", "cpu", "threads"} <= set(found)
    assert (found["target"], found["timeout"], found["seed"]) == ("numpy", "600 s", None)
    assert found["date"].endswith("+00:00")
    assert found["repetitions"] == "symbolic 15, reverse 15"
    assert found["spread"].startswith("symbolic ")
    again = from_json(stated.to_json())
    assert [row.samples for row in again.methods] == [row.samples for row in stated.methods]
    assert recommend(again) == recommend(stated)
    assert again.to_dict() == stated.to_dict()
    assert compare("x^2", seed=7, methods=["reverse"], timing=False).environment["seed"] == 7


@pytest.mark.parametrize(
    "samples", ["{", "[]", '{"reverse": {}}', '{"reverse": {"call": ["x"]}}', 7]
)
def test_a_record_whose_samples_are_nonsense_is_refused(samples: Any) -> None:
    from difflab.errors import InputError
    from difflab.lab.compare import compare
    from difflab.lab.record import from_dict

    record = compare("x^2", {"x": 3}, methods=["reverse"], timing=False).to_dict()
    with pytest.raises(InputError, match="does not follow the schema"):
        from_dict({**record, "environment": {**record["environment"], "samples": samples}})
