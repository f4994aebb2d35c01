"""What a Python function can read besides its arguments, and whether it has changed.

The global variables, the variables of enclosing functions, the defaults, and the attributes of
the objects among them are found from the code objects, without running anything, in the function
and in every function that it can call. This is a superset of what a run reads.

Code of the standard library and of installed packages is assumed to be constant, except for the
variables of enclosing functions: ``functools.partial(f, 2)`` and ``dl.grad(f)`` are searched for
the user's functions in them. Objects of classes of the standard library are compared by identity,
unless they only hold values, as `SimpleNamespace` does.
"""

from __future__ import annotations

import dis
import sys
import sysconfig
from argparse import Namespace
from array import array
from collections import UserDict, UserList, deque
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from operator import is_
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Change", "Reads"]

PACKAGE = Path(__file__).parents[2]
_ABSENT = object()
_HOLDERS = (SimpleNamespace, Namespace, UserDict, UserList)
"""Classes of the standard library whose instances only hold values."""
_SEQUENCES = (list, tuple, deque, array)
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis))


class Change(NamedTuple):
    """A value that a function can read and that is no longer what it was.

    Attributes
    ----------
    message : str
        What changed: ``global rate is 0.2, was 0.1``.
    where : str
        The file and the line that reads it.
    """

    message: str
    where: str


class _Read(NamedTuple):
    """A value found in the search: how it is reached, by what, and what identifies it."""

    token: Any
    shown: str
    where: str


class Reads:
    """The state that a function can read, as it is when this is made.

    Parameters
    ----------
    roots : iterable of (str, object)
        The functions and other objects to search, each with its name.

    Examples
    --------
    >>> names = {"rate": 0.1}
    >>> exec("def step(x): return x - rate * x", names)
    >>> reads = Reads([("step", names["step"])])
    >>> names["rate"] = 0.2
    >>> reads.unchanged(), reads.change().message
    (False, 'global rate is 0.2, was 0.1')
    """

    def __init__(self, roots: list[tuple[str, Any]]) -> None:
        self._roots = roots
        self._adopt(_Search(roots))

    def _adopt(self, search: _Search) -> None:
        self._found = search.found
        self._entries = search.entries
        self._attributes = search.attributes
        self._cells = search.cells
        self._containers = search.containers
        self._arrays = search.arrays

    def unchanged(self) -> bool:
        """Whether nothing was replaced; False may also mean replaced by an equal value."""
        for mapping, key, value in self._entries:
            if mapping.get(key, _ABSENT) is not value:
                return False
        for owner, name, value in self._attributes:
            if getattr(owner, name, _ABSENT) is not value:
                return False
        for cell, value in self._cells:
            if _content(cell) is not value:
                return False
        for container, children in self._containers:
            parts = _parts(container)
            if len(parts) != len(children) or not all(map(is_, parts, children)):
                return False
        for values, token in self._arrays:  # noqa: SIM110 - faster than all()
            if _token(values) != token:
                return False
        return True

    def change(self) -> Change | None:
        """Return the first value that differs; None if all are equal, by value."""
        search = _Search(self._roots)
        for path, now in search.found.items():
            before = self._found.get(path)
            if before is None or before.token != now.token:
                was = "" if before is None or before.shown == now.shown else f", was {before.shown}"
                changed = f"is {now.shown}{was}" if was else "has changed"
                return Change(f"{path} {changed}", now.where)
        for path, before in self._found.items():
            if path not in search.found:
                return Change(f"{path} is no longer read", before.where)
        self._adopt(search)
        return None


class _Search:
    """Collects everything that can be reached from some objects.

    Attributes
    ----------
    found : dict of str to _Read
        Every value, by the expression that reaches it.
    entries, attributes, cells, containers, arrays : list
        Where the values are kept, to check quickly that they are still there.
    """

    def __init__(self, roots: list[tuple[str, Any]]) -> None:
        self.found: dict[str, _Read] = {}
        self.entries: list[tuple[Mapping[str, Any], str, Any]] = []
        self.attributes: list[tuple[Any, str, Any]] = []
        self.cells: list[tuple[CellType, Any]] = []
        self.containers: list[tuple[Any, list[Any]]] = []
        self.arrays: list[tuple[np.ndarray[Any, Any], Any]] = []
        self._seen: dict[int, Any] = {}  # keeps the objects alive, so that ids stay unique
        self._todo: list[tuple[str, Any, str]] = [(name, root, "") for name, root in roots]
        while self._todo:
            self._visit(*self._todo.pop())

    def _entry(self, mapping: Mapping[str, Any], key: str, path: str, where: str) -> None:
        """Read a variable of a module, an object or a class."""
        value = mapping.get(key, _ABSENT)
        self.entries.append((mapping, key, value))
        if value is not _ABSENT:
            self._todo.append((path, value, where))

    def _attribute(self, owner: Any, name: str, path: str, where: str) -> None:
        """Read an attribute that is in no dictionary."""
        value = getattr(owner, name, _ABSENT)
        self.attributes.append((owner, name, value))
        if value is not None and value is not _ABSENT:
            self._todo.append((path, value, where))

    def _visit(self, path: str, value: Any, where: str) -> None:
        known = id(value) in self._seen
        self.found[path] = _Read(_token(value), _shown(value), where)
        if known or isinstance(value, _PLAIN):
            return
        self._seen[id(value)] = value
        for kinds, visit in self._VISITS:
            if isinstance(value, kinds):
                visit(self, path, value, where)
                return
        self._object(path, value, where)

    def _array(self, path: str, value: Any, where: str) -> None:
        if value.dtype == object:
            self._todo += [(f"{path}[…]", part, where) for part in value.ravel().tolist()]
        else:
            self.arrays.append((value, self.found[path].token))

    def _sequence(self, path: str, value: Any, where: str) -> None:
        if not isinstance(value, tuple | frozenset):
            self.containers.append((value, _parts(value)))
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in pairs:
            if not isinstance(child, _PLAIN):  # the token of the container has the others
                self._todo.append((f"{path}[{key!r}]", child, where))

    def _partial(self, path: str, value: Any, where: str) -> None:
        parts = {"func": value.func, "args": value.args, "keywords": value.keywords}
        self._todo += [(f"{path}.{name}", part, where) for name, part in parts.items()]

    def _method(self, path: str, value: Any, where: str) -> None:
        self._todo += [(f"{path}.__self__", value.__self__, where), (path, value.__func__, where)]

    def _function(self, path: str, value: Any, where: str) -> None:
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            content = _content(cell)
            self.cells.append((cell, content))
            if content is not _ABSENT:
                line = _lines(value.__code__).get(name, where)
                self._todo.append((f"{name} around {value.__name__}", content, line))
        for name in ("__defaults__", "__kwdefaults__"):
            self._attribute(value, name, f"{value.__name__}.{name}", where)
        self.attributes.append((value, "__code__", value.__code__))
        if _owner(value.__code__.co_filename) == "user":
            self._code(value.__code__, value.__globals__)

    def _code(self, code: CodeType, scope: dict[str, Any]) -> None:
        """Read the global variables that code names, and the attributes of modules."""
        attributes = _attributes(code)
        for name, line in _globals(code).items():
            self._entry(scope, name, f"global {name}", line)
            module = scope.get(name)
            if isinstance(module, ModuleType) and _owner(_file(module)) == "user":
                for attribute in attributes:
                    if attribute in vars(module):
                        self._entry(vars(module), attribute, f"global {name}.{attribute}", line)

    def _class(self, path: str, value: type, where: str) -> None:
        if _owner(_file_of(value)) != "user":
            return
        for base in value.__mro__[1:-1]:
            self._todo.append((f"{path} base {base.__name__}", base, where))
        for name, member in list(vars(value).items()):
            if isinstance(member, staticmethod | classmethod):
                self._todo.append((f"{path}.{name}", member.__func__, where))
            elif isinstance(member, property):
                self._todo.append((f"{path}.{name}", member.fget, where))
            elif not name.startswith("__") or isinstance(member, FunctionType):
                self._entry(vars(value), name, f"{path}.{name}", where)

    def _object(self, path: str, value: Any, where: str) -> None:
        inner = getattr(value, "__wrapped__", None)
        if inner is not None:
            self._todo.append((path, inner, where))
            return
        kind = type(value)
        held = isinstance(value, _HOLDERS)
        if not held and _owner(_file_of(kind)) not in ("user", "installed"):
            return
        self._todo.append((f"class {kind.__name__}", kind, where))
        attributes = getattr(value, "__dict__", {})
        self.containers.append((attributes, _parts(attributes)))
        for name, part in attributes.items():
            self._todo.append((f"{path}.{name}", part, where))
        for name in getattr(kind, "__slots__", ()):
            if name == "__weakref__":
                continue
            self._attribute(value, name, f"{path}.{name}", where)

    def _module(self, path: str, value: Any, where: str) -> None:
        """Read nothing: which of its variables are read is known from the code that names it."""

    _VISITS: tuple[tuple[Any, Callable[..., None]], ...] = (
        (np.ndarray, _array),
        ((*_SEQUENCES, dict, set, frozenset), _sequence),
        (partial, _partial),
        (MethodType, _method),
        (FunctionType, _function),
        (ModuleType, _module),
        (type, _class),
    )


def _parts(container: Any) -> list[Any]:
    """Return what a container holds."""
    return [*container, *container.values()] if isinstance(container, dict) else list(container)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _ABSENT


def _token(value: Any) -> Any:
    """Return what identifies a value: its contents if it is plain, else the object."""
    if isinstance(value, np.generic | float | complex):
        return type(value), repr(value)  # distinguishes 0.0 from -0.0
    if isinstance(value, _PLAIN):
        return type(value), value if not isinstance(value, slice) else repr(value)
    if isinstance(value, np.ndarray):
        return type(value), value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, set | frozenset):
        return type(value), frozenset(map(_plain_token, value))
    if isinstance(value, dict):
        return dict, tuple(map(_plain_token, value)), tuple(map(_plain_token, value.values()))
    if isinstance(value, _SEQUENCES):
        return type(value), tuple(map(_plain_token, value))
    if isinstance(value, FunctionType):
        return type(value), id(value), id(value.__code__)
    return type(value), id(value)


def _plain_token(value: Any) -> Any:
    """Return the token of a plain child of a container; other children have tokens of their own."""
    return _token(value) if isinstance(value, _PLAIN) else type(value)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}" if value.size > 4 else str(value.tolist())
    if isinstance(value, FunctionType | type | ModuleType):
        return f"{value.__name__}"
    text = repr(value) if isinstance(value, (*_PLAIN, np.generic, list, tuple, dict)) else ""
    return text if text and len(text) <= 40 else f"{type(value).__name__} {text[:36]}…".rstrip("… ")


@lru_cache(1024)
def _owner(file: str | None) -> str:
    """Return whose a file is: "user", "installed" (a package), "standard" or "difflab"."""
    if file is None or (file.startswith("<") and not file.startswith("<frozen")):
        return "user"
    path = Path(file)
    if path.is_relative_to(PACKAGE):
        return "difflab"
    if any(folder in path.parts for folder in ("site-packages", "dist-packages")):
        return "installed"
    built_in = file == "" or file.startswith("<frozen")
    standard = built_in or path.is_relative_to(sysconfig.get_path("stdlib"))
    return "standard" if standard else "user"


def _file_of(kind: type) -> str | None:
    """Return the file that defines a class: None if typed in, empty if built in."""
    module = sys.modules.get(kind.__module__)
    if module is None or kind.__module__ == "__main__":
        return None
    return _file(module)


def _file(module: ModuleType) -> str:
    """Return the file of a module, empty if it is built in."""
    return getattr(module, "__file__", None) or ""


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Iterate over a code object and those of the functions defined in it."""
    todo = [code]
    while todo:
        code = todo.pop()
        yield code
        todo += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


@lru_cache(1024)
def _lines(code: CodeType) -> dict[str, str]:
    """Return, for each name that code loads, the file and the line of its first use."""
    file = Path(code.co_filename).name
    found: dict[str, str] = {}
    for part in _codes(code):
        for instruction in dis.get_instructions(part):
            if isinstance(instruction.argval, str) and instruction.opname.startswith("LOAD_"):
                line = instruction.positions.lineno if instruction.positions else None
                found.setdefault(instruction.argval, f"{file}, line {line}" if line else file)
    return found


@lru_cache(1024)
def _globals(code: CodeType) -> dict[str, str]:
    """Return the global variables that code names, each with its line."""
    names = {
        instruction.argval
        for part in _codes(code)
        for instruction in dis.get_instructions(part)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    lines = _lines(code)
    return {name: lines[name] for name in sorted(names)}


@lru_cache(1024)
def _attributes(code: CodeType) -> tuple[str, ...]:
    """Return every attribute that code names."""
    return tuple(sorted({name for part in _codes(code) for name in part.co_names}))
