"""The names that code reads, and the owner of a file: from code objects, which never run."""

from __future__ import annotations

import dis
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

_LOADS_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_CALLS = ("CALL", "CALL_FUNCTION")
_SILENT = ("PRECALL", "CACHE", "PUSH_NULL", "RESUME", "EXTENDED_ARG", "NOT_TAKEN")
_OF_TWO = re.compile(r"((?:LOAD|STORE)_FAST(?:_BORROW)?)_((?:LOAD|STORE)_FAST(?:_BORROW)?)")
_Start = tuple[str, str, tuple[str, ...]]


class Chain(NamedTuple):
    """A variable, or an imported module, and attributes of it: ``pkg.sub.rate``.

    Attributes
    ----------
    kind : str
        "global", "around" (a variable of an enclosing function) or "import".
    root : str
        The name of the variable or of the module.
    attributes : tuple of str
        The attributes, in their order.
    where : str
        The file and the line.
    key : str or None
        The text that the call of the chain is indexed by: ``"k"`` of ``globals()["k"]``.
    """

    kind: str
    root: str
    attributes: tuple[str, ...]
    where: str
    key: str | None

    def __str__(self) -> str:
        return ".".join((self.root, *self.attributes))


def file_of(kind: type) -> str | None:
    """Return the file that defines a class: None if typed in, empty if built in."""
    module = sys.modules.get(kind.__module__)
    if module is None or kind.__module__ == "__main__":
        return None
    return module_file(module)


def module_file(module: ModuleType) -> str | None:
    """Return the file of a module: empty if it is built in, None if it was made by code."""
    held = vars(module)
    file, spec = held.get("__file__"), held.get("__spec__")
    if isinstance(file, str):
        return file
    folders = getattr(spec, "submodule_search_locations", None)
    if folders:  # a package without a file of its own
        return str(next(iter(folders), ""))
    return None if spec is None and module.__name__ not in sys.builtin_module_names else ""


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Iterate over a code object and those of the functions defined in it."""
    todo = [code]
    while todo:
        code = todo.pop()
        yield code
        todo += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """Iterate over the instructions of code, one for each local variable.

    From Python 3.13 one instruction loads or stores two: ``STORE_FAST_LOAD_FAST`` of ``(a, b)``.
    """
    for instruction in dis.get_instructions(code):
        pair = _OF_TWO.fullmatch(instruction.opname)
        if pair is None:
            yield instruction
        else:
            for name, local in zip(pair.groups(), instruction.argval, strict=True):
                yield instruction._replace(opname=name, argval=local)


def _line(file: str, instruction: dis.Instruction) -> str:
    line = instruction.positions.lineno if instruction.positions else None
    return f"{file}, line {line}" if line else file


@lru_cache(1024)
def lines(code: CodeType) -> dict[str, str]:
    """Return, for each name that code loads, the file and the line of its first use."""
    file = Path(code.co_filename).name
    first_uses: dict[str, str] = {}
    for part in _codes(code):
        for instruction in instructions(part):
            if isinstance(instruction.argval, str) and instruction.opname.startswith("LOAD_"):
                first_uses.setdefault(instruction.argval, _line(file, instruction))
    return first_uses


@lru_cache(1024)
def global_names(code: CodeType) -> dict[str, str]:
    """Return the global variables that code names, each with its line."""
    loaded = {
        instruction.argval
        for part in _codes(code)
        for instruction in instructions(part)
        if instruction.opname in _LOADS_GLOBAL
    }
    uses = lines(code)
    return {name: uses[name] for name in sorted(loaded)}


@lru_cache(1024)
def names(code: CodeType) -> frozenset[str]:
    """Return every attribute that code names, and every text in it that could name one."""
    words = set[str]()
    for part in _codes(code):
        words.update(part.co_names)
        for constant in part.co_consts:
            texts = constant if isinstance(constant, tuple) else (constant,)
            words.update(text for text in texts if isinstance(text, str) and text.isidentifier())
    return frozenset(words)


@lru_cache(1024)
def attribute_count(code: CodeType, name: str) -> int:
    """Return how often code loads an attribute of this name, or has it as a text."""
    return sum(
        instruction.argval == name and instruction.opname in (*_ATTRIBUTES, "LOAD_CONST")
        for part in _codes(code)
        for instruction in instructions(part)
        if isinstance(instruction.argval, str)
    )


@lru_cache(1024)
def chains(code: CodeType, package: str | None) -> tuple[Chain, ...]:
    """Return the chains of attributes in code, those of global variables and of imports.

    Parameters
    ----------
    code : CodeType
    package : str or None
        The package of the code, which relative imports start from.
    """
    return tuple(chain for part in _codes(code) for chain in _chains(part, package))


def _chains(code: CodeType, package: str | None) -> Iterator[Chain]:
    """Yield the chains of one code object: runs of instructions that load attributes."""
    file = Path(code.co_filename).name
    imported: dict[str, _Start] = {}
    listed = [one for one in instructions(code) if one.opname not in _SILENT]
    level, chosen, module = 0, None, ""
    for number, instruction in enumerate(listed):
        name, argument, where = instruction.opname, instruction.argval, _line(file, instruction)
        start: _Start | None = None
        if name in _LOADS_GLOBAL:
            start = ("global", argument, ())
        elif name in ("LOAD_DEREF", "LOAD_CLASSDEREF") and argument not in imported:
            start = ("around", argument, ())
        elif name == "IMPORT_NAME":
            module = _absolute(argument, level, package)
            yield Chain("import", module, (), where, None)
            module = module if chosen else module.partition(".")[0]  # what `import a.b` gives
            start = ("import", module, ())
        elif name == "IMPORT_FROM":
            start = ("import", module, (argument,))
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT"):  # of an import: its level, then its names
            level, chosen = (argument, None) if type(argument) is int else (level, argument)
        elif name.startswith("LOAD_") and isinstance(argument, str):
            start = imported.get(argument)
        if start is not None:
            attributes, key, last = _rest(listed, number + 1)
            kind, root, first = start
            if start[0] == "import" and last.opname.startswith("STORE_"):
                imported[last.argval] = start
            yield Chain(kind, root, (*first, *attributes), where, key)


def _rest(
    listed: list[dis.Instruction], first: int
) -> tuple[list[str], str | None, dis.Instruction]:
    """Return the attributes loaded next, the key that indexes their call, the next instruction."""
    end = first
    while listed[end].opname in _ATTRIBUTES:
        end += 1
    attributes = [one.argval for one in listed[first:end]]
    key, last = None, listed[end]
    if last.opname in _CALLS and len(listed) > end + 2:
        text, indexed = listed[end + 1 : end + 3]
        if isinstance(text.argval, str) and indexed.opname in ("BINARY_SUBSCR", "BINARY_OP"):
            key = text.argval if text.opname == "LOAD_CONST" else None
    return attributes, key, last


def _absolute(module: str, level: int, package: str | None) -> str:
    """Return the name of a module that is imported relative to a package."""
    try:
        return resolve_name("." * level + module, package) if level else module
    except ImportError:
        return module
