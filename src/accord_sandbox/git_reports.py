"""What a push reports, with GitHub's reason beside a refused ref instead of git's own "hook declined".

Format: https://git-scm.com/docs/pack-protocol (report-status), in pkt-lines on band 1 of the side-band.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_IN_A_LINE = 65_515
_FLUSH = b"0000"
_DECLINED = "hook declined"
_NOISE = re.compile(rb"error: hook declined to update [^\n]*\n")
"""What git adds on its own account, and GitHub does not."""


def with_reasons(report: bytes, reasons: Mapping[str, str]) -> bytes:
    """Return the answer to a push in which the refused refs of ``reasons`` carry their reason."""
    if not reasons:
        return report
    told = [line for line in _packets(report) if line is not None]
    banded = all(line[:1] in (b"\x01", b"\x02", b"\x03") for line in told)
    if not banded:
        return b"".join(_rewritten(report, reasons))
    status = b"".join(line[1:] for line in told if line[:1] == b"\x01")
    others = [_packet(said) for line in told if line[:1] != b"\x01" and len(said := _NOISE.sub(b"", line)) > 1]
    changed = b"".join(_rewritten(status, reasons))
    parts = [changed[start : start + MOST_IN_A_LINE] for start in range(0, len(changed), MOST_IN_A_LINE)]
    return b"".join([*others, *(_packet(b"\x01" + part) for part in parts), _FLUSH])


def _rewritten(status: bytes, reasons: Mapping[str, str]) -> Iterator[bytes]:
    for line in _packets(status):
        if line is None:
            yield _FLUSH
            continue
        words = line.decode(errors="surrogateescape").rstrip("\n").split(" ", 2)
        if len(words) == 3 and words[0] == "ng" and words[2] == _DECLINED and words[1] in reasons:
            line = f"ng {words[1]} {reasons[words[1]]}\n".encode(errors="surrogateescape")
        yield _packet(line)


def _packets(stream: bytes) -> Iterator[bytes | None]:
    """Return the payloads of pkt-lines, None for a flush."""
    place = 0
    while place < len(stream):
        length = int(stream[place : place + 4], 16)
        yield stream[place + 4 : place + length] if length else None
        place += length or 4


def _packet(line: bytes) -> bytes:
    return b"%04x" % (len(line) + 4) + line
