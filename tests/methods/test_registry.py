"""The registry: the order of the methods, plug-ins, and plug-ins that break."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, UnsupportedError
from difflab.methods import registry
from difflab.methods.protocol import Estimate, Family, Method, Prepared, Problem
from difflab.methods.registry import GROUP, describe, find, installed, select

OWN = [
    "symbolic",
    "finite-forward",
    "finite-central",
    "richardson",
    "complex-step",
    "forward",
    "reverse",
]


class Halves:
    """A plug-in that says 0.5 everywhere."""

    name = "halves"
    family = Family.NUMERIC
    summary = "one half"
    orders = (1,)
    size = None
    operations = None

    def prepare(self, problem: Problem) -> Prepared:
        self.shape = (problem.m, problem.n)
        return self

    def __call__(self, x: Any) -> Estimate:
        return Estimate(np.full(self.shape, 0.5), None, 0)

    def missing(self) -> str | None:
        return None


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that plugs objects in by name."""
    plugged: list[EntryPoint] = []
    module = ModuleType("a_plugged_module")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [e for e in plugged if group == GROUP]
    )

    def add(name: str, **attributes: Any) -> None:
        for key, value in attributes.items():
            setattr(module, key, value)
            plugged.append(EntryPoint(name, f"{module.__name__}:{key}", GROUP))
        if not attributes:
            plugged.append(EntryPoint(name, "no_such_module_anywhere:METHOD", GROUP))

    return add


def test_own_methods_in_order() -> None:
    found = installed()
    assert list(found)[:7] == OWN
    for name in OWN:
        method = found[name]
        assert isinstance(method, Method)
        assert method.name == name
        assert method.missing() is None
        assert set(method.orders) <= {1, 2}


def test_plug_in_is_a_method(plug: Any) -> None:
    plug("halves", METHOD=Halves())
    assert list(installed()) == [*OWN, "halves"]
    assert dl.differentiate(np.sin, 1.0, method="halves").value == 0.5
    assert describe()[-1].missing is None


def test_plug_in_may_be_a_class(plug: Any) -> None:
    plug("halves", Halves=Halves)
    assert isinstance(installed()["halves"], Halves)


class NoPrepare:
    name, family, summary, orders = "broken", Family.NUMERIC, "", (1,)

    def missing(self) -> str | None:
        return None


class WrongName(Halves):
    name = "something else"


class WrongFamily(Halves):
    name, family = "broken", "psychic"  # type: ignore[assignment]


class WrongOrders(Halves):
    name, orders = "broken", "12"  # type: ignore[assignment]


class FailsToSayWhy(Halves):
    name = "broken"

    def missing(self) -> str | None:
        raise RuntimeError("no idea")


class FailsToStart(Halves):
    def __init__(self) -> None:
        sys.exit("bye")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (NoPrepare, "no prepare"),
        (WrongName, "'something else', not 'broken'"),
        (WrongFamily, "psychic"),
        (WrongOrders, "orders"),
        (FailsToSayWhy, "RuntimeError: no idea"),
        (FailsToStart, "SystemExit: bye"),
    ],
)
def test_broken_plug_in_is_a_row_that_says_why(plug: Any, kind: type, reason: str) -> None:
    plug("broken", METHOD=kind)
    method = installed()["broken"]
    assert reason in str(method.missing())
    assert describe()[-1].missing == method.missing()
    with pytest.raises(UnsupportedError, match="cannot be used"):
        method.prepare(Problem(np.sin, 1, 1))
    with pytest.raises(UnsupportedError, match="cannot be used"):
        find("broken")


def test_plug_in_that_cannot_be_imported(plug: Any) -> None:
    plug("absent")
    reason = str(installed()["absent"].missing())
    assert "ModuleNotFoundError" in reason
    assert "no_such_module_anywhere" in reason


def test_a_name_in_use_changes_nothing(plug: Any) -> None:
    class Usurper(Halves):
        name = "richardson"

    plug("richardson", METHOD=Usurper())
    found = installed()
    assert not isinstance(found["richardson"], Usurper)
    assert "already in use" in str(found["richardson (a_plugged_module:METHOD)"].missing())


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        find("richardsen")
    assert "richardson" in str(caught.value)
    with pytest.raises(InputError, match="symbolic"):
        find("qqqqqqqq")
    with pytest.raises(InputError):
        dl.differentiate(np.sin, 1.0, method=3)  # type: ignore[arg-type]


def test_listing_can_be_called_as_the_package() -> None:
    rows = dl.methods()
    assert [row.name for row in rows][:7] == OWN
    assert rows[0].family == "symbolic"


def test_one_method_loads_no_other() -> None:
    code = (
        "import sys, difflab.methods, difflab.methods.registry as r; r.find('richardson');"
        "loaded = [m for m in ('sympy', 'difflab.methods.symbolic.method', 'scipy', 'mpmath')"
        " if m in sys.modules]; sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


PEERS = [
    *("jax", "torch", "autograd", "casadi", "symengine", "numdifftools", "pytensor"),
    *("tensorflow", "torch-compile", "tinygrad", "symforce", "jacobi", "enzyme-ad"),
    *("jax-jet", "jax-folx", "advect", "heyoka", "symb-anafis", "warp", "taichi", "tvm"),
    "onnxruntime",
]


def here(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let the peers of these names be installed, and no other."""
    monkeypatch.setattr("difflab.core.optional.installed", lambda name: name in names)


def test_peers_are_listed_and_run_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, "torch", "casadi")
    assert [row.name for row in describe()] == [*OWN, "exact", *PEERS]
    assert [method.name for method in select(None)] == OWN
    assert [method.name for method in select("peers")] == ["torch", "casadi", "torch-compile"]
    assert [method.name for method in select(["reverse", "all"])] == [
        "reverse",
        *[name for name in OWN if name != "reverse"],
        "exact",
        "torch",
        "casadi",
        "torch-compile",
    ]
    assert [method.name for method in select(["jax", "forward"])] == ["jax", "forward"]


def test_no_peer_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch)
    assert [method.name for method in select("all")] == [*OWN, "exact"]
    with pytest.raises(InputError, match=r"pip install 'difflab\[peers\]'"):
        select(["peers"])
    with pytest.raises(UnsupportedError, match=r"pip install 'difflab\[peers\]'"):
        find("jax")


def test_a_peers_name_is_reserved_and_near(plug: Any) -> None:
    plug("jax", METHOD=Halves())
    assert "already in use" in str(installed()["jax (a_plugged_module:METHOD)"].missing())
    with pytest.raises(InputError, match="did you mean torch"):
        find("torsh")
    with pytest.raises(InputError, match="no method is named"):
        select([])
