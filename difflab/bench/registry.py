"""The benchmarks of ``difflab bench``, one row each.

The command makes a subcommand of every row. A benchmark's module, which imports NumPy, is
imported only when the benchmark runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from difflab.lab.sweep import SweepLayout, SweepRow, Task


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
    module : str
        The name of its module.
    timed : bool
        Whether `tasks` accepts ``timeout``, the seconds for one row. Without meaning for a
        subcommand with options of its own, which is a function in `difflab.cli.bench`.
    """

    name: str
    summary: str
    module: str
    timed: bool = True

    def load(self) -> BenchmarkModule:
        """Import and return the benchmark's module."""
        module: Any = import_module(self.module)
        return cast(BenchmarkModule, module)


BENCHMARKS: Mapping[str, Benchmark] = {
    row.name: row
    for row in (
        Benchmark(
            "accuracy",
            "Error against step size, for every difference formula and method.",
            "difflab.bench.accuracy",
        ),
        Benchmark(
            "precision",
            "Error reached against seconds spent, for every method, at your formula and point.",
            "difflab.bench.precision",
        ),
        Benchmark(
            "swell",
            "Expression size against depth: written out, simplified, shared, and both AD modes.",
            "difflab.bench.swell",
        ),
        Benchmark(
            "cost",
            "Operations and time against inputs and outputs, with forward and reverse crossing.",
            "difflab.bench.cost",
        ),
        Benchmark(
            "dimensions",
            "Cost of every method against the sizes n and m of a family, and who wins where.",
            "difflab.bench.dimensions.bench",
        ),
        Benchmark(
            "memory",
            "Memory against recomputation, for the gradient of chains with checkpoints.",
            "difflab.bench.memory",
            timed=False,
        ),
        Benchmark(
            "operators",
            "Laplacians against the dimension: error, time and memory of every way, and of peers.",
            "difflab.bench.operators.bench",
        ),
        Benchmark(
            "peers",
            "Value and gradient beside JAX, PyTorch, …: equal work, equal answers, ratios.",
            "difflab.bench.peers.bench",
        ),
        Benchmark(
            "problems",
            "Performance and accuracy profiles of every method on the library of problems.",
            "difflab.bench.problems.bench",
        ),
        Benchmark(
            "solvers",
            "Derivatives of roots, optima, integrals, … against the true one of the solution.",
            "difflab.bench.solvers.bench",
            timed=False,
        ),
    )
}
"""In the order in which the command lists them."""

MOVED = ("adbench", "gradbench", "graders", "graphs", "gpu")
"""What measures difflab for its own claims: ``python -m benchmarks NAME``, in a checkout."""
