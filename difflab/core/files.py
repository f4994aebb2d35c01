"""Reading regular files only, and writing files atomically: all or none."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from io import IOBase
from pathlib import Path
from typing import BinaryIO

from difflab.errors import InputError

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
