"""A file that one process at a time may write.

The lock is the operating system's and belongs to the open file, so it is released when the
process ends, however it ends.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from time import sleep

from difflab.core.system import lock
from difflab.errors import InputError

POLL_INTERVAL = 0.1  # seconds between two attempts to lock the file
_LOCKED = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)


@contextmanager
def locked_file(
    path: Path, notify: Callable[[str], None] | None = None, shown: Path | None = None
) -> Iterator[FileIO]:
    """Open and lock a file for reading and appending, unbuffered; wait for other processes.

    Parameters
    ----------
    path : pathlib.Path
        The file; it and its folder are created if absent.
    notify : callable, optional
        Called with one line of text if this has to wait or cannot lock the file.
    shown : pathlib.Path, optional
        The file that such a line names; by default `path`.

    Raises
    ------
    difflab.errors.InputError
        The path is not a file, or it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked_file(Path(folder) / "a.csv") as file:
    ...     file.write(b"a,b")
    3
    """
    file = _opened(path)
    try:
        while not _is_locked(file, path, notify, shown or path):
            file.close()
            file = _opened(path)
        yield file
    finally:
        file.close()


def lapsed(path: Path) -> bool:
    """Return whether no process holds the lock of a file, and remove the file if so.

    No process holds an absent file. The file is removed while it is locked, so that a process
    that has just created it notices, and creates another.

    Examples
    --------
    >>> lapsed(Path("no such file"))
    True
    """
    try:
        with FileIO(path, "r+") as file:
            lock(file)
            with suppress(OSError):  # some systems keep a file that is open
                path.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _opened(path: Path) -> FileIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise InputError(f"cannot write {path}: it is not a file")
        return FileIO(path, "a+")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _is_locked(file: FileIO, path: Path, notify: Callable[[str], None] | None, shown: Path) -> bool:
    """Wait for the lock; return whether the path still refers to the open file."""
    notify = notify or (lambda _: None)
    waited = False
    while True:
        try:
            lock(file)
            break
        except OSError as error:
            if error.errno not in _LOCKED:
                reason = error.strerror or error
                notify(f"{shown} cannot be locked ({reason}): do not start another bench for it")
                return True
        if not waited:
            notify(f"another bench is writing {shown}; waiting until it ends (Ctrl-C to stop)")
            waited = True
        sleep(POLL_INTERVAL)
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:  # removed in the meantime
        return False
