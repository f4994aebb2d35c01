"""The search for the values that a function can read, in its code and the objects that it reaches.

Nothing runs: variables are looked up in their dictionaries, attributes as they are stored, and
types are those that objects have, whatever they say of themselves.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from io import BytesIO, IOBase, StringIO
from operator import attrgetter, methodcaller
from types import (
    CellType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

import numpy as np

from difflab.core.attributes import attributes_of, defines, wrapped_by
from difflab.core.place import owner
from difflab.execute.jit.code import (
    Chain,
    attribute_count,
    chains,
    file_of,
    global_names,
    lines,
    module_file,
    names,
)
from difflab.execute.jit.tokens import (
    BUFFERS,
    COLLECTIONS,
    IRRELEVANT,
    MAPPINGS,
    METHODS,
    OUTSIDE,
    PLAIN,
    REFERENCES,
    TABLES,
    has_contents,
    is_constant,
    parter,
    parts_of,
    position_of,
    referent_of,
    shown,
    token_of,
    tokener,
    why_unwatched,
)

ABSENT = object()
_LONGEST = 200
"""Characters of a path: what is linked a thousand times over has none to read."""
_COMPLETE: tuple[Any, ...] = (FunctionType, MethodType, ModuleType, type, *REFERENCES)
_COMPLETE += (property, staticmethod, classmethod)
"""Types whose attributes were all read by the visit of their own."""
_BUILTINS = frozenset(vars(builtins))
_IMMUTABLE = frozenset({"jax", "jaxlib"})
"""Packages of arrays that never change."""


class Read(NamedTuple):
    """A value found in the search: its token, its text, and the line that reads it."""

    token: Any
    shown: str
    where: str


class Search:
    """Collects everything that can be reached from some objects.

    Attributes
    ----------
    values : dict of str to Read
        Every value, by the expression that reaches it.
    entries, attributes, cells, containers, arrays, tensors, results, sizes : list
        Where the values are kept, to check quickly that they are still there.
    unwatched : dict of str to str
        The reads that cannot be watched, and why.
    """

    def __init__(self, roots: list[tuple[str, Any]]) -> None:
        self.values: dict[str, Read] = {}
        self.unwatched: dict[str, str] = {}
        self.entries: list[tuple[Mapping[str, Any], str, Any]] = []
        self.attributes: list[tuple[Any, str, Any]] = []
        self.cells: list[tuple[CellType, Any]] = []
        self.containers: list[tuple[Callable[[Any], list[Any]], Any, list[Any]]] = []
        self.arrays: list[tuple[Callable[[Any], Any], Any, Any]] = []
        self.results: list[tuple[Callable[[], Any], Any]] = []
        self.tensors: list[tuple[str, Any, Any]] = []
        self.sizes: list[tuple[Mapping[str, Any], int]] = []
        self._seen: dict[int, Any] = {}  # keeps the objects alive, so that ids stay unique
        self._at: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self._entered: set[tuple[int, str]] = set()
        self._names: dict[str, str] = {}
        self._scopes: list[tuple[str, dict[str, Any]]] = []
        self._of_tapes: set[str] = set()
        self._taped: list[tuple[str, Any]] = []
        self._todo: list[tuple[str, Any, str]] = [(name, root, "") for name, root in roots]
        while self._todo:
            while self._todo:
                self._visit(*self._todo.pop())
            self._by_names()

    # Names.

    def _entry(self, mapping: Mapping[str, Any], key: str, path: str, where: str) -> None:
        """Read a variable of a module, an object or a class."""
        if (id(mapping), key) in self._entered:
            return
        self._entered.add((id(mapping), key))
        self._seen[id(mapping)] = mapping
        value = mapping.get(key, ABSENT)
        self.entries.append((mapping, key, value))
        if value is not ABSENT:
            self._todo.append((path, value, where))

    def _attribute(self, owner: Any, name: str, path: str, where: str) -> None:
        """Read an attribute that is in no dictionary."""
        value = getattr(owner, name, ABSENT)
        self.attributes.append((owner, name, value))
        if value is not None and value is not ABSENT:
            self._todo.append((path, value, where))

    def _by_names(self) -> None:
        """Read the attributes of modules, functions and tensors that code found so far names."""
        for path, scope in self._scopes:
            for name in sorted(self._names.keys() & scope.keys()):
                self._entry(scope, name, f"{path}.{name}", self._names[name])
        for name, read in _OF_TAPES.items():
            for path, tensor in self._taped if name in self._of_tapes else ():
                if (id(tensor), name) not in self._entered:
                    self._entered.add((id(tensor), name))
                    self._result(f"{path}.{name}", partial(read, tensor), self._names[name])

    def _scope(self, path: str, scope: dict[str, Any]) -> None:
        """Register attributes that are read where code names them, be it in a text."""
        self._scopes.append((path, scope))
        self.sizes.append((scope, len(scope)))  # an attribute may be added

    def _code(self, function: FunctionType) -> None:
        """Read the names in code: global variables, attributes of modules, imports."""
        code, scope = function.__code__, function.__globals__
        uses = lines(code)
        for name in names(code):
            self._names.setdefault(name, uses.get(name, ""))
        for name, line in global_names(code).items():
            self._entry(scope, name, f"global {name}", line)
            if name not in scope and name not in _BUILTINS:
                self._entry(vars(builtins), name, f"builtin {name}", line)
        around = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        for chain in chains(code, scope.get("__package__")):
            self._chain(chain, scope, around)
        for name in _OF_TAPES.keys() & names(code):
            of_modules = sum(
                chain.attributes[:1] == (name,)
                and type(self._root(chain, scope, around)) is ModuleType
                for chain in chains(code, scope.get("__package__"))
            )
            if attribute_count(code, name) > of_modules:  # `dl.grad` is none of a tensor
                self._of_tapes.add(name)
        for name in METHODS.keys() & names(code):
            self.unwatched[f".{name}()"] = _note(METHODS[name], uses.get(name, ""))

    def _chain(self, chain: Chain, scope: dict[str, Any], around: dict[str, CellType]) -> None:
        """Follow a chain of attributes through modules, and read its last value."""
        value, path = self._root(chain, scope, around), chain.root
        for name in chain.attributes:
            path = f"{path}.{name}"
            if type(value) is ModuleType:
                held, users = vars(value), owner(module_file(value)) == "user"
                value = held.get(name, ABSENT)
                if users or not (callable(value) or type(value) is ModuleType):
                    self._entry(held, name, f"global {path}", chain.where)
            elif isinstance(value, type) and owner(file_of(value)) == "standard":
                value = getattr(value, name, ABSENT)
            else:
                return
        if value is os.getenv:
            self._todo.append(("os.environ", os.environ, chain.where))
            return
        why = why_unwatched(path.rpartition(".")[2], value)
        if value is globals and chain.key is not None:
            self._entry(scope, chain.key, f"global {chain.key}", chain.where)
        elif why:
            self.unwatched[f"{path}()"] = _note(why, chain.where)

    def _root(self, chain: Chain, scope: dict[str, Any], around: dict[str, CellType]) -> Any:
        if chain.kind == "around":
            return content_of(around[chain.root]) if chain.root in around else ABSENT
        if chain.kind == "import":
            self._entry(sys.modules, chain.root, f"module {chain.root}", chain.where)
            return sys.modules.get(chain.root, ABSENT)
        return scope.get(chain.root, vars(builtins).get(chain.root, ABSENT))

    # Values.

    def _visit(self, path: str, value: Any, where: str) -> None:
        kind = type(value)
        path = path if len(path) <= _LONGEST else f"…{path[-_LONGEST // 2 :]}"
        if self._at.setdefault(path, value) is not value:  # another one of this name
            self._counts[path] = number = self._counts.get(path, 1) + 1
            path = f"{path} ({number})"
        self.values[path] = Read(token_of(value), shown(value), where)
        if kind is str and value.isidentifier():
            self._names.setdefault(value, where)
        if kind in PLAIN or id(value) in self._seen or kind is np.float64:
            return
        if value is sys.stdout or value is sys.stderr:
            return
        self._seen[id(value)] = value
        for kinds, visit in self._VISITS:
            if issubclass(kind, kinds):
                visit(self, path, value, where)
                if not issubclass(kind, _COMPLETE):
                    self._object(path, value, where, known=True)
                return
        if defines(kind, "__next__") and kind.__module__ in ("builtins", "itertools", "_csv"):
            self._reading(path, value, where)
        else:
            self._object(path, value, where, known=False)

    def _array(self, path: str, value: Any, where: str) -> None:
        if value.dtype == object:
            self.containers.append((parter(type(value)), value, parts_of(value)))
            parts = enumerate(parts_of(value))
            self._todo += [(f"{path}[{number}]", part, where) for number, part in parts]
        else:
            self._contents(path, value, where)

    def _contents(self, path: str, value: Any, where: str) -> None:
        """Read a value that is compared by its token."""
        self.arrays.append((tokener(type(value)), value, self.values[path].token))

    def _collection(self, path: str, value: Any, where: str) -> None:
        parts = parts_of(value)
        if type(value) not in (tuple, frozenset):
            self.containers.append((parter(type(value)), value, parts))
        keys: Iterable[Any] = range(len(parts))
        if issubclass(type(value), MAPPINGS):
            keys = parts[: len(value)]
            self._todo += [(f"{path} key", key, where) for key in keys if type(key) not in PLAIN]
            parts = parts[len(value) :]
        for key, child in zip(keys, parts, strict=True):
            kind = type(child)
            if kind not in PLAIN:  # the token of the container has the others
                self._todo.append(
                    (
                        f"{path}[{(repr(key) if type(key) in PLAIN else type(key).__name__)}]",
                        child,
                        where,
                    )
                )
            elif kind is str and child.isidentifier():
                self._names.setdefault(child, where)

    def _partial(self, path: str, value: Any, where: str) -> None:
        parts = {"func": value.func, "args": value.args, "keywords": value.keywords}
        self._todo += [(f"{path}.{name}", part, where) for name, part in parts.items()]

    def _method(self, path: str, value: Any, where: str) -> None:
        self._todo += [(f"{path}.__self__", value.__self__, where), (path, value.__func__, where)]

    def _function(self, path: str, value: Any, where: str) -> None:
        code = value.__code__
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            content = content_of(cell)
            self.cells.append((cell, content))
            if content is not ABSENT:
                line = lines(code).get(name, where)
                self._todo.append((f"{name} around {value.__name__}", content, line))
        for name in ("__defaults__", "__kwdefaults__"):
            self._attribute(value, name, f"{value.__name__}.{name}", where)
        self.attributes.append((value, "__code__", code))
        inner = wrapped_by(value)
        if inner is not None:
            self._todo.append((path, inner, where))
        if owner(code.co_filename) == "user":
            self._scope(value.__name__, attributes_of(value))
            self._code(value)

    def _class(self, path: str, value: type, where: str) -> None:
        if owner(file_of(value)) != "user":
            return
        if type(value) is not type:
            self._todo.append((f"{path} class", type(value), where))
        for base in value.__mro__[1:-1]:
            self._todo.append((f"{path} base {base.__name__}", base, where))
        for name, member in list(vars(value).items()):
            if not name.startswith("__") or isinstance(member, FunctionType):
                self._entry(vars(value), name, f"{path}.{name}", where)

    def _module(self, path: str, value: ModuleType, where: str) -> None:
        """Read the variables of a module that code names, if the module is the user's."""
        if owner(module_file(value)) == "user":
            self._scope(f"global {value.__name__}", vars(value))
            if "__getattr__" in vars(value):
                self._entry(vars(value), "__getattr__", f"{value.__name__}.__getattr__", where)

    def _property(self, path: str, value: Any, where: str) -> None:
        inner = value.fget if isinstance(value, property) else value.__func__
        self._todo.append((path, inner, where))

    def _variable(self, path: str, value: ContextVar[Any], where: str) -> None:
        self._result(path, partial(value.get, ABSENT), where)

    def _of_thread(self, path: str, value: Any, where: str) -> None:
        self._result(path, partial(getattr, value, "__dict__"), where)

    def _result(self, path: str, read: Callable[[], Any], where: str) -> None:
        """Read the result of a call, which is compared by identity."""
        value = read()
        self.results.append((read, value))
        self._todo.append((f"{path} value", value, where))

    def _weak(self, path: str, value: Any, where: str) -> None:
        """Read the referent of a weak reference, whose token includes whether it is alive."""
        self._contents(path, value, where)
        self._todo.append((f"{path}()", referent_of(value), where))

    def _reading(self, path: str, value: Any, where: str) -> None:
        """Read how far an iterator or a file was read, which is part of its token."""
        position = position_of(value)
        self._contents(path, value, where)
        if isinstance(value, GeneratorType):
            held = value.gi_frame.f_locals if value.gi_frame else {}
            parts = {**held, "yield from": value.gi_yieldfrom}
            self._todo += [(f"{path}.{name}", part, where) for name, part in parts.items()]
        elif isinstance(value, IOBase):
            if not isinstance(value, BytesIO | StringIO) and _is_read(value):
                self.unwatched[path] = _note("the content of a file is not watched", where)
        elif position is None:
            self.unwatched[path] = _note("how far it was read is not watched", where)

    def _object(self, path: str, value: Any, where: str, known: bool) -> None:
        """Read the attributes of an object, unless they have nothing to do with its values."""
        kind = type(value)
        if kind in (attrgetter, methodcaller):
            texts = [text for text in value.__reduce__()[1] if isinstance(text, str)]
            self._names.update(dict.fromkeys(".".join(texts).split("."), where))
        package, whose = str(kind.__module__).partition(".")[0], owner(file_of(kind))
        if whose == "difflab" and not defines(kind, "__difflab_holder__"):
            self._of_difflab(path, value, where)
        elif whose == "standard" and package in OUTSIDE and not known:
            self.unwatched[path] = _note(f"what a {kind.__name__} reads is not watched", where)
        elif known or not self._foreign(path, value, package, where):
            if whose == "standard" and package in IRRELEVANT and kind.__module__ != "unittest.mock":
                return
            if whose != "standard":
                self._todo.append((f"class {kind.__name__}", kind, where))
            if not self._attributes(path, value, where) and not known and not is_constant(value):
                self.unwatched[path] = _note(
                    f"the state of a {kind.__name__} is not watched", where
                )

    def _attributes(self, path: str, value: Any, where: str) -> bool:
        """Read the attributes in the dictionary and the slots; return whether it can have any."""
        kind = type(value)
        if kind.__dictoffset__:
            attributes = attributes_of(value)
            self.containers.append((parter(dict), attributes, parts_of(attributes)))
            for name, part in list(attributes.items()):
                self._todo.append((f"{path}.{name}", part, where))
        for base in kind.__mro__:
            for member in vars(base).values():
                if type(member) is MemberDescriptorType:
                    name = member.__name__
                    self._attribute(value, name, f"{path}.{name}", where)
        return bool(kind.__dictoffset__) or any("__slots__" in vars(base) for base in kind.__mro__)

    def _of_difflab(self, path: str, value: Any, where: str) -> None:
        """Read the version of a tensor, or the function that a compiled function wraps."""
        if defines(type(value), "__difflab_version__"):
            self.tensors.append((path, value, value.__difflab_version__()))
            self._taped.append((path, value))
        elif wrapped_by(value) is not None:
            self._todo.append((path, wrapped_by(value), where))

    def _foreign(self, path: str, value: Any, package: str, where: str) -> bool:
        """Read an array or a table of another library; return whether it is one."""
        if package in _IMMUTABLE or (package == "numpy" and "random" in type(value).__module__):
            return True
        if not has_contents(type(value)):
            return package == "torch" and not type(value).__dictoffset__
        self._contents(path, value, where)
        if package == "torch":
            self._taped.append((path, value))
            if isinstance(self.values[path].token[-1], int):  # its version
                self.unwatched[path] = _note("what is written to its .data is not watched", where)
        elif package in TABLES:
            self.unwatched[path] = _note("the labels of a table are not watched", where)
        return True

    _VISITS: tuple[tuple[Any, Callable[..., None]], ...] = (
        (np.ndarray, _array),
        (BUFFERS, _contents),
        (COLLECTIONS, _collection),
        (partial, _partial),
        (MethodType, _method),
        (FunctionType, _function),
        (ModuleType, _module),
        (type, _class),
        ((property, staticmethod, classmethod), _property),
        (ContextVar, _variable),
        (threading.local, _of_thread),
        (REFERENCES, _weak),
        ((IOBase, GeneratorType), _reading),
    )


def content_of(cell: CellType) -> Any:
    """Return the value of a variable of an enclosing function; `ABSENT` if it is not assigned."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def _gradient(tensor: Any) -> Any:
    """Return the gradient of a tensor, without a warning for one that keeps none."""
    if defines(type(tensor), "__difflab_version__"):
        return getattr(tensor._step, "grad", tensor._grad)
    return tensor.grad if tensor.is_leaf else None


def _is_recorded(tensor: Any) -> bool:
    return bool(tensor.requires_grad)


_OF_TAPES = {"grad": _gradient, "requires_grad": _is_recorded}
"""What code can read of a tensor besides its values, by its name."""


def _is_read(file: Any) -> bool:
    """Whether code may read from a file, which is not to be written only."""
    try:
        return bool(file.readable())
    except ValueError:  # it is closed
        return False


def _note(what: str, where: str) -> str:
    return f"{what} ({where})" if where else what
