"""Every row as machine code, on each kind of processor that this one can stand for."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

import difflab as dl
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute.lower.ops import FLOAT, SINGLE
from difflab.execute.lower.record import Recorder, as_ufuncs
from difflab.execute.lower.schedule import ScalarProgram
from difflab.execute.targets.llvm import engine
from difflab.execute.targets.llvm import writer as writers
from difflab.execute.targets.llvm.functions import SPELLINGS
from difflab.execute.targets.llvm.libraries import SCIPY, Host, address, host
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.execute.targets.llvm.writer import LlvmWriter
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.primitives import TABLE
from difflab.referee.ulp import ulp_distance
from tests.support.special_rows import NO_MACHINE_CODE
from tests.support.universal_functions import universal_function

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

Array = NDArray[np.float64]

EDGES = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 710.0, 1e200, 5e-324)
ULPS = {"dcbrt": 8}  # made of cbrt, which libmvec rounds otherwise
ROWS = {name: row for name, row in TABLE.items() if row.samples and row.shape is None}
# Other processors' code that this one runs: with AVX2, with SSE2 alone, and without libmvec.
OTHERS = {
    "avx2": Host("haswell", "", 4, "d"),
    "sse2": Host("x86-64", "", 2, "b"),
    "no libmvec": Host("x86-64", "", 2, ""),
}


def hosts() -> dict[str, Host]:
    mine = host()
    others = OTHERS if mine.letter else {}
    able = {name: other for name, other in others.items() if other.width <= mine.width}
    return {"this": mine, **able}


HOSTS = pytest.mark.parametrize("machine", hosts().values(), ids=hosts())


@cache
def function_of(name: str) -> Function:
    builder = Builder()
    nodes, inputs = [], []
    for letter, (low, high) in zip("abcd", ROWS[name].samples, strict=False):
        node = builder.constant(low) if low == high else builder.input(letter)
        inputs += [] if low == high else [node]
        nodes.append(Node(builder, node))
    return Function.build(builder, inputs, [ROWS[name](*nodes).id], ["y"])


def native(f: Function, machine: Host | None = None, threads: int = 1) -> NativeTarget:
    return NativeTarget(ScalarProgram.of(f), f.input_shapes, threads, machine)


def samples(row: Primitive, number: int) -> Array:
    boxes = np.array([box for box in row.samples if box[0] < box[1]])
    return np.random.default_rng(7).uniform(boxes[:, 0], boxes[:, 1], (number, len(boxes)))


def has_code(name: str) -> bool:
    try:
        as_ufuncs(ScalarProgram.of(function_of(name)), SPELLINGS)
    except UnsupportedError:
        return False
    return True


@HOSTS
@pytest.mark.parametrize("operations", [1, engine.WELL + 1], ids=["optimised", "at once"])
def test_every_operation_is_numpys(machine: Host, operations: int) -> None:
    for name in SPELLINGS:
        function = universal_function(name)
        arity = 3 if name == "where" else function.nin
        recorder = Recorder([()] * arity)
        code = recorder.program
        code.outputs.append(function(*recorder.inputs).number)
        points = [grid.ravel() for grid in np.meshgrid(*[EDGES] * arity)]
        with np.errstate(all="ignore"):
            expected = function(*points)
        if expected.dtype == bool:
            code.truths.add(arity)
        truth = [expected.dtype == bool]
        writer = LlvmWriter(code, machine, machine.width, truth)
        entry = engine.load(writer.text(), writer.functions.symbols, machine, operations)
        found = np.empty_like(expected)
        starts = [np.array([a.ctypes.data for a in arrays]) for arrays in (points, [found])]
        entry.run(*[table.ctypes.data for table in starts], 0, len(found))
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        with np.errstate(all="ignore"):
            near = np.abs(found * 1.0 - expected) <= 4 * np.spacing(np.abs(expected * 1.0))
        wrong = np.flatnonzero(~(same | near))
        assert not wrong.size, (name, [a[wrong][:4] for a in points], found[wrong][:4])


@HOSTS
@pytest.mark.parametrize(
    ("operations", "real"),
    [(1, FLOAT), (engine.WELL + 1, FLOAT), (engine.WELL + 1, SINGLE)],
    ids=["optimised", "at once", "float32"],
)
def test_calls_at_one_point_are_numpys_and_made_together(
    machine: Host, operations: int, real: np.dtype[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "LEAST", 0)
    lanes = machine.width * FLOAT.itemsize // real.itemsize
    for name, spelling in SPELLINGS.items():
        if not spelling.function or (real == SINGLE and spelling.function in SCIPY):
            continue
        function = universal_function(name)
        grids = np.meshgrid(*[EDGES] * function.nin, indexing="ij")
        with np.errstate(all="ignore"):
            points = np.array([grid.ravel() for grid in grids]).astype(real)
        recorder = Recorder([()] * points.size)
        code, count = recorder.program, points.shape[1]
        columns = [recorder.inputs[place::count] for place in range(count)]
        code.outputs += [function(*column).number for column in columns]
        writer = LlvmWriter(code.computed_in(real), machine, 1, [False] * count)
        text = writer.text()
        if machine.vector(spelling.function, function.nin, lanes, single=real == SINGLE):
            joined, left = divmod(count, lanes)
            assert text.count("call void @scalars") == joined + (left > 1), name
        entry = engine.load(text, writer.functions.symbols, machine, operations)
        memory, found = np.empty(writer.memory, real), np.empty(count, real)
        entry.run(points.ctypes.data, found.ctypes.data, memory.ctypes.data, 1)
        with np.errstate(all="ignore"):
            expected = function(*points)
            near = np.abs(found - expected) <= 4 * np.spacing(np.abs(expected))
        wrong = np.flatnonzero(~(near | (found == expected) | np.isnan(found) & np.isnan(expected)))
        assert not wrong.size, (name, points.T[wrong][:4], found[wrong][:4], expected[wrong][:4])


def test_all_rows_but_these_have_machine_code() -> None:
    assert {name for name in ROWS if not has_code(name)} == NO_MACHINE_CODE


@HOSTS
def test_rows_agree_with_the_evaluator_and_in_the_signs_of_zero(machine: Host) -> None:
    for name, row in ROWS.items():
        if not has_code(name):
            continue
        f = function_of(name)
        grids = np.meshgrid(*[EDGES] * f.n, indexing="ij")
        points = np.concatenate([samples(row, 50), np.stack([g.ravel() for g in grids], -1)])
        expected = np.asarray(f(*points.T), dtype=float)
        target = native(f, machine)
        batch = target(list(points.T), (len(points),))[0]
        single = [target.point(point)[0] for point in points]
        for found in (np.asarray(batch, float), np.asarray(single, float)):
            with np.errstate(all="ignore"):
                ulps = ULPS.get(name, 4)
                near = np.abs(found - expected) <= ulps * np.spacing(np.abs(expected))
            same = (found == expected) | (np.isnan(found) & np.isnan(expected))
            zero = (found == 0) & (np.signbit(found) != np.signbit(expected))
            wrong = np.flatnonzero(~(near | same) | zero)
            assert not wrong.size, (name, points[wrong][:3], found[wrong][:3], expected[wrong][:3])


# Where each function is taken: far beyond the sampling domains, and close to its zeros.
NEAR_ONE = tuple(1 + s * 2.0**-k for k in range(4, 52, 3) for s in (-1, 1))
TURNS = tuple(k * math.pi / 2 for k in (1, 2, 3, 4, 101, 710, 12345, 99999))
DOMAINS = {
    "sin": (-1e5, 1e5, TURNS),
    "cos": (-1e5, 1e5, TURNS),
    "tan": (-100, 100, TURNS[:4]),
    "asin": (-1, 1, ()),
    "acos": (-1, 1, ()),
    "atan": (-1e3, 1e3, ()),
    "sinh": (-700, 700, (1e-5,)),
    "cosh": (-700, 700, ()),
    "tanh": (-20, 20, (1e-5,)),
    "asinh": (-1e6, 1e6, (1e-5,)),
    "acosh": (1, 1e6, NEAR_ONE[1::2]),
    "atanh": (-1, 1, (1e-5,)),
    "exp": (-740, 700, ()),
    "expm1": (-30, 700, (1e-5,)),
    "log": (1e-300, 1e3, NEAR_ONE),
    "log10": (1e-300, 1e3, NEAR_ONE),
    "log1p": (-0.999, 1e6, (1e-5,)),
    "cbrt": (-1e6, 1e6, ()),
    "erf": (-6, 6, (1e-5,)),
}


def exact(name: str, at: float) -> mpmath.mpf:
    function = TABLE[name].mpmath
    number = mpmath.mpf(float(at))
    return function(mpmath, number) if callable(function) else getattr(mpmath, function)(number)


@HOSTS
def test_mathematical_functions_are_within_four_units_of_mpmath(machine: Host) -> None:
    rng = np.random.default_rng(11)
    with mpmath.workprec(200):
        for name, (low, high, more) in DOMAINS.items():
            f = dl.parse(f"{name}(x)")
            small = rng.normal(size=60) * 10.0 ** rng.uniform(-4, 0, 60)
            x = np.concatenate([rng.uniform(low, high, 60), small.clip(low, high), more])
            for value, at in zip(native(f, machine)([x], x.shape)[0].tolist(), x, strict=True):
                assert ulp_distance(value, exact(name, at)) <= 4, (name, at)


def test_vector_functions_are_taken_where_there_are_any() -> None:
    source = native(dl.parse("sin(x)*loggamma(x)")).source
    assert ("@_ZGV" in source) == bool(host().letter)
    assert "@scipy.gammaln" in source
    assert "@sin(" in native(dl.parse("sin(x)"), OTHERS["no libmvec"]).source


def test_every_function_has_an_address() -> None:
    for name in ROWS:
        if has_code(name):
            writer = native(function_of(name)).writer(host().width)
            writer.text()
            assert all(address(symbol) for symbol in writer.functions.symbols)


def test_an_untaken_branch_has_derivative_zero() -> None:
    gradient = native(dl.gradient(dl.parse("where(x > 0, sqrt(x)*log(x), 0)")))
    x = np.array([0.0, -1.0, 1.0, -np.inf])
    assert gradient([x], (4,))[0].ravel().tolist() == [0.0, 0.0, 1.0, 0.0]
    assert gradient.point(np.zeros(1))[0].tolist() == [0.0]


@pytest.mark.parametrize("text", ["t = (x > x); mod(t, t)", "mod(x > x, y)"])
def test_the_remainder_of_known_zeros_by_zero_or_nan_is_nan(text: str) -> None:
    f = dl.parse(text)
    points = [np.array([0.0, np.nan, 0.0, -0.0, 0.0])] * f.n
    found = dl.compile(f, "native")(*points)
    assert np.all(np.isnan(found))
