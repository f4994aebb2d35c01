"""``python -m benchmarks``: the command of this folder."""

from __future__ import annotations

import sys

from benchmarks.commands import app
from difflab.cli.app import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], app, "python -m benchmarks"))
