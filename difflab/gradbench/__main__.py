"""``python -m difflab.gradbench``: GradBench's tool."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from difflab.gradbench.protocol import SHARED_MINORS, serve


def main() -> int:
    """Answer the messages on standard input; return the exit code."""
    parser = ArgumentParser(prog="python -m difflab.gradbench", description=__doc__)
    parser.add_argument(
        "--shared-minors",
        action="store_true",
        help="answer det by another algorithm, which computes equal minors once",
    )
    instead = SHARED_MINORS if parser.parse_args().shared_minors else {}
    return serve(sys.stdin, sys.stdout, sys.stderr, instead)


if __name__ == "__main__":
    sys.exit(main())
