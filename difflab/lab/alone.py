"""A file that one process at a time may write: opened, locked, and released with the process.

The lock is the operating system's and belongs to the open file, so it is gone when its process
is, however that ended.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from time import sleep

from difflab.errors import InputError

if sys.platform == "win32":
    import msvcrt

    def _lock(file: FileIO) -> None:
        """Lock one byte far behind the end: what is locked there cannot be read by others."""
        place = file.tell()
        file.seek(0x7FFF0000)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        finally:
            file.seek(place)
else:
    import fcntl

    def _lock(file: FileIO) -> None:
        """Lock the file, or raise at once."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


__all__ = ["alone"]

PATIENCE = 0.1  # seconds between two looks at a file that another process has
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)


@contextmanager
def alone(path: Path, tell: Callable[[str], None] | None = None) -> Iterator[FileIO]:
    """Open a file to read and to append, unbuffered, when no other process has it so.

    Parameters
    ----------
    path : pathlib.Path
        The file; it and its folder are made when absent.
    tell : callable, optional
        Called with a line of text where this has to wait, or cannot lock.

    Raises
    ------
    difflab.errors.InputError
        It is no file, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone(Path(folder) / "a.csv") as file:
    ...     file.write(b"a,b")
    3
    """
    file = _opened(path)
    try:
        while not _is_mine(file, path, tell):
            file.close()
            file = _opened(path)
        yield file
    finally:
        file.close()


def _opened(path: Path) -> FileIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise InputError(f"cannot write {path}: it is not a file")
        return FileIO(path, "a+")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _is_mine(file: FileIO, path: Path, tell: Callable[[str], None] | None) -> bool:
    """Wait for the lock; return whether the file is still the one at its path then."""
    tell = tell or (lambda _: None)
    waited = False
    while True:
        try:
            _lock(file)
            break
        except OSError as error:
            if error.errno not in _TAKEN:
                reason = error.strerror or error
                tell(f"{path} cannot be locked ({reason}): start no other bench that writes it")
                return True
        if not waited:
            tell(f"another bench is writing {path}; waiting until it is done (Ctrl-C to stop)")
            waited = True
        sleep(PATIENCE)
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:  # removed in the meantime
        return False
