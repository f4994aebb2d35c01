"""Detection of random numbers that traced code draws from NumPy's generators.

A trace runs once, so such numbers would be constants of every later call. NumPy's generators do
not announce a draw, but a draw changes their state: it is compared before and after the trace, of
the global generator (``np.random.normal`` and its kin) and of generators that the code names:
global variables, variables of enclosing functions, and attributes of objects among them. If one
has changed, it is set back and the code runs once more, line by line, to find the draw.

Not detected: a generator that is made while the code runs (with a seed it gives the same numbers at
each call in any case), and one that only a container or another module holds. A draw from the
global generator by another thread during the trace is taken for one of the code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CellType, CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from difflab.core.place import NOWHERE, SourceLocation, frame_position, is_users
from difflab.errors import TraceError

__all__ = ["restored_generators", "without_draws"]

PACKAGE = Path(__file__).parents[1]

T = TypeVar("T")


def without_draws(function: Callable[..., Any], run: Callable[[], T]) -> T:
    """Return ``run()``, which traces `function`.

    Raises
    ------
    TraceError
        The code drew random numbers from a generator of NumPy, which is left as it was.

    Examples
    --------
    >>> without_draws(abs, lambda: 3)
    3
    """
    if "numpy.random" not in sys.modules:
        return run()
    generators = _generators(function)
    before = [_Snapshot.of(generator) for generator in generators]
    result = run()
    if not any(snapshot.changed() for snapshot in before):
        return result
    raise _place_of_draw(run, before).error(
        TraceError,
        "traced code drew random numbers from numpy.random, and later calls would repeat them",
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
    >>> with restored_generators(abs) as drawn:
    ...     x = random.random()
    >>> drawn, random.random() == x
    (['random'], True)
    """
    import random

    standard = _Snapshot(random.getstate(), random.getstate, random.setstate)
    before = [(standard, "random")]
    if "numpy.random" in sys.modules:
        before += [(_Snapshot.of(each), "numpy.random") for each in _generators(function)]
    drawn: list[str] = []
    try:
        yield drawn
    finally:
        found = [(snapshot, name) for snapshot, name in before if snapshot.changed()]
        _restore([snapshot for snapshot, _ in found])
        drawn += dict.fromkeys(name for _, name in found)


class _Snapshot(NamedTuple):
    """The state of a generator, how it is read, and how it is set back."""

    state: Any
    read: Callable[[], Any]
    write: Callable[[Any], None]

    @classmethod
    def of(cls, generator: Any) -> _Snapshot:
        """Return the state of `numpy.random` itself, a RandomState or a Generator."""
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
    random = sys.modules["numpy.random"]
    kinds = (random.Generator, random.RandomState)
    found = {id(value): value for value in _named(function) if isinstance(value, kinds)}
    return [random, *found.values()]


def _named(function: Any) -> Iterator[Any]:
    """Yield what code and the functions that it calls name, and the attributes of objects."""
    yield from _attributes(function)
    todo, seen = [function, _call_of(function)], set[int]()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        for name in ("__wrapped__", "__func__", "func"):
            todo += [getattr(value, name)] if hasattr(value, name) else []
        yield from _attributes(getattr(value, "__self__", None))
        code = getattr(value, "__code__", None)
        if code is None or not _is_users_file(code.co_filename):
            continue
        scope = value.__globals__
        near = [scope[name] for name in _names(code) if name in scope]
        near += [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
        for part in near:
            yield from _attributes(part)
        todo += near


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
        yield from list(getattr(value, "__dict__", {}).values())


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # not assigned yet
        return False


def _is_users_file(file: str) -> bool:
    parts = Path(file).parts
    installed = "site-packages" in parts or "dist-packages" in parts
    return not installed and not Path(file).is_relative_to(PACKAGE)


def _place_of_draw(run: Callable[[], Any], before: list[_Snapshot]) -> SourceLocation:
    """Run the code again, line by line, and return the first line after which a state differs."""
    last = found = NOWHERE

    def watch(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal last, found
        if not is_users(frame):
            return None
        if found is NOWHERE and last is not NOWHERE and any(part.changed() for part in before):
            found = last
        last = frame_position(frame).read()
        return watch

    _restore(before)
    tracer = sys.gettrace()
    sys.settrace(watch)
    try:
        run()
    finally:
        sys.settrace(tracer)
        last = found if found is not NOWHERE else last
        _restore(before)
    return last


def _restore(before: list[_Snapshot]) -> None:
    for snapshot in before:
        snapshot.write(snapshot.state)
