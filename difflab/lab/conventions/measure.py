"""Conventions measured: the results of every package in every case, and their record in JSON.

difflab's cases run in this process, those of each peer in a process of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from difflab.core import strict_json
from difflab.core.progress import Progress, silent
from difflab.core.wording import did_you_mean
from difflab.core.worker import Handlers, ReportProgress, RestartedWorker
from difflab.errors import DifflabError, InputError, UnsupportedError
from difflab.graph.function import Function
from difflab.lab.conventions.cases import LANGUAGE, TRACED, ConventionCase, cases
from difflab.lab.environment import package_version
from difflab.methods import registry
from difflab.methods.peers.peer import Peer
from difflab.methods.protocol import Family, Method, Problem

EXACT = "exact"
"""The results of ball arithmetic, which are the truth of the smooth cases."""
SCHEMA = "difflab.conventions/1"
ORDERS = ("value", "first", "second")
"""The value and the derivatives, by order."""


@dataclass(frozen=True)
class MeasuredPackage:
    """A package: the name of its method, its own title, and its version."""

    name: str
    title: str
    version: str
    numeric: bool = False


@dataclass(frozen=True)
class CaseResult:
    """The results of one package in one case.

    Attributes
    ----------
    package : str
        The name of its method.
    formula : str
        The formula of the case.
    at : tuple of float
        Its point.
    code : str
        The code that was run; empty if the package has no such function.
    own : bool
        Whether that is a function of the package, rather than composed here of others.
    answers : tuple
        Value, gradient and Hessian, flattened; or the reason why there is none.
    """

    package: str
    formula: str
    at: tuple[float, ...]
    code: str = ""
    own: bool = True
    answers: tuple[tuple[float, ...] | str, ...] = ("", "", "")


@dataclass(frozen=True)
class Conventions:
    """Results of packages, their versions, and why other packages were left out."""

    packages: Sequence[MeasuredPackage]
    results: Sequence[CaseResult]
    left_out: Mapping[str, str] = field(default_factory=dict)

    def of(self, formula: str, at: tuple[float, ...]) -> list[CaseResult]:
        """Return the results of a case, in the order of the packages."""
        return [each for each in self.results if each.formula == formula and _same(each.at, at)]

    def merged(self, older: Conventions) -> Conventions:
        """Return these results, with those of packages that only an older record has."""
        mine = {package.name for package in self.packages}
        packages = [*self.packages, *(each for each in older.packages if each.name not in mine)]
        results = [*self.results, *(each for each in older.results if each.package not in mine)]
        names = {package.name for package in packages}
        reasons = {name: why for name, why in self.left_out.items() if name not in names}
        return Conventions(packages, results, reasons)

    def to_json(self) -> str:
        """Return the record as strict JSON."""
        record = {
            "schema": SCHEMA,
            "packages": self.packages,
            "left_out": self.left_out,
            "results": [_entry(result) for result in self.results],
        }
        return strict_json.dumps(strict_json.strict(record)) + "\n"

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Conventions:
        """Read a record.

        Raises
        ------
        InputError
            It has another schema.
        """
        if record.get("schema") != SCHEMA:
            raise InputError(f"the record is not of the schema {SCHEMA}")
        packages = [MeasuredPackage(**each) for each in record["packages"]]
        results = [_result(each) for each in record["results"]]
        return cls(packages, results, record["left_out"])


def _same(one: Iterable[float], other: Iterable[float]) -> bool:
    return [*map(repr, one)] == [*map(repr, other)]  # nan is the same as nan


def _entry(result: CaseResult) -> dict[str, Any]:
    entry = {name: getattr(result, name) for name in ("package", "formula", "at", "code", "own")}
    for name, answer in zip(ORDERS, result.answers, strict=True):
        entry[name] = {"reason": answer} if isinstance(answer, str) else answer
    return entry


def _result(entry: Mapping[str, Any]) -> CaseResult:
    answers = [
        answer["reason"] if isinstance(answer, dict) else tuple(map(float, answer))
        for answer in (entry[name] for name in ORDERS)
    ]
    at = tuple(map(float, entry["at"]))
    return CaseResult(
        entry["package"], entry["formula"], at, entry["code"], entry["own"], tuple(answers)
    )


OWN = "difflab"
NAMED_ONLY = {"torch-compile": "PyTorch's functions, each compiled for some seconds"}
"""Peers that run only where they are named, and why."""
LIMIT = 120.0
"""Seconds of one case, after which the peer's process is stopped."""


def measure(
    peers: Sequence[str] | None = None,
    chosen: Sequence[ConventionCase] | None = None,
    progress: Progress = silent,
) -> Conventions:
    """Return value, gradient and Hessian of every case in difflab and in each peer.

    Parameters
    ----------
    peers : sequence of str, optional
        Names of peers; by default all that are installed.
    chosen : sequence of ConventionCase, optional
        By default all cases.
    progress : callable
        Called as ``progress(done, total, name)`` before each package.

    Raises
    ------
    InputError
        There is no such peer.

    Examples
    --------
    >>> from difflab.lab.conventions.cases import cases
    >>> conventions = measure([], [next(cases())])
    >>> conventions.results[0].formula, conventions.results[0].answers
    ('abs(x)', ((0.0,), (0.0,), (0.0,)))
    """
    chosen = list(cases()) if chosen is None else chosen
    left_out, running = _selected(peers)
    packages, results = _own_packages(), [_own(case) for case in chosen]
    results += [_truth(case) for case in chosen if case.smooth]
    for number, peer in enumerate(running):
        progress(number, len(running), peer.title)
        process = RestartedWorker(__name__, peer.name)
        peer_results = [_by_peer(peer, process, case) for case in chosen]
        process.stop()
        numeric = peer.family is Family.NUMERIC
        packages.append(MeasuredPackage(peer.name, peer.title, measured_version(peer), numeric))
        results += peer_results
    progress(len(running), len(running), "")
    return Conventions(packages, results, left_out)


def _selected(names: Sequence[str] | None) -> tuple[dict[str, str], list[Peer]]:
    """Return why peers are left out, and those that run."""
    by_name = {name: peer for name, peer in registry.peers().items() if isinstance(peer, Peer)}
    for name in names or ():
        if name not in by_name:
            hint = did_you_mean(name, by_name, spelled=str) or f"there are {', '.join(by_name)}"
            raise InputError(f"there is no peer '{name}'", hint=hint)
    left_out, running = {}, []
    for name in by_name if names is None else names:
        reason = by_name[name].missing() or (NAMED_ONLY.get(name, "") if names is None else "")
        if reason:
            left_out[name] = reason
        else:
            running.append(by_name[name])
    return left_out, running


def measured_version(peer: Peer) -> str:
    """Return a peer's version without the label of the build, such as ``+cpu``."""
    return peer.version().partition("+")[0]


def _own_packages() -> list[MeasuredPackage]:
    from difflab import __version__

    exact = MeasuredPackage(EXACT, "ball arithmetic", package_version("python-flint") or "")
    return [MeasuredPackage(OWN, OWN, __version__), exact]


def _own(case: ConventionCase) -> CaseResult:
    """Return difflab's results, by reverse mode."""
    method = registry.own()["reverse"]
    return _by_method(OWN, method, case)


def _truth(case: ConventionCase) -> CaseResult:
    """Return the results of ball arithmetic, correctly rounded."""
    return _by_method(EXACT, registry.named()[EXACT], case)


def _by_method(name: str, method: Method, case: ConventionCase) -> CaseResult:
    function = _function(case)
    code = case.code((LANGUAGE, TRACED))
    assert code is not None

    def answer(order: int) -> tuple[float, ...] | str:
        try:
            if order == 0:
                return _numbers(lambda: function.values(np.array(case.at)))
            prepared = method.prepare(Problem.of(function, order=order))
            return _numbers(lambda: prepared(np.array(case.at)).value)
        except DifflabError as error:
            return str(error)

    answers = tuple(answer(order) for order in range(len(ORDERS)))
    return CaseResult(name, case.formula, case.at, code.text, code.own, answers)


def _function(case: ConventionCase) -> Function:
    if LANGUAGE in case.codes:
        from difflab.language import parse

        return parse(case.codes[LANGUAGE].text)
    from difflab.graph.trace import trace

    code = f"lambda {', '.join(case.inputs)}: {case.codes[TRACED].text}"
    return trace(eval(code, {"np": np}), *(1.0 for _ in case.inputs))  # noqa: S307 - our own table


def _numbers(compute: Callable[[], Any]) -> tuple[float, ...]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(np.asarray(compute(), dtype=float).reshape(-1).tolist())


def _by_peer(peer: Peer, process: RestartedWorker, case: ConventionCase) -> CaseResult:
    """Return a peer's results, from its process."""
    code = case.code(peer.columns, peer.codes)
    if code is None:
        reason = f"{peer.title} has no such function"
        return CaseResult(peer.name, case.formula, case.at, answers=(reason,) * len(ORDERS))

    def answer(order: int) -> tuple[float, ...] | str:
        request = (code.text, case.inputs, case.at, order)
        try:
            elements: tuple[float, ...] = process.request("answer", *request, timeout=LIMIT)
        except DifflabError as error:
            return str(error)
        return elements

    answers = tuple(answer(order) for order in range(len(ORDERS)))
    return CaseResult(peer.name, case.formula, case.at, code.text, code.own, answers)


def handlers(report: ReportProgress, name: str) -> Handlers:
    """Import a peer and return the handlers of its process."""
    peer = registry.peers()[name]
    assert isinstance(peer, Peer)
    peer.start()

    def answer(code: str, inputs: Sequence[str], at: Sequence[float], order: int) -> Any:
        if order and order not in peer.orders:
            raise UnsupportedError(f"{peer.title} has no derivatives of order {order}")
        try:
            return _numbers(lambda: peer.own(code, inputs, order)(np.array(at)))
        except AttributeError as error:
            raise UnsupportedError(f"{peer.title} has no such function: {error}") from error

    return {"answer": answer}
