"""The file of a study: killed and interrupted runs, two runs at once, files of other kinds."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from difflab.errors import InputError
from difflab.lab.study.cases import COLUMNS, StudyStore

ROOT = Path(__file__).parents[3]
# Each record takes some milliseconds and says which process made it. A process computes nothing
# until as many have claimed a work as it is told.
RUN = """
import os, sys, time
from pathlib import Path
from difflab.lab.study.cases import COLUMNS, StudyStore
from difflab.lab.engine import Work, unclaimed
works = [Work(n, f"work {n}", "", {"a": f"{n}a", "b": f"{n}b"})
         for n in range(40)]
log = open(sys.argv[2], "a", buffering=1)
with StudyStore(Path(sys.argv[1]), new=True) as store, store.owner() as owner:
    print("ready", flush=True)
    sys.stdin.readline()
    for work, missing in unclaimed(store, owner, works):
        Path(f"claimed-{os.getpid()}").touch()
        while len([*Path().glob("claimed-*")]) < int(sys.argv[3]):
            time.sleep(0.02)
        time.sleep(0.02)
        rows = [{**dict.fromkeys(COLUMNS), "key": key, "message": str(os.getpid()) + "x" * 5000}
                for key in missing.values()]
        store.add(owner, work.name, rows)
        for key in missing.values():
            log.write(f"{key}\\n")
"""


def start(path, log, *, wait=False, together=1):
    """Start a run; one that is to wait begins at the end of a line on its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(path), str(log), str(together)],
        cwd=path.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    if not wait:
        begin(process)
    return process


def begin(process):
    process.stdin.write("\n")
    process.stdin.flush()


def test_nothing_that_was_written_is_lost_at_kill_9_at_random_moments(tmp_path):
    path, log = tmp_path / "a.db", tmp_path / "log"
    moments = random.Random(1)
    for _ in range(3):
        with start(path, log) as process:
            time.sleep(moments.uniform(0, 0.3))
            process.kill()
        written = log.read_text().split()
        with StudyStore(path) as store:
            assert store.known(written) == set(written)
            check = store._open.execute("PRAGMA integrity_check").fetchone()[0]
        assert check == "ok"
    with start(path, log) as process:
        assert process.wait(600) == 0, process.stderr.read()
    written = log.read_text().split()
    with StudyStore(path) as store:
        records = store.records()
    # What a process wrote but had not yet logged when it was killed is there as well.
    assert set(written) <= {record["key"] for record in records}
    assert len(records) == 80
    assert len(written) == len(set(written))
    assert list(tmp_path.glob("*.run-*")) == []


def test_two_runs_share_the_work_and_do_no_record_twice(tmp_path):
    path, log = tmp_path / "a.db", tmp_path / "log"
    runs = [start(path, log, wait=True, together=2) for _ in range(2)]
    for run in runs:
        begin(run)
    for run in runs:
        with run:
            assert run.wait(600) == 0, run.stderr.read()
    written = log.read_text().split()
    assert sorted(written) == sorted(f"{n}{method}" for n in range(40) for method in "ab")
    with StudyStore(path) as store:
        makers = {record["message"].rstrip("x") for record in store.records()}
    assert len(makers) == 2


def test_the_claim_of_a_stopped_process_holds_and_that_of_a_killed_one_lapses(tmp_path):
    path, log = tmp_path / "a.db", tmp_path / "log"
    lone = start(path, log, together=2)  # keeps its first claim, waiting for another process
    with lone as process, StudyStore(path) as store, store.owner() as owner:
        claims, last = [], time.monotonic() + 600
        while not claims and time.monotonic() < last:
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
            process.send_signal(signal.SIGSTOP)
            claims = _claims(store)
        assert claims
        for claim in claims:
            assert store.claim(owner, claim["work"], ["other"]) is None
        process.kill()
        process.wait()
        for claim in claims:
            assert store.claim(owner, claim["work"], ["other"]) == ["other"]


def _claims(store):
    """Return the claims in a store, unless a stopped process is in the middle of a transaction."""
    store._open.execute("PRAGMA busy_timeout = 50")
    try:
        store._open.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return []
    found = store._open.execute("SELECT work, owner FROM claims").fetchall()
    store._open.execute("ROLLBACK")
    return found


@pytest.mark.parametrize("kind", ["text", "sqlite", "later", "folder", "absent"])
def test_other_files_are_refused_and_left_alone(tmp_path, kind):
    path = tmp_path / "a.db"
    if kind == "text":
        path.write_text("not a database " * 100)
    elif kind == "sqlite":
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE t (a)")
        other.close()
    elif kind == "later":
        StudyStore(path, new=True).close()
        with sqlite3.connect(path) as other:
            other.execute("PRAGMA user_version = 99")
        other.close()
    elif kind == "folder":
        path.mkdir()
    before = path.read_bytes() if path.is_file() else None
    says = {"later": "later version", "absent": "no file", "folder": "no file"}
    with pytest.raises(InputError, match=says.get(kind, "the file of a study")):
        StudyStore(path, new=kind not in ("absent", "folder"))
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_copy_has_all_records_and_no_claims(tmp_path):
    blank = dict.fromkeys(COLUMNS)
    with StudyStore(tmp_path / "a.db", new=True) as store, store.owner() as owner:
        store.claim(owner, "w", ["k"])
        store.claim(owner, "v", ["l"])
        store.add(owner, "w", [{**blank, "key": "k", "max_ulp_error": 0.1}])
        store.copy(tmp_path / "b.db")
    with StudyStore(tmp_path / "b.db") as copy:
        assert [record["max_ulp_error"] for record in copy.records()] == [0.1]
        assert copy._open.execute("SELECT count(*) FROM claims").fetchone()[0] == 0
