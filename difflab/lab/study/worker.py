"""Preloaded by the workers of a local cluster: their core, and Ctrl-C."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

CORES = "DIFFLAB_STUDY_CORES"
"""The environment variable that names the cores of a worker, as 0,2."""


def dask_setup(worker: Any) -> None:
    """Pin a worker to its cores, where the system can do that, and leave Ctrl-C to the study.

    The environment is read before, since its number of threads is that of the machine: it
    belongs to the key of a record, which does not depend on who computes it.
    """
    from difflab.lab.environment import environment

    environment()
    cores = os.environ.get(CORES, "")
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, map(int, cores.split(",")))
    with suppress(ValueError):  # only the main thread may set a signal handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
