"""`apply`: a compiled function at more points than memory holds, in chunks that threads share."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from shutil import disk_usage
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.system import check_destination, reason, require_memory
from difflab.core.wording import bytes_text, counted
from difflab.errors import InputError, ResourceError
from difflab.execute import Compiled
from difflab.execute.workers import available, share_turns
from difflab.graph.names import element_names
from difflab.interop.large.formats.arrays import DaskPoints, lazy_result
from difflab.interop.large.formats.protocol import Points, ResultLayout, Results, result_shape
from difflab.interop.large.formats.registry import (
    check_ending,
    is_dask_array,
    opened_points,
    opened_results,
)
from difflab.interop.large.unfinished import Unfinished

CHUNK_BYTES = 4 << 20
"""Bytes of the points and results of a chunk, if the user chooses none."""
PART_BYTES = 1 << 20
"""Bytes of the points and results that are read, computed and written at a time."""


def apply(
    compiled: Compiled,
    source: Any,
    sink: str | Path | None = None,
    chunk: int | None = None,
    *,
    progress: Callable[[int, int, str], None] | None = None,
) -> Any:
    """Evaluate a compiled function at the points of a file or an array, in chunks.

    Parameters
    ----------
    compiled : Compiled
        What `compile` returned: a function or its derivative, of n flattened inputs.
    source : path, ndarray or dask.array.Array
        The points. ``.npy`` and ``.zarr`` hold an array ``(N, n)``, the inputs in order, as do
        arrays. ``.parquet`` and ``.csv`` have a column for each input, found by its name: ``x``,
        and ``w[0]`` for an element; a CSV table without names has the columns in order.
    sink : path, optional
        The file of the results: ``.npy``, ``.zarr``, ``.parquet`` or ``.csv``. None returns the
        results of a Dask array as another, which is computed when it is used.
    chunk : int, optional
        The number of points of a chunk, rounded up to whole blocks of the target
        (`Compiled.block`). By default 4 MiB of points and results, and at least what the source
        stores together.
    progress : callable, optional
        Called as ``progress(done, total, label)`` after each chunk, with numbers of points.

    Returns
    -------
    dask.array.Array or None
        Without a sink the results. With one, None: its array has the shape ``(N,)`` + the shape
        of the output; several outputs, such as value and gradient, are flattened side by side,
        ``(N, m)``. A table has a column for each element. Truth values are 0 and 1.

    Raises
    ------
    InputError
        The points are not those of the function, or a file cannot be read or written.
    MissingDependencyError
        zarr, pyarrow or dask is needed and not installed; `difflab[large]` installs them.
    UnsupportedError
        The target computes on a GPU.

    Notes
    -----
    Each thread of `compiled` holds at most two chunks, of points and results, at a time. The
    results have the bits of one call on all points in memory, with ``packed=True``.

    The sink appears when it is whole. Until then the results are in a folder
    ``SINK.DIGEST.part`` beside it, where the digest is that of the function and the versions of
    difflab and NumPy. The same call after an interruption goes on there; a call with another
    function, or with points whose contents have changed, starts from the beginning: the points of
    the chunks that are written are read again and compared by their SHA-256, which is computed
    with each chunk, at 1 to 2 GB/s for each thread. A function that runs Python code which the
    language cannot write out always starts from the beginning. A second call with the same sink
    and function is refused while the first one runs.

    Examples
    --------
    >>> import tempfile
    >>> import difflab as dl
    >>> gradient = dl.compile(dl.gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)")))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/points.npy", [[2.0, 5.0], [3.0, 5.0]])
    ...     dl.apply(gradient, f"{folder}/points.npy", f"{folder}/gradients.npy")
    ...     np.load(f"{folder}/gradients.npy")
    array([[5.5       , 1.71633781],
           [5.33333333, 2.71633781]])
    """
    if not isinstance(compiled, Compiled):
        raise InputError(
            f"apply takes a compiled function, not a {type(compiled).__name__}",
            hint="compile it first: dl.apply(dl.compile(f), source, sink)",
        )
    if chunk is not None and (not isinstance(chunk, int) or chunk < 1):
        raise InputError(f"chunk must be a positive number of points, not {chunk!r}")
    if sink is not None:
        if Path(sink).suffix != ".zarr":  # a folder, whose name may end with a slash
            check_destination(str(sink))
        return _written(compiled, source, Path(sink), chunk, progress)
    if not is_dask_array(source):
        raise InputError(
            "only the results of a Dask array can do without a sink",
            hint="name a file: dl.apply(compiled, source, 'out.npy')",
        )
    return lazy_result(compiled, DaskPoints(source, compiled.function.n), chunk)


def _written(
    compiled: Compiled,
    source: Any,
    sink: Path,
    chunk: int | None,
    progress: Callable[[int, int, str], None] | None,
) -> None:
    """Write the results to a file."""
    ending = _checked_sink(sink)
    points = opened_points(source, compiled.function)
    layout = _layout(compiled, points, chunk)
    _require_disk(sink, layout)
    identity = _identity(compiled, layout)
    try:
        with Unfinished(sink, identity, -(-points.count // layout.chunk)) as unfinished:
            results = opened_results(ending, unfinished.folder, layout)
            _fill(compiled, points, results, unfinished, layout.chunk, progress)
            unfinished.finish(results.finish())
    except OSError as error:
        raise InputError(
            f"cannot write {str(sink)!r}: {reason(error)}",
            hint="the same call goes on where this one stopped",
        ) from error


def _checked_sink(sink: Path) -> str:
    """Return the ending of a sink that can be written."""
    ending = check_ending(sink, "the results")
    if ending == ".zarr" and sink.exists():
        raise InputError(
            f"cannot write {str(sink)!r}: it exists", hint="remove it, or choose another name"
        )
    check_destination(str(sink))
    return ending


def _require_disk(sink: Path, layout: ResultLayout) -> None:
    """Raise if the results exceed the whole disk: a damaged header may state any number of points.

    They may fit with less space than is free, since some formats are compressed.
    """
    needed, held = 8 * math.prod(layout.shape), disk_usage(sink.parent).total
    if needed > held:
        raise ResourceError(
            f"the results at {counted(layout.shape[0], 'point')} are {bytes_text(needed)}, and the"
            f" disk of {str(sink)!r} holds {bytes_text(held)}"
        )


def _layout(compiled: Compiled, points: Points, chunk: int | None) -> ResultLayout:
    """Return the layout of the result, with the chunk rounded up to whole blocks."""
    function = compiled.function
    row_bytes = _row_bytes(compiled)
    wanted = chunk or max(CHUNK_BYTES // row_bytes, points.grain, 1)
    size = _whole_blocks(compiled, points.count, wanted)
    require_memory(
        2 * row_bytes * min(size, points.count) * _threads(compiled),
        f"{counted(_threads(compiled), 'thread')} with chunks of {counted(size, 'point')}",
        hint="choose a smaller chunk, or fewer threads",
    )
    shape = (points.count, *result_shape(compiled))
    return ResultLayout(shape, element_names(function.output_names, function.output_shapes), size)


def _row_bytes(compiled: Compiled) -> int:
    """Return the bytes of a point and its result."""
    return 8 * max(compiled.function.n + compiled.function.m, 1)


def _whole_blocks(compiled: Compiled, count: int, wanted: int) -> int:
    """Return a number of points, rounded up to whole blocks of the target."""
    block = compiled.block(count) or 1
    return -(-wanted // block) * block


def _threads(compiled: Compiled) -> int:
    return compiled.threads or available()


def _identity(compiled: Compiled, layout: ResultLayout) -> dict[str, str | int]:
    """Return everything that the bits of the result depend on, but the points."""
    from difflab import __version__

    text = str(compiled.function)
    return {
        "function": text,
        # Comments name what the language cannot write out: nothing can tell it is the same.
        "opaque": uuid.uuid4().hex if "#" in text else "",
        "target": f"{compiled.target}: {compiled.reason}",
        "shape": str(layout.shape),
        "chunk": layout.chunk,
        "versions": f"difflab {__version__}, numpy {np.__version__}",
    }


def _fill(
    compiled: Compiled,
    points: Points,
    results: Results,
    unfinished: Unfinished,
    chunk: int,
    progress: Callable[[int, int, str], None] | None,
) -> None:
    """Compute the chunks that are not written; a thread computes one at a time."""
    function = compiled.function
    part = min(chunk, points.count)
    if results.in_parts:
        wanted = max(PART_BYTES // _row_bytes(compiled), 1)
        part = min(part, _whole_blocks(compiled, points.count, wanted))
    _require_same_points(compiled, points, unfinished, chunk, part)
    done = points.count - sum(min(chunk, points.count - i * chunk) for i in unfinished.pending)
    lock = Lock()

    def work(indices: Iterator[int]) -> None:
        nonlocal done
        # Fresh memory for each chunk costs more than to read or write it.
        inputs, outputs = _memory(part, function.n), _memory(part, function.m)

        def computed(start: int, stop: int, digest: Any) -> Iterator[NDArray[np.float64]]:
            """Yield the results of a chunk, in parts of one memory."""
            for read in _read(points, start, stop, inputs):
                digest.update(_contents(read))
                for first in range(0, len(read), part):
                    some = read[first : first + part]
                    rows = outputs[: len(some)]
                    compiled.rows(some, points.count, rows)
                    yield rows

        for index in indices:
            start, stop = index * chunk, min((index + 1) * chunk, points.count)
            digest = sha256()
            results.write(start, computed(start, stop, digest))
            unfinished.mark(index, digest.digest())
            with lock:
                done += stop - start
                if progress is not None:
                    progress(done, points.count, "points")

    share_turns(work, unfinished.pending, min(_threads(compiled), len(unfinished.pending)))


def _require_same_points(
    compiled: Compiled, points: Points, unfinished: Unfinished, chunk: int, part: int
) -> None:
    """Start from the beginning if the points of a chunk that is written have changed."""
    changed = Event()

    def work(indices: Iterator[int]) -> None:
        inputs = _memory(part, compiled.function.n)
        for index in indices:
            if changed.is_set():
                continue
            digest = sha256()
            stop = min((index + 1) * chunk, points.count)
            for read in _read(points, index * chunk, stop, inputs):
                digest.update(_contents(read))
            if digest.digest() != unfinished.digests[index]:
                changed.set()

    finished = list(unfinished.digests)
    share_turns(work, finished, min(_threads(compiled), len(finished)))
    if changed.is_set():
        unfinished.restart()


def _contents(rows: NDArray[np.float64]) -> memoryview:
    """Return the bytes of points, without a copy where they are contiguous by rows or columns."""
    laid = rows.T if rows.flags.f_contiguous else rows
    return np.ascontiguousarray(laid).reshape(-1).view(np.uint8).data


def _read(
    points: Points, start: int, stop: int, buffer: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    """Yield points; an error of reading says that it is one."""
    try:
        yield from points.read(start, stop, buffer)
    except OSError as error:
        raise InputError(f"cannot read the points: {reason(error)}") from error


def _memory(rows: int, columns: int) -> NDArray[np.float64]:
    """Return uninitialised memory at the beginning of a cache line.

    A vector that is stored across two lines takes twice as long.
    """
    buffer = np.empty(rows * columns + 7)
    first = -buffer.ctypes.data // 8 % 8
    return buffer[first : first + rows * columns].reshape(rows, columns)
