"""Ctrl-C and kill −9 at any moment: quiet, and what was measured is kept and goes on."""

import csv
import os
import random
import re
import signal
import time

import pytest

from difflab.bench.accuracy import LAYOUT
from difflab.lab.sweep import load

BENCH = ("bench", "accuracy", "x^2*sin(x)", "--at", "x=1", "--quick", "--reports", ".")


def stopped(command, arguments, signal_, seconds):
    """Start the command, send its group a signal after some time, and return what it said."""
    with command.start(*arguments, start_new_session=True) as process:
        time.sleep(seconds)
        os.killpg(process.pid, signal_)
        _, err = process.communicate(timeout=600)
    return process.returncode, err.decode()


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.4, 0.7, 1.1])
def test_interrupts_are_quiet(command, seconds):
    started = False
    while not started:  # Python itself, whose `site` has a `main` too: difflab's is not called yet
        code, err = stopped(command, ("compare", "ln(x1)+x1*x2-sin(x2)"), signal.SIGINT, seconds)
        in_main = re.search(r'cli.__init__\.py", line \d+, in main', err) is not None
        started = in_main if "Traceback" in err else code != -signal.SIGINT
        seconds += 0.1
    assert "Traceback" not in err
    assert "fault in difflab" not in err
    assert code in (0, 130)


def test_interrupts_while_classes_are_made_are_interrupts(monkeypatch, capsys):
    """Python 3.11 wraps a KeyboardInterrupt in a RuntimeError there."""
    from difflab.cli import app

    def broken(*_, **__):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("Error calling __set_name__") from error

    monkeypatch.setattr(app, "_reduced", lambda command, words: broken)
    assert app.run([]) == 130
    assert capsys.readouterr().err == "difflab: interrupted\n"


def test_a_bench_that_is_stopped_goes_on(command, tmp_path):
    """The moments are chosen at random, and the file is valid after each."""
    moments = random.Random(0)
    path = tmp_path / "accuracy.csv"
    before: list[list[str]] = []
    for signal_ in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        stopped(command, BENCH, signal_, moments.uniform(0.8, 2.2))
        load(path, LAYOUT)
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        lines = list(csv.reader(whole.splitlines()))
        assert lines[: len(before)] == before
        before = lines
    assert command(*BENCH).code == 0
    lines = list(csv.reader(path.read_text().splitlines()))
    assert lines[: len(before)] == before
    keys = [tuple(row[name] for name in LAYOUT.key) for row in load(path, LAYOUT)]
    assert len(keys) == len(set(keys)) > 30
    assert (tmp_path / "accuracy.svg").stat().st_size > 1000


def test_a_comparison_that_is_killed_leaves_no_half_of_a_file(command, tmp_path):
    (tmp_path / "a.json").write_text("old")
    arguments = ("compare", "x^2", "--no-timing", "--methods", "forward", "-o", "a.json")
    for seconds in (0.5, 1.0):
        stopped(command, arguments, signal.SIGKILL, seconds)
        text = (tmp_path / "a.json").read_text()
        assert text == "old" or text.endswith("}\n")
