"""Optional packages: the module, or the reason why there is none.

Every part of difflab that can use a package and does not need it asks here. A package may be
absent, and one that is there may fail when it is imported, in any way: that is tried once. What
it prints meanwhile goes to standard error.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from difflab.errors import MissingDependencyError, printable

__all__ = ["Package", "described", "fault", "installed", "load", "require"]


@dataclass(frozen=True)
class Package:
    """What became of importing a package.

    Attributes
    ----------
    module : module or None
        The package; None where it is missing or broken.
    reason : str
        Why there is none: ``"missing"``, or ``"broken: "`` and the exception.
    """

    module: ModuleType | None
    reason: str = ""


def installed(name: str) -> bool:
    """Return whether a package is there, without importing it.

    Examples
    --------
    >>> installed("numpy"), installed("no_such_package")
    (True, False)
    """
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # a parent that cannot be imported, a module without a spec
        return False


_broken: dict[str, str] = {}


def load(name: str) -> Package:
    """Import a module, and return it or the reason why that does not work.

    Examples
    --------
    >>> load("math").module.__name__, load("no_such_package").reason
    ('math', 'missing')
    """
    if not installed(name.partition(".")[0]):
        return Package(None, "missing")
    if name not in _broken:
        try:
            with redirect_stdout(sys.stderr):
                return Package(import_module(name))
        except (Exception, SystemExit) as error:  # other people's code may fail in any way
            _broken[name] = f"broken: {described(error)}"
    return Package(None, _broken[name])


def fault(*names: str) -> str:
    """Return why the first broken one of some modules is broken; empty where none is known to be.

    Nothing is imported for it: what was not tried is not known to be broken.
    """
    return next((_broken[name] for name in names if name in _broken), "")


def require(name: str, extra: str) -> ModuleType:
    """Return an optional module.

    Raises
    ------
    MissingDependencyError
        It is missing or broken; the message says which, and how to mend it.
    """
    found = load(name)
    if found.module is None:
        package = name.partition(".")[0]
        fault = "" if found.reason == "missing" else found.reason
        raise MissingDependencyError(package, extra=extra, fault=fault)
    return found.module


def described(error: BaseException) -> str:
    r"""Return an exception in one line.

    Examples
    --------
    >>> described(OSError("no such\nlibrary")), described(SystemExit())
    ('OSError: no such library', 'SystemExit')
    """
    text = printable(" ".join(str(error).split()))
    return f"{type(error).__name__}: {text}".rstrip(": ")[:300]
