"""A campaign: programs until the time is over, findings shrunk and each written once."""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from difflab.core.files import open_regular, write_whole
from difflab.errors import InputError
from difflab.lab.environment import package_version
from difflab.testing.fuzz.panel import FuzzFinding, Panel
from difflab.testing.fuzz.programs import Program, programs

__all__ = ["Campaign", "Record", "reproduction"]

_BATCH = 50  # programs drawn from one seed
_SCHEMA = "difflab.fuzz/1"


class _Found(Exception):
    """A program with a new finding, for Hypothesis to shrink."""


class _TimeOver(BaseException):
    """The time is over; Hypothesis passes it on, as it does Ctrl-C."""


@dataclass(frozen=True)
class Record:
    """A finding that is written down.

    Attributes
    ----------
    method, kind, text, point, reason
        As in `FuzzFinding` and its program.
    operations : tuple of str
        The primitives. Later programs of the same method that contain all of them repeat it.
    file : str
        The name of the test.
    """

    method: str
    kind: str
    text: str
    point: dict[str, Any]
    operations: tuple[str, ...]
    reason: str
    file: str

    def explains(self, finding: FuzzFinding) -> bool:
        """Return whether a finding may be this one again: an exception, by its message."""
        if (self.method, self.kind) != (finding.method, finding.kind):
            return False
        if self.kind == "crash":
            return self.reason == finding.reason
        return finding.operations.issuperset(self.operations)


@dataclass
class Campaign:
    """Programs, counts and findings of all runs in one folder.

    Attributes
    ----------
    folder : pathlib.Path
        Where ``fuzz.json`` and the tests are written.
    panel : Panel
        The methods.
    batches : int
        The seeds that were used: the next run goes on behind them.
    programs, skipped, repeats : int
        Programs judged, those without a derivative, and findings that repeat a record.
    records : list of Record
        The findings.
    """

    folder: Path
    panel: Panel
    batches: int = 0
    programs: int = 0
    skipped: int = 0
    repeats: int = 0
    records: list[Record] = field(default_factory=list)

    @classmethod
    def resumed(cls, folder: Path, panel: Panel) -> Campaign:
        """Return the campaign of a folder, as its last run left it.

        Raises
        ------
        InputError
            Its file cannot be read.
        """
        path = folder / "fuzz.json"
        if not path.exists():
            return cls(folder, panel)
        try:
            with open_regular(path) as file:
                state = json.load(file)
            if state.pop("schema") != _SCHEMA:
                raise ValueError("another schema")
            panel.counts = Counter(
                {tuple(key.split("/")): n for key, n in state.pop("counts").items()}
            )
            records = [
                Record(**{**entry, "operations": tuple(entry["operations"])})
                for entry in state.pop("records")
            ]
            return cls(folder, panel, records=records, **state)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"cannot read {path}: {error}", hint="move it, or choose another folder with -o"
            ) from error

    def run(self, seconds: float, notify: Callable[[str], None] = lambda text: None) -> int:
        """Try programs for some seconds, and return the number of new findings.

        The state is written after every batch and after Ctrl-C, which is raised again.
        """
        end, before = time.monotonic() + seconds, len(self.records)
        try:
            while time.monotonic() < end:
                self._batch(end, notify)
        except _TimeOver:
            pass
        finally:
            self._save()
        return len(self.records) - before

    def _batch(self, end: float, notify: Callable[[str], None]) -> None:
        """Try the programs of the next seed; write down its first new finding, shrunk."""
        target: list[FuzzFinding] = []
        self.batches += 1

        @seed(self.batches)
        @settings(
            max_examples=_BATCH,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        @given(programs())
        def trial(program: Program) -> None:
            if time.monotonic() > end:
                raise _TimeOver
            new = self._new(program, target[-1] if target else None)
            if new is not None:
                target.append(new)
                raise _Found

        try:
            with warnings.catch_warnings():
                # Of the strategy's own length, and of what methods warn at extreme points.
                warnings.simplefilter("ignore")
                trial()
        except _Found:
            pass
        finally:
            if target:
                self._record(target[-1], notify)
        self._save()

    def _new(self, program: Program, target: FuzzFinding | None) -> FuzzFinding | None:
        """Return a finding that no record explains; while one is shrunk, only the same."""
        if target is not None:
            again = self.panel.again(program, target)
            return None if again is None or self._known(again) else again
        found = self.panel.findings(program)
        self.programs += found is not None
        self.skipped += found is None
        new = [finding for finding in found or [] if not self._known(finding)]
        self.repeats += len(found or []) - len(new)
        return new[0] if new else None

    def _known(self, finding: FuzzFinding) -> bool:
        return any(record.explains(finding) for record in self.records)

    def _record(self, finding: FuzzFinding, notify: Callable[[str], None]) -> None:
        text = finding.program.text
        digest = sha256(f"{finding.method} {text} {finding.program.point}".encode()).hexdigest()[:8]
        name = f"test_{finding.method.replace('-', '_')}_{digest}.py"
        record = Record(
            finding.method,
            finding.kind,
            text,
            finding.program.point,
            tuple(sorted(finding.operations)),
            finding.reason,
            name,
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole({self.folder / name: reproduction(finding).encode()})
        self.records.append(record)
        notify(f"{finding.method}: {text} at {finding.program.point}: {finding.reason}")

    def _save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        state = {
            "schema": _SCHEMA,
            "batches": self.batches,
            "programs": self.programs,
            "skipped": self.skipped,
            "repeats": self.repeats,
            "counts": {"/".join(key): n for key, n in sorted(self.panel.counts.items())},
            "records": [asdict(record) for record in self.records],
        }
        write_whole({self.folder / "fuzz.json": f"{json.dumps(state, indent=1)}\n".encode()})


def reproduction(finding: FuzzFinding) -> str:
    """Return a pytest file that fails as long as the finding is there."""
    version = package_version(finding.method)
    package = f"{finding.method} {version}" if version else finding.method
    skip = f'    pytest.importorskip("{finding.method}")\n' if version else ""
    name = finding.method.replace("-", "_")
    return f'''"""{package}: {finding.reason}.

Found by `difflab fuzz`; it passes once the derivative is right.

the derivative of {package}: {", ".join(finding.found) or "none"}
the referee's, from values: {", ".join(finding.expected)}
"""

{"import pytest" + chr(10) * 2 if skip else ""}import difflab

TEXT = {finding.program.text!r}
AT = {finding.program.point!r}


def test_{name}_agrees_with_the_referee():
{skip}    comparison = difflab.compare(TEXT, AT, methods=["{finding.method}"], timing=False)
    (row,) = comparison.methods
    assert row.status == "ok", row.message
    assert row.verdict != "disagree", row.message
'''
