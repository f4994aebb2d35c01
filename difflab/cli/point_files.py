"""Files of values for ``--at``: arrays in NumPy's formats, and named values in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite, prod
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO

from difflab.core.place import SourceLocation
from difflab.core.system import open_regular, reason, require_memory
from difflab.errors import InputError, PointError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Values = dict[str, Any]

EXAMPLE = '{"x1": 2, "w": [1, 2, 3]}'
TREE = '{"x1": 2, "params": {"w": [1, 2, 3]}}'


def array_in(name: str, location: SourceLocation) -> NDArray[Any]:
    """Return the array in a file of NumPy's format, without unpickling anything."""
    example = "write one with numpy.save('x.npy', array)"
    with _faults(name, location, "a NumPy array file", example), open_regular(name) as stream:
        values = _read(stream, name)
    return _real(values, repr(name), location)


def arrays_in(name: str, location: SourceLocation) -> Values:
    """Return the arrays in an ``.npz`` file by their names, without unpickling anything."""
    from shutil import copyfileobj
    from zipfile import ZipFile

    arrays: Values = {}
    example = "write one with numpy.savez('values.npz', x=…, y=…)"
    with (
        _faults(name, location, "a file of NumPy arrays", example),
        open_regular(name) as stream,
        ZipFile(stream) as archive,
    ):
        for member in archive.infolist():
            key = member.filename.removesuffix(".npy")
            require_memory(member.file_size, f"the array {key!r} in {name!r}")
            with archive.open(member) as packed, TemporaryFile() as unpacked:
                copyfileobj(packed, unpacked)
                values = _read(unpacked, name)
            arrays[key] = _real(values, f"{key!r} in {name!r}", location)
    return arrays


def numbers_in(content: str, name: str, *, trees: bool = False) -> Values:
    """Return the scalars and arrays of a JSON object by their names.

    With `trees` a value may also be an object, or a list of objects, of such values.

    Raises
    ------
    PointError
        It is not a JSON object of numbers and rectangular lists of them; the error names the line.
    """

    def pairs(items: list[tuple[str, Any]]) -> Values:
        for position, (key, _) in enumerate(items):
            if any(key == earlier for earlier, _ in items[:position]):
                raise _at_key(content, name, key).error(PointError, f"{key!r} is given twice")
        return numbers(dict(items)) if trees else dict(items)

    def numbers(values: Values) -> Values:
        read = _value if trees else _number
        return {key: read(value, key, _at_key(content, name, key)) for key, value in values.items()}

    try:
        read = json.loads(content, object_pairs_hook=pairs, parse_int=float)
    except json.JSONDecodeError as error:
        location = _line(content, name, error.pos)
        hint = f"write {TREE if trees else EXAMPLE}"
        raise location.error(
            PointError, f"{name!r} is not JSON: {error.msg.lower()}", hint
        ) from error
    except RecursionError as error:
        raise PointError(f"{name!r} has too many nested brackets") from error
    if not isinstance(read, dict):
        hint = f"write {TREE if trees else EXAMPLE}"
        raise PointError(f"{name!r} holds no JSON object of names and values", hint=hint)
    return read if trees else numbers(read)


def _value(value: Any, key: str, location: SourceLocation) -> Any:
    """Return a value of an object in a tree, whose inner objects have been read."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return [each if isinstance(each, dict) else _number(each, key, location) for each in value]
    return _number(value, key, location)


def _number(value: Any, key: str, location: SourceLocation) -> Any:
    """Return a scalar, or a list of scalars as an array."""
    import numpy as np

    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, list):
        try:
            array = np.array(value)
        except ValueError:
            hint = "write lists of one length: [[1, 2], [3, 4]]"
            raise location.error(
                PointError, f"the rows of {key!r} differ in length", hint
            ) from None
        if array.dtype == np.float64 and np.isfinite(array).all():
            return array
    hint = f"write numbers or lists of numbers: {EXAMPLE}"
    raise location.error(PointError, f"{key!r} is not a finite number or a list of them", hint)


def _at_key(content: str, name: str, key: str) -> SourceLocation:
    """Return the index of a key; the last one if there are several."""
    pattern = re.escape(json.dumps(key, ensure_ascii=False))
    ends = [match.start() for match in re.finditer(rf"{pattern}\s*:", content)]
    return _line(content, name, ends[-1] if ends else 0, len(key) + 2)


def _line(content: str, name: str, position: int, length: int = 1) -> SourceLocation:
    """Return a location in a file: its line, and the fault."""
    start = content.rfind("\n", 0, position) + 1
    end = content.find("\n", position)
    line = content[start : len(content) if end < 0 else end]
    where = f"{Path(name).name}, line {content.count(chr(10), 0, position) + 1}"
    return SourceLocation(line or None, (position - start, position - start + length), where)


def _read(stream: BinaryIO, name: str) -> NDArray[Any]:
    """Read an array; raise if its header announces more data than the file or memory holds."""
    from numpy.lib import format as npy

    from difflab.core.npy_header import read_header

    stream.seek(0)
    shape, _, kind = read_header(stream)
    require_memory(prod(shape) * (kind.itemsize + 8), f"the array in {name!r}")
    stream.seek(0)
    values: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    return values


def _real(values: NDArray[Any], what: str, location: SourceLocation) -> NDArray[np.float64]:
    if values.dtype.kind not in "biuf":
        raise location.error(PointError, f"{what} holds {values.dtype} values, not real numbers")
    return values.astype("float64", copy=False)


@contextmanager
def _faults(name: str, location: SourceLocation, kind: str, hint: str) -> Iterator[None]:
    """Convert the exceptions of a damaged or missing file to an error at `location`."""
    from zipfile import BadZipFile
    from zlib import error as zlib_error

    damaged: tuple[type[Exception], ...] = (ValueError, SyntaxError, TypeError, OverflowError)
    damaged += (EOFError, BadZipFile, zlib_error, NotImplementedError, RuntimeError)
    try:
        yield
    except PointError:
        raise
    except OSError as error:
        raise location.error(PointError, f"cannot read {name!r}: {reason(error)}") from error
    except InputError as error:
        raise location.error(PointError, error.message, error.hint) from error
    except damaged as error:
        raise location.error(PointError, f"{name!r} is not {kind}: {error}", hint) from error
