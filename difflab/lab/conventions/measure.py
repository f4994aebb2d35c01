"""Runs the cases: difflab's in this process, those of each peer in a process of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from difflab.core.worker import Handlers, ReportProgress, Worker
from difflab.errors import DifflabError, InputError, UnsupportedError, described
from difflab.graph.function import Function
from difflab.lab.conventions.cases import LANGUAGE, TRACED, Case, cases
from difflab.lab.conventions.record import EXACT, ORDERS, Conventions, Package, Result
from difflab.methods import registry
from difflab.methods.peers.peer import Peer
from difflab.methods.protocol import Family, Method, Problem

__all__ = ["OWN", "handlers", "measure"]

OWN = "difflab"
NAMED_ONLY = {"torch-compile": "PyTorch's functions, each compiled for some seconds"}
"""Peers that run only where they are named, and why."""
LIMIT = 120.0
"""Seconds of one case, after which the peer's process is stopped."""
Progress = Callable[[int, int, str], None]


def measure(
    peers: Sequence[str] | None = None,
    chosen: Sequence[Case] | None = None,
    progress: Progress = lambda done, total, label: None,
) -> Conventions:
    """Return value, gradient and Hessian of every case in difflab and in each peer.

    Parameters
    ----------
    peers : sequence of str, optional
        Names of peers; by default all that are installed.
    chosen : sequence of Case, optional
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
    >>> found = measure([], [next(cases())])
    >>> found.results[0].formula, found.results[0].answers
    ('abs(x)', ((0.0,), (0.0,), (0.0,)))
    """
    chosen = list(cases()) if chosen is None else chosen
    left_out, running = _selected(peers)
    packages, results = [_difflab()], [_own(case) for case in chosen]
    results += [_truth(case) for case in chosen if case.smooth]
    for number, peer in enumerate(running):
        progress(number, len(running), peer.title)
        run = _PeerRun(peer.name)
        found = [run.case(case) for case in chosen]
        run.stop()
        numeric = peer.family is Family.NUMERIC
        packages.append(Package(peer.name, peer.title, peer.version(), numeric))
        results += found
    progress(len(running), len(running), "")
    return Conventions(packages, results, left_out)


def _selected(names: Sequence[str] | None) -> tuple[dict[str, str], list[Peer]]:
    """Return why peers are left out, and those that run."""
    known = {name: peer for name, peer in registry.peers().items() if isinstance(peer, Peer)}
    for name in names or ():
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise InputError(f"there is no peer '{name}'", hint=hint)
    left_out, running = {}, []
    for name in known if names is None else names:
        reason = known[name].missing() or (NAMED_ONLY.get(name, "") if names is None else "")
        if reason:
            left_out[name] = reason
        else:
            running.append(known[name])
    return left_out, running


def _difflab() -> Package:
    from difflab import __version__

    return Package(OWN, OWN, __version__)


def _own(case: Case) -> Result:
    """Return difflab's results, by reverse mode."""
    method = registry.own()["reverse"]
    return _by_method(OWN, method, case)


def _truth(case: Case) -> Result:
    """Return the results of ball arithmetic, correctly rounded."""
    return _by_method(EXACT, registry.named()[EXACT], case)


def _by_method(name: str, method: Method, case: Case) -> Result:
    function = _function(case)
    code = case.code((LANGUAGE, TRACED))
    assert code is not None

    def answer(order: int) -> Any:
        if order == 0:
            return function.values(np.array(case.at))
        found = method.prepare(Problem.of(function, order=order))
        return found(np.array(case.at)).value

    return Result(name, case.formula, case.at, code.text, code.own, _answers(answer))


def _function(case: Case) -> Function:
    if LANGUAGE in case.codes:
        from difflab.language import parse

        return parse(case.codes[LANGUAGE].text)
    from difflab.graph.trace import trace

    code = f"lambda {', '.join(case.inputs)}: {case.codes[TRACED].text}"
    return trace(eval(code, {"np": np}), *(1.0 for _ in case.inputs))  # noqa: S307 - our own table


def _answers(answer: Callable[[int], Any]) -> tuple[tuple[float, ...] | str, ...]:
    """Return the answers of all orders, or the reasons why there are none."""
    found: list[tuple[float, ...] | str] = []
    for order in range(len(ORDERS)):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = np.asarray(answer(order), dtype=float)
            found.append(tuple(values.reshape(-1).tolist()))
        except Exception as error:  # other people's code may fail in any way
            found.append(str(error) if isinstance(error, DifflabError) else described(error))
    return tuple(found)


class _PeerRun:
    """A peer's process; another one is started after a case that ends it."""

    def __init__(self, name: str) -> None:
        self._peer = registry.peers()[name]
        self._worker: Worker | None = None

    def case(self, case: Case) -> Result:
        """Return the peer's results."""
        peer = self._peer
        assert isinstance(peer, Peer)
        code = case.code(peer.columns)
        if code is None:
            reason = f"{peer.title} has no such function"
            return Result(peer.name, case.formula, case.at, answers=(reason,) * len(ORDERS))
        if self._worker is None or not self._worker.alive:
            self._worker = Worker("difflab.lab.conventions.measure", peer.name)
        try:
            found = self._worker.request("case", code.text, case.inputs, case.at, timeout=LIMIT)
        except DifflabError as error:
            found = (str(error),) * len(ORDERS)
        return Result(peer.name, case.formula, case.at, code.text, code.own, found)

    def stop(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.stop()


def handlers(report: ReportProgress, name: str) -> Handlers:
    """Import a peer and return the handlers of its process."""
    peer = registry.peers()[name]
    assert isinstance(peer, Peer)
    peer.start()

    def case(code: str, inputs: Sequence[str], at: Sequence[float]) -> Any:
        def answer(order: int) -> Any:
            if order and order not in peer.orders:
                raise UnsupportedError(f"{peer.title} has no derivatives of order {order}")
            try:
                return peer.own(code, inputs, order)(np.array(at))
            except AttributeError as error:
                raise UnsupportedError(f"{peer.title} has no such function: {error}") from error

        return _answers(answer)

    return {"case": case}
