"""The source of kernels, as text."""

from __future__ import annotations

import re

import numpy as np
import pytest

import difflab as dl
from difflab.execute.lower.schedule import ScalarProgram, Schedule, ScheduledStep
from difflab.execute.targets.cuda import CupyTarget
from difflab.execute.targets.cuda.stages import MOST_OPERATIONS, Fused
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node

SEED = "ln(x1) + x1*x2 - sin(x2)"

GOLDEN = """\
// x0 is #0, x1 is #1, y0 is output 0[0], y1 is output 1[1], y2 is output 1[0]
extern "C" __global__ void difflab_0(
    const double* __restrict__ x0, const long long x0_step,
    const double* __restrict__ x1, const long long x1_step,
    double* __restrict__ y0,
    double* __restrict__ y1,
    double* __restrict__ y2,
    const long long n)
{
    const long long width = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += width) {
        const double v0 = x0[i * x0_step];
        const double v1 = x1[i * x1_step];
        const double v2 = v0 < 0.0 ? __longlong_as_double(0x7ff8000000000000ll) : log(v0);
        const double v3 = v0 * v1;
        const double v4 = v2 + v3;
        double v5, v7;
        sincos(v1, &v5, &v7);
        const double v6 = v4 - v5;
        y0[i] = v6;
        const double v8 = v0 - v7;
        y1[i] = v8;
        const bool v10 = v0 < 0.0;
        const double v12 = 1.0 / v0;
        const double v14 = v10 ? __longlong_as_double(0x7ff8000000000000ll) : v12;
        const double v15 = v1 + v14;
        y2[i] = v15;
    }
}"""


def target(f: dl.Function) -> CupyTarget:
    try:
        return CupyTarget(f, ScalarProgram.of(f))
    except dl.errors.UnsupportedError:
        return CupyTarget(f, Schedule.of(f))


def body(text: str) -> list[str]:
    """Return the statements of the only kernel of a formula."""
    source = target(dl.parse(text)).source
    assert source.count("__global__") == 1
    return [line.strip() for line in source.split("{\n")[-1].splitlines()[:-2]]


def test_the_seed_reads_and_writes_every_number_once() -> None:
    made = target(dl.value_and_gradient(dl.parse(SEED)))
    assert made.source == GOLDEN
    assert made.kernels == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x*0.1", "const double v2 = v0 * 0.1;"),
        ("x-1e300*1e300", "const double v2 = v0 - __longlong_as_double(0x7ff0000000000000ll);"),
        ("where(x > 0, x, -1e300*1e300)", "? v0 : __longlong_as_double(0xfff0000000000000ll);"),
        ("x*(-0.5)", "const double v2 = v0 * (-0.5);"),
        ("x^3", "const double v2 = v1 * v0;"),
        ("gamma(x)", "const double v1 = tgamma(v0);"),
        ("atan2(x, y)", "const double v2 = atan2(v0, v1);"),
        ("x < y", "const bool v2 = v0 < v1;"),
    ],
)
def test_spellings(text: str, line: str) -> None:
    assert any(found.endswith(line) for found in body(text))


def test_sine_and_cosine_of_one_angle_are_one_call() -> None:
    lines = "\n".join(body("sin(x)*cos(x) + sin(y) + cos(z)"))
    assert lines.count("sincos(v0") == lines.count("sin(v1)") == lines.count("cos(v2)") == 1
    assert len(re.findall(r"\b(sin|cos|sincos)\(", lines)) == 3


def test_functions_of_its_own_come_once_with_a_kernel() -> None:
    source = target(dl.parse("softplus(x) + softplus(y)*mod(x, y)")).source
    assert source.count("double log_add_exp(const") == 1
    assert source.count("double floored_remainder(const") == 1
    assert "floored_remainder" not in target(dl.parse("softplus(x)")).source


def test_names_of_inputs_do_not_come_into_the_source() -> None:
    builder = Builder()
    place = builder.input("x\n#error */")
    f = Function.build(builder, [place], [(Node(builder, place) * 2.0).id], ["y\n#error"])
    assert "error" not in target(f).source


def test_outputs_that_are_inputs_or_constants_are_written_by_the_kernel() -> None:
    made = target(dl.value_and_gradient(dl.parse("x*y + 2*z")))
    assert made.kernels == 1
    assert len(re.findall(r"y\d\[i\] = ", made.source)) == 4
    assert re.search(r"y\d\[i\] = 2\.0;", made.source)
    assert target(dl.gradient(dl.parse("x*y"))).kernels == 1


def test_what_two_outputs_share_is_computed_once() -> None:
    made = target(dl.parse("[exp(x*y), 2*exp(x*y), exp(x*y)]"))
    assert made.source.count("exp(") == made.kernels == 1
    assert len(re.findall(r"y\d\[i\] = v\d+;", made.source)) == 3


def test_what_has_no_spelling_is_called_between_kernels() -> None:
    stages = target(dl.parse("exp(digamma(2*x)) + sin(x)")).stages.steps
    kinds = [stage.row.name if isinstance(stage, ScheduledStep) else "fused" for stage in stages]
    assert kinds == ["fused", "digamma", "fused"]


def test_elementwise_operations_of_a_level_fuse() -> None:
    f = dl.parse("W: [4, 3]; x: [3]; b: [4]; sum(tanh(W@x + b)*2 + 1) + sum(x*x)")
    made = target(f)
    kinds = [
        s.row.name if isinstance(s, ScheduledStep) else len(s.reads) for s in made.stages.steps
    ]
    assert kinds == ["matmul", 2, 1, "sum", "sum", 2]


def test_long_programs_come_in_pieces() -> None:
    text = "x"
    for number in range(3 * MOST_OPERATIONS // 2):
        text = f"sin({text})" if number % 2 else f"({text} + y)"
    made = target(dl.parse(text))
    lengths = [len(s.code.ops) for s in made.stages.steps if isinstance(s, Fused)]
    assert max(lengths) <= MOST_OPERATIONS
    assert sum(lengths) == 3 * MOST_OPERATIONS // 2


def test_truth_values_stay_bytes_between_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.execute.targets.cuda.stages.MOST_OPERATIONS", 1)
    source = target(dl.parse("where(x > y, sin(x), y)")).source
    assert source.count("bool* __restrict__ y0") == source.count("const bool* __restrict__") == 1
    assert "const bool v0 = x0[i * x0_step];" in source


def test_many_inputs_come_in_pieces() -> None:
    text = " + ".join(f"sin(a{k})*a{(7 * k) % 300}" for k in range(300))
    made = target(dl.value_and_gradient(dl.parse(text)))
    for stage in made.stages.steps:
        assert isinstance(stage, Fused)
        assert 16 * len(stage.reads) + 8 * len(stage.writes) + 8 <= 4096
    assert {w.cell for s in made.stages.steps for w in s.writes if w.cell} == {
        (0, 0),
        *((1, place) for place in range(300)),
    }


def test_memory_is_planned() -> None:
    plan = target(dl.value_and_gradient(dl.parse(SEED))).memory_plan(1000)
    assert (plan.values, plan.peak_bytes) == (3, 24_000)
    chain = target(dl.parse("W: [50, 50]; x: [50]; sum(tanh(W@x))")).memory_plan(10)
    assert chain.peak_bytes == 2 * 10 * 50 * 8 + 10 * 8
    assert np.all(np.array(chain.buffers) == 0)
