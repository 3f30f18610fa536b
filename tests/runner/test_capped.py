"""Of an endless output, the beginning and the end are kept in whole lines."""

import re
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest

from accord.runner.process import CappedLog

MIB = 1024 * 1024


def kept(place: Path, pieces: Iterable[bytes]) -> tuple[str, int]:
    with (place / "log").open("w+b", buffering=0) as file:
        log = CappedLog(file, MIB)
        for piece in pieces:
            log.write(piece)
        log.finish()
    return (place / "log").read_text(), log.left_out


@pytest.mark.parametrize("line", ["x" * 99, "é" * 40_000, "{" + "y" * 200_000 + "}"])
def test_of_a_long_output_the_beginning_and_the_end_are_kept_in_whole_lines(tmp_path: Path, line: str) -> None:
    lines = [f"{n} {line}\n" for n in range(7 * MIB // (len(line.encode()) + 3))]
    text, left_out = kept(tmp_path, (part.encode() for part in lines))
    before, marker, after = re.split(r"(\n\.\.\. accord left out \d+ bytes of output \.\.\.\n)", text)
    heads, tails = before.splitlines(keepends=True), after.splitlines(keepends=True)
    assert (heads, tails) == (lines[: len(heads)], lines[-len(tails) :])
    assert MIB // 4 <= len(before.encode()) < MIB // 4 + len(lines[-1].encode())
    assert MIB // 2 - len(lines[-1].encode()) < len(after.encode()) <= MIB * 3 // 4
    assert sum(len(part.encode()) for part in lines) - len((before + after).encode()) == left_out
    assert str(left_out) in marker


@pytest.mark.parametrize("size", [0, 1, MIB // 4, MIB // 4 + 1, MIB - 1000])
def test_an_output_within_the_limit_is_unchanged(tmp_path: Path, size: int) -> None:
    text = b"line\n" * (size // 5) + b"x" * (size % 5)
    pieces = [text[start : start + 1000] for start in range(0, size, 1000)]
    assert kept(tmp_path, pieces) == (text.decode(), 0)


def test_an_endless_line_is_kept_in_part_and_in_constant_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    text, left_out = kept(tmp_path, (b"z" * 2**17 for _ in range(400)))
    assert tracemalloc.get_traced_memory()[1] < 6 * MIB
    tracemalloc.stop()
    assert MIB // 2 < len(text) < 2 * MIB
    assert left_out > 48 * MIB
    assert "zzz\n... accord left out " in text
