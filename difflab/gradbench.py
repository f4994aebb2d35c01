"""Where GradBench's tool went: it is no part of the package any more."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.exit(
        "'python -m difflab.gradbench' is 'python -m benchmarks gradbench-tool' now, in a checkout"
        " of difflab's repository"
    )
