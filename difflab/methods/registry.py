"""Registry of the methods: difflab's own, the peers, and those of other packages.

A package adds a method by an entry point of the group ``difflab.methods``::

    [project.entry-points."difflab.methods"]
    my-method = "my_package.my_method:method"

whose name is the method's, and whose value satisfies `difflab.methods.protocol.Method`
(or is a class whose constructor without arguments returns such an object). A method that cannot
be loaded is still listed, with the reason.

The peers (`difflab.methods.peers`) and `exact` run only when they are named, or selected as
``"all"``; the peers also as ``"peers"``. `exact` is no default, since it and the referee are the
same ball arithmetic: it is no independent check, and costs a thousand times as much as the others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from difflab.core.wording import did_you_mean
from difflab.errors import InputError, UnsupportedError
from difflab.methods.plugged import Broken, Description, load
from difflab.methods.plugged import describe as described
from difflab.methods.process.derivative import Remote
from difflab.methods.protocol import Method

GROUP = "difflab.methods"

# In the order of every table: module and name of the object.
_OWN = {
    "symbolic": ("difflab.methods.symbolic.method", "SYMBOLIC"),
    "finite-forward": ("difflab.methods.numeric.finite", "FORWARD"),
    "finite-central": ("difflab.methods.numeric.finite", "CENTRAL"),
    "richardson": ("difflab.methods.numeric.finite", "RICHARDSON"),
    "complex-step": ("difflab.methods.numeric.complex_step", "COMPLEX_STEP"),
    "forward": ("difflab.methods.automatic", "FORWARD"),
    "reverse": ("difflab.methods.automatic", "REVERSE"),
}
_NAMED = {"exact": ("difflab.methods.exact", "EXACT")}
_PEERS = {
    name: (f"difflab.methods.peers.{word}", word.upper())
    for name in (
        *("jax", "torch", "autograd", "casadi", "symengine", "numdifftools", "pytensor"),
        *("tensorflow", "torch-compile", "tinygrad", "symforce", "jacobi", "enzyme-ad"),
        *("jax-jet", "jax-folx", "advect", "heyoka", "symb-anafis", "warp", "taichi", "tvm"),
    )
    for word in [name.replace("-", "_")]
}
# It runs difflab's own derivative, whose rules the peers may not use.
_PEERS["onnxruntime"] = ("difflab.methods.onnxruntime", "ONNXRUNTIME")
_loaded: dict[str, Method] = {}
_processes: dict[tuple[str, str], Remote] = {}


def own() -> dict[str, Method]:
    """Return difflab's own methods by name, without the peers.

    Examples
    --------
    >>> list(own())[-2:]
    ['forward', 'reverse']
    """
    return {name: _own(name) for name in _OWN}


def apart(method: Method) -> Method:
    """Return one of difflab's own methods in a process of its own; any other method unchanged.

    Examples
    --------
    >>> apart(own()["reverse"]).name
    'reverse'
    """
    mine = method.name in _OWN | _NAMED and _loaded.get(method.name) is method
    if not mine or hasattr(method, "start"):
        return method
    return _remote(method.name, here=method)


def begin() -> None:
    """Start SymPy's process without importing any other method, or NumPy.

    Examples
    --------
    >>> begin()
    """
    symbolic = import_module(_OWN["symbolic"][0]).SYMBOLIC
    if symbolic.missing() is None:
        symbolic.start()


def runs_here(method: Method) -> bool:
    """Return whether a method can run in this process, in which Python code is.

    Examples
    --------
    >>> runs_here(own()["richardson"])
    True
    """
    return not isinstance(method, Remote) or method.here is not None


def installed() -> dict[str, Method]:
    """Return the default methods of a comparison by name: difflab's own, then the plug-ins.

    Plug-ins run in processes of their own, which are not started yet.

    Examples
    --------
    >>> list(installed())[:4]
    ['symbolic', 'finite-forward', 'finite-central', 'richardson']
    """
    methods = own()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        if entry.name in methods or entry.name in _PEERS | _NAMED:
            reason = f"{entry.value}: the name '{entry.name}' is already in use"
            name = f"{entry.name} ({entry.value})"
            methods[name] = Broken(name, reason)
        else:
            methods[entry.name] = _plugged(entry)
    return methods


def named() -> dict[str, Method]:
    """Return difflab's own methods that are no defaults, by name.

    Examples
    --------
    >>> list(named())
    ['exact']
    """
    return {name: _own(name) for name in _NAMED}


def peer_names() -> list[str]:
    """Return the names of the peers; none of them is loaded.

    Examples
    --------
    >>> peer_names()[:3]
    ['jax', 'torch', 'autograd']
    """
    return list(_PEERS)


def peers() -> dict[str, Method]:
    """Return the peers by name, installed or not.

    Examples
    --------
    >>> list(peers())[:6]
    ['jax', 'torch', 'autograd', 'casadi', 'symengine', 'numdifftools']
    """
    return {name: _own(name) for name in _PEERS}


def select(names: Sequence[str] | str | None) -> list[Method]:
    """Return the selected methods, in the order of `names`, each once.

    Parameters
    ----------
    names : sequence of str, or None
        Names of methods; ``"peers"`` selects the installed peers, and ``"all"`` these and all
        other methods. None selects all methods but the peers and `exact`.

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
    selected: dict[str, Method] = {}
    for name in [names] if isinstance(names, str) else names:
        if name in ("all", "peers"):
            here = {
                peer: _remote(peer, here=method)
                for peer, method in peers().items()
                if not method.missing()
            }
            if name == "peers" and not here:
                hint = "add them with: pip install 'difflab[peers]'"
                raise InputError("no peer is installed", hint=hint)
            selected |= here if name == "peers" else own() | named() | known | here
        else:
            selected[name] = known.get(name) or _chosen(name)
    if not selected:
        raise InputError("no method is named", hint=f"there are {', '.join(known)}")
    return list(selected.values())


def entry_point(name: str) -> EntryPoint | None:
    """Return the entry point of a plug-in by name, or None if there is no such plug-in.

    Examples
    --------
    >>> entry_point("reverse") is None
    True
    """
    if name in _OWN | _NAMED | _PEERS:
        return None
    return next((entry for entry in entry_points(group=GROUP) if entry.name == name), None)


def describe() -> list[Description]:
    """Return a description of every method.

    Examples
    --------
    >>> describe()[3].name, describe()[3].orders
    ('richardson', (1, 2))
    """
    everything = installed()
    for method in everything.values():
        if isinstance(method, Remote):
            method.start()  # they all load in parallel
    mine = {name: everything.pop(name) for name in _OWN}
    return [
        replace(described(method), name=name)
        for name, method in (mine | named() | peers() | everything).items()
    ]


def find(name: str) -> Method:
    """Return the method called `name`; no other is loaded.

    Raises
    ------
    difflab.errors.InputError
        There is no such method; the message names the nearest ones.
    difflab.errors.UnsupportedError
        The method cannot run in this environment.
    """
    method = _named(name)
    reason = method.missing()
    if reason is not None:
        raise UnsupportedError(reason)
    return method


def _chosen(name: str) -> Method:
    """Return a method that is selected by name and is not among the default ones."""
    if name in _PEERS:
        peer = _own(name)
        return peer if peer.missing() else _remote(name, here=peer)
    if name in _NAMED:
        return _own(name)
    return _loaded[name] if name in _loaded else _find_plugged(name)


def _named(name: str) -> Method:
    """Return the method called `name`, for this process, whether it can run or not."""
    if name in _loaded:
        return _loaded[name]
    if name in _OWN | _NAMED | _PEERS:
        return _own(name)
    plugged = _find_plugged(name)
    if not isinstance(plugged, Remote):
        return plugged
    return next(load(entry) for entry in entry_points(group=GROUP) if entry.name == name)


def _own(name: str) -> Method:
    if name not in _loaded:
        module, attribute = (_OWN | _NAMED | _PEERS)[name]
        _loaded[name] = getattr(import_module(module), attribute)
    return _loaded[name]


def _find_plugged(name: object) -> Method:
    known = installed()
    if isinstance(name, str) and name in known:
        return known[name]
    every = [*known, *_NAMED, *_PEERS]
    guess = did_you_mean(name, every, count=3, cutoff=0.4, spelled=str)
    raise InputError(f"there is no method '{name}'", hint=guess or f"there are {', '.join(every)}")


def _plugged(entry: EntryPoint) -> Method:
    """Return a plug-in in a process of its own.

    A module that was created in this process and has no file is loaded in this process.
    """
    module = sys.modules.get(entry.module)
    if module is not None and module.__spec__ is None:
        return load(entry)
    return _remote(entry.name, entry.value)


def _remote(name: str, value: str = "", here: Method | None = None) -> Method:
    """Return a method in a process of its own; each method has one process."""
    key = name, value
    if key not in _processes:
        _processes[key] = Remote(name, value, here)
    return _processes[key]
