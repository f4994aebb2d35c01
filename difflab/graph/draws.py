"""Detection of random numbers that traced code draws from generators of NumPy and of Python.

A trace runs once, so such numbers would be constants of every later call. Generators do not
announce a draw, but a draw changes their state: it is compared before and after the trace, of
NumPy's global generator (``np.random.normal`` and its kin) and of generators that the code names,
the module `random` and its functions, global variables, variables of enclosing functions, and
attributes of objects among them. If one has changed, it is set back and the code runs once more,
line by line, to find the draw.

Not detected: a generator that is made while the code runs (with a seed it gives the same numbers at
each call in any case), and one that only a container or another module holds. A draw from the
global generator by another thread during the trace is attributed to the code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import BuiltinFunctionType, CellType, CodeType, FrameType, FunctionType, MethodType
from typing import Any, NamedTuple, TypeVar

from difflab.core.attributes import attributes_of, wrapped_by
from difflab.core.place import NOWHERE, SourceLocation, frame_position, is_users, owner
from difflab.errors import TraceError

T = TypeVar("T")

_FOLLOWED = ("user", "standard")
"""Owners of code that generators are sought in."""


def without_draws(function: Callable[..., Any], run: Callable[[], T]) -> T:
    """Return ``run()``, which traces `function`.

    Raises
    ------
    TraceError
        The code drew random numbers from a generator, which is left as it was.

    Examples
    --------
    >>> without_draws(abs, lambda: 3)
    3
    """
    before = [_Snapshot.of(generator) for generator in _generators(function)]
    result = run()
    if not any(snapshot.changed() for snapshot in before):
        return result
    source = next(snapshot.source for snapshot in before if snapshot.changed())
    raise _place_of_draw(run, before).error(
        TraceError,
        f"traced code drew random numbers from {source}, and later calls would repeat them",
        "draw by a key: dl.random.normal(key, shape), uniform or bernoulli, where key is an"
        " argument of the function, made by dl.random.key(0) or dl.random.split(key)",
    )


@contextmanager
def restored_generators(function: Callable[..., Any]) -> Iterator[list[str]]:
    """Set the random generators that code can name back at the end: for one more run of it.

    Yields
    ------
    list of str
        Filled at the end with the generators that were drawn from.

    Examples
    --------
    >>> import random
    >>> random.seed(0)
    >>> with restored_generators(abs) as drawn:
    ...     x = random.random()
    >>> drawn, random.random() == x
    (["Python's random"], True)
    """
    pythons = [sys.modules["random"]] if "random" in sys.modules else []
    before = [_Snapshot.of(generator) for generator in (*pythons, *_generators(function))]
    drawn: list[str] = []
    try:
        yield drawn
    finally:
        changed = [snapshot for snapshot in before if snapshot.changed()]
        _restore(changed)
        drawn += dict.fromkeys(snapshot.source for snapshot in changed)


class _Snapshot(NamedTuple):
    """The state of a generator, how it is read, and how it is set back."""

    state: Any
    read: Callable[[], Any]
    write: Callable[[Any], None]
    source: str = "numpy.random"

    @classmethod
    def of(cls, generator: Any) -> _Snapshot:
        """Return the state of `numpy.random` itself, a RandomState, a Generator or a Random."""
        if hasattr(generator, "getstate"):
            return cls(
                generator.getstate(), generator.getstate, generator.setstate, "Python's random"
            )
        if hasattr(generator, "get_state"):
            read, write = partial(generator.get_state, legacy=False), generator.set_state
        else:
            source = generator.bit_generator
            read, write = partial(getattr, source, "state"), partial(setattr, source, "state")
        return cls(read(), read, write)

    def changed(self) -> bool:
        return bool(_plain(self.read()) != _plain(self.state))


def _plain(state: Any) -> Any:
    """Return a state with its arrays as bytes, so that it compares by its contents."""
    if isinstance(state, dict):
        return {name: _plain(part) for name, part in state.items()}
    return state.tobytes() if hasattr(state, "tobytes") else state


def _generators(function: Callable[..., Any]) -> list[Any]:
    """Return NumPy's global generator and those that the code of a function names."""
    named = list(_named(function))
    numpys = sys.modules.get("numpy.random")  # it is loaded at its first use
    pythons = sys.modules.get("random")
    kinds: tuple[type, ...] = () if pythons is None else (pythons.Random,)
    kinds += () if numpys is None else (numpys.Generator, numpys.RandomState)
    # By type, as `isinstance` relies on the object's own ``__class__``.
    generators = {id(value): value for value in named if issubclass(type(value), kinds)}
    return [*([] if numpys is None else [numpys]), *generators.values()]


def _named(function: Any) -> Iterator[Any]:
    """Yield the objects that code and the functions that it calls refer to."""
    yield from _attributes(function)
    todo, seen = [function, _call_of(function)], dict[int, Any]()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value  # kept alive, so that its id is not that of another one
        todo.append(wrapped_by(value))
        if issubclass(type(value), partial):
            todo.append(value.func)
        elif type(value) is MethodType:
            todo.append(value.__func__)
            yield from _attributes(value.__self__)
        elif type(value) is BuiltinFunctionType:
            yield value.__self__
        elif type(value) is FunctionType and owner(value.__code__.co_filename) in _FOLLOWED:
            near = list(_read_by(value))
            pythons = sys.modules.get("random")
            if pythons is not None and any(part is pythons for part in near):
                near.append(pythons._inst)
            for part in near:
                yield from _attributes(part)
            todo += near


def _read_by(function: FunctionType) -> Iterator[Any]:
    """Yield the global variables that a function names, and those of enclosing functions."""
    scope, names = function.__globals__, dict.fromkeys(_names(function.__code__))
    if "random" in names:
        import_module("numpy.random")
        import_module("random")
    yield from (scope[name] for name in names if name in scope)
    yield from (cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell))


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that code and the functions defined in it use."""
    todo = [code]
    while todo:
        code = todo.pop()
        yield from code.co_names
        todo += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _call_of(value: Any) -> Any:
    """Return the code of an object that can be called."""
    return vars(type(value)).get("__call__")


def _attributes(value: Any) -> Iterator[Any]:
    """Yield an object and, if it is no module, class or function, its attributes."""
    yield value
    if type(value).__module__ not in ("builtins", "numpy"):
        yield from list(attributes_of(value).values())


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # not assigned yet
        return False


def _place_of_draw(run: Callable[[], Any], before: list[_Snapshot]) -> SourceLocation:
    """Run the code again, line by line, and return the first line after which a state differs."""
    last = location = NOWHERE

    def watch(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal last, location
        if not is_users(frame) or frame.f_globals.get("__name__") == "random":
            return None
        if location is NOWHERE and last is not NOWHERE and any(part.changed() for part in before):
            location = last
        last = frame_position(frame).read()
        return watch

    _restore(before)
    tracer = sys.gettrace()
    sys.settrace(watch)
    try:
        run()
    finally:
        sys.settrace(tracer)
        last = location if location is not NOWHERE else last
        _restore(before)
    return last


def _restore(before: list[_Snapshot]) -> None:
    for snapshot in before:
        snapshot.write(snapshot.state)
