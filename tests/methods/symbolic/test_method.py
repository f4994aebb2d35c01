"""SymPy's derivative against published and independent values, and its process under attack."""

from __future__ import annotations

import itertools
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

from difflab.core.worker import Worker, WorkerDied
from difflab.errors import DifflabError, MethodTimeout, UnsupportedError
from difflab.graph.counts import TREE_LIMIT
from difflab.language import parse
from difflab.methods.protocol import Problem
from difflab.methods.symbolic.method import Symbolic, SymbolicDerivative
from difflab.methods.symbolic.worker import dag_size, tree_size


@pytest.fixture(scope="module")
def symbolic() -> Iterator[Symbolic]:
    method = Symbolic()
    yield method
    method.stop()


Prepare = Callable[..., SymbolicDerivative]


@pytest.fixture
def prepare(symbolic: Symbolic) -> Prepare:
    def prepared(text: str, **settings: Any) -> SymbolicDerivative:
        function = parse(text)
        settings = {"timeout": 600.0} | settings
        problem = Problem(function.values, function.n, function.m, function, **settings)
        derivative = symbolic.prepare(problem)
        assert isinstance(derivative, SymbolicDerivative)
        return derivative

    return prepared


def at(derivative: SymbolicDerivative, *x: float) -> Any:
    return derivative(np.array(x)).value.tolist()


def test_the_seed_expression(prepare: Prepare) -> None:
    derivative = prepare("ln(x1) + x1*x2 - sin(x2)")
    # Baydin et al. 2018, Table 2: 5.5 and 2 - cos 5.
    assert at(derivative, 2.0, 5.0) == [[5.5, pytest.approx(1.7163378145367738, rel=1e-15)]]
    # 1/x1 + x2 and x1 - cos(x2): four operations.
    assert derivative.operations == derivative.tree_operations == 4


@pytest.mark.parametrize(
    ("text", "point", "gradient"),
    [
        ("abs(x)", (-3.0,), [-1.0]),
        ("abs(sin(x))", (4.0,), [0.6536436208636119]),  # -cos 4
        ("where(x > 0, sqrt(x), 0*x)", (-4.0,), [0.0]),
        ("where(x > 0, sqrt(x), 0*x)", (4.0,), [0.25]),
        ("max(x, y)", (1.0, 2.0), [0.0, 1.0]),
        ("min(x, y)", (1.0, 2.0), [1.0, 0.0]),
        ("relu(x)", (-1.0,), [0.0]),
        ("clip(x, 0, 1)", (0.5,), [1.0]),
        ("cbrt(x)", (-8.0,), [1 / 12]),
        ("heaviside(x)", (2.0,), [0.0]),
        ("sign(x)*x^2", (-3.0,), [6.0]),
        ("gamma(x)", (4.0,), [6 * (11 / 6 - 0.5772156649015329)]),  # 3!·(H₃ - γ)
        ("digamma(x)", (1.0,), [math.pi**2 / 6]),
        ("erf(x)", (0.0,), [2 / math.sqrt(math.pi)]),
        ("erfc(x)", (0.0,), [-2 / math.sqrt(math.pi)]),
        ("atan2(x, y)", (1.0, 2.0), [0.4, -0.2]),
        ("x^y", (2.0, 3.0), [12.0, 8 * math.log(2)]),
        # SymPy differentiates a case by itself, also one that holds at a single point.
        ("xlogy(x, 2)", (0.0,), [math.log(2)]),
        ("xlog1py(x, 1)", (0.0,), [math.log(2)]),
        ("3", (), []),
        ("x*0 + 7", (5.0,), [0.0]),
        ("x", (5.0,), [1.0]),
        ("x > 3", (5.0,), [0.0]),
    ],
)
def test_gradients(
    prepare: Prepare, text: str, point: tuple[float, ...], gradient: list[float]
) -> None:
    assert at(prepare(text), *point) == [pytest.approx(gradient, rel=2e-15, abs=1e-300)]


def test_constants_keep_every_digit(prepare: Prepare) -> None:
    assert at(prepare("0.30000000000000004*x"), 1.0) == [[0.30000000000000004]]


def test_jacobian_of_several_outputs(prepare: Prepare) -> None:
    assert at(prepare("[x*y, x + y, exp(x)]"), 0.0, 3.0) == [[3, 0], [1, 1], [1, 0]]


def test_an_output_that_is_an_input_or_a_truth_value(prepare: Prepare) -> None:
    assert at(prepare("[x, y*x, x > y]"), 2.0, 3.0) == [[1, 0], [3, 2], [0, 0]]


def test_hessian_is_whole_and_symmetric(prepare: Prepare) -> None:
    # x²y + z: 2y, 2x, 0
    derivative = prepare("x^2*y + z", order=2)
    assert at(derivative, 3.0, 5.0, 1.0) == [[10, 6, 0], [6, 0, 0], [0, 0, 0]]


def test_array_inputs_are_written_out(prepare: Prepare) -> None:
    assert at(prepare("x: [3]; sum(x^2)"), 1.0, 2.0, 3.0) == [[2, 4, 6]]
    assert at(prepare("x: [3]; x[0]*x[2]"), 1.0, 2.0, 3.0) == [[3, 0, 1]]


def test_where_python_raises_numpy_has_infinities(prepare: Prepare) -> None:
    assert at(prepare("sqrt(x) + y"), 0.0, 1.0) == [[math.inf, 1.0]]
    assert at(prepare("exp(x) + y"), 1000.0, 1.0) == [[math.inf, 1.0]]
    assert math.isnan(at(prepare("x^(1/3)"), -8.0)[0][0])  # complex in Python, not real


def test_only_the_branch_that_is_taken_is_evaluated(prepare: Prepare) -> None:
    assert at(prepare("where(x > 1, log(x - 1), x)"), 1.0) == [[1.0]]


def test_names_are_never_code(prepare: Prepare) -> None:
    text = "DiracDelta + math*select + nan*x0"
    assert parse(text).inputs == ("DiracDelta", "math", "nan", "select", "x0")
    assert at(prepare(text), 2.0, 3.0, 5.0, 7.0, 11.0) == [[1, 7, 11, 3, 5]]


@pytest.mark.parametrize("text", ["floor(x)", "x*ceil(x)", "mod(x, 2)"])
def test_what_sympy_has_no_rule_for_is_unsupported(prepare: Prepare, text: str) -> None:
    with pytest.raises(UnsupportedError, match="SymPy has no derivative of"):
        prepare(text)


def test_python_code_is_unsupported(symbolic: Symbolic) -> None:
    with pytest.raises(UnsupportedError, match="formula"):
        symbolic.prepare(Problem(lambda points: points, 1, 1))


# --- sizes -----------------------------------------------------------------------------------


def test_product_of_forty(prepare: Prepare) -> None:
    """Expression swell that is real: 40 products of 39 factors, after cse 780 operations."""
    derivative = prepare("*".join(f"x{i}" for i in range(40)))
    assert (derivative.tree_operations, derivative.operations) == (1520, 780)


def test_swell_that_is_only_counting(prepare: Prepare) -> None:
    """``y ← sin(x + y)``, 40 times: a tree of 1,719 operations and 198 after cse."""
    lines = ["y0 = x", *(f"y{i + 1} = sin(x + y{i})" for i in range(40)), "y40"]
    derivative = prepare("\n".join(lines))
    assert (derivative.tree_operations, derivative.operations) == (1719, 198)


def test_logistic_map_swells_as_published(prepare: Prepare, reference: Any) -> None:
    """Raw derivative of the nested form: `sympy.count_ops` in ``baydin.json``."""
    for row in reference("baydin")["swell_sympy"]["rows"][1:6]:
        depth = row["n"] - 1
        lines = ["l1 = x", *(f"l{i + 1} = 4*l{i}*(1 - l{i})" for i in range(1, depth + 1))]
        derivative = prepare("\n".join([*lines, f"l{depth + 1}"]))
        assert derivative.tree_operations == row["sympy_count_ops_diff_raw"]
        assert derivative.operations == row["sympy_cse_ops"]


def test_simplify_shrinks_what_it_can(prepare: Prepare) -> None:
    derivative = prepare("(x^2 - 1)/(x - 1)")  # which is x + 1
    size = derivative.size
    assert size.tree is not None
    assert size.tree > 1
    assert (size.simplified_tree, size.simplified_dag) == (1, 1)


def test_an_endless_simplify_is_a_missing_number(
    prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = "*".join(f"(x + sin({k}*x) + exp(x/{k}))^{k}" for k in range(2, 9))
    monkeypatch.setattr("difflab.methods.symbolic.method.SIMPLIFY_SHARE", 0.001)
    derivative = prepare(terms, timeout=500.0)
    size = derivative.size
    assert size.tree is not None
    assert size.simplified_tree is None
    assert math.isfinite(at(derivative, 0.5)[0][0])  # and the derivative can still be called


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "-x - y",
        "-x + y",
        "x - y - z",
        "1/x",
        "-2/x",
        "-x*y/3",
        "2/(3*x)",
        "x*y*z*exp(x*y*z)",
        "exp(1)*x",
        "sqrt(x)*x**(-2)",
        "Max(x, y, z) + Abs(x)",
        "Piecewise((x*y, x > 0), (exp(x), True))",
        "-Rational(1, 3)*x + 0.5*y - pi",
        "sin(x)**2*cos(y)/(1 + x**2)**Rational(3, 2)",
        "-(x + y)*(x - y)/(x*y)",
    ],
)
def test_operations_are_those_of_count_ops(text: str) -> None:
    names = {name: sympy.Symbol(name, real=True) for name in "xyz"}
    expression = sympy.sympify(text, locals=names)
    assert tree_size([expression])[0] == sympy.count_ops(expression)


def test_sizes_of_shared_expressions_are_exact() -> None:
    x = sympy.Symbol("x")
    power = x
    for _ in range(80):
        inner = sympy.Add(power, sympy.cos(power, evaluate=False), evaluate=False)
        power = sympy.sin(inner, evaluate=False)
    # Each level is sin, + and cos over two copies of the last: t = 3 + 2·t, and as many leaves.
    assert tree_size([power]) == (3 * (2**80 - 1), 2**80)


def test_what_cse_left_is_counted_once() -> None:
    x, y = sympy.symbols("x y")
    # t = x + y; sin(t)*t, t**2: an addition, then a sine, a product and a power.
    assert dag_size(*sympy.cse([sympy.sin(x + y) * (x + y), (x + y) ** 2])) == (4, 3)


# --- refusals and limits -----------------------------------------------------------------------


def test_a_tree_that_would_explode_is_refused_before_sympy_is_asked() -> None:
    method = Symbolic()
    text = "\n".join(["y0 = x", *(f"y{i + 1} = sin(y{i})*cos(y{i})" for i in range(64)), "y64"])
    function = parse(text)
    with pytest.raises(UnsupportedError, match=rf"\de19 nodes.*{TREE_LIMIT:,}"):
        method.prepare(Problem(function.values, 1, 1, function))
    assert method._worker is None


def test_timeout_says_how_far_it_came(prepare: Prepare) -> None:
    text = " + ".join(f"sin(x*{k} + exp(x*y + {k}))^{k}" for k in range(2, 3000))
    for limit in (0.2, 0.5, 2.0, 5.0, 20.0):  # the last for machines too busy to begin before
        with pytest.raises(MethodTimeout, match=f"stopped after {limit:g} s") as raised:
            prepare(text, timeout=limit)
        if ";" in str(raised.value):
            break
    assert re.search(r"; \w+ .*\d+ of \d+", str(raised.value))
    assert at(prepare("x^2"), 3.0) == [[6.0]]  # a new process takes over


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs RLIMIT_AS")
def test_memory_limit_is_a_timeout_that_says_so(prepare: Prepare) -> None:
    # A symbol for each of 400,000 numbers.
    with pytest.raises(MethodTimeout, match=r"memory limit; converted \d+ of \d+ nodes"):
        prepare("x: [400000]; x[0]", memory_bytes=100 << 20, timeout=1000.0)
    assert at(prepare("x^2"), 3.0) == [[6.0]]


def test_a_derivative_outlives_its_process(prepare: Prepare, symbolic: Symbolic) -> None:
    derivative = prepare("x^3")
    symbolic.stop()
    assert at(derivative, 2.0) == [[12.0]]


def test_derivatives_that_are_dropped_are_forgotten(symbolic: Symbolic, prepare: Prepare) -> None:
    kept = prepare("x^3")
    prepare("x^4")
    assert len(symbolic.forgotten) > 0
    prepare("x^5")
    assert at(kept, 2.0) == [[12.0]]


def test_times_are_of_the_calls_and_not_of_the_way(
    prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    derivative = prepare("sin(x)")
    x = np.array([1.0])
    asked: list[str] = []
    request = derivative._worker.request

    def counted(name: str, *arguments: Any, **limits: float) -> Any:
        asked.append(name)
        return request(name, *arguments, **limits)

    monkeypatch.setattr(derivative._worker, "request", counted)
    assert derivative.elapsed(x, 20_000) > 0
    assert asked == ["elapsed"]  # one message for all calls, which are timed at the other end
    assert derivative.prepare_seconds > 0
    assert 0 < derivative.peak_bytes(x) < 100_000


def test_a_second_is_a_tick_of_the_clock_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from difflab.methods import timer as meter
    from difflab.methods.symbolic.worker import SympySession

    f = parse("sin(x)")
    session = SympySession(lambda text: None)
    monkeypatch.setattr("difflab.methods.symbolic.worker.limit_memory", lambda allowance: None)
    session.prepare(1, Problem(f.values, f.n, f.m, f))
    ticks = itertools.count()
    monkeypatch.setattr(meter, "TRIES", 1)
    monkeypatch.setattr(meter, "perf_counter", lambda: float(next(ticks)))
    monkeypatch.setattr(meter, "WAITED", "/proc/self/no-such-file")
    monkeypatch.setattr(
        session._derivatives[1], "_call", lambda x: (next(ticks), [math.cos(*x)])[1]
    )
    assert session.elapsed(1, np.array([1.0]), 100) == 101


# --- the process -------------------------------------------------------------------------------


def gone(pid: int, *, orphan: bool = False) -> bool:
    """Whether a process has ended, waiting a little; an orphan is for the system to bury."""
    for _ in range(2000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return orphan
        time.sleep(0.05)
    return False


def test_a_stopped_process_leaves_nothing_behind() -> None:
    worker = Worker("difflab.methods.symbolic.worker")
    pid = worker._process.pid
    worker.stop()
    assert not worker.alive
    assert gone(pid)
    with pytest.raises(DifflabError):
        worker.request("value", 0, np.zeros(1), timeout=1.0)


def test_a_process_that_dies_says_how(symbolic: Symbolic, prepare: Prepare) -> None:
    derivative = prepare("x^3")
    process = symbolic.running()._process
    os.kill(process.pid, signal.SIGSEGV)
    process.wait(timeout=60.0)  # else it may still answer
    with pytest.raises(WorkerDied, match="signal 11"):
        derivative._worker.request("value", derivative._number, np.ones(1), timeout=600.0)


def test_a_module_that_cannot_be_imported_says_so() -> None:
    worker = Worker("difflab.methods.nowhere")
    with pytest.raises(DifflabError, match=r"did not start.*nowhere"):
        worker.request("value", timeout=600.0)
    worker.stop()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")  # JAX's, if it runs
def test_a_forked_process_leaves_it_alone(symbolic: Symbolic, prepare: Prepare) -> None:
    derivative = prepare("x^3")
    worker = symbolic.running()
    child = os.fork()
    if child == 0:
        status = 1 if worker.alive else 0
        worker.stop()
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert worker.alive
    assert at(derivative, 2.0) == [[12.0]]


def test_an_interrupted_request_does_not_answer_the_next(
    symbolic: Symbolic, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    derivative = prepare("x^3")
    worker = symbolic.running()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "_receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        derivative(np.array([5.0]))
    assert not worker.alive
    assert at(derivative, 2.0) == [[12.0]]


@pytest.mark.skipif(not hasattr(os, "getpgid"), reason="needs process groups")
def test_ctrl_c_reaches_the_parent_alone(symbolic: Symbolic) -> None:
    assert os.getpgid(symbolic.running()._process.pid) != os.getpgid(0)


# One expression that SymPy simplifies for minutes, telling nobody.
SCRIPT = """
    import os, sys, time
    from difflab.language import parse
    from difflab.methods.protocol import Problem
    from difflab.methods.symbolic.method import SYMBOLIC

    f = parse("*".join(f"(x + sin({k}*x) + exp(x/{k}))^{k}" for k in range(2, 30)))
    prepared = SYMBOLIC.prepare(Problem(f.values, f.n, f.m, f, timeout=1000.0))
    print(SYMBOLIC.running()._process.pid, flush=True)
    prepared.simplified
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_the_process_dies_with_its_parent(number: int) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(1.0)  # into the middle of SymPy's work
    os.killpg(parent.pid, number)
    _, errors = parent.communicate()
    assert gone(pid, orphan=number != signal.SIGINT)
    if number == signal.SIGINT:
        assert errors.count("Traceback") == 1  # the parent's KeyboardInterrupt and no other
