"""GradBench's protocol, with the tool as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.gradbench.tool.hello import FUNCTIONS
from benchmarks.gradbench.tool.protocol import EVALS, functions
from benchmarks.gradbench.tool.repeats import Prepared, repeated
from difflab.execute import workers


def answers(lines: Sequence[Any], *options: str) -> tuple[list[Any], int, str]:
    """Return the tool's responses to messages (or raw lines), its exit code and its errors."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "gradbench-tool", *options],
        input=text,
        capture_output=True,
        text=True,
        env=os.environ | {"DIFFLAB_CACHE": "off"},
        timeout=1200,
        check=False,
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode, done.stderr


def evaluate(number: int, module: str, function: str, value: Any) -> dict[str, Any]:
    return {
        "id": number,
        "kind": "evaluate",
        "module": module,
        "function": function,
        "input": value,
    }


def test_a_session() -> None:
    found, code, errors = answers(
        [
            {"id": 0, "kind": "start", "eval": "hello"},
            {"id": 1, "kind": "define", "module": "hello"},
            evaluate(2, "hello", "square", 3),
            "",
            evaluate(3, "hello", "double", 9.0),
            {"id": 4, "kind": "analysis", "of": 3, "valid": True},
            {"id": 5, "kind": "something new"},
        ]
    )
    assert (code, errors) == (0, "")
    assert [response["id"] for response in found] == [0, 1, 2, 3, 4, 5]
    assert found[0] == {"id": 0, "tool": "difflab"}
    assert found[1] == {"id": 1, "success": True}
    assert [response["output"] for response in found[2:4]] == [9.0, 18.0]
    for response in found[2:4]:
        assert [timing["name"] for timing in response["timings"]] == ["prepare", "evaluate"]
        assert all(isinstance(timing["nanoseconds"], int) for timing in response["timings"])
    assert found[4:] == [{"id": 4}, {"id": 5}]


def test_runs_are_repeated_as_often_as_the_input_asks() -> None:
    few = {"x": [1.0, 2.0], "min_runs": 3, "min_seconds": 0}
    long = {"x": [1.0, 2.0], "min_runs": 1, "min_seconds": 0.01}
    found, _, _ = answers([evaluate(0, "lse", "primal", few), evaluate(1, "lse", "primal", long)])
    times = []
    for response in found:
        runs = [entry for entry in response["timings"] if entry["name"] == "evaluate"]
        times.append([run["nanoseconds"] for run in runs])
        assert len(response["timings"]) == 1 + len(runs)
    assert len(times[0]) == 3
    # A run may be slow enough to be the only one; the last is the one that reaches the time.
    assert sum(times[1][:-1]) < 1e7 <= sum(times[1])


def test_what_cannot_be_answered_is_a_response_that_says_why() -> None:
    found, code, _ = answers(
        [
            {"id": 0, "kind": "define", "module": "fft"},
            evaluate(1, "hello", "triple", 1.0),
            evaluate(2, "../hello", "square", 1.0),
            evaluate(3, "lse", "primal", {"n": 3}),
            evaluate(4, "lse", "primal", {"x": ["a"]}),
            evaluate(5, "lse", "primal", {"x": [1e400]}),
            {"id": 6, "kind": "evaluate", "module": "hello", "function": "square"},
            {"id": 7, "kind": "define"},
            evaluate(8, "hello", "square", 2.0),
        ]
    )
    assert code == 0
    assert [response["success"] for response in found] == [False] * 8 + [True]
    said = [response.get("error", "") for response in found]
    assert "there is no eval 'fft'" in said[0]
    assert "one of hello, llsq" in said[0]
    assert said[1] == "the eval 'hello' has no function 'triple'\nhint: one of square, double"
    assert "there is no eval '../hello'" in said[2]
    assert said[3] == "KeyError: 'x'"
    assert said[4]
    assert "not finite" in said[5]
    assert said[6] == "the message has no field 'input'"
    assert said[7] == "the message has no field 'module'"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2 is not JSON"),
        ("[1, 2]", "line 2 is not a message: it has no 'id'"),
        ('{"kind": "start"}', "line 2 is not a message: it has no 'id'"),
    ],
)
def test_a_line_that_is_no_message_ends_the_session(line: str, reason: str) -> None:
    start = {"id": 0, "kind": "start"}
    found, code, errors = answers([start, line, start])
    assert found == [{"id": 0, "tool": "difflab"}]
    assert code == 2
    assert reason in errors


def test_every_eval_has_the_functions_that_gradbench_calls() -> None:
    modes = {"rr", "ff", "fr", "rf"}
    assert {module: set(functions(module)) for module in EVALS} == {
        "hello": {"square", "double"},
        "llsq": {"primal", "gradient"},
        "lse": {"primal", "gradient"},
        "gmm": {"objective", "jacobian"},
        "kmeans": {"cost", "dir"},
        "ba": {"objective", "jacobian"},
        "ht": {"objective", "jacobian"},
        "det": {"primal", "gradient"},
        "lstm": {"objective", "jacobian"},
        "ode": {"primal", "gradient"},
        "particle": modes,
        "saddle": modes,
    }


def test_equal_minors_are_shared_on_request_only() -> None:
    matrix = {"A": [2.0, 0.0, 1.0, 1.0, 3.0, 2.0, 0.0, 1.0, 4.0], "ell": 3}
    messages = [evaluate(0, "det", "primal", matrix), evaluate(1, "det", "gradient", matrix)]
    cofactors = [10.0, -4.0, 1.0, 1.0, 8.0, -2.0, -3.0, -3.0, 6.0]
    for options in ([], ["--shared-minors"]):
        found, code, _ = answers(messages, *options)
        assert code == 0
        assert [response["output"] for response in found] == [21.0, cofactors]


def test_rehearsals_are_a_part_of_preparing() -> None:
    evaluations: list[int] = []

    def evaluate() -> int:
        evaluations.append(len(evaluations))
        return len(evaluations)

    found = repeated(lambda _: Prepared(evaluate, float, rehearsals=7), 3.0)
    assert [timing["name"] for timing in found["timings"]] == ["prepare", "evaluate"]
    assert len(evaluations) > 7
    assert found["output"] == len(evaluations)  # that of the evaluation which is timed, the last
    limits = {"min_runs": 4, "min_seconds": 0}
    found = repeated(lambda _: Prepared(evaluate, float, rehearsals=7), limits)
    assert [timing["name"] for timing in found["timings"]] == ["prepare", *["evaluate"] * 4]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hello_is_rehearsed_until_machine_code_takes_its_calls(name: str) -> None:
    pytest.importorskip("llvmlite")
    prepared = FUNCTIONS[name](3.0)
    for _ in range(prepared.rehearsals):
        prepared.evaluate()
    workers.finish()
    call = getattr(prepared.evaluate, "func")  # noqa: B009 - of functools.partial
    assert "_machine_call" in vars(call)
    assert prepared.output(prepared.evaluate()) == {"square": 9.0, "double": 6.0}[name]
