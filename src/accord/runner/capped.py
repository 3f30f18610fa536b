"""Keeping the beginning and the end of an output of any length, in constant memory."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from io import FileIO

_PIECE_BYTES = 64 * 1024
_LINE_BYTES = 4 * 1024 * 1024
"""A longer line at the beginning of the end is not cut off."""


def _spool() -> IO[bytes]:
    return tempfile.TemporaryFile()


class CappedLog:
    """Writes an output to a file: of more than ``limit`` bytes, the first quarter and the end, cut between lines.

    The events that decide how a run ended are at the end. A line between both parts says how much is left out.
    """

    def __init__(self, file: FileIO, limit: int) -> None:
        self._file = file
        self._head = limit // 4
        self._tail = limit - self._head
        self._written = self._passed = 0
        self._is_head_full = False
        self._spools: list[IO[bytes]] = []
        self._open = ExitStack()

    def write(self, data: bytes) -> None:
        """Take the next piece. Raises OSError, for example if the disk is full."""
        self._to_spool(data if self._is_head_full else self._to_head(data))

    def finish(self) -> int:
        """Write the end; return the number of bytes left out."""
        with self._open:
            start = left_out = 0
            if self._passed > self._tail:
                older, newer = self._spools
                start = max(0, older.tell() + newer.tell() - self._tail)
                left_out = self._passed - (older.tell() + newer.tell() - start)
                older.seek(start)
                line = older.readline(_LINE_BYTES)
                if line.endswith(b"\n"):
                    start, left_out = start + len(line), left_out + len(line)
                self._write_all(b"\n... accord left out %d bytes of output ...\n" % left_out)
            for spool in self._spools:
                spool.seek(start)
                start = 0
                while data := spool.read(_PIECE_BYTES):
                    self._write_all(data)
            return left_out

    def _to_head(self, data: bytes) -> bytes:
        """Write what belongs to the beginning, up to the end of a line; return the rest."""
        room = self._head - self._written
        cut = len(data) if len(data) < room else data.find(b"\n", max(0, room - 1)) + 1 or len(data)
        self._write_all(data[:cut])
        self._written += cut
        is_line_endless = self._written > 2 * self._head
        self._is_head_full = is_line_endless or (self._written >= self._head and data[:cut].endswith(b"\n"))
        return data[cut:]

    def _to_spool(self, data: bytes) -> None:
        """Keep the last pieces in two files, each as long as the end may be."""
        for begin in range(0, len(data), _PIECE_BYTES):
            piece = data[begin : begin + _PIECE_BYTES]
            if not self._spools or self._spools[-1].tell() + len(piece) > self._tail:
                for old in self._spools[:-1]:
                    old.close()
                self._spools = [*self._spools[-1:], self._open.enter_context(_spool())]
            self._spools[-1].write(piece)
            self._passed += len(piece)

    def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
