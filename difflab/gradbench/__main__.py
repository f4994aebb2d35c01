"""``python -m difflab.gradbench``: GradBench's tool."""

from __future__ import annotations

import sys

from difflab.gradbench.protocol import serve

if __name__ == "__main__":
    sys.exit(serve(sys.stdin, sys.stdout, sys.stderr))
