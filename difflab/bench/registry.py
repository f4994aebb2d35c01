"""The benchmarks of ``difflab bench``, one row each.

The command makes a subcommand of every row. A benchmark's module, which imports NumPy, is
imported only when the benchmark runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from difflab.lab.sweep import SweepLayout, SweepRow, Task

__all__ = ["BENCHMARKS", "Benchmark", "BenchmarkModule"]


class BenchmarkModule(Protocol):
    """The columns, tasks and picture of a benchmark.

    Attributes
    ----------
    LAYOUT : SweepLayout
        The columns of its CSV file, and which of them are the key of a row.
    """

    @property
    def LAYOUT(self) -> SweepLayout: ...  # noqa: D102

    def tasks(self, *args: Any, **kwargs: Any) -> Iterator[Task]:
        """Yield one task for each row to measure.

        The tasks of a subcommand without options of its own accept the keywords ``quick`` and,
        if the benchmark is timed, ``timeout``.
        """

    def draw(self, rows: Sequence[SweepRow], kind: str = "svg") -> bytes:
        """Draw the rows as a file of the format `kind`."""


@dataclass(frozen=True)
class Benchmark:
    """A row of the registry.

    Attributes
    ----------
    name : str
        The subcommand, and the stem of the files it writes.
    summary : str
        Its help, one line.
    load : callable
        Imports and returns the benchmark's module.
    timed : bool
        Whether `tasks` accepts ``timeout``, the seconds for one row. Without meaning for a
        subcommand with options of its own, which is a function in `difflab.cli.bench`.
    """

    name: str
    summary: str
    load: Callable[[], BenchmarkModule]
    timed: bool = True


def _accuracy() -> BenchmarkModule:
    from difflab.bench import accuracy

    return accuracy


def _swell() -> BenchmarkModule:
    from difflab.bench import swell

    return swell


def _cost() -> BenchmarkModule:
    from difflab.bench import cost

    return cost


def _memory() -> BenchmarkModule:
    from difflab.bench import memory

    return memory


def _adbench() -> BenchmarkModule:
    from difflab.bench.adbench import bench

    return bench


def _peers() -> BenchmarkModule:
    from difflab.bench.peers import bench

    return bench


BENCHMARKS: Mapping[str, Benchmark] = {
    row.name: row
    for row in (
        Benchmark(
            "accuracy",
            "Error against step size, for every difference formula and method.",
            _accuracy,
        ),
        Benchmark(
            "swell",
            "Expression size against depth: written out, simplified, shared, and both AD modes.",
            _swell,
        ),
        Benchmark(
            "cost",
            "Operations and time against inputs and outputs, with forward and reverse crossing.",
            _cost,
        ),
        Benchmark(
            "memory",
            "Memory against recomputation, for the gradient of chains with checkpoints.",
            _memory,
            timed=False,
        ),
        Benchmark(
            "adbench",
            "Jacobian time over objective time on ADBench's problems, beside peers.",
            _adbench,
        ),
        Benchmark(
            "peers",
            "Value and gradient beside JAX, PyTorch, …: equal work, equal answers, ratios.",
            _peers,
        ),
    )
}
"""In the order in which the command lists them."""
