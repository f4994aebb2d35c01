"""Plug-ins, the methods of other packages: loaded, checked, and listed with a reason if broken."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

from difflab.errors import UnsupportedError, described
from difflab.methods.protocol import Family, Method, Prepared, Problem

LONGEST = 500
"""Most characters of an exception's message in a row."""


@dataclass(frozen=True)
class Broken:
    """A method that could not be loaded: listed, never run."""

    name: str
    reason: str
    # The family is unknown; numeric methods have the weakest guarantees.
    family: Family = Family.NUMERIC
    orders: tuple[int, ...] = ()
    summary: str = "could not be loaded"

    def prepare(self, problem: Problem) -> Prepared:
        """Raise `UnsupportedError` with the reason."""
        raise UnsupportedError(self.reason)

    def missing(self) -> str | None:
        """Return why it could not be loaded."""
        return self.reason


@dataclass(frozen=True)
class Description:
    """Description of a method.

    Attributes
    ----------
    name, family, summary : str
    orders : tuple of int
        The orders of derivative that the method gives.
    missing : str or None
        Why it cannot run in this environment, and the command that installs it.
    """

    name: str
    family: Family
    orders: tuple[int, ...]
    summary: str
    missing: str | None


def describe(method: Method) -> Description:
    """Return the description of `method`, in built-in types."""
    missing = method.missing()
    return Description(
        str(method.name),
        Family(method.family),
        tuple(int(order) for order in method.orders),
        str(method.summary),
        None if missing is None else str(missing),
    )


def load(entry: EntryPoint) -> Method:
    """Load a plug-in; return it as `Broken` with the reason if it is not a valid method."""
    try:
        loaded = entry.load()
        method: Method = loaded() if isinstance(loaded, type) else loaded
        complaint = _complaint(entry.name, method)
        if complaint is None:
            describe(method)  # called once here, so that it cannot fail in a listing
            return method
    except (Exception, SystemExit) as error:  # a plug-in may fail in any way
        complaint = located(error, entry)
    return Broken(entry.name, f"{entry.value} cannot be used: {complaint}")


def located(error: BaseException, entry: EntryPoint) -> str:
    """Return an exception in one line, with the file and the line of the plug-in that raised it."""
    text = described(error)[:LONGEST]
    try:
        spec = find_spec(entry.module.partition(".")[0])
    except ValueError:  # a module that was made in memory
        spec = None
    if spec is None or isinstance(error, SyntaxError):  # which names its own line
        return text
    homes = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.origin else ())]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(Path(frame.filename).is_relative_to(home) for home in homes):
            return f"{text} ({Path(frame.filename).name}, line {frame.lineno})"
    return text


def _complaint(name: str, method: object) -> str | None:
    """Return why `method` is not a valid method, or None."""
    if not isinstance(method, Method):
        wanted = ("name", "family", "summary", "orders", "prepare", "missing")
        absent = [part for part in wanted if not hasattr(method, part)]
        return f"it has no {', '.join(absent)}"
    orders = method.orders
    tests = {
        f"its name is {method.name!r}, not {name!r}": method.name == name,
        f"its family {method.family!r} is none of {', '.join(Family)}": method.family
        in list(Family),
        "its summary is not text": isinstance(method.summary, str),
        "its orders are not a tuple of integers": isinstance(orders, tuple)
        and all(isinstance(order, int) for order in orders),
        "prepare and missing cannot be called": callable(method.prepare)
        and callable(method.missing),
    }
    return next((text for text, holds in tests.items() if not holds), None)
