"""Optional packages: the module, or the reason why it is unavailable.

Every part of difflab with an optional dependency loads it through this module. A package may be
missing, and an installed one may fail on import in any way: a failing import is tried once. What
the import prints goes to standard error.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from types import ModuleType

from difflab.errors import MissingDependencyError, described

_EXTRAS = {
    "llvmlite": "native",
    "cupy": "gpu",
    "jax": "peers",
    "torch": "peers",
    "autograd": "peers",
    "casadi": "peers",
    "symengine": "peers",
    "numdifftools": "peers",
    "pytensor": "pytensor",
    "tensorflow": "tensorflow",
    "hypothesis": "test",
    "pytest": "test",
}
"""The extra of difflab that installs a module, with a version that difflab works with.

A peer that nothing else uses names its own (`difflab.methods.peers.peer.Peer.extra`).
"""

_DISTRIBUTIONS = {"flint": "python-flint"}
"""Distributions whose name is not that of their module."""


def distribution(module: str) -> str:
    """Return the name by which a module's package is installed.

    Examples
    --------
    >>> distribution("flint"), distribution("jax.numpy")
    ('python-flint', 'jax')
    """
    package = module.partition(".")[0]
    return _DISTRIBUTIONS.get(package, package)


def requirement(module: str) -> str:
    """Return the requirement by which ``pip install`` adds a module: an extra, or the package.

    Examples
    --------
    >>> requirement("jax"), requirement("flint")
    ("'difflab[peers]'", 'python-flint')
    """
    extra = _EXTRAS.get(module)
    return f"'difflab[{extra}]'" if extra else distribution(module)


def absence(module: str, extra: str = "", package: str = "") -> str | None:
    """Return that a package is not installed, with the command that installs it, or None.

    Parameters
    ----------
    module : str
        The module that is imported.
    extra, package : str
        The extra of difflab that installs it and its distribution, if other than the table's.

    Examples
    --------
    >>> absence("numpy") is None
    True
    """
    if installed(module):
        return None
    extra = extra or _EXTRAS.get(module, "")
    return str(MissingDependencyError(package or distribution(module), extra=extra))


@dataclass(frozen=True)
class LoadedPackage:
    """The result of importing an optional package.

    Attributes
    ----------
    module : module or None
        The package; None where it is missing or broken.
    reason : str
        Why it is None: ``"missing"``, or ``"broken: "`` and the exception.
    """

    module: ModuleType | None
    reason: str = ""


def installed(name: str) -> bool:
    """Return whether a package is installed, without importing it.

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


def load(name: str) -> LoadedPackage:
    """Import a module; return it, or the reason why the import failed.

    Examples
    --------
    >>> load("math").module.__name__, load("no_such_package").reason
    ('math', 'missing')
    """
    if not installed(name.partition(".")[0]):
        return LoadedPackage(None, "missing")
    if name not in _broken:
        try:
            # A loaded module prints no more, and other threads may print meanwhile.
            with nullcontext() if name in sys.modules else redirect_stdout(sys.stderr):
                return LoadedPackage(import_module(name))
        except (Exception, SystemExit) as error:  # other people's code may fail in any way
            _broken[name] = f"broken: {described(error)}"
    return LoadedPackage(None, _broken[name])


def fault(*names: str) -> str:
    """Return why the first broken module among `names` is broken; empty if none is known to be.

    Nothing is imported: a module that was never loaded is not known to be broken.
    """
    return next((_broken[name] for name in names if name in _broken), "")


_REPLACED = {"symengine": "symforce"}
"""Distributions whose module another one overwrites with its own: one environment has one."""


def conflict(name: str, *, unusable: bool) -> str:
    """Return why a distribution cannot be used beside another one; empty if it can.

    Parameters
    ----------
    name : str
        The distribution.
    unusable : bool
        Whether it is missing or broken. One whose module is overwritten seems to be neither.
    """
    for replaced, other in _REPLACED.items():
        if name == other and unusable and _distributed(replaced):
            other = replaced
        elif name != replaced or not _distributed(other):
            continue
        return (
            f"{name} cannot be used beside {other}, since both install the module "
            f"'{replaced}'; use an environment that has only one of them"
        )
    return ""


def _distributed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def repair(name: str) -> str:
    """Return how to repair a distribution whose import fails.

    Examples
    --------
    >>> repair("autograd")
    'repair it with: pip install --force-reinstall autograd'
    """
    return conflict(name, unusable=True) or f"repair it with: pip install --force-reinstall {name}"


def require(name: str, extra: str = "", package: str = "") -> ModuleType:
    """Return an optional module.

    Parameters
    ----------
    name : str
        The module.
    extra : str
        The extra of difflab that installs it; by default the one for the package alone, if any.
    package : str
        The distribution to install, by default the module's.

    Raises
    ------
    MissingDependencyError
        It is missing or broken; the message says which, and how to fix it.
    """
    loaded = load(name)
    if loaded.module is None:
        fault = "" if loaded.reason == "missing" else loaded.reason
        extra = extra or _EXTRAS.get(name.partition(".")[0], "")
        raise MissingDependencyError(package or distribution(name), extra=extra, fault=fault)
    return loaded.module
