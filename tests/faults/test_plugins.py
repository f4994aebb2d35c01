"""Methods of other packages that misbehave: each has its row, and the others do not notice.

Every plug-in is a module with an entry point in a folder on the path, as an installed package is.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from time import sleep

import numpy as np
import pytest

from difflab.errors import MethodTimeout
from difflab.lab.compare import compare
from difflab.lab.record import Comparison, MethodRow
from difflab.methods import registry
from difflab.methods.protocol import Problem

BASE = """
import numpy as np
from difflab.methods.protocol import Estimate, Family

class Plugged:
    name, family, summary, orders = "{name}", Family.NUMERIC, "a plug-in", (1, 2)
    size = operations = None

    def missing(self):
        return None

    def prepare(self, problem):
        self.problem = problem
        return self

    def __call__(self, x):
        return Estimate(np.array([[2.0 * x[0]]]), None, 1)
"""


@pytest.fixture
def plug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that installs a plug-in whose module ends in the text given."""
    monkeypatch.syspath_prepend(tmp_path)
    started: list[str] = []

    def plug(name: str, text: str) -> None:
        module = f"plugged_{tmp_path.name.replace('-', '_')}_{name}"
        code = textwrap.dedent(BASE).format(name=name) + textwrap.dedent(text)
        (tmp_path / f"{module}.py").write_text(code, encoding="utf-8")
        home = tmp_path / f"{module}-1.0.dist-info"
        home.mkdir()
        (home / "METADATA").write_text(f"Name: {module}\nVersion: 1.0\n", encoding="utf-8")
        points = f"[{registry.GROUP}]\n{name} = {module}:Method\n"
        (home / "entry_points.txt").write_text(points, encoding="utf-8")
        started.append(f"{module}:Method")

    yield plug
    for (_, value), method in list(registry._processes.items()):
        if value in started:
            method.stop()
            assert value.partition(":")[0] not in sys.modules  # it was never loaded here


def method(body: str) -> str:
    return "class Method(Plugged):\n" + textwrap.indent(textwrap.dedent(body), "    ")


def compared(name: str, **settings: object) -> Comparison:
    settings = {
        "methods": [name, "forward", "reverse"],
        "timing": False,
        "timeout": 30.0,
    } | settings
    return compare("x^2", {"x": 3.0}, **settings)


def row(result: Comparison, name: str) -> MethodRow:
    assert others(result, name) == {"agree"}
    return next(row for row in result.methods if row.name == name)


def others(result: Comparison, name: str) -> set[str | None]:
    return {row.verdict for row in result.methods if row.name != name}


def stopped(
    name: str, begun: Callable[[MethodRow], object] = lambda _: True, **settings: object
) -> tuple[MethodRow, float]:
    """Return the row of a plug-in that only the time limit ends, and that limit.

    It is the first in which this machine, however busy, does all that comes before.
    """
    for limit in (0.3, 2.0, 10.0, 60.0):
        result = compared(name, timeout=limit, **settings)
        found = next(row for row in result.methods if row.name == name)
        if others(result, name) == {"agree"} and begun(found):
            break
    return row(result, name), limit


def test_one_that_works_is_measured_where_it_runs(plug) -> None:
    plug("works", method("pass"))
    result = compared("works", timing=True)
    found = row(result, "works")
    assert (found.status, found.verdict, found.function_evaluations) == ("ok", "agree", 1)
    assert found.call_seconds > 0
    assert found.prepare_seconds > 0
    assert found.peak_bytes > 0


@pytest.mark.parametrize(
    "body",
    [
        "def prepare(self, problem):\n    while True: pass",
        "def __call__(self, x):\n    import time; time.sleep(1000)",
        # No signal handler and no exception of Python's reaches this one.
        "def __call__(self, x):\n    import ctypes; ctypes.PyDLL(None).sleep(1000)",
    ],
)
def test_one_that_hangs_is_stopped(plug, body: str) -> None:
    plug("hangs", method(body))
    found, limit = stopped("hangs")
    assert found.status == "timeout"
    assert found.message == f"stopped after {limit:g} s"


def test_one_that_hangs_when_it_is_imported(plug, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.core.worker.STARTING", 0.5)
    plug("asleep", "import time; time.sleep(1000)\n" + method("pass"))
    found = row(compared("asleep"), "asleep")
    assert found.status == "unsupported"
    assert "its process did not start in 0.5 s" in found.message


def test_one_that_hangs_only_when_it_is_measured(plug) -> None:
    body = """
    calls = 0

    def __call__(self, x):
        self.calls += 1
        if self.calls > 1:
            import time; time.sleep(1000)
        return super().__call__(x)
    """
    plug("tired", method(body))
    found, _ = stopped("tired", lambda row: row.samples, timing=True)
    assert (found.status, found.verdict) == ("ok", "agree")
    assert len(found.samples) == 1  # its first call is all that is known


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("import sys; sys.exit('bye')", "unsupported", "SystemExit: bye"),
        ("import os; os._exit(7)", "unsupported", "its process ended with exit code 7"),
        ("raise RuntimeError('broken')", "unsupported", "RuntimeError: broken"),
        (method("def prepare(self, problem):\n    import os; os.abort()"), "failed", "by signal 6"),
        (method("def __call__(self, x):\n    raise SystemExit"), "failed", "SystemExit"),
        (method("def __call__(self, x):\n    return None"), "failed", "NoneType, not difflab"),
        (method("def prepare(self, problem):\n    return abs"), "failed", "no attribute `operat"),
        (method("def __call__(self, x):\n    return Estimate('text', None, 0)"), "failed", "could"),
        (method("operations = 'many'"), "failed", "ValueError"),
        (method("orders = 'all'"), "unsupported", "its orders are not a tuple"),
        (
            method(
                "class Odd(Exception): pass\ndef prepare(self, problem):\n    raise self.Odd(self)"
            ),
            "failed",
            "Odd: ",
        ),
        (
            method(
                "class Mute(Exception):\n    def __str__(self): raise self\n"
                "def __call__(self, x):\n    raise self.Mute"
            ),
            "failed",
            "Mute: its message cannot be printed (Mute)",
        ),
        (
            method("class Base(BaseException): pass\ndef __call__(self, x):\n    raise self.Base"),
            "failed",
            "its process ended",
        ),
        (
            method("def __call__(self, x):\n    raise KeyboardInterrupt"),
            "failed",
            "its process ended",
        ),
    ],
)
def test_one_that_fails_has_a_row(plug, text: str, status: str, reason: str) -> None:
    plug("fails", text)
    found = row(compared("fails"), "fails")
    assert found.status == status
    assert reason in found.message


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("raise RuntimeError('broken')", "unsupported"),
        ("import math; math.log(0)", "unsupported"),
        (method("def __init__(self):\n    raise RuntimeError"), "unsupported"),
        (method("def missing(self):\n    raise RuntimeError"), "unsupported"),
        (method("def prepare(self, problem):\n    raise RuntimeError"), "failed"),
        (method("def prepare(self, problem):\n    np.linalg.inv(np.zeros((2, 2)))"), "failed"),
        (method("def __call__(self, x):\n    return {}['key']"), "failed"),
        (method("def __call__(self, x):\n    raise SystemExit"), "failed"),
        (method("def __call__(self, x):\n    self.problem.values(x, x)"), "failed"),
    ],
)
def test_an_error_has_the_file_and_the_line(plug, body: str, status: str) -> None:
    lines = textwrap.dedent(BASE).count("\n") + textwrap.dedent(body).rstrip().count("\n") + 1
    plug("placed", body)
    found = row(compared("placed"), "placed")
    assert found.status == status
    assert found.message.endswith(f"_placed.py, line {lines})"), found.message


def test_one_that_writes_into_the_point_hurts_nobody(plug) -> None:
    plug("writes", method("def __call__(self, x):\n    x += 1.0\n    return super().__call__(x)"))
    result = compared("writes")
    found = row(result, "writes")
    assert found.status == "failed"
    assert "read-only" in found.message
    assert result.point["x"] == 3.0


def test_one_that_changes_its_surroundings_changes_its_own(plug, capfd) -> None:
    body = """
    def prepare(self, problem):
        import os
        print("noise", flush=True)
        os.write(1, b"noise")
        np.seterr(all="raise")
        np.random.seed(0)
        np.sin = np.multiply = None
        object.__setattr__(problem.function, "values", None)
        return super().prepare(problem)
    """
    plug("meddles", method(body))
    assert row(compared("meddles"), "meddles").verdict == "agree"
    assert "noise" not in "".join(capfd.readouterr())


def test_methods_in_this_process_share_no_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Writes:
        name, family, summary, orders = "writes", "numeric", "", (1,)
        size = operations = None

        def missing(self):
            return None

        def prepare(self, problem):
            return self

        def __call__(self, x):
            x[:] = 0.0

    known = {"writes": Writes(), "forward": registry.find("forward")}
    monkeypatch.setattr(registry, "installed", lambda: known)
    at = np.array([1.0, 2.0])
    result = compare("x: [2]; sum(x*x)", {"x": at}, timing=False)
    assert "read-only" in result.methods[0].message
    assert result.methods[1].verdict == "agree"
    at[:] = 7.0
    np.testing.assert_array_equal(result.point["x"], [1.0, 2.0])


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_processes_that_a_plug_in_started_end_with_it(plug, tmp_path: Path) -> None:
    written = tmp_path / "pid"
    body = f"""
    def __call__(self, x):
        import multiprocessing, pathlib, time
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,))
        child.start()
        pathlib.Path({str(written)!r}).write_text(str(child.pid))
        time.sleep(1000)
    """
    plug("forks", method(body))
    found, _ = stopped("forks", lambda _: written.exists() and written.read_text())
    assert found.status == "timeout"
    child = Path("/proc", written.read_text(), "stat")
    for _ in range(2000):
        if not child.exists() or child.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        sleep(0.05)
    raise AssertionError("it still runs")


def test_a_derivative_outlives_its_process(plug) -> None:
    import difflab as dl

    plug("works", method("pass"))
    f = dl.parse("x^2")
    chosen = registry.installed()["works"]
    prepared = chosen.prepare(Problem(f.values, 1, 1, f))
    chosen.stop()
    assert prepared(np.array([3.0])).value == [[6.0]]


def test_own_methods_run_apart_where_they_would_be_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.lab.measure._SHARE", 0.0)
    own = registry.find("richardson")
    monkeypatch.setattr(type(own), "prepare", None)  # the one in this process
    result = compare("x: [2]; sum(x*x)", {"x": [1.0, 2.0]}, methods=["forward", "richardson"])
    assert [row.verdict for row in result.methods] == ["agree", "agree"]
    kinds = [type(registry.apart(registry.find(name))).__name__ for name in ("forward", "symbolic")]
    assert kinds == ["Remote", "Symbolic"]


def test_a_long_method_is_stopped() -> None:
    import difflab as dl

    f = dl.parse("x: [3000]; [sum(sin(x)*x), prod(x)]")
    problem = Problem(f.values, f.n, f.m, f, timeout=0.2)
    with pytest.raises(MethodTimeout, match=r"stopped after 0\.2 s"):
        registry.apart(registry.find("finite-forward")).prepare(problem)(np.ones(3000))
