"""The operating system: regular files, available memory, environment variables.

Files are written whole or not at all. A size of memory is checked before it is allocated, because
the system grants more memory than it has and kills a process that uses it.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import IOBase
from pathlib import Path
from typing import BinaryIO

from difflab.core.wording import bytes_text
from difflab.errors import InputError, ResourceError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def open_regular(name: str | Path) -> BinaryIO:
    """Open a file for reading; a pipe or a device, which may never end, is refused unopened.

    Raises
    ------
    InputError
        It is a directory, a pipe, a socket or a device.
    OSError
        It cannot be opened.
    """
    path = Path(name)
    kind = _kind(path.stat().st_mode)
    if kind:
        raise InputError(
            f"cannot read {str(name)!r}: it is {kind}, not a file",
            hint=None if kind == "a directory" else "write its contents to a file first",
        )
    return path.open("rb")


def lock(file: IOBase) -> None:
    """Lock an open file until it is closed or the process ends; raise `OSError` at once if not."""
    if sys.platform == "win32":
        position = file.tell()
        file.seek(2**40)  # the bytes that are used stay readable
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        finally:
            file.seek(position)
    else:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def locked(file: IOBase) -> bool:
    """Lock an open file until it is closed; return whether no other opening of it is locked.

    Where the file system has no locks the file counts as locked.
    """
    try:
        lock(file)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True


def check_destination(name: str) -> Path:
    """Return the path `name` if a file can be written there, before any work is done.

    Raises
    ------
    InputError
        It is a directory, its directory is missing, or it may not be written.
    """
    path = Path(name)
    if not name:
        raise InputError("cannot write to a file without a name")
    try:
        if path.is_dir() or name.endswith(("/", os.sep)):
            raise InputError(
                f"cannot write {name!r}: it is a directory", hint=f"name a file, as {path / 'NAME'}"
            )
        if not path.parent.is_dir():
            raise InputError(
                f"cannot write {name!r}: the directory {str(path.parent)!r} does not exist"
            )
        target = path if path.exists() else path.parent
        writable = os.access(target, os.W_OK)
    except OSError as error:
        raise InputError(f"cannot write {name!r}: {reason(error)}") from error
    if not writable:
        raise InputError(f"cannot write {name!r}: permission denied")
    return path


def write_whole(contents: Mapping[Path, bytes]) -> None:
    """Write all files, or none: each to a temporary file first, which then replaces the target.

    Raises
    ------
    InputError
        A file cannot be written; nothing has changed.
    BrokenPipeError
        It is a pipe whose reader has closed it.
    """
    beside: dict[Path, Path] = {}
    path = Path()
    try:
        for path, content in contents.items():
            if path.exists() and not path.is_file():
                continue
            beside[path] = _written_beside(path, content)
        for path, content in contents.items():
            if path in beside:
                beside.pop(path).replace(path.resolve())
            else:
                # A pipe or a device such as /dev/stdout cannot be replaced, only written to.
                path.write_bytes(content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {reason(error)}") from error
    finally:
        for leftover in beside.values():
            with suppress(OSError):
                leftover.unlink()


def reason(error: OSError) -> str:
    """Return the system's message in lower case, for use inside a sentence."""
    return (error.strerror or str(error)).lower()


def _kind(mode: int) -> str:
    """Return the kind of a path that is not a regular file; empty for a regular file."""
    if stat.S_ISREG(mode):
        return ""
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _written_beside(path: Path, content: bytes) -> Path:
    """Write `content` to a new file in the directory of `path`, with the usual permissions."""
    target = path.resolve()
    prefix = f".{target.name[:50]}."
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~umask())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def umask() -> int:
    """Return the umask of this process."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


SMALL = 1 << 28
"""Allocations up to this many bytes are not checked."""

_GROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return the bytes this process can still allocate; None if the system does not report it."""
    return min(_bounds(), default=None)


def require_memory(needed: int, what: str, hint: str | None = None) -> None:
    """Raise `ResourceError` if `needed` bytes exceed the available memory.

    Parameters
    ----------
    needed : int
        Bytes that are about to be allocated.
    what : str
        The object that allocates them, as the subject of a sentence.
    hint : str, optional
        An alternative.

    Examples
    --------
    >>> require_memory(10**18, "a point of 10^17 numbers")
    Traceback (most recent call last):
        ...
    difflab.errors.ResourceError: a point of 10^17 numbers takes 888.2 PiB of memory, and ...
    """
    if needed <= SMALL:
        return
    free = available_memory()
    if free is not None and needed > free:
        raise ResourceError(
            f"{what} takes {bytes_text(needed)} of memory, and {bytes_text(free)} are free",
            hint=hint,
        )


def _bounds() -> Iterator[int]:
    """Yield the bounds on the memory still available: of the system, the cgroup, the process."""
    with suppress(OSError, ValueError, StopIteration, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        yield next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) << 10
    with suppress(OSError, ValueError):
        limit = (_GROUP / "memory.max").read_text(encoding="ascii").strip()
        used = (_GROUP / "memory.current").read_text(encoding="ascii").strip()
        if limit != "max":
            # The page cache counts as used, but is reclaimed when memory is short.
            facts = dict(line.split() for line in (_GROUP / "memory.stat").open(encoding="ascii"))
            yield max(int(limit) - int(used) + int(facts.get("inactive_file", 0)), 0)
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit_here, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit_here != resource.RLIM_INFINITY:
            mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            yield max(limit_here - mapped * os.sysconf("SC_PAGE_SIZE"), 0)


@contextmanager
def environment_variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, and restore their former values at the end.

    Examples
    --------
    >>> with environment_variables({"DIFFLAB_EXAMPLE": "1"}):
    ...     print(os.environ["DIFFLAB_EXAMPLE"])
    1
    >>> "DIFFLAB_EXAMPLE" in os.environ
    False
    """
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
