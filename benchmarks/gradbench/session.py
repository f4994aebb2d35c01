"""A session of GradBench: the lines of an eval passed on to a tool, and back."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from threading import TIMEOUT_MAX, Timer
from typing import Any, NoReturn

from difflab.errors import DifflabError, MethodTimeout

__all__ = ["Evaluation", "GoldenAnswers", "Session", "difference", "session"]

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_HERE = Path(__file__).parents[2]


class Child:
    """A process that answers lines with lines, in a process group of its own, on one thread.

    Parameters
    ----------
    command : sequence of str
        The command.
    root : pathlib.Path
        Its folder: a checkout's root, whose Python package it can import.
    """

    def __init__(self, command: Sequence[str], root: Path) -> None:
        paths = (str(root / "python/gradbench"), str(_HERE), os.environ.get("PYTHONPATH"))
        self.name = " ".join(command[1:4])
        self.late = False
        self._errors = TemporaryFile("w+", errors="replace")  # noqa: SIM115 - `close` closes it
        self._process = subprocess.Popen(
            command,
            cwd=root,
            env=os.environ | _ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            encoding="utf-8",
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )

    def ask(self, line: str, seconds: float | None = None) -> str:
        """Send a line and return the next one; empty where the process has ended as it should."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(min(seconds or TIMEOUT_MAX, TIMEOUT_MAX), self._stop_late)
        timer.daemon = True
        timer.start()
        with suppress(BrokenPipeError):
            process.stdin.write(line)
            process.stdin.flush()
        answer = process.stdout.readline()
        timer.cancel()
        if not answer and (self.late or process.wait() != 0):
            self._failed(seconds)
        return answer

    def _failed(self, seconds: float | None) -> NoReturn:
        if self.late:
            raise MethodTimeout(f"no answer in {seconds:g} s")
        self._errors.seek(0)
        last = "".join(self._errors.readlines()[-1:]).strip()
        raise DifflabError(f"{self.name} ended with code {self._process.wait()}: {last}")

    def _stop_late(self) -> None:
        self.late = True
        self._kill()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and all that it has started."""
        self._kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._errors.close()


_GOLDEN = """if True:
    import json, runpy, sys
    expected = runpy.run_path(sys.argv[1]).get("expect", lambda *_: {})
    for line in sys.stdin:
        print(json.dumps(expected(*json.loads(line)).get("output")), flush=True)
"""


class GoldenAnswers:
    """What an eval itself expects.

    Parameters
    ----------
    command : sequence of str
        The command of the eval.
    root : pathlib.Path
        The checkout.
    """

    def __init__(self, command: Sequence[str], root: Path) -> None:
        self._child = Child([command[0], "-c", _GOLDEN, command[1]], root)

    def __call__(self, function: str, question: Any) -> Any:
        """Return the answer to a question, None if the eval has none."""
        return json.loads(self._child.ask(json.dumps([function, question]) + "\n"))

    def close(self) -> None:
        """End its process."""
        self._child.close()


@dataclass
class Evaluation:
    """An answer of a tool.

    Attributes
    ----------
    function, workload : str
        What was asked.
    seconds, prepare : list of float
        The timings called ``evaluate``, and those called ``prepare``.
    valid : bool or None
        Whether the eval accepts it; None if it did not judge.
    difference : float or None
        The largest relative difference from the golden answer.
    error : str
        Why there is no answer.
    """

    function: str
    workload: str
    seconds: list[float] = field(default_factory=list)
    prepare: list[float] = field(default_factory=list)
    valid: bool | None = None
    difference: float | None = None
    error: str = ""


@dataclass
class Session:
    """All answers of a tool, and why there are no more, if it did not come to the end."""

    evaluations: list[Evaluation] = field(default_factory=list)
    error: str = ""


def session(
    asking: Sequence[str],
    tool: Sequence[str],
    root: Path,
    timeout: float,
    golden: Callable[[str, Any], Any] | None = None,
) -> Session:
    """Let an eval question a tool.

    Parameters
    ----------
    asking, tool : sequence of str
        The commands.
    root : pathlib.Path
        The checkout.
    timeout : float
        Seconds for one answer of the tool.
    golden : callable, optional
        ``golden(function, question)`` is what an answer is compared with; None if nothing is.
    """
    found, by_id = Session(), dict[Any, Evaluation]()
    with ExitStack() as stack:
        judge, answerer = Child(asking, root), Child(tool, root)
        for child in (judge, answerer):
            stack.callback(child.close)
        line, answer = "", ""
        try:
            while line := judge.ask(answer):
                message = json.loads(line)
                if message["kind"] == "evaluate":
                    entry = Evaluation(message["function"], str(message.get("description", "")))
                    found.evaluations.append(by_id.setdefault(message["id"], entry))
                elif message["kind"] == "analysis":
                    by_id[message["of"]].valid = message["valid"]
                answer = answerer.ask(line, timeout)
                _take(message, json.loads(answer, parse_constant=_refused), by_id, golden)
        except (DifflabError, ValueError, KeyError, TypeError) as error:
            known = isinstance(error, DifflabError)
            found.error = str(error) if known else f"{type(error).__name__}: {error}"
    return found


def _take(
    message: Mapping[str, Any],
    response: Mapping[str, Any],
    by_id: Mapping[Any, Evaluation],
    golden: Callable[[str, Any], Any] | None,
) -> None:
    """Note what a response says."""
    if message["kind"] == "define" and not response["success"]:
        raise DifflabError("the tool does not have this eval")
    if message["kind"] != "evaluate":
        return
    entry = by_id[message["id"]]
    if not response["success"]:
        entry.error = str(response.get("error") or "it failed")
        return
    for timing in response["timings"]:
        kept = {"evaluate": entry.seconds, "prepare": entry.prepare}.get(timing["name"])
        if kept is not None:
            kept.append(timing["nanoseconds"] / 1e9)
    if golden is not None:
        expected = golden(message["function"], message["input"])
        if expected is not None:
            entry.difference = difference(response["output"], expected)


def _refused(token: str) -> NoReturn:
    raise ValueError(f"{token} in an answer is not JSON")


def difference(a: Any, b: Any) -> float:
    """Return the largest relative difference of two JSON values; infinite if they are not alike.

    A list of numbers counts as one vector: its largest difference over its largest entry.

    Examples
    --------
    >>> difference({"x": [1.0, 100.0]}, {"x": [2.0, 100.0]})
    0.01
    >>> difference([1.0], [1.0, 2.0]), difference([float("nan")], [1.0])
    (inf, inf)
    """
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return max((difference(a[key], b[key]) for key in a), default=0.0)
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        if not _finite(a + b):
            return max(map(difference, a, b))
        gap = max((abs(x - y) for x, y in zip(a, b, strict=True)), default=0.0)
        return gap / max(map(abs, a + b)) if gap else 0.0
    return difference([a], [b]) if _finite([a, b]) else math.inf


def _finite(values: Sequence[Any]) -> bool:
    return all(type(value) in (int, float) and math.isfinite(value) for value in values)
