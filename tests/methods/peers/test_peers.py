"""Every peer that is installed, held to mpmath and to published values."""

from __future__ import annotations

import math
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

from difflab.errors import MethodTimeout, UnsupportedError
from difflab.graph.function import Function, evaluate
from difflab.lab.compare import compare
from difflab.lab.conventions.cases import LANGUAGE, cases
from difflab.language import parse
from difflab.methods.peers.peer import Peer
from difflab.methods.peers.tinygrad import _check_device
from difflab.methods.protocol import Family, Method, Problem
from difflab.methods.registry import peers
from difflab.primitives import TABLE
from tests.support.documents import ROOT
from tests.support.orders import orders
from tests.support.special_rows import SPECIAL

NAMES = list(peers())
LOOSE = {"numdifftools": 1e-7, "jacobi": 1e-7}
BATCHED = {"symb-anafis": 1e-12}
"""Packages whose batches are less accurate than their single points, and how accurate they are."""
SEED = "ln(x1) + x1*x2 - sin(x2)"

# What a package has no function or no derivative for; everything else must be right.
LACKING = {
    "jax": set(),
    "torch": {"cbrt", "gamma"},
    "autograd": {"cbrt", "heaviside"},
    "casadi": {"cbrt", "digamma", "erfc", "gamma", "loggamma", "polygamma", "round"},
    "symengine": {
        *("cbrt", "digamma", "gamma", "loggamma", "polygamma"),
        *("ceil", "floor", "heaviside", "mod", "round"),
    },
    "numdifftools": set(),
    "pytensor": {"cbrt", "hypot"},
    "tensorflow": {"gamma"},
    "torch-compile": {"cbrt", "gamma"},
    "tinygrad": {
        *("atan2", "cbrt", "hypot", "expm1", "log1p", "log1mexp", "logcosh"),
        *("digamma", "erfc", "gamma", "loggamma", "polygamma"),
    },
    "symforce": {
        *("cbrt", "digamma", "gamma", "loggamma", "polygamma", "heaviside", "round"),
    },
    "jacobi": set(),
    "enzyme-ad": {"tan"},
    "jax-jet": {
        *("acos", "asin", "atan", "cbrt", "exp2", "logaddexp", "relu", "softplus", "tan"),
        *("digamma", "gamma", "loggamma", "polygamma"),
    },
    "jax-folx": {"ceil", "floor", "gamma", "round", "sign"},
    "advect": {"gamma"},
    "heyoka": {
        *("cbrt", "ceil", "floor", "log1mexp", "logaddexp", "logcosh", "mod", "round"),
        *("digamma", "gamma", "loggamma", "polygamma", "softplus", "versine"),
    },
    "symb-anafis": {
        *("clip", "expm1", "heaviside", "log1mexp", "log1p", "logaddexp", "logcosh"),
        *("loggamma", "mod", "round", "softplus", "versine", "where"),
    },
    "warp": {
        *("acosh", "asinh", "atanh", "expm1", "log1mexp", "log1p", "logaddexp", "logcosh"),
        *("digamma", "gamma", "loggamma", "polygamma", "softplus"),
    },
    "taichi": {
        *("acosh", "asinh", "atanh", "cbrt", "expm1", "log1mexp", "log1p", "logaddexp"),
        *("digamma", "erf", "erfc", "gamma", "loggamma", "polygamma"),
        *("logcosh", "round", "softplus", "tan"),
    },
    "tvm": {
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "sinh", "tan"),
        *("cbrt", "ceil", "erf", "erfc", "expm1", "floor", "heaviside", "log1mexp", "log1p"),
        *("digamma", "gamma", "loggamma", "polygamma", "versine"),
        *("logaddexp", "logcosh", "mod", "round", "sech", "sign", "softplus"),
    },
    "onnxruntime": {"digamma", "gamma", "loggamma", "polygamma"},
}

# What a package computes wrongly, and by how much at most where it is near.
WRONG = {
    "tinygrad": {"acos": 1e-6, "asin": 1e-6, "atan": 1e-6, "erf": 1e-5},  # approximations
    "casadi": {"erfinv": 1e-5},  # an approximation, 3e-6 off at 0.7
    "jacobi": {"mod": math.inf},  # its first step is a quarter of x, over the jump
    # The sign of atanh's is wrong, and digamma's is nan.
    "enzyme-ad": {"acosh": 1.0, "atanh": 4.0, "digamma": 0.0, "polygamma": 4.0},
    # I of order 2 is 29 % off at 1.45, K of order 1 three times too large; the others are
    # approximations.
    "symb-anafis": {"besseli": 0.02, "besselk": 3e-6, "bessely": 1e-8, "gamma": 1e-8},
}
SPELLED = {
    ("enzyme-ad", "sort([x, y])[1]"): "it ends the process",
    ("tinygrad", "sort([x, y])[1]"): "the method gathers by tinygrad's order",
    ("jax-folx", "sort([x, y])[1]"): "the method gathers by an order, for which folx has no rule",
    ("symb-anafis", "round(x)"): "it rounds halves away from 0",
    ("warp", "mod(x, y)"): "its remainder has the sign of x",
}
"""Cases in which a method does not run the function of the table, and why."""
REFUSED = {
    "jax-jet": ("relu(", "prod("),  # no rules for custom derivatives and products
    "symb-anafis": ("where(",),  # it has no comparisons
}
"""Beginnings of calls that a package has no rule for."""
ENZYME_AT_ZERO = "[x*y, x + y, exp(x)]"
"""Enzyme turns slices multiplied into a product of elements, whose derivative divides by them."""
ONE_ORDER = "its orders are 1"


@pytest.fixture(params=NAMES)
def peer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    """Return each peer that is installed, without the compilers that take seconds a function."""
    found = peers()[request.param]
    assert isinstance(found, Peer)
    module = pytest.importorskip(found.package, exc_type=ImportError)
    if found.name == "pytensor":
        # Canonical products of more than 31 factors are more than Python's form of them takes.
        flags = "mode=FAST_COMPILE,optimizer_excluding=canonicalize"
        monkeypatch.setenv("PYTENSOR_FLAGS", flags)
        quick = module.compile.mode.FAST_COMPILE.excluding("canonicalize")
        with module.config.change_flags(mode=quick):
            yield found
        return
    if found.name == "tinygrad":
        try:
            _check_device()
        except UnsupportedError as error:
            pytest.skip(str(error))
    if found.name == "torch-compile":
        monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
        monkeypatch.setattr(module, "compile", partial(module.compile, backend="eager"))
    yield found


def problem(function: Function, order: int = 1, **settings: Any) -> Problem:
    return Problem(function.values, function.n, function.m, function, order, **settings)


def derivative(peer: Peer, text: str, x: Any, order: int = 1) -> Any:
    return peer.prepare(problem(parse(text), order))(np.array(x)).value


def test_it_is_a_method(peer: Peer) -> None:
    assert isinstance(peer, Method)
    assert peer.missing() is None
    assert peer.version()


def test_the_seed_expression(peer: Peer) -> None:
    # Baydin et al. 2018, Tables 2 and 3.
    found = derivative(peer, SEED, [2.0, 5.0])
    np.testing.assert_allclose(
        found, [[5.5, 2.0 - math.cos(5.0)]], rtol=LOOSE.get(peer.name, 1e-15)
    )


def test_the_hessian_of_the_seed(peer: Peer) -> None:
    if 2 not in peer.orders:
        pytest.skip(ONE_ORDER)
    wanted = [[-0.25, 1.0], [1.0, math.sin(5.0)]]
    found = derivative(peer, SEED, [2.0, 5.0], 2)
    np.testing.assert_allclose(found, wanted, rtol=LOOSE.get(peer.name, 1e-14), atol=1e-9)


def test_every_elementwise_row_is_right_or_refused(peer: Peer) -> None:
    lacking = set()
    for name, row in TABLE.items():
        if not row.names or row.shape is not None or row.boolean:
            continue
        if name == "float32":  # its derivative is a convention, without a true value
            continue
        if orders(row) > 1:  # remainders of Taylor series, for which no peer has a function
            continue
        inputs = [f"x{k}" for k in range(row.arity or 0)]
        # Each row has a point of its own, which a row that is added does not move.
        generator = np.random.default_rng(list(name.encode()))
        x = [generator.uniform(*interval) for interval in row.samples]
        if count := orders(row):
            inputs[:count] = [str(int(low)) for low, _ in row.samples[:count]]
            x = x[count:]
        function = parse(f"{row.names[0]}({', '.join(inputs)})")
        if function.n != len(x):
            continue
        try:
            found = peer.prepare(problem(function))(np.array(x)).value
        except UnsupportedError:
            lacking.add(name)
            continue
        wanted = [exact_slope(function, x, k) for k in range(function.n)]
        error = np.max(np.abs(found - [wanted]))
        near = WRONG.get(peer.name, {}).get(name)
        if near is None:
            tolerance = LOOSE.get(peer.name, 1e-11)
            np.testing.assert_allclose(found, [wanted], tolerance, 1e-9, err_msg=name)
        else:
            assert not error <= 1e-9, f"{name} is right now"  # the error may be nan
            assert not error > near, f"{name}: {error}"
    # Which of SciPy's special functions a package has differs from version to version.
    others = SPECIAL - {"polygamma"}
    assert lacking - others == LACKING[peer.name]


def exact_slope(function: Function, x: list[float], k: int) -> float:
    """Return a partial derivative by differences of values in mpmath."""
    with mpmath.workdps(40):

        def along(t: Any) -> Any:
            values = [mpmath.mpf(v) if j != k else t for j, v in enumerate(x)]
            return +evaluate(function, values)[0]

        return float(mpmath.diff(along, mpmath.mpf(x[k]), h=mpmath.mpf(10) ** -15))


@pytest.mark.parametrize(
    ("text", "x", "wanted"),
    [
        ("[x*y, x + y, exp(x)]", [0.0, 3.0], [[3, 0], [1, 1], [1, 0]]),
        ("x: [3]; [x[0]*x[1], sum(x^2)]", [1, 2, 3.0], [[2, 1, 0], [2, 4, 6]]),
        ("W: [2, 2]; b: [2]; sum(relu(W @ b))", [1, 2, -3, 1, 1, 1.0], [[1, 1, 0, 0, 1, 2]]),
        ("x: [3]; prod(x) + max(x)", [2, 3, 4.0], [[12, 8, 7]]),
        ("x: [2]; dot(x, x) + sum(x[1:2])", [3, 4.0], [[6, 9]]),
        ("where(x > 0 and y < 9, x*y, y^2)", [2, 3.0], [[3, 2]]),
        ("where(x, x*y, y^2)", [2, 3.0], [[3, 2]]),
        ("b*[1, 2, 3]", [5.0], [[1], [2], [3]]),
        ("2^x + log(2)*x + 2*3", [0.0], [[2 * math.log(2)]]),
        ("x: [2]; logsumexp(x)", [1, 1.0], [[0.5, 0.5]]),
        ("3 + 0*x", [1.0], [[0]]),
    ],
)
def test_arrays_and_branches(peer: Peer, text: str, x: Any, wanted: Any) -> None:
    if peer.name == "enzyme-ad" and text == ENZYME_AT_ZERO:
        pytest.skip("Enzyme returns nan for it")
    if any(call in text for call in REFUSED.get(peer.name, ())):
        with pytest.raises(UnsupportedError):
            derivative(peer, text, np.array(x, dtype=float))
        return
    found = derivative(peer, text, np.array(x, dtype=float))
    np.testing.assert_allclose(found, wanted, rtol=LOOSE.get(peer.name, 1e-14), atol=1e-8)


@pytest.mark.parametrize("points", [None, 5])
@pytest.mark.parametrize("text", [SEED, "x: [3]; logsumexp(x)*sum(x)", "x^3"])
def test_the_adapter_gives_value_and_gradient(peer: Peer, points: int | None, text: str) -> None:
    function = parse(text)
    x = np.random.default_rng(2).uniform(0.5, 2, (function.n,) if points is None else (5, 3))
    x = x[..., : function.n]
    adapter = peer.adapter(function, points)
    value, gradient = adapter.result(adapter.call(*adapter.arguments(x)))
    rows, values = np.atleast_2d(x), np.atleast_1d(value)
    assert (value.shape, gradient.shape) == (x.shape[:-1], x.shape)
    assert value.dtype == gradient.dtype == np.float64
    for at, v, g in zip(rows, values, np.atleast_2d(gradient), strict=True):
        tolerance = BATCHED.get(peer.name, 1e-14) if points else 1e-14
        np.testing.assert_allclose(v, function.values(at)[0], rtol=tolerance)
        wanted = (
            [exact_slope(parse(text), at.tolist(), k) for k in range(len(at))]
            if (not any(function.input_shapes))
            else derivative(peer, text, at)[0]
        )
        np.testing.assert_allclose(g, wanted, rtol=max(10 * tolerance, LOOSE.get(peer.name, 0.0)))


def test_the_users_setting_of_jax_is_left_alone() -> None:
    jax = pytest.importorskip("jax", exc_type=ImportError)
    before = jax.config.jax_enable_x64  # other tests, in the same process, may have asked for it
    jax.config.update("jax_enable_x64", False)
    try:
        derivative(peers()["jax"], "x^2", [3.0])  # type: ignore[arg-type]
        assert jax.numpy.ones(1).dtype == np.float32
    finally:
        jax.config.update("jax_enable_x64", before)


def test_it_runs_the_packages_own_functions(peer: Peer) -> None:
    compared = 0
    for case in cases():
        code, own = case.code(peer.columns, peer.codes), case.codes.get(LANGUAGE)
        if case.family not in ("kinks", "ties", "steps") or own is None:
            continue
        if code is None or not code.own or (peer.name, case.formula) in SPELLED:
            continue
        x = np.array(case.at)
        try:
            wanted = np.asarray(peer.own(code.text, case.inputs, 1)(x), dtype=float).reshape(-1)
        except Exception:  # of the package, which has no derivative
            continue
        found = peer.prepare(problem(parse(own.text)))(x).value.reshape(-1)
        where = f"{case.formula} at {case.point}"
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8, err_msg=where)
        compared += 1
    assert compared >= 3


# Bessel functions that a package has with a gradient; mpmath's values are the truth.
BESSEL = {
    "jax": "besselj(0, x); besselj(1, x); besselj(3, x); besseli(0, x); besseli(1, x)",
    "torch": "besseli(0, x); besseli(1, x)",
    "autograd": "besselj(0, x); besselj(2, x); besselj(0.5, x); bessely(1, x); besseli(2, x)",
    "pytensor": "besselj(0, x); besselj(0.5, x); besseli(1, x); besselk(2, x)",
    "tensorflow": "besselj(0, x); besselj(1, x); bessely(0, x); besselk(1, x); besseli(1, x)",
}


def test_bessel_functions_of_the_package_are_used(peer: Peer) -> None:
    if peer.name not in BESSEL:
        pytest.skip("it has none with a gradient")
    for text in BESSEL[peer.name].split("; "):
        function = parse(text)
        found = peer.prepare(problem(function))(np.array([2.25])).value
        np.testing.assert_allclose(found, [[exact_slope(function, [2.25], 0)]], 1e-11, err_msg=text)


# The same of functions that a package has under another name or with other arguments.
OWN_NAMES = {
    "pytensor": "xlogy(x, 3.5); xlog1py(x, 3.5); logit(x/4); beta(x, 3.5); betaln(x, 3.5)",
    "tensorflow": "betaln(x, 3.5)",
}


def test_functions_of_the_package_under_other_names_are_used(peer: Peer) -> None:
    if peer.name not in OWN_NAMES:
        pytest.skip("all have NumPy's or SciPy's names")
    for text in OWN_NAMES[peer.name].split("; "):
        function = parse(text)
        found = peer.prepare(problem(function))(np.array([2.25])).value
        np.testing.assert_allclose(found, [[exact_slope(function, [2.25], 0)]], 1e-11, err_msg=text)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("jax", "besselj(0.5, x)", "whole orders"),
        ("jax", "besseli(2, x)", "of the orders 0, 1 only, not of 2"),
        ("torch", "besselj(0, x)", "Bessel functions J without a derivative"),
        ("torch", "besseli(n, x)", "not of an input"),
        ("casadi", "lambertw(x)", "CasADi has no function 'lambertw'"),
    ],
)
def test_a_refusal_names_the_limit_of_the_package(name: str, text: str, why: str) -> None:
    found = peers()[name]
    assert isinstance(found, Peer)
    pytest.importorskip(found.package, exc_type=ImportError)
    with pytest.raises(UnsupportedError, match=why):
        derivative(found, text, [2.25] * parse(text).n)


def test_a_comparison_has_its_row(peer: Peer) -> None:
    result = compare(
        SEED, {"x1": 2, "x2": 5}, methods=[peer.name, "reverse"], timing=False, timeout=600
    )
    assert [(row.name, row.verdict) for row in result.methods] == [
        (peer.name, "agree"),
        ("reverse", "agree"),
    ]


def test_what_would_not_end_is_not_begun(peer: Peer) -> None:
    function = parse("+".join(f"sin({k}*x)" for k in range(50)))
    seconds = peer.estimated_seconds(function, 1)
    if seconds == 0:
        pytest.skip("its time grows no faster than the formula")
    with pytest.raises(MethodTimeout, match="not started"):
        peer.prepare(problem(function, timeout=seconds / 10))
    assert peer.prepare(problem(function, timeout=seconds)).size is None


def test_python_code_is_refused_but_where_values_suffice(peer: Peer) -> None:
    if peer.family is Family.NUMERIC:
        found = peer.prepare(Problem(np.sin, 1, 1))(np.array([1.0]))
        assert found.value == pytest.approx(np.cos(1.0), rel=1e-8)
        return
    with pytest.raises(UnsupportedError, match="Python code"):
        peer.prepare(Problem(np.sin, 1, 1))


@pytest.mark.filterwarnings("ignore")  # of PyTorch, by its compiler
def test_torch_compile_compiles() -> None:
    pytest.importorskip("torch", exc_type=ImportError)
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    peer = peers()["torch-compile"]
    assert isinstance(peer, Peer)
    found = derivative(peer, SEED, [2.0, 5.0])
    np.testing.assert_allclose(found, [[5.5, 2.0 - math.cos(5.0)]], rtol=1e-15)


def test_pytensor_compares_values_and_not_variables() -> None:
    # `==` of two of its variables is False: the operator would give 3*y here.
    pytensor = pytest.importorskip("pytensor", exc_type=ImportError)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        peer = peers()["pytensor"]
        assert isinstance(peer, Peer)
        found = derivative(peer, "where(x == y, 2*x, 3*y)", [1.0, 1.0])
    np.testing.assert_array_equal(found, [[2, 0]])


def test_tinygrad_without_a_device_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    tinygrad = pytest.importorskip("tinygrad", exc_type=ImportError)

    def none(_: Any) -> str:
        raise RuntimeError("no usable devices")

    monkeypatch.setattr(type(tinygrad.Device), "DEFAULT", property(none))
    peer = peers()["tinygrad"]
    assert isinstance(peer, Peer)
    with pytest.raises(UnsupportedError, match="tinygrad finds no device: no usable devices; on"):
        derivative(peer, "x*y", [2.0, 5.0])
    with pytest.raises(UnsupportedError, match="no usable devices"):
        peer.adapter(parse("x*y"), None)


def test_an_absent_peer_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.core.optional.installed", lambda _: False)
    monkeypatch.setattr("difflab.core.optional._distributed", lambda _: False)
    for peer in peers().values():
        assert isinstance(peer, Peer)
        command = f"pip install {peer.requirement}"
        if needs := peer.too_old():
            assert peer.missing() == f"{peer.packages[0]} {needs}"
            continue
        assert peer.missing() == f"{peer.packages[0]} is not installed; add it with: {command}"
        with pytest.raises(UnsupportedError, match=re.escape(command)):
            peer.prepare(problem(parse("x")))
    result = compare("x^2", {"x": 3}, methods=["jax", "reverse"], timing=False)
    assert [row.status for row in result.methods] == ["unsupported", "ok"]
    assert "pip install 'difflab[peers]'" in str(result.methods[0].message)


def test_a_package_for_newer_versions_of_python_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = peers()["advect"]
    monkeypatch.setattr("difflab.methods.peers.peer.sys.version_info", (3, 11, 9))
    assert peer.missing() == "advect needs Python 3.12"
    monkeypatch.setattr("difflab.methods.peers.peer.sys.version_info", (3, 12, 0))
    assert peer.missing() != "advect needs Python 3.12"


def test_the_command_for_each_peer_is_an_extra_that_the_package_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        extra: {re.split(r"[^\w-]", entry)[0] for entry in entries}
        for extra, entries in project["optional-dependencies"].items()
    }
    for peer in peers().values():
        assert isinstance(peer, Peer)
        extra = re.fullmatch(r"'difflab\[([\w-]+)\]'", peer.requirement)
        assert extra is not None, peer.name
        assert peer.packages[0] in declared[extra[1]]


class Devices(dict[str, Any]):
    """What tinygrad has under this name: errors of `opening`, one a trial, are dropped by it."""

    def __init__(self, opening: list[BaseException]) -> None:
        super().__init__()
        self.opening = opening

    def __missing__(self, name: str) -> object:
        assert name == "CPU"
        if self.opening:
            raise self.opening.pop(0)
        return self.setdefault(name, object())

    @property
    def DEFAULT(self) -> str:
        try:
            self["CPU"]
        except Exception as error:
            raise RuntimeError("no usable devices") from error
        return "CPU"


@pytest.mark.parametrize(
    ("opening", "said"),
    [
        ([], None),
        ([OSError("database is locked")], None),  # a moment later it is not
        ([OSError("a"), OSError("database is locked")], "on the processor: OSError: database is"),
        ([FileNotFoundError("clang")] * 2, "FileNotFoundError: clang; it needs clang"),
    ],
)
def test_a_device_that_does_not_open_at_once_is_tried_again(
    opening: list[BaseException], said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tinygrad", SimpleNamespace(Device=Devices(opening)))
    if said is None:
        _check_device()
        return
    with pytest.raises(UnsupportedError, match=f"no usable devices.*{said}") as caught:
        _check_device()
    assert ("needs clang" in str(caught.value)) == ("needs clang" in said)
