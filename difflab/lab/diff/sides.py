"""The records on one side of a difference, and whether a call of theirs became slower.

A side is a store, a saved comparison, or a folder of those. Times are tested by a statistic of
paired rounds.

In each round of a block the call and the yardstick are timed directly after one another, so that
the speed of the machine cancels in their ratio. A core that is shared with other work slows the
two by different factors, so only *quiet* rounds count, those in which the yardstick itself is
within 20 % of the fastest of both runs: which rounds these are does not depend on the code under
test. A block is prepared anew, and the medians of the blocks are the sample: rounds of one block
share the places of code and data in memory, by which equal code differs by some per cent (Mytkowicz
et al., "Producing wrong data without doing anything obviously wrong", ASPLOS 2009). Such
differences between two processes are within the margin of 2 %, beyond which Welch's one-sided
t-test has to find a slowdown.

The blocks of one run do not show how runs differ: other work on the machine empties the caches for
minutes, which slows calls with much code and data by tens of per cent and the yardstick by nothing,
so that the blocks agree with each other and not with those of the next run. Their rounds show it:
where single rounds scatter more than on an undisturbed core, runs differ, too, by up to a good half
of that scatter. The test therefore has a variance component between runs, `_between`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.strict_json import strict
from difflab.core.system import open_regular, reason
from difflab.errors import InputError
from difflab.lab.record import Comparison, MethodRow, Status, from_dict, from_json
from difflab.lab.store import Record, digest, unpacked_json
from difflab.lab.study.cases import THIS, StudyCase, StudyStore
from difflab.lab.study.judging import rows_over

Blocks = Sequence[tuple[Sequence[float], Sequence[float]]]
"""For each block the seconds of a call, and of the yardstick (or none), one element per round."""

LEVEL = 0.005
"""The probability of a false alarm among all tests of one comparison of two sets of records."""

_MARGIN = math.log(1.02)
_ALONE = math.log(1.25)  # the margin without a yardstick: the machine's own speed is in the times
_QUIET = 1.2
_FEWEST_ROUNDS = 3  # of a block
_FEWEST_BLOCKS = 3
_FINEST = 0.004  # standard deviation that the logarithms of two blocks have at least
_UNDISTURBED = 0.02  # standard deviation of the logarithms of rounds up to which runs are alike
_SHARE = 0.7  # of the standard deviation beyond, by which runs of equal code may differ
_MANY = 8  # records whose ratios show the noise
_QUARTILES = 1.349  # standard deviations between the quartiles of a normal distribution
_BATCH = 3  # rounds of a batch, which stands for a block where there is no yardstick


@dataclass(frozen=True)
class TimeChange:
    """The change of a call's time.

    Attributes
    ----------
    ratio : float
        New time over old time.
    error : float
        The standard error of its logarithm, within the two runs and between them.
    freedom : float
        The degrees of freedom of that error.
    margin : float
        The logarithm of the largest ratio that is no change.
    """

    ratio: float
    error: float
    freedom: float
    margin: float

    def slower(self, noise: float = 0.0) -> float:
        """Return the probability to see such a ratio or a larger one without a change.

        `noise` is the spread of the logarithms that equal code shows, where it is known and larger
        than `error`; see `spread`.
        """
        return self._tail(math.log(self.ratio), noise)

    def faster(self, noise: float = 0.0) -> float:
        """Return the probability to see such a ratio or a smaller one without a change."""
        return self._tail(-math.log(self.ratio), noise)

    def smallest(self, level: float, noise: float = 0.0) -> float:
        """Return the ratio of times at which `slower` is `level`; no smaller one is detected."""
        from scipy.special import stdtrit

        beyond = float(stdtrit(self.freedom, 1 - level))
        return math.exp(self.margin + beyond * max(self.error, noise))

    def _tail(self, change: float, noise: float) -> float:
        from scipy.special import stdtr

        return float(stdtr(self.freedom, (self.margin - change) / max(self.error, noise)))


def spread(changes: Sequence[TimeChange]) -> float:
    """Return the standard deviation of the logarithms of most of many ratios; 0 for a few.

    It is estimated from the median of the distances to the median, which records that have really
    changed do not influence: what is left is the noise between two runs of equal code.

    Examples
    --------
    >>> alike = [TimeChange(ratio, 0.0, 9.0, 0.0) for ratio in (0.99, 1.0, 1.01) * 3]
    >>> round(spread([*alike, TimeChange(2.0, 0.0, 9.0, 0.0)]), 3)
    0.015
    """
    if len(changes) < _MANY:
        return 0.0
    logarithms = [math.log(change.ratio) for change in changes]
    middle = median(logarithms)
    return 1.4826 * median(abs(value - middle) for value in logarithms)


def time_change(old: Blocks, new: Blocks) -> TimeChange | None:
    """Return the change of a call's time; None if there are too few undisturbed samples.

    Examples
    --------
    >>> old = [([1.00, 1.01, 1.02], [2.0, 2.0, 2.0])] * 5
    >>> new = [([1.10, 1.11, 1.12], [2.0, 2.0, 2.0])] * 5
    >>> change = time_change(old, new)
    >>> round(change.ratio, 3), change.slower() < 1e-6, change.faster() > 0.99
    (1.099, True, True)
    """
    paired = all(yard for block in (old, new) for _, yard in block)
    fastest = min((s for block in (old, new) for _, yard in block for s in yard), default=math.inf)
    rounds = [_quiet(blocks, fastest) if paired else _batches(blocks) for blocks in (old, new)]
    if min(map(len, rounds)) < _FEWEST_BLOCKS:
        return None
    first, second = (np.array([np.median(block) for block in run]) for run in rounds)
    difference = float(np.mean(second) - np.mean(first))
    # Welch's test, with a variance that few blocks cannot underestimate by chance.
    parts = [max(float(np.var(x, ddof=1)), _FINEST**2) / len(x) for x in (first, second)]
    error = math.sqrt(sum(parts) + sum(map(_between, rounds)))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(x) - 1) for part, x in zip(parts, (first, second), strict=True)
    )
    margin = _MARGIN if paired else _ALONE
    return TimeChange(math.exp(difference), error, freedom, margin)


def _quiet(blocks: Blocks, fastest: float) -> list[NDArray[float64]]:
    """Return the logarithms of the ratios in the quiet rounds of each block that has enough."""
    logarithms = [
        np.log([a / b for a, b in zip(call, yard, strict=True) if b <= _QUIET * fastest])
        for call, yard in blocks
    ]
    return [block for block in logarithms if len(block) >= _FEWEST_ROUNDS]


def _batches(blocks: Blocks) -> list[NDArray[float64]]:
    """Return the logarithms of the times of each batch of rounds."""
    calls = np.log([s for call, _ in blocks for s in call])
    return [calls[k : k + _BATCH] for k in range(0, len(calls) - _BATCH + 1, _BATCH)]


def _between(rounds: Sequence[NDArray[float64]]) -> float:
    """Return the variance between runs, from how much the rounds of one run scatter."""
    low, high = np.quantile(np.concatenate(rounds), (0.25, 0.75))
    scatter = float(high - low) / _QUARTILES
    return _SHARE**2 * max(scatter**2 - _UNDISTURBED**2, 0.0)


# --- the records of a side --------------------------------------------------------------------

STORE_IN_SITE = "study.db"
"""The name of the copy of a store in the site that reports it."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One record: a method on one function at one point.

    Attributes
    ----------
    label, method : str
        What was differentiated, and how.
    row : MethodRow
        The result.
    blocks : sequence
        The samples; see `difflab.lab.diff.sides`.
    cpu : str
        The processor.
    """

    label: str
    method: str
    row: MethodRow
    blocks: Blocks = ()
    cpu: str = ""


Side = dict[tuple[str, str], Measured]
"""The records by what was differentiated (a hash) and the method."""


def load(name: str) -> Side:
    """Return the records of a file or a folder.

    Parameters
    ----------
    name : str
        A store, or ``STORE:VERSION`` for the records of one of its versions; a comparison saved as
        JSON; a folder of those; or the folder of a study's site. A store that has several records
        of one method, such as those of two commits, gives the latest.

    Raises
    ------
    InputError
        It cannot be read.
    """
    path, version = Path(name), None
    if not path.exists() and ":" in name:
        before, _, version = name.rpartition(":")
        path = Path(before)
    if not path.exists():
        raise InputError(f"there is no file {name!r}")
    if path.is_dir():
        if (path / STORE_IN_SITE).is_file():
            return _of_store(path / STORE_IN_SITE, version)
        files = sorted(path.glob("*.json"))
        if not files:
            raise InputError(f"there is neither a study nor a saved comparison in {name!r}")
        return {key: record for file in files for key, record in _of_file(file).items()}
    return _of_store(path, version) if _is_database(path) else _of_file(path)


def _is_database(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(15) == b"SQLite format 3"
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {reason(error)}") from error


def _of_store(path: Path, version: str | None) -> Side:
    with StudyStore(path) as store:
        records = store.records()
    wanted = [r for r in records if version is None or r["version"] == version]
    names = list(dict.fromkeys(record["version"] for record in records))
    if version is None and len(names) > 1:
        raise InputError(
            f"{str(path)!r} has the records of several versions",
            hint=f"name one: {', '.join(f'{path}:{name}' for name in names)}",
        )
    if not wanted:
        raise InputError(
            f"{str(path)!r} has no record" + (f" of the version {version!r}" if version else ""),
            hint=f"its versions are {', '.join(names)}" if names else "run the study first",
        )
    return {(record["identity"], record["method"]): _of_record(record) for record in wanted}


def _of_record(record: Record) -> Measured:
    """Return a record of a store; one without a comparison has only its status and message."""
    case = StudyCase.of_record(record, version=THIS)
    plain = case.family or case.domain is not None
    label = case.label if plain else f"{case.label} at {_short(case.point)}"
    if record["comparison"] is not None and case.domain is not None:
        row = rows_over(unpacked_json(record["comparison"]))[record["method"]]
    elif record["comparison"] is None:
        from difflab.methods.protocol import Family

        row = MethodRow(
            name=record["method"],
            family=Family.AUTOMATIC,
            status=Status(record["status"]),
            message=record["message"],
        )
    else:
        (row,) = from_dict(unpacked_json(record["comparison"])).methods
    blocks = unpacked_json(record["blocks"])
    return Measured(label, record["method"], row, blocks, record["cpu"] or "")


def _short(point: Mapping[str, Any]) -> str:
    """Return a point in short."""
    shown = ", ".join(f"{name}={value}" for name, value in point.items())
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def _of_file(path: Path) -> Side:
    try:
        with open_regular(path) as file:
            comparison = from_json(file.read().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from error
    except InputError as error:
        raise InputError(f"{str(path)!r} is no comparison: {error.message}") from error
    return dict(_of_comparison(comparison))


def _of_comparison(comparison: Comparison) -> Iterator[tuple[tuple[str, str], Measured]]:
    environment = comparison.environment
    target = str(environment.get("target") or "auto")
    point = strict(comparison.point)
    case = StudyCase(
        comparison.expression.text,
        point,
        (),
        formula=comparison.expression.text,
        order=comparison.order,
        target=target,
        version=THIS,
    )
    label = f"{case.label} at {_short(point)}"
    for row in comparison.methods:
        blocks: Blocks = [([*row.samples], [])] if row.samples else []
        measured = Measured(label, row.name, row, blocks, str(environment.get("cpu")))
        yield (digest(case.what), row.name), measured
