"""Studies on a local Dask cluster: the records of one process, however many workers die."""

import os
import random
import signal
import threading
from contextlib import suppress

import pytest

from difflab.errors import InputError
from difflab.lab.store import unpacked_json
from difflab.lab.study import run as alone
from difflab.lab.study.cases import COLUMNS, StudyStore
from difflab.lab.study.run import Cluster, opened
from difflab.lab.study.study import read

pytest.importorskip("distributed", reason="Dask's distributed is not installed")

STUDY = """
[[grid]]
formulas = ["ln(x1) + x1*x2 - sin(x2)", "exp(-x1^2)*cos(x2)/x1", "abs(x1)^3*tanh(x2)"]
seeds = [0, 1, 2]
methods = ["forward", "richardson", "complex-step"]
timing = false

[[grid]]
families = ["rosenbrock"]
sizes = [2, 4]
methods = ["reverse", "finite-central"]
repeats = 1
"""
MEASURED = ("date", "prepare_seconds", "call_seconds", "peak_bytes", "blocks", "comparison")


def unmeasured(record):
    """Return a record without its times, and the comparison in it likewise."""
    kept = {name: record[name] for name in COLUMNS if name not in MEASURED}
    comparison = unpacked_json(record["comparison"])
    comparison["environment"] = {
        name: value
        for name, value in comparison["environment"].items()
        if name not in ("date", "samples", "repetitions", "spread")
    }
    for row in comparison["methods"]:
        for name in ("prepare_seconds", "call_seconds", "peak_bytes"):
            assert (row.pop(name) is None) == (record[name] is None)
    return kept, comparison


@pytest.mark.slow
def test_records_are_those_of_one_process_with_workers_killed_at_random(tmp_path):
    (tmp_path / "a.toml").write_text(STUDY, encoding="utf-8")
    study = read(tmp_path / "a.toml")
    moments, killed, ended = random.Random(5), [], threading.Event()
    with opened(2, None) as cluster, StudyStore(tmp_path / "b.db", new=True) as store:
        planned = alone.plan(study, cluster.sources(study.cases))
        affinities = cluster.client.run(_affinity)

        def kill():
            while not ended.wait(moments.uniform(0.2, 0.6)) and len(killed) < 2:
                nannies = [*cluster.client.cluster.workers.values()]
                pid = moments.choice(nannies).pid
                if pid is None:  # it is being started again
                    continue
                with suppress(ProcessLookupError):  # it died before its nanny noticed
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            cluster.run(store, planned)
        finally:
            ended.set()
            thread.join()
        found = {record["key"]: record for record in store.records()}
    assert killed
    with StudyStore(tmp_path / "a.db", new=True) as store:
        alone.run(store, alone.plan(study))
        expected = {record["key"]: record for record in store.records()}
    assert found.keys() == expected.keys()
    assert len(found) == 31
    for key, record in expected.items():
        assert unmeasured(found[key]) == unmeasured(record)
    if hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1:
        judging = set().union(*(cores for name, cores in affinities.values() if name != "timing"))
        (timing,) = (cores for name, cores in affinities.values() if name == "timing")
        assert len(timing) == 1
        assert judging.isdisjoint(timing)


def _affinity(dask_worker):
    return dask_worker.name, os.sched_getaffinity(0)


class Workers:
    """A cluster whose workers have given resources and sources."""

    def __init__(self, resources, sources=None):
        self._resources, self._sources = resources, sources

    def scheduler_info(self):
        return {"workers": {str(k): {"resources": r} for k, r in enumerate(self._resources)}}

    def run(self, function, *arguments):
        found = function(*arguments)
        return {"tcp://a": {m: {**s, **(self._sources or {})} for m, s in found.items()}}


def test_a_cluster_of_other_machines_or_without_a_timing_worker_is_refused(tmp_path):
    (tmp_path / "a.toml").write_text(STUDY, encoding="utf-8")
    cases = read(tmp_path / "a.toml").cases
    both = [{"judging": 1}, {"timing": 1}]
    assert Cluster(Workers(both), None).sources(cases).keys() >= {"forward", "reverse"}
    with pytest.raises(InputError, match="no worker of the cluster has the resource 'timing'"):
        Cluster(Workers([{"judging": 1}]), None).sources(cases)
    with pytest.raises(InputError, match="another cpu"):
        Cluster(Workers(both, {"cpu": "other"}), None).sources(cases)


def test_a_scheduler_that_does_not_answer_is_bad_input(monkeypatch):
    import distributed

    def refuse(*_, **__):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(InputError, match="no scheduler answers"), opened(None, "tcp://127.0.0.1:1"):
        pass
    with pytest.raises(InputError, match="both named"), opened(2, "tcp://127.0.0.1:1"):
        pass
