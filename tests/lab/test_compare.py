"""Comparisons end to end, and methods that fail in every way there is."""

from __future__ import annotations

import inspect
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, get_type_hints

import jsonschema
import numpy as np
import pytest

import difflab
from difflab.errors import (
    DomainError,
    InputError,
    MethodTimeout,
    ParseError,
    PointError,
    UnsupportedError,
)
from difflab.graph.trace import trace
from difflab.lab.compare import compare
from difflab.lab.options import CompareOptions
from difflab.lab.recommend import recommend
from difflab.lab.record import Comparison, Status
from difflab.methods import registry
from difflab.methods.automatic import REVERSE
from difflab.methods.protocol import Estimate, Family, Problem, Size
from difflab.methods.symbolic.method import SYMBOLIC
from difflab.report.trace.trace import trace as evaluation_trace

SEED = "ln(x1)+x1*x2-sin(x2)"
OWN = [
    *("symbolic", "finite-forward", "finite-central", "richardson"),
    *("complex-step", "forward", "reverse"),
]


@pytest.fixture(scope="module", autouse=True)
def stopped() -> Iterator[None]:
    yield
    SYMBOLIC.stop()


@pytest.fixture(scope="module")
def seed() -> Comparison:
    return compare(SEED, {"x1": 2, "x2": 5}, timeout=600.0)  # costs are measured until then


# --- the main job ------------------------------------------------------------------------------


def test_the_seed_expression(seed: Comparison) -> None:
    assert seed.value.tolist() == [11.652071455223084]
    assert seed.reference.jacobian is not None
    assert seed.reference.jacobian.tolist() == [[5.5, 1.7163378145367738]]
    assert [row.name for row in seed.methods] == OWN
    assert {row.status for row in seed.methods} == {Status.OK}
    assert {row.verdict for row in seed.methods} == {"agree"}
    assert seed.agreed
    for row in seed.methods:
        assert row.max_ulp_error is not None
        if row.family is not Family.NUMERIC:
            assert row.max_ulp_error <= 2


def test_its_costs_are_there(seed: Comparison) -> None:
    for row in seed.methods:
        assert row.prepare_seconds is not None
        assert row.call_seconds == min(row.samples)
        assert row.peak_bytes is not None
        numeric = row.family is Family.NUMERIC
        assert (row.operations is None) == numeric
        assert (row.function_evaluations == 0) == (not numeric)
        assert (row.size == Size() or row.size is None) == numeric
    for name in ("forward", "reverse", "symbolic"):
        assert seed.methods[OWN.index(name)].operations == 4  # 1/x1 + x2, x1 - cos(x2)
    symbolic = seed.methods[0].size
    assert symbolic is not None
    assert None not in (symbolic.tree, symbolic.dag, symbolic.simplified_tree)


def test_its_json_is_of_the_schema(seed: Comparison, reference: Any) -> None:
    found = json.loads(seed.to_json())
    jsonschema.validate(found, reference("comparison-5.schema"))
    assert found["expression"]["text"] == SEED
    assert found["point"] == {"x1": 2.0, "x2": 5.0}


def test_sympy_stays_out_of_this_process() -> None:
    code = (
        "import sys; from difflab.lab.compare import compare; "
        f"compare({SEED!r}); assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_hessians() -> None:
    result = compare("x^3*y + exp(y)", {"x": 2.0, "y": 0.0}, order=2, timing=False)
    assert result.agreed
    for row in result.methods:
        assert row.jacobian is not None
        assert row.jacobian == pytest.approx(np.array([[0.0, 12.0], [12.0, 1.0]]), abs=1e-4)


def test_several_outputs_and_arrays() -> None:
    result = compare("x: [3]; [sum(x^2), x[0]*x[2]]", {"x": [1, 2, 3]}, timing=False)
    assert result.agreed
    for row in result.methods:
        assert row.jacobian == pytest.approx(np.array([[2, 4, 6], [3, 0, 1]]), rel=1e-6)
    assert result.to_dict()["point"] == {"x": [1.0, 2.0, 3.0]}


def test_many_inputs() -> None:
    methods = ["reverse", "finite-central"]
    result = compare("x: [1000]; sum(x*sin(x))", methods=methods, timing=False, timeout=600.0)
    x = result.point["x"]
    expected = np.sin(x) + x * np.cos(x)
    assert result.agreed
    for row in result.methods:
        assert row.jacobian is not None
        assert row.jacobian[0] == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_a_kink_is_a_convention() -> None:
    result = compare("abs(x)", {"x": 0}, timing=False, methods=["reverse", "complex-step"])
    assert [row.verdict for row in result.methods] == ["convention", None]
    assert result.methods[1].status is Status.UNSUPPORTED
    assert result.agreed
    assert "The derivative does not exist here" in recommend(result)


def test_functions_made_from_python() -> None:
    function = trace(lambda a, b: np.sin(a) * b, 1.0, 1.0)
    result = compare(function, {"a": 0.0, "b": 3.0}, methods=["reverse"], timing=False)
    assert result.methods[0].jacobian is not None
    assert result.methods[0].jacobian.tolist() == [[3.0, 0.0]]
    assert "sin" in result.expression.text


def test_a_chosen_point_is_the_same_every_time() -> None:
    first, again, other = (
        compare(SEED, methods=["reverse"], timing=False, seed=seed) for seed in (0, 0, 1)
    )
    assert first.point == again.point != other.point
    assert first.point_chosen
    assert not compare("x", {"x": 1}, methods=["reverse"], timing=False).point_chosen


def test_text_is_only_text() -> None:
    # Names that would do something if anyone evaluated or printed them.
    result = compare("__import__ + system", {"__import__": 1, "system": 2}, timing=False)
    assert result.agreed
    assert {row.status for row in result.methods} == {Status.OK}


# --- what is wrong with the input --------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "kind", "message"),
    [
        ({"x": 1}, PointError, "no value is given for the input y"),
        ({}, PointError, "the inputs x, y"),
        ({"x": 1, "y": 2, "yy": 3}, PointError, "'yy'.*\n.*did you mean 'y'"),
        ({"x": 1, "y": [1, 2]}, PointError, r"'y' has the shape \(\), but its value .* \(2,\)"),
        ({"x": 1, "y": "2"}, PointError, "'y' is not a number"),
        ({"x": 1, "y": 2j}, PointError, "'y' is not a real number"),
        ({"x": 1, "y": None}, PointError, "'y' is not a number"),
        ({"x": 1, "y": [[1], [2, 3]]}, PointError, "'y' is a list with rows of different lengths"),
        ({"x": 1, "y": math.nan}, PointError, "'y' is not finite"),
        ({"x": 1, "y": 10**400}, PointError, "'y' is too large"),
        ([1, 2], PointError, "mapping of input names to values"),
        ({"x": 1, "y": -2}, DomainError, "log"),
    ],
)
def test_points_that_are_none(at: Any, kind: type[InputError], message: str) -> None:
    with pytest.raises(kind, match=message):
        compare("x*log(y)", at, methods=["reverse"], timing=False)


def test_a_missing_value_is_shown_where_it_is_needed() -> None:
    with pytest.raises(PointError) as caught:
        compare("ln(x) + y", {"x": 1})
    assert caught.value.render().splitlines()[1:] == ["  ln(x) + y", "          ^"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ["revers"]}, "no method 'revers'.*\n.*reverse"),
        ({"methods": []}, "no method is named"),
        ({"order": 3}, "orders 1 and 2"),
        ({"timeout": 0.0}, "time limit"),
        ({"timeout": math.nan}, "time limit"),
        ({"expression": "[x, x]", "order": 2}, "one output number"),
        ({"expression": "1 + 2"}, "no input"),
        ({"expression": 3}, "expected a formula"),
    ],
)
def test_settings_that_are_none(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(**({"expression": "x^2"} | settings))


def test_text_that_is_no_formula() -> None:
    with pytest.raises(ParseError):
        compare("2x +")


# --- methods that fail -------------------------------------------------------------------------


class Plugin:
    """A method of another package; what it does is given."""

    summary = "a plug-in"

    def __init__(self, name: str, prepare: Any, orders: tuple[int, ...] = (1, 2)) -> None:
        self.name = name
        self.family = Family.AUTOMATIC
        self.orders = orders
        self.prepare = prepare
        self.reason: str | None = None

    def missing(self) -> str | None:
        return self.reason


class Given:
    """A derivative that is always the same."""

    size = None
    operations = None

    def __init__(self, value: Any, error: Any = None) -> None:
        self.estimate = Estimate(np.array(value), error, 0)

    def __call__(self, x: Any) -> Estimate:
        return self.estimate


def raising(error: BaseException) -> Any:
    def prepare(problem: Problem) -> Any:
        raise error

    return prepare


def compared(monkeypatch: pytest.MonkeyPatch, *plugins: Any, **settings: Any) -> Comparison:
    """Compare the methods given, on x² at 3."""
    known = {plugin.name: plugin for plugin in plugins}
    monkeypatch.setattr(registry, "installed", lambda: known)
    return compare(**({"expression": "x^2", "at": {"x": 3}, "timing": False} | settings))


@pytest.mark.parametrize(
    ("prepare", "status", "message"),
    [
        (raising(UnsupportedError("not today")), Status.UNSUPPORTED, "not today"),
        (raising(MethodTimeout("1 of 2")), Status.TIMEOUT, "1 of 2"),
        (raising(ZeroDivisionError("oh\x1b[31m")), Status.FAILED, r"ZeroDivisionError: oh\x1b[31m"),
        (raising(RecursionError("deep")), Status.FAILED, "RecursionError: deep"),
        (raising(MemoryError()), Status.FAILED, "MemoryError"),
        (raising(SystemExit(3)), Status.FAILED, "SystemExit: 3"),
        (lambda _: None, Status.FAILED, "TypeError: 'NoneType' object is not callable"),
        (lambda _: Given([1.0, 2.0]), Status.FAILED, "shape (2,) instead of (1, 1)"),
        (lambda _: Given("text"), Status.FAILED, "could not convert"),
    ],
)
def test_a_failure_is_a_row(
    monkeypatch: pytest.MonkeyPatch, prepare: Any, status: Status, message: str
) -> None:
    result = compared(monkeypatch, Plugin("bad", prepare), REVERSE)
    bad, good = result.methods
    assert bad.status is status
    assert message in bad.message
    assert (bad.jacobian, bad.verdict) == (None, None)
    assert good.verdict == "agree"
    assert result.agreed
    assert recommend(result).startswith("Use reverse")


def test_what_is_not_there_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Plugin("absent", raising(AssertionError()))
    absent.reason = "pip install it"
    first = Plugin("first", raising(AssertionError()), orders=(1,))
    result = compared(monkeypatch, absent, first, order=2)
    assert [row.status for row in result.methods] == [Status.UNSUPPORTED] * 2
    assert result.methods[0].message == "pip install it"
    assert "order 2" in result.methods[1].message
    assert "No method gave a derivative" in recommend(result)


def test_a_wrong_derivative_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    result = compared(monkeypatch, Plugin("wrong", lambda _: Given([[6.1]])), REVERSE)
    assert [row.verdict for row in result.methods] == ["disagree", "agree"]
    assert result.methods[0].max_abs_error == pytest.approx(0.1)
    assert not result.agreed
    assert recommend(result).endswith("wrong here: wrong.")


def test_an_error_estimate_is_its_largest_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = Plugin("p", lambda _: Given([[1.0, 2.0]], np.array([[1e-9, 3e-9]])))
    result = compared(monkeypatch, plugin, expression="x + 2*y", at={"x": 1, "y": 1})
    assert result.methods[0].error_estimate == 3e-9


def test_an_interrupt_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        compared(monkeypatch, Plugin("slow", raising(KeyboardInterrupt())))


def test_what_needs_time_to_start_is_started_first_and_asked_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []

    def method(name: str) -> Plugin:
        def prepare(problem: Problem) -> Given:
            events.append(name)
            return Given([[6.0]])

        return Plugin(name, prepare, orders=(1,))

    slow = method("slow")
    slow.start = lambda: events.append("start")
    told: list[tuple[int, int, str]] = []
    result = compared(
        monkeypatch, slow, method("quick"), progress=lambda *progress: told.append(progress)
    )
    assert list(dict.fromkeys(events)) == ["start", "quick", "slow"]
    assert told == [(0, 2, "the referee"), (0, 2, "quick"), (1, 2, "slow")]
    assert [row.name for row in result.methods] == ["slow", "quick"]


def test_without_a_referee_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    from difflab.referee.referee import Referee

    monkeypatch.setattr(Referee, "reference", raising(UnsupportedError("no such function")))
    result = compared(monkeypatch, REVERSE)
    assert result.methods[0].verdict == "inconclusive"
    assert result.methods[0].jacobian is not None
    assert "no such function" in result.reference.status
    assert result.to_dict()["reference"]["jacobian"] is None
    assert recommend(result).startswith("No method can be recommended here: the referee gave")


def test_a_difference_within_the_referees_own_error_is_none() -> None:
    text = "W: [2, 3]; x: [3]; b: [2]\nsum(relu(W @ x + b)^2)"
    at = {"W": [[1, 2, 3], [4, 5, 6]], "x": [1, 0.5, -1], "b": [1, 2]}
    (row,) = compare(text, at, methods=["reverse"], timing=False).methods
    assert row.max_abs_error == row.max_rel_error == row.max_ulp_error == 0


def test_truth_values_are_numbers_to_every_method() -> None:
    found = compare("x >= y", {"x": 1.0, "y": 2.0}, timing=False)
    failed = [row.name for row in found.methods if row.status is Status.FAILED]
    assert failed == []
    assert {row.name: row.verdict for row in found.methods}["finite-central"] == "agree"


def test_no_output_is_called_as_an_input() -> None:
    traced = trace(lambda b, y: b * y, 1.0, 2.0)
    for function in ("b*y", traced):
        written = json.loads(compare(function, {"b": 1.0, "y": 2.0}, timing=False).to_json())
        names = [
            side["name"] for part in ("inputs", "outputs") for side in written["expression"][part]
        ]
        assert names == ["b", "y", "f"]


def test_a_seed_that_is_none_is_the_inputs_fault() -> None:
    with pytest.raises(InputError, match="the seed must be a non-negative integer, not -1"):
        compare("x", seed=-1, timing=False)


def test_the_options_of_every_comparison_are_the_public_ones() -> None:
    public = inspect.signature(difflab.compare).parameters
    own = inspect.signature(compare).parameters
    shared = dict.fromkeys(get_type_hints(CompareOptions))
    assert list(shared) == [name for name in public if name in shared]
    assert {name: own[name] for name in shared} == {name: public[name] for name in shared}
    domain = {"over", "points", "scale", "resume"}
    assert set(public) == {"expression", "at", "stabilise", *domain, *shared}


@pytest.mark.parametrize("at", [{"x": 1}, {"x": 1, "y": [1, 2]}, {"x": 1, "y": math.inf}, {"z": 1}])
def test_a_wrong_point_gets_one_message_everywhere(at: dict[str, Any]) -> None:
    function = difflab.parse("x*y")
    messages = set()
    for use in (lambda: compare(function, at), lambda: evaluation_trace(function, at)):
        with pytest.raises(PointError) as caught:
            use()
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_code_traced_in_float32_is_compared_in_float64_and_that_is_said() -> None:
    single = trace(lambda x: np.sin(x) * 0.1, np.float32(0.5))
    assert (single.traced_in, trace(np.sin, 0.5).traced_in) == ("float32", "")
    assert trace(lambda x, y: x * y, np.float32(0.5), np.ones(2)).traced_in == ""
    found = compare(single, at={"x": 0.5}, methods=["reverse"], timing=False)
    assert (
        "float64; the code was traced for float32"
        in difflab.compare(single, at={"x": 0.5}, methods=["reverse"], timing=False).table()
    )
    assert "float32" in found.to_dict()["environment"]["dtype"]
    other = compare("sin(x)", at={"x": 0.5}, methods=["reverse"], timing=False)
    assert "dtype" not in other.to_dict()["environment"]


# --- whatever is raised is a row ----------------------------------------------------------------


class MuteError(Exception):
    """An exception of another package, whose message cannot be printed."""

    def __str__(self) -> str:
        raise MuteError


@pytest.mark.parametrize("error", [MuteError(), AttributeError("x"), SystemExit(3), KeyError(1)])
def test_what_a_method_here_raises_is_its_row(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def prepare(self: Any, problem: Problem) -> Any:
        raise error

    monkeypatch.setattr(type(REVERSE), "prepare", prepare)
    found = compare("x^2", {"x": 3.0}, methods=["reverse", "finite-central"], timing=False)
    assert [row.status for row in found.methods] == [Status.FAILED, Status.OK]
    assert found.methods[0].message.startswith(type(error).__name__)
    assert found.methods[1].verdict == "agree"


@pytest.mark.parametrize("error", [MuteError(), AttributeError("x"), RecursionError(), OSError(5)])
@pytest.mark.parametrize("where", ["prove", "Refinement"])
def test_what_the_referee_raises_is_its_row(
    monkeypatch: pytest.MonkeyPatch, error: Exception, where: str
) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    monkeypatch.setattr(f"difflab.referee.referee.{where}", fail)
    found = compare("x^2", {"x": 3.0}, methods=["reverse"], timing=False)
    (row,) = found.methods
    assert (row.status, row.verdict) == (Status.OK, "inconclusive")
    assert f"the referee gave up: {type(error).__name__}" in found.reference.status
    assert row.message == found.reference.status
    assert row.jacobian is not None
    assert row.jacobian.tolist() == [[6.0]]


def test_a_function_of_mpmath_that_does_not_converge() -> None:
    found = compare("betainc(1e5, 1e5, x)", {"x": 0.5}, methods=["reverse"], timing=False)
    (row,) = found.methods
    assert row.status == Status.OK
    if find_spec("flint"):
        assert (row.verdict, found.reference.proved) == ("agree", True)
    else:
        assert (row.verdict, "NoConvergence" in row.message) == ("inconclusive", True)
