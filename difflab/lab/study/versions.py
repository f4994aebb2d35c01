"""Other versions of difflab: each runs as a command of its own interpreter.

The command line and its JSON are public and change least between versions, so that a version needs
nothing but ``difflab compare --format json``.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from difflab.core.strict_json import strict
from difflab.errors import InputError
from difflab.lab.record import Outcome, Status, from_json
from difflab.lab.store import Record
from difflab.lab.study.cases import StudyCase
from difflab.lab.study.judging import JudgedCase, Source, Times, options_over, read_over, records

_SOURCES = """
import json, sys
from difflab.lab.provenance import source
from difflab.methods.registry import select
print(json.dumps({method.name: source(method) for method in select(sys.argv[1:])}))
"""
_PATHS = ("PYTHONPATH", "PYTHONHOME")
_OVERHEAD = 60.0  # seconds to start a version, beside the time limits of its methods


def other_sources(name: str, interpreter: Path, cases: Sequence[StudyCase]) -> dict[str, Source]:
    """Return the provenance of a version's records by method.

    Raises
    ------
    InputError
        The interpreter does not run a difflab with these methods.
    """
    methods = dict.fromkeys(m for case in cases if case.version == name for m in case.methods)
    done = _run([*_start(interpreter), "-c", _SOURCES, *methods], _OVERHEAD)
    try:
        provenance = json.loads(done.stdout)
    except ValueError:
        provenance = {}
    if set(provenance) < set(methods):
        last = done.stderr.strip().rpartition("\n")[2] or "it says nothing"
        raise InputError(
            f"the version {name!r} does not run with {str(interpreter)!r}: {last}",
            hint="install difflab into its environment",
        )
    return {method: provenance[method] for method in methods}


def command(case: StudyCase, methods: Sequence[str]) -> list[str]:
    """Return the arguments of ``difflab`` that repeat the comparison of a case.

    Examples
    --------
    >>> command(StudyCase("x^2", {"x": 2.0}, ("reverse",)), ["reverse"])
    ['compare', '--at', 'x=2.0', '--methods', 'reverse', '--', 'x^2']
    """
    arguments = ["compare"]
    for name, value in case.point.items():
        arguments += ["--at", f"{name}={json.dumps(strict(value))}"]
    arguments += ["--methods", ",".join(methods)]
    arguments += ["--order", str(case.order)] * (case.order != 1)
    arguments += ["--target", case.target] * (case.target != "auto")
    arguments += ["--timeout", f"{case.timeout:g}"] * (case.timeout != 10)
    if case.domain is None:
        arguments += ["--no-timing"] * (not case.repeats)
    else:
        arguments += options_over(case.domain)
    return [*arguments, "--", case.text]


def records_of_version(
    study: str,
    case: StudyCase,
    interpreter: Path,
    wanted: Mapping[str, str],
    provenance: Mapping[str, Source],
) -> list[Record]:
    """Return the records of the methods `wanted` of a case, computed by another version.

    Each repeat is a process of its own; its samples are a block without a yardstick.
    """
    arguments = [*_start(interpreter), "-m", "difflab", *command(case, [*wanted])]
    separator = arguments.index("--")
    arguments[separator:separator] = ["--format", "json"]
    result, times = JudgedCase(None), {name: Times() for name in wanted}
    for _ in range(max(case.repeats, 1)):
        done = _run(arguments, _OVERHEAD + case.timeout * (len(wanted) + 1))
        try:
            if case.domain is not None:
                result = JudgedCase(None, domain=read_over(done.stdout))
            else:
                result = JudgedCase(from_json(done.stdout))
        except InputError:
            last = done.stderr.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
            result = JudgedCase(None, Outcome(Status.FAILED, last))
            break
        for row in result.comparison.methods if result.comparison else ():
            if row.samples:
                times[row.name].blocks.append(([*row.samples], []))
                times[row.name].prepare.extend(row.prepare_samples)
                times[row.name].peak_bytes = row.peak_bytes
    timed = {name: each for name, each in times.items() if each.blocks}
    return records(study, case, result, timed, wanted, provenance)


def _start(interpreter: Path) -> list[str]:
    """Return the arguments that start an interpreter with the packages of its environment only.

    Without ``-P`` a checkout of difflab in the current folder would be imported instead.
    """
    return [str(interpreter), "-P"]


def _run(arguments: Sequence[str], timeout: float) -> Any:
    """Run a program; one that ends in no time is a failed one."""
    try:
        return subprocess.run(
            arguments,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name not in _PATHS},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 1, "", f"stopped after {timeout:g} s")
    except OSError as error:
        return subprocess.CompletedProcess(arguments, 1, "", str(error))
