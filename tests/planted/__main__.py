"""``python -m tests.planted [--seek] [WORD …]``: plant each fault and run the test that finds it.

With ``--seek`` a fault whose test is missing or passes is sought anew, in the tests of its package
and then in all of them, and ``faults.toml`` is written. Words select faults by name or file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

from tests.planted.planting import LIST, Fault, copied, faults, finder, planted, sought


def written(rows: list[Fault]) -> str:
    """Return ``faults.toml``; JSON's strings are strings of TOML."""
    comment = LIST.read_text(encoding="utf-8").partition("\n\n")[0]
    tables = [
        "\n".join(
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in asdict(row).items()
        )
        for row in rows
    ]
    return "\n\n".join([comment, *(f"[[fault]]\n{table}" for table in tables)]) + "\n"


def checked(fault: Fault, copy: Path, seek: bool) -> Fault:
    """Return a fault with the test that finds it now, empty if none does."""
    if fault.found_by:
        with planted(fault, copy):
            if finder(copy, [fault.found_by]):
                return fault
    return sought(fault, copy) if seek else replace(fault, found_by="")


def main() -> int:
    """Check the faults, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=main.__doc__)
    parser.add_argument("word", nargs="*")
    parser.add_argument("--seek", action="store_true", help="find tests that are missing")
    given = parser.parse_args()
    rows, tiers = faults(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        for place, fault in enumerate(rows):
            if given.word and not any(word in fault.name + fault.file for word in given.word):
                continue
            rows[place] = checked(fault, copy, given.seek)
            tier = rows[place].tier if rows[place].found_by else "none"
            tiers[tier] += 1
            print(f"{tier:5}  {fault.file}: {fault.name}  {rows[place].found_by}", flush=True)
            if given.seek:
                LIST.write_text(written(rows), encoding="utf-8")
    print(", ".join(f"{tier}: {count}" for tier, count in tiers.items()))
    return int(tiers["none"] > 0)


if __name__ == "__main__":
    sys.exit(main())
