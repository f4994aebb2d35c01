"""Which methods there are: difflab's own, the peers, and those that other packages bring.

May import `difflab.errors` and `difflab.methods`, each method only when it is asked for.

A package adds a method by an entry point of the group ``difflab.methods``::

    [project.entry-points."difflab.methods"]
    my-method = "my_package.my_method:METHOD"

whose name is the method's, and whose value satisfies `difflab.methods.protocol.Method`
(or is a class that makes such an object without arguments). One that cannot be loaded is
still listed: its row says why.

The peers (`difflab.methods.peers`) run only when they are named, or asked for together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from difflab.errors import InputError, UnsupportedError
from difflab.methods.protocol import Family, Method, Prepared, Problem

__all__ = [
    "GROUP",
    "Broken",
    "Description",
    "describe",
    "entry_point",
    "find",
    "installed",
    "peers",
    "select",
]

GROUP = "difflab.methods"

# In the order of every table: module and name of the object.
_OWN = {
    "symbolic": ("difflab.methods.symbolic", "SYMBOLIC"),
    "finite-forward": ("difflab.methods.finite", "FORWARD"),
    "finite-central": ("difflab.methods.finite", "CENTRAL"),
    "richardson": ("difflab.methods.richardson", "RICHARDSON"),
    "complex-step": ("difflab.methods.complex_step", "COMPLEX_STEP"),
    "forward": ("difflab.methods.automatic", "FORWARD"),
    "reverse": ("difflab.methods.automatic", "REVERSE"),
}
_PEERS = {
    name: (f"difflab.methods.peers.{name}", name.upper())
    for name in ("jax", "torch", "autograd", "casadi", "symengine", "numdifftools")
}
_loaded: dict[str, Method] = {}


@dataclass(frozen=True)
class Broken:
    """A method that could not be loaded: listed, never run."""

    name: str
    reason: str
    # The family is not known; the numeric methods are those that promise least.
    family: Family = Family.NUMERIC
    orders: tuple[int, ...] = ()
    summary: str = "could not be loaded"

    def prepare(self, problem: Problem) -> Prepared:
        """Refuse, with the reason."""
        raise UnsupportedError(self.reason)

    def missing(self) -> str | None:
        """Return why it could not be loaded."""
        return self.reason


@dataclass(frozen=True)
class Description:
    """One row of `describe`.

    Attributes
    ----------
    name, family, summary : str
    orders : tuple of int
        The orders of derivative that the method gives.
    missing : str or None
        Why it cannot run here and the command that adds it.
    """

    name: str
    family: Family
    orders: tuple[int, ...]
    summary: str
    missing: str | None


def installed() -> dict[str, Method]:
    """Return the methods of every comparison by name: difflab's own, then those plugged in.

    Examples
    --------
    >>> list(installed())[:4]
    ['symbolic', 'finite-forward', 'finite-central', 'richardson']
    """
    found = {name: _own(name) for name in _OWN}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        if entry.name in found or entry.name in _PEERS:
            reason = f"{entry.value}: the name '{entry.name}' is taken"
            name = f"{entry.name} ({entry.value})"
            found[name] = Broken(name, reason)
        else:
            found[entry.name] = _plugged(entry)
    return found


def peers() -> dict[str, Method]:
    """Return the packages that difflab is compared with by name, installed or not.

    Examples
    --------
    >>> list(peers())
    ['jax', 'torch', 'autograd', 'casadi', 'symengine', 'numdifftools']
    """
    return {name: _own(name) for name in _PEERS}


def select(names: Sequence[str] | str | None) -> list[Method]:
    """Return the methods asked for, in their order, each once.

    Parameters
    ----------
    names : sequence of str, or None
        Names of methods; ``"peers"`` stands for the peers that are installed, and ``"all"`` for
        those and everything else. None asks for everything but the peers.

    Raises
    ------
    difflab.errors.InputError
        There is no such method, or no peer is installed.

    Examples
    --------
    >>> [method.name for method in select(["reverse", "forward", "reverse"])]
    ['reverse', 'forward']
    """
    known = installed()
    if names is None:
        return list(known.values())
    found: dict[str, Method] = {}
    for name in [names] if isinstance(names, str) else names:
        if name in ("all", "peers"):
            here = {peer: method for peer, method in peers().items() if not method.missing()}
            if name == "peers" and not here:
                hint = "add them with: pip install 'difflab[peers]'"
                raise InputError("no peer is installed", hint=hint)
            found |= here if name == "peers" else known | here
        else:
            found[name] = known.get(name) or _named(name)
    if not found:
        raise InputError("no method is named", hint=f"there are {', '.join(known)}")
    return list(found.values())


def entry_point(name: str) -> EntryPoint | None:
    """Return where the method of that name was plugged in, or None: it is difflab's, or nobody's.

    Examples
    --------
    >>> entry_point("reverse") is None
    True
    """
    if name in _OWN or name in _PEERS:
        return None
    return next((entry for entry in entry_points(group=GROUP) if entry.name == name), None)


def describe() -> list[Description]:
    """Return a row for every method, for people to read.

    Examples
    --------
    >>> describe()[3].name, describe()[3].orders
    ('richardson', (1, 2))
    """
    everything = installed()
    own = {name: everything.pop(name) for name in _OWN}
    return [
        Description(name, method.family, method.orders, method.summary, method.missing())
        for name, method in (own | peers() | everything).items()
    ]


def find(name: str) -> Method:
    """Return the method of that name, loading no other.

    Raises
    ------
    difflab.errors.InputError
        There is no such method; the message names the nearest ones.
    difflab.errors.UnsupportedError
        The method cannot run here.
    """
    method = _named(name)
    reason = method.missing()
    if reason is not None:
        raise UnsupportedError(reason)
    return method


def _named(name: str) -> Method:
    """Return the method of that name, whether it can run here or not."""
    if name in _loaded:
        return _loaded[name]
    return _own(name) if name in _OWN or name in _PEERS else _find_plugged(name)


def _own(name: str) -> Method:
    if name not in _loaded:
        module, attribute = (_OWN | _PEERS)[name]
        _loaded[name] = getattr(import_module(module), attribute)
    return _loaded[name]


def _find_plugged(name: object) -> Method:
    known = installed()
    if isinstance(name, str) and name in known:
        return known[name]
    near = get_close_matches(str(name), [*known, *_PEERS], n=3, cutoff=0.4)
    which = (
        f"did you mean {' or '.join(near)}?"
        if near
        else f"there are {', '.join([*known, *_PEERS])}"
    )
    raise InputError(f"there is no method '{name}'", hint=which)


def _plugged(entry: EntryPoint) -> Method:
    """Load another package's method; whatever is wrong with it becomes its row."""
    try:
        loaded = entry.load()
        method: Method = loaded() if isinstance(loaded, type) else loaded
        complaint = _complaint(entry.name, method)
        if complaint is None:
            method.missing()  # asked once here, so that it cannot fail in a listing
            return method
    except (Exception, SystemExit) as error:  # a plug-in may fail in any way
        complaint = f"{type(error).__name__}: {error}"
    return Broken(entry.name, f"{entry.value} cannot be used: {complaint}")


def _complaint(name: str, method: object) -> str | None:
    """Return what keeps `method` from being a method, or None."""
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
