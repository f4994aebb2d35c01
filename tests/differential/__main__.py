"""Run random programs for as long as told: ``python -m tests.differential arrays --seconds 600``.

Each worker checks chunks of programs under consecutive seeds. The first difference is printed,
shrunk, with the command that repeats it, and the exit code is 1. Ctrl-C stops with the counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from tests.differential.search import CHUNK, FAMILIES, family, search

Result = tuple[int, str | None]


def chunk(name: str, seed: int, count: int) -> Result:
    """Check the programs of one seed; return how many, and the difference as text if any."""
    try:
        return search(family(name), count, seed), None
    except KeyboardInterrupt:
        return 0, None
    except BaseException:
        return 0, traceback.format_exc()


def run(name: str, programs: int, seconds: float, seed: int, processes: int) -> bool:
    """Run one family; return whether every program agreed."""
    end = time.monotonic() + seconds
    seeds = iter(range(seed, seed + -(-programs // CHUNK)))
    open_chunks: dict[Future[Result], int] = {}
    checked = 0
    agreed = True
    with ProcessPoolExecutor(processes) as pool:
        while True:
            while len(open_chunks) < 2 * processes and agreed and time.monotonic() < end:
                following = next(seeds, None)
                if following is None:
                    break
                open_chunks[pool.submit(chunk, name, following, CHUNK)] = following
            if not open_chunks:
                break
            done, _ = wait(open_chunks, return_when=FIRST_COMPLETED)
            for future in done:
                of_seed = open_chunks.pop(future)
                repeat = f"python -m tests.differential {name} --seed {of_seed} --programs {CHUNK}"
                try:
                    count, difference = future.result()
                except BrokenProcessPool:
                    print(f"\n{name}: a worker died; repeat with {repeat}", flush=True)
                    return False
                checked += count
                if difference is not None:
                    agreed = False
                    print(f"\n{difference}\nrepeat with: {repeat}", flush=True)
            print(f"\r{name}: {checked:,} programs", end="", file=sys.stderr, flush=True)
    print(f"\r{name}: {checked:,} programs, {'no difference' if agreed else 'a difference'}")
    return agreed


def main() -> int:
    """Read the command line and run the families that it names."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--programs", type=int, default=10**9, help="at most so many of a family")
    parser.add_argument("--seconds", type=float, default=60.0, help="at most so long a family")
    parser.add_argument("--seed", type=int, default=0, help="of the first chunk of programs")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.families) - set(FAMILIES))
    if unknown:
        parser.error(f"no family {unknown[0]!r}: choose from {', '.join(FAMILIES)}")
    os.environ.setdefault("DIFFLAB_CACHE", "off")
    outcomes = [
        run(name, chosen.programs, chosen.seconds, chosen.seed, chosen.processes)
        for name in chosen.families or FAMILIES
    ]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
