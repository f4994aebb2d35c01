"""Settings that hold for every test: no display, no colour, one width, repeatable examples."""

from __future__ import annotations

import json
import os
import secrets
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from hypothesis import HealthCheck, settings

from tests.support.hypothesis_draws import forget_local_constants
from tests.tiers import pytest_addoption, pytest_cmdline_main, pytest_configure

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["pytest_addoption", "pytest_cmdline_main", "pytest_configure"]  # the hooks of the tiers

DATA = Path(__file__).parent / "data"

# Before anything imports matplotlib or rich, here and in the processes that tests start.
os.environ.update(MPLBACKEND="Agg", NO_COLOR="1", COLUMNS="80")
# Compiled code of the tests is not kept among the user's.
os.environ["DIFFLAB_CACHE"] = "off"
os.environ.pop("FORCE_COLOR", None)
# Threads of BLAS wait actively: beside other processes they cost many times what they save. The
# settings are read when NumPy is loaded, which is why this module does not import it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Where JAX computes what is expected, compiling takes far longer than running.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    " --xla_cpu_use_fusion_emitters=false",
)
# Some tests ask JAX for double precision: all have it, whatever ran before them.
os.environ["JAX_ENABLE_X64"] = "1"
# Drawn once: the workers of pytest-xdist inherit the seed that the head of the report names.
if not os.environ.get("DIFFLAB_SEED"):
    os.environ["DIFFLAB_SEED"] = str(1_000_000 + secrets.randbelow(10**9))
# A shell starts what runs in the background deaf to Ctrl-C, and processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every run: a failure is found again, and the machine's speed decides nothing.
settings.register_profile(
    "difflab",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("difflab")
forget_local_constants()


def pytest_report_header() -> str:
    seed = os.environ["DIFFLAB_SEED"]
    return f"differential tests: DIFFLAB_SEED={seed} repeats the fresh random programs"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Generator:
    """Random numbers that depend on the name of the test, and on no other test."""
    from tests.support.draws import generator

    return generator(request.node.nodeid)


class Reference(Protocol):
    """Reads ``tests/data/<name>.json``."""

    def __call__(self, name: str) -> Any: ...


@pytest.fixture(scope="session")
def reference() -> Reference:
    """Reader of the reference data; their sources are in ``tests/data/README.md``."""

    def read(name: str) -> Any:
        return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))

    return read
