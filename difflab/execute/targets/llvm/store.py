"""The disk cache of compiled code.

The folder is ``$DIFFLAB_CACHE``, else ``difflab`` in ``$XDG_CACHE_HOME`` or ``~/.cache``;
``DIFFLAB_CACHE=off`` disables the cache. An entry is written to a temporary file and renamed, so
that a reader sees all of it or nothing. It begins with its checksum: a damaged entry is compiled
again. A folder that other users can write to is not used, since its code would be executed.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from difflab.core.files import open_regular
from difflab.errors import InputError

LARGEST = 256 << 20  # bytes of all entries together
ENTRIES = 4096
_DIGEST = hashlib.sha256().digest_size
_ENDING = ".code"


def folder() -> Path | None:
    """Return the folder of the cache, or None if the cache is disabled."""
    chosen = os.environ.get("DIFFLAB_CACHE", "")
    if chosen.lower() in ("off", "0", "no", "none"):
        return None
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "difflab"
    except RuntimeError:  # no home
        return None


def key(*facts: str) -> str:
    """Return the name of an entry: a digest of everything that its code depends on.

    Examples
    --------
    >>> key("a", "bc") == key("a", "bc"), key("a", "bc") == key("ab", "c")
    (True, False)
    """
    digest = hashlib.sha256()
    for fact in facts:
        data = fact.encode()
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def read(name: str) -> bytes | None:
    """Return an entry's code; None if it is missing, damaged or not trusted."""
    directory = folder()
    if directory is None or not _private(directory):
        return None
    path = directory / (name + _ENDING)
    try:
        with open_regular(path) as file:
            data = file.read()
        if _checksum(name, data[_DIGEST:]) != data[:_DIGEST]:
            return None
        os.utime(path)  # for eviction of the least recently used
    except (OSError, InputError):
        return None
    return data[_DIGEST:]


def write(name: str, code: bytes) -> None:
    """Write an entry; if that fails, the code is compiled again the next time."""
    directory = folder()
    if directory is None:
        return
    with suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(directory):
            return
        handle, name_beside = tempfile.mkstemp(dir=directory, suffix=".part")
        beside = Path(name_beside)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_checksum(name, code) + code)
            beside.replace(directory / (name + _ENDING))
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
        _trim(directory)


def _checksum(name: str, code: bytes) -> bytes:
    """Return the checksum of an entry's name and code; the name detects copies of other entries."""
    return hashlib.sha256(name.encode() + code).digest()


def _private(directory: Path) -> bool:
    """Return whether only this user can write to the folder."""
    try:
        facts = directory.stat()
    except OSError:
        return False
    if not hasattr(os, "geteuid"):
        return True
    return facts.st_uid == os.geteuid() and not facts.st_mode & 0o022


def _trim(directory: Path) -> None:
    """Remove the least recently used entries until the cache is within its limits."""
    entries = sorted(_entries(directory), reverse=True)
    total = 0
    for number, (_, size, path) in enumerate(entries):
        total += size
        if number >= ENTRIES or (number and total > LARGEST):
            with suppress(OSError):
                path.unlink()


def _entries(directory: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield the time of last use, the size and the path of each file."""
    with os.scandir(directory) as files:
        for file in files:
            if file.name.endswith((_ENDING, ".part")):
                with suppress(OSError):
                    facts = file.stat()
                    yield facts.st_mtime, facts.st_size, Path(file.path)
