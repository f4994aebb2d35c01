"""The benchmarks of ``difflab bench``, one row each.

The command makes a subcommand of every row. A benchmark's module, which imports NumPy, is
imported only when the benchmark runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from difflab.lab.sweep import SweepLayout, SweepRow, Task


class BenchmarkModule(Protocol):
    """The columns, tasks and picture of a benchmark."""

    @property
    def LAYOUT(self) -> SweepLayout:
        """The columns of its CSV file, and which of them are the key of a row."""

    def tasks(self, *args: Any, **kwargs: Any) -> Iterator[Task]:
        """Yield one task for each row to measure.

        The tasks of a subcommand without options of its own accept the keywords ``quick`` and
        ``timeout``, the seconds for one row.
        """

    def draw(self, rows: Sequence[SweepRow], kind: str = "svg") -> bytes:
        """Draw the rows as a file of the format `kind`."""


BENCHMARKS: Mapping[str, str] = {
    "accuracy": "Error against step size, for every difference formula and method.",
    "precision": "Error reached against seconds spent, for every method, at your formula and "
    "point.",
    "swell": "Expression size against depth: written out, simplified, shared, and both AD modes.",
    "cost": "Operations and time against inputs and outputs, with forward and reverse crossing.",
    "dimensions": "Cost of every method against the sizes n and m of a family, and who wins where.",
    "memory": "Memory against recomputation, for the gradient of chains with checkpoints.",
    "operators": "Laplacians against the dimension: error, time and memory of every way, and of "
    "peers.",
    "peers": "Value and gradient beside JAX, PyTorch, …: equal work, equal answers, ratios.",
    "problems": "Performance and accuracy profiles of every method on the library of problems.",
    "solvers": "Derivatives of roots, optima, integrals, … against the true one of the solution.",
}
"""The help of every subcommand, in the order in which the command lists them."""

MOVED = ("adbench", "gradbench", "graders", "graphs", "gpu")
"""What measures difflab for its own claims: ``python -m benchmarks NAME``, in a checkout."""


def load(name: str, package: str = "difflab.bench") -> BenchmarkModule:
    """Import a benchmark: the module of this name, or the module ``bench`` of such a package."""
    module: Any = import_module(f"{package}.{name}")
    if hasattr(module, "__path__"):
        module = import_module(f"{package}.{name}.bench")
    return cast(BenchmarkModule, module)
