"""Every row as a kernel, and every operation that kernels are spelled with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from difflab.autodiff import jacobian
from difflab.execute import compile
from difflab.execute.lower.record import Recorder
from difflab.execute.lower.schedule import ScheduledStep
from difflab.execute.targets.cuda.target import OPTIONS
from difflab.execute.targets.cuda.writer import SPELLINGS, KernelOperand, Reading, kernel_source
from tests.execute.test_table import EDGES, SAMPLED, edges, function_of, samples
from tests.support import standin
from tests.support.special_rows import NO_CUDA_CODE, NOT_IN_CUPY
from tests.support.standin_cuda import compile_together, warm
from tests.support.universal_functions import universal_function

Array = NDArray[np.float64]

# glibc's and SciPy's functions are not the same ones, and SciPy's logarithm of gamma loses
# digits beside its zeros: these are held to mpmath, within what CUDA's documentation states.
JUDGED = {"erfc": (mpmath.erfc, 5), "loggamma": (mpmath.loggamma, 6)}
NEAR_ZERO = {"gammaln": 1e-15, "loggamma": 1e-15}  # absolute, where terms of size 1 cancel
ONE = standin.asarray(np.ones(2))
ULPS, GPU_ULPS = 4, 12  # CUDA's gamma errs by up to 10, compositions by more than their parts
EXTRA_ULPS = {"dcbrt": 8}  # the square of a cube root


def assert_same(found: Array, expected: Array, points: Any, what: str, ulps: float) -> None:
    """Hold values to others, nan, inf and the sign of zero included."""
    assert found.dtype == expected.dtype
    found, expected = found.astype(float), expected.astype(float)
    with np.errstate(all="ignore"):
        allowed = ulps * np.spacing(np.abs(expected)) + NEAR_ZERO.get(what, 0.0)
        near = np.abs(found - expected) <= allowed
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    zero = (found == 0) & (expected == 0) & (np.signbit(found) != np.signbit(expected))
    wrong = np.flatnonzero(~(near | same) | zero)
    assert not wrong.size, (what, np.asarray(points)[wrong][:4], found[wrong], expected[wrong])


@contextmanager
def noted(failures: list[str]) -> Iterator[None]:
    """Note a failure, so that one run shows all of them."""
    try:
        yield
    except AssertionError as error:
        failures.append(str(error))


def test_every_operation_is_numpys(xp: Any) -> None:
    cases = {}
    for name in SPELLINGS:
        function = universal_function(name)
        arity = 3 if name == "where" else function.nin
        recorder = Recorder([()] * arity)
        code = recorder.program
        code.outputs.append(function(*recorder.inputs).number)
        points = [grid.ravel() for grid in np.meshgrid(*[EDGES] * arity)]
        with np.errstate(all="ignore"):
            expected = function(*points)
            if name == "gammaln":  # SciPy's is infinite at subnormal numbers
                size = np.abs(points[0])
                expected = np.where(size < 1e-300, -np.log(size), expected)
        if expected.dtype == bool:
            code.truths.add(arity)
        operands = [KernelOperand(Reading.LINE)] * arity
        source = kernel_source("f", code, operands, [expected.dtype == bool])
        cases[name] = source, points, expected
    if xp is standin:
        compile_together(source for source, _, _ in cases.values())
    failures: list[str] = []
    for name, (source, points, expected) in cases.items():
        found = xp.empty(expected.shape, expected.dtype)
        operands = [value for point in points for value in (xp.asarray(point), np.int64(1))]
        kernel = xp.RawKernel(source, "f", options=OPTIONS)
        kernel((2,), (64,), (*operands, found, np.int64(expected.size)))
        ulps = ULPS if xp is standin else GPU_ULPS
        with noted(failures):
            assert_same(found.get(), expected, np.stack(points, -1), name, ulps)
    assert not failures


def test_rows_agree_with_the_evaluator_and_in_the_signs_of_zero(xp: Any) -> None:
    there = {name: row for name, row in SAMPLED.items() if name not in NOT_IN_CUPY}
    compiled = {name: compile(function_of(row), "cupy") for name, row in there.items()}
    assert {
        name
        for name, fast in compiled.items()
        if any(isinstance(stage, ScheduledStep) for stage in fast._cupy.stages.steps)
    } == NO_CUDA_CODE - NOT_IN_CUPY
    if xp is standin:
        warm(partial(fast, *[ONE] * fast.function.n) for fast in compiled.values())
    failures: list[str] = []
    for name, fast in compiled.items():
        inside, edge = samples(SAMPLED[name], 300), edges(fast.function)
        ulps = max(
            EXTRA_ULPS.get(name, 0), ULPS if xp is standin or name in NO_CUDA_CODE else GPU_ULPS
        )
        for points in (inside, edge):
            found = fast(*map(xp.asarray, points.T)).get()
            expected = np.asarray(fast.function(*points.T))
            if name in JUDGED and points is inside:
                judge, ulps = JUDGED[name]
                expected = np.array([float(judge(mpmath.mpf(x))) for (x,) in points.tolist()])
            with noted(failures):
                assert_same(found, expected, points, name, ulps)
    assert not failures


def test_derivatives_of_rows_agree_with_the_evaluator(xp: Any) -> None:
    rows = {
        name: row for name, row in SAMPLED.items() if not row.boolean and name not in NOT_IN_CUPY
    }
    compiled = {name: compile(jacobian(function_of(row)), "cupy") for name, row in rows.items()}
    if xp is standin:
        warm(partial(fast, *[ONE] * fast.function.n) for fast in compiled.values())
    close = 2e-15 if xp is standin else 1e-13
    for name, fast in compiled.items():
        points = samples(rows[name], 50)
        found = fast(*map(xp.asarray, points.T)).get()
        expected = np.asarray(fast.function(*points.T))
        np.testing.assert_allclose(found, expected, rtol=close, atol=1e-300, err_msg=name)
