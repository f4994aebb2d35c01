"""A campaign: programs until the time is over, findings shrunk and each written once."""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from difflab.core.system import open_regular, write_whole
from difflab.errors import InputError
from difflab.testing.fuzz.panel import FuzzFinding, Program

_BATCH = 50  # programs drawn from one seed


class _Found(Exception):
    """A program with a new finding, for Hypothesis to shrink."""


class _TimeOver(BaseException):
    """The time is over; Hypothesis passes it on, as it does Ctrl-C."""


class Judges(Protocol):
    """Protocol of a panel: a strategy of programs, and the judgement of methods on each.

    Attributes
    ----------
    counts : Counter
        How often each method had which verdict, by ``(method, verdict)``.
    """

    counts: Counter[tuple[str, str]]

    @property
    def schema(self) -> str:
        """The schema of the file in which its campaigns are kept."""

    @property
    def verdicts(self) -> Sequence[str]:
        """All verdicts, in the order in which they are shown."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the methods."""

    def programs(self) -> st.SearchStrategy[Any]:
        """Return the strategy of programs."""

    def findings(self, program: Any) -> list[FuzzFinding] | None:
        """Return the findings of a program; None if it has no derivative to judge by."""

    def again(self, program: Any, finding: FuzzFinding) -> FuzzFinding | None:
        """Return the same finding of another program."""

    def reproduction(self, finding: FuzzFinding) -> str:
        """Return a pytest file that fails as long as the finding is there."""


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
    panel : Judges
        The methods, and where their programs come from.
    batches : int
        The seeds that were used: the next run goes on behind them.
    programs, skipped, repeats : int
        Programs judged, those without a derivative, and findings that repeat a record.
    records : list of Record
        The findings.
    """

    folder: Path
    panel: Judges
    batches: int = 0
    programs: int = 0
    skipped: int = 0
    repeats: int = 0
    records: list[Record] = field(default_factory=list)

    @classmethod
    def resumed(cls, folder: Path, panel: Judges) -> Campaign:
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
            if state.pop("schema") != panel.schema:
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
        @given(self.panel.programs())
        def trial(program: Program) -> None:
            if time.monotonic() > end:
                raise _TimeOver
            new = self._new(program, target[-1] if target else None)
            if new is not None:
                target.append(new)
                raise _Found

        try:
            with warnings.catch_warnings():
                # Of the strategy's own length, and of methods at extreme points.
                warnings.simplefilter("ignore")
                trial()
        except (_Found, Flaky):  # a package may give two answers; the first one is kept
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
        findings = self.panel.findings(program)
        self.programs += findings is not None
        self.skipped += findings is None
        new = [finding for finding in findings or [] if not self._known(finding)]
        self.repeats += len(findings or []) - len(new)
        return new[0] if new else None

    def _known(self, finding: FuzzFinding) -> bool:
        return any(record.explains(finding) for record in self.records)

    def _record(self, finding: FuzzFinding, notify: Callable[[str], None]) -> None:
        # Of the whole program: compositions of the same text and point have files of their own.
        digest = sha256(f"{finding.method} {finding.program!r}".encode()).hexdigest()[:8]
        name = f"test_{finding.method.replace('-', '_')}_{digest}.py"
        record = Record(
            finding.method,
            finding.kind,
            finding.program.text,
            finding.program.point,
            tuple(sorted(finding.operations)),
            finding.reason,
            name,
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole({self.folder / name: self.panel.reproduction(finding).encode()})
        self.records.append(record)
        notify(f"{finding.method}: {record.text} at {record.point}: {record.reason}")

    def _save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        state = {
            "schema": self.panel.schema,
            "batches": self.batches,
            "programs": self.programs,
            "skipped": self.skipped,
            "repeats": self.repeats,
            "counts": {"/".join(key): n for key, n in sorted(self.panel.counts.items())},
            "records": [asdict(record) for record in self.records],
        }
        write_whole({self.folder / "fuzz.json": f"{json.dumps(state, indent=1)}\n".encode()})
