"""The finished blocks of a comparison over a domain, kept in a file until its result is written.

The file has a line of JSON for the question and one for each block, written when the block is
judged. A run of the same question by the same code goes on from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from difflab.core.files import reason
from difflab.core.strict_json import dumps, strict
from difflab.errors import InputError
from difflab.lab.alone import locked_file
from difflab.lab.domain.block import Block

__all__ = ["SavedBlocks"]

Question = Mapping[str, Any]


class SavedBlocks:
    """The blocks of one question that are finished, in a file that grows by a line a block.

    Parameters
    ----------
    path : pathlib.Path or None
        The file; None to keep nothing. It is locked, and removed by `done`.
    question : mapping
        What identifies the blocks: function, domain, seed, methods, versions. A file of another
        question is started again.
    notify : callable, optional
        Called with a line of text if there are finished blocks, or the file is another's.
    """

    def __init__(
        self,
        path: Path | None,
        question: Question,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._path = path
        self._question = json.loads(dumps(strict(question)))
        self._notify = notify or (lambda _: None)
        self._opened = ExitStack()
        self._file: Any = None
        self.blocks: dict[int, Block] = {}

    def __enter__(self) -> SavedBlocks:
        if self._path is not None:
            self._file = self._opened.enter_context(locked_file(self._path))
            self._read()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def add(self, number: int, block: Block) -> None:
        """Keep a finished block."""
        self.blocks[number] = block
        self._write({"block": number, **block.to_dict()})

    def done(self) -> None:
        """Remove the file: the result has been written."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    def _read(self) -> None:
        """Read the finished blocks; drop an incomplete last line, and what is another's."""
        self._file.seek(0)
        content = self._file.readall()
        kept = content.rfind(b"\n") + 1
        lines = content[:kept].splitlines()
        try:
            head, *rest = [json.loads(line) for line in lines]
            mine = head == self._question
            if mine:
                self.blocks = {int(line["block"]): Block.from_dict(line) for line in rest}
        except (ValueError, KeyError, TypeError, AttributeError):
            mine = False
        if mine:
            self._notify(f"going on from {self._path}: {len(self.blocks)} blocks are finished")
        elif content:
            self._notify(f"{self._path} is of another comparison: started again")
            self.blocks = {}
        try:
            self._file.truncate(kept if mine else 0)
        except OSError as error:
            raise InputError(f"cannot write {self._path}: {reason(error)}") from error
        if not mine:
            self._write(self._question)

    def _write(self, record: Mapping[str, Any]) -> None:
        """Append a line, without buffering."""
        if self._file is None:
            return
        line = dumps(record, indent=None).encode("utf-8") + b"\n"
        try:
            while line:
                line = line[self._file.write(line) :]
        except OSError as error:
            raise InputError(f"cannot write {self._path}: {reason(error)}") from error
