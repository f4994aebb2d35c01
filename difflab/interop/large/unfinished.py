"""State of an interrupted run: the chunks that are written, and a fingerprint of the points.

An unfinished result is a folder beside the sink, whose name has a digest of everything that the
result depends on but the points. Of these each chunk has a digest of its own, made when it is
computed, so a run goes on only if it would write the same numbers. The folder is locked: two runs
never share it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from hashlib import sha256
from io import FileIO
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from difflab.core.system import locked, reason
from difflab.errors import InputError, PointError

DIGEST_BYTES = 32
"""Bytes of the digest of the points of a chunk, by SHA-256."""


class Unfinished:
    """The folder of an unfinished result.

    Parameters
    ----------
    sink : pathlib.Path
        Where the result will be.
    identity : mapping of str to str or int
        Everything that the result depends on, but the points.
    chunks : int
        The number of chunks of the result.

    Attributes
    ----------
    folder : pathlib.Path
        The folder, ``SINK.DIGEST.part``.
    digests : dict of int to bytes
        The digest of the points of each chunk that an earlier run has written.

    Raises
    ------
    InputError
        Another run is writing the same result.
    """

    def __init__(self, sink: Path, identity: Mapping[str, str | int], chunks: int) -> None:
        text = json.dumps(identity, sort_keys=True)
        self.sink = sink
        self.chunks = chunks
        self.folder = sink.with_name(f"{sink.name}.{sha256(text.encode()).hexdigest()[:16]}.part")
        self._lock = Lock()
        self._records = self._opened()
        stored = self._records.read()
        records = [stored[k * DIGEST_BYTES :][:DIGEST_BYTES] for k in range(chunks)]
        self.digests = {
            k: record
            for k, record in enumerate(records)
            if len(record) == DIGEST_BYTES and record.strip(b"\0")
        }
        self._begun = bool(self.digests)

    def _opened(self) -> FileIO:
        """Return the file of the digests, locked; the folder is made if it is not there."""
        path = self.folder / "digests"
        while True:
            self.folder.mkdir(exist_ok=True)
            try:
                file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
            except FileNotFoundError:
                continue  # another run has just finished and removed the folder
            if not locked(file):
                file.close()
                raise InputError(
                    f"another run is writing {str(self.sink)!r}",
                    hint="wait for it, or choose another name for the results",
                )
            # Between opening and locking, the other run may have removed the file.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                return file
            file.close()

    @property
    def pending(self) -> list[int]:
        """The chunks that are not written."""
        return [chunk for chunk in range(self.chunks) if chunk not in self.digests]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Points that are mended are other points: nothing is left of the wrong ones.
        if error is not None and (isinstance(error, PointError) or not self._begun):
            self._remove()
        self._records.close()

    def restart(self) -> None:
        """Forget the chunks that are written: the points are others."""
        self._records.truncate(0)
        self.digests = {}

    def mark(self, chunk: int, digest: bytes) -> None:
        """Record that a chunk is written, by the digest of its points."""
        with self._lock:
            self._records.seek(chunk * DIGEST_BYTES)
            self._records.write(digest)
            self._begun = True

    def finish(self, result: Path) -> None:
        """Move the whole result to the sink, and remove the folder.

        Raises
        ------
        InputError
            The sink cannot be written; the result stays in the folder.
        """
        # Digests without the result would make an empty one pass for whole.
        self._records.truncate(0)
        try:
            result.replace(self.sink)
        except OSError as error:
            raise InputError(
                f"cannot write {str(self.sink)!r}: {reason(error)}",
                hint=f"the whole result is {result}",
            ) from error
        self._remove()

    def _remove(self) -> None:
        """Remove the folder while it is locked; Windows removes no file that is open."""
        if os.name == "nt":
            self._records.close()
        shutil.rmtree(self.folder, ignore_errors=True)
