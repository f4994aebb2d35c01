"""GradBench's JAX tool with a clock that waits for results, in double precision throughout.

JAX returns before a result is computed, and GradBench's tool stops its clock there. Its eval `ode`
computes in single precision, which no comparison with other tools would bear. Run in the root of a
checkout.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = "python/gradbench/gradbench/tools/jax"


def main() -> None:
    """Start the tool."""
    import jax

    wrap: Any = import_module("gradbench.wrap")
    repeats = wrap.multiple_runs

    def waiting(**settings: Any) -> Callable[[Callable[[Any], Any]], Any]:
        return lambda f: repeats(**settings)(lambda values: jax.block_until_ready(f(values)))

    wrap.multiple_runs = waiting
    jax.config.update("jax_enable_x64", True)
    sys.path.insert(0, FOLDER)
    sys.argv[1:] = []
    runpy.run_path(str(Path(FOLDER, "run.py")), run_name="__main__")


if __name__ == "__main__":
    main()
