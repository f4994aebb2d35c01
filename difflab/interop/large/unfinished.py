"""What an interrupted run leaves to the next: the chunks that are written, and which these are.

An unfinished result is a folder beside the sink, whose name has a digest of everything that the
result depends on. So a run goes on with a folder only if it would write the same numbers, and two
runs of different functions never meet.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from difflab.core.files import reason
from difflab.errors import InputError, PointError

__all__ = ["Unfinished"]


class Unfinished:
    """The folder of an unfinished result.

    Parameters
    ----------
    sink : pathlib.Path
        Where the result will be.
    identity : mapping of str to str or int
        Everything that the result depends on.
    chunks : int
        The number of chunks of the result.

    Attributes
    ----------
    folder : pathlib.Path
        The folder, ``SINK.DIGEST.part``.
    pending : list of int
        The chunks that an earlier run has not written.
    """

    def __init__(self, sink: Path, identity: Mapping[str, str | int], chunks: int) -> None:
        text = json.dumps(identity, sort_keys=True)
        self.sink = sink
        self.folder = sink.with_name(f"{sink.name}.{sha256(text.encode()).hexdigest()[:16]}.part")
        self._lock = Lock()
        self.folder.mkdir(exist_ok=True)
        flags = self.folder / "written"
        flags.touch()
        self._flags = flags.open("r+b", buffering=0)
        known = self._flags.read()
        self._begun = bool(known)
        self.pending = [
            chunk for chunk in range(chunks) if not known[chunk : chunk + 1].strip(b"\0")
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._flags.close()
        # Points that are mended are other points, with a folder of their own.
        if error is not None and (isinstance(error, PointError) or not self._begun):
            shutil.rmtree(self.folder, ignore_errors=True)

    def mark(self, chunk: int) -> None:
        """Record that a chunk is written, by its byte in the file of flags."""
        with self._lock:
            self._flags.seek(chunk)
            self._flags.write(b"1")
            self._begun = True

    def finish(self, result: Path) -> None:
        """Move the whole result to the sink, and remove the folder.

        Raises
        ------
        InputError
            The sink cannot be written; the result stays in the folder.
        """
        self._flags.close()
        # Flags without the result would make an empty one pass for whole.
        (self.folder / "written").unlink()
        try:
            result.replace(self.sink)
        except OSError as error:
            raise InputError(
                f"cannot write {str(self.sink)!r}: {reason(error)}",
                hint=f"the whole result is {result}",
            ) from error
        shutil.rmtree(self.folder, ignore_errors=True)
