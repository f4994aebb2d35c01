"""Trial imports of optional packages in another process, so that none can crash this one."""

from __future__ import annotations

from collections.abc import Iterable

from difflab.core.optional import installed, load
from difflab.core.worker import Handlers, ReportProgress, Worker
from difflab.errors import DifflabError, MissingDependencyError

LIMIT = 60.0  # seconds after which an import is considered to hang


def handlers(report: ReportProgress) -> Handlers:
    """Return the handlers of this process."""
    return {"fault": _fault}


def _fault(name: str) -> str:
    """Import a module and return the error, or an empty string."""
    if name != "llvmlite":
        return load(name).reason
    from difflab.execute.targets.llvm.libraries import llvm

    try:
        llvm()
    except MissingDependencyError as error:
        return error.fault
    return ""


def faults(names: Iterable[str]) -> dict[str, str]:
    """Return the fault of each unusable package: ``"missing"``, or ``"broken: "`` and the reason.

    Examples
    --------
    >>> faults(["no_such_package"])
    {'no_such_package': 'missing'}
    """
    worker: Worker | None = None
    reasons: dict[str, str] = {}
    for name in names:
        if not installed(name):
            reasons[name] = "missing"
            continue
        if worker is None or not worker.alive:
            worker = Worker("difflab.methods.process.loading")
        try:
            reason = worker.request("fault", name, timeout=LIMIT)
        except DifflabError as error:
            reason = f"broken: importing it: {error}"
        if reason:
            reasons[name] = reason
    if worker is not None:
        worker.stop()
    return reasons
