"""Outputs that no value can forge, and a summary that GitHub shows."""

import resource
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.gha.step import (
    OUTPUT_BYTES,
    SUMMARY_BYTES,
    clean,
    guard_step_files,
    utf16_size,
    write_outputs,
    write_summary,
)


def as_the_runner_reads(text: str) -> dict[str, str]:
    """Read an output file the way actions/runner does (FileCommandManager: heredoc, or name=value)."""
    values: dict[str, str] = {}
    lines = text.split("\n")
    assert lines.pop() == ""
    while lines:
        line = lines.pop(0)
        name, heredoc, delimiter = line.partition("<<")
        equals = line.find("=")
        if equals >= 0 and (not heredoc or equals < len(name)):
            values[line[:equals]] = line[equals + 1 :]
            continue
        assert heredoc, line
        end = lines.index(delimiter)
        values[name] = "\n".join(lines[:end])
        del lines[: end + 1]
    return values


HOSTILE = [
    "", "\n", "EOF\nevil=1", "evil<<EOF\n1\nEOF", "::set-output name=evil::1", "accord-\nevil=1", "a\r\nb\rc", "a\0b",
    "\ud83d and \ude00", "\ud83d\ude00", "\ufeffa", "x=y",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
def test_no_value_forges_an_output(tmp_path: Path, value: str) -> None:
    file = tmp_path / "output"
    file.write_text("before=1\n")
    write_outputs(file, {"outcome": value, "items": "{}"})
    found = as_the_runner_reads(file.read_text(encoding="utf-8"))
    assert found == {"before": "1", "outcome": clean(value), "items": "{}"}


def test_one_who_saw_a_delimiter_knows_nothing_of_the_next(tmp_path: Path) -> None:
    file = tmp_path / "output"
    write_outputs(file, {"a": "1"})
    seen = file.read_text().splitlines()[-1]
    write_outputs(file, {"b": f"1\n{seen}\nevil=1"})
    assert "evil" not in as_the_runner_reads(file.read_text())


@pytest.mark.slow
@given(st.text() | st.lists(st.sampled_from(["\n", "=", "<<", "EOF", "\r", "\0", "\ud800"])).map("".join))
def test_any_value_arrives_as_it_was_cleaned(value: str) -> None:
    cleaned = clean(value)
    cleaned.encode("utf-8")
    assert not {"\r", "\0"} & set(cleaned)
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "size"), [("", 0), ("a", 2), ("é", 2), ("\u4e2d", 2), ("\U0001f600", 4), ("\ud83d", 2)]
)
def test_sizes_are_counted_as_github_counts_them(text: str, size: int) -> None:
    assert utf16_size(text) == size


HALF = OUTPUT_BYTES // 4
"""So many characters of two bytes are half of what GitHub keeps of a job."""


@pytest.mark.parametrize(
    ("outputs", "left_out"),
    [
        ({"a": "a" * 2 * HALF}, []),
        ({"a": "a" * 2 * HALF + "a"}, ["a"]),
        ({"a": "\u4e2d" * 2 * HALF}, []),
        ({"a": "\U0001f600" * HALF}, []),
        ({"a": "\U0001f600" * HALF + "a"}, ["a"]),
        ({"a": "a" * HALF, "b": "b" * HALF}, []),
        ({"a": "a" * HALF, "b": "b" * (HALF + 1), "c": "c"}, ["b"]),
        ({"a": "a" * 3 * HALF, "b": "b" * 4 * HALF, "c": "c"}, ["b", "a"]),
    ],
)
def test_a_value_too_large_for_github_costs_itself_and_not_the_others(
    tmp_path: Path, outputs: dict[str, str], left_out: list[str]
) -> None:
    file = tmp_path / "output"
    assert write_outputs(file, outputs) == left_out
    assert as_the_runner_reads(file.read_text()) == outputs | dict.fromkeys(left_out, "")


@pytest.mark.parametrize(
    "sizes", [[10], [SUMMARY_BYTES * 2], [SUMMARY_BYTES - 1, 5], [SUMMARY_BYTES * 2] * 3, [400_000] * 4]
)
@pytest.mark.parametrize("letter", ["a", "é", "\U0001f600"])
def test_a_summary_is_cut_with_a_notice_and_never_lost(tmp_path: Path, sizes: list[int], letter: str) -> None:
    file = tmp_path / "summary"
    for size in sizes:
        write_summary(file, letter * (size // len(letter.encode())))
    written = file.read_bytes()
    assert len(written) <= SUMMARY_BYTES
    text = written.decode("utf-8")
    assert text.startswith(letter)
    assert text.count("The summary is cut here") == (1 if sum(sizes) > SUMMARY_BYTES - 200 else 0)


def test_a_second_summary_follows_the_first(tmp_path: Path) -> None:
    file = tmp_path / "summary"
    write_summary(file, "# one")
    write_summary(file, "# two")
    assert file.read_text() == "# one\n# two\n"


def test_on_a_full_disk_the_largest_value_costs_itself_and_the_file_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_text("before=1\n")
    with at_most(path.stat().st_size + 1000):
        assert write_outputs(path, {"small": "1", "large": "x" * 5000}) == ["large"]
    told = path.read_text()
    assert told.startswith("before=1\nsmall<<accord-")
    assert "x" * 20 not in told
    with at_most(len(told)), pytest.raises(OSError, match="too large"):
        write_outputs(path, {"more": "2"})
    assert path.read_text() == told


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_summary_takes_any_text(tmp_path: Path) -> None:
    file = tmp_path / "summary"
    write_summary(file, "a\0\ud800\r\nb" + secrets.token_hex(4))
    assert file.read_bytes().startswith("a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}\nb".encode())


HARMS = {
    "a folder": "rm env && mkdir -p env/a/b && touch env/a/b/file && chmod 0 env/a/b env/a",
    "a link": "cp env other && ln -sf other env",
    "a pipe": "rm env && mkfifo env",
    "a terabyte": "truncate -s 1T env",
    "a closed folder": "echo more > env && chmod 0 .",
    "nothing": "rm env",
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_whatever_becomes_of_one_file_of_the_runner_all_are_restored(tmp_path: Path, harm: str) -> None:
    names = {"GITHUB_ENV": "env", "GITHUB_OUTPUT": "output", "GITHUB_PATH": "path"}
    files = {name: tmp_path / "files" / file for name, file in names.items()}
    (tmp_path / "files").mkdir()
    for name, path in files.items():
        path.write_text(f"{name}\n")
    summary = tmp_path / "files" / "summary"
    with guard_step_files(
        {name: str(path) for name, path in files.items()} | {"GITHUB_STEP_SUMMARY": str(summary)}
    ) as changed:
        files["GITHUB_PATH"].write_text("/tmp/of-the-agent\n")
        summary.write_text("forged")
        subprocess.run(["sh", "-c", harm], cwd=tmp_path / "files", check=True)
    assert {name: path.read_text() for name, path in files.items()} == {name: f"{name}\n" for name in files}
    assert not any(path.is_symlink() for path in files.values())
    assert not summary.exists()
    assert {"GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"} <= set(changed)


KINDS = {
    "a link": "touch file; ln -s file env",
    "a link to a link": "touch file; ln -s file link; ln -s link env",
    "a link to nothing": "ln -s file env",
    "a pipe": "mkfifo env",
    "a link to a pipe": "mkfifo file; ln -s file env",
    "a device": "mknod -m 666 env c 1 3 2>/dev/null || mkfifo env",
}
NOT_A_FILE = {
    "untouched": ("true", False),
    "used": ("test -f file && echo forged >> env || true", None),
    "another file": ("rm env; echo forged > env", True),
    "no file": ("rm env", True),
    "another link": ("ln -sfn . env", True),
}


@pytest.mark.parametrize(("agent", "is_changed"), NOT_A_FILE.values(), ids=NOT_A_FILE)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_links_pipes_and_devices_of_the_runner_are_what_they_were(
    tmp_path: Path, kind: str, agent: str, is_changed: bool | None
) -> None:
    def state() -> str:
        listed = "stat -c '%N %F %t %T %s' env $(ls file link 2>/dev/null); test ! -f file || cat file"
        return subprocess.run(["sh", "-c", listed], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    subprocess.run(["sh", "-c", kind], cwd=tmp_path, check=True)
    before = state()
    with guard_step_files({"GITHUB_ENV": str(tmp_path / "env")}) as changed:
        subprocess.run(["sh", "-c", agent], cwd=tmp_path, check=True)
        is_used = "forged" in state()
    assert state() == before
    assert changed == (["GITHUB_ENV"] if (is_used if is_changed is None else is_changed) else [])


def test_the_output_of_accord_itself_is_not_put_back(tmp_path: Path) -> None:
    program = """
import sys
from accord.gha.step import guard_step_files
with guard_step_files({"GITHUB_STEP_SUMMARY": "own"}) as changed:
    print("shown", flush=True)
print(changed)
"""
    (tmp_path / "own").symlink_to("log")
    with (tmp_path / "log").open("wb") as log:
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, stdout=log, check=True)
    assert (tmp_path / "own").is_symlink()
    assert (tmp_path / "log").read_text() == "shown\n[]\n"


def test_a_file_that_cannot_be_restored_is_reported_and_the_others_are_restored(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    files = {"GITHUB_ENV": place / "env", "GITHUB_PATH": tmp_path / "path"}
    for path in files.values():
        path.write_text("before")
    environment = {name: str(path) for name, path in files.items()}

    def harm() -> None:
        files["GITHUB_ENV"].unlink()
        place.rmdir()
        place.write_text("in the way")
        files["GITHUB_PATH"].write_text("/tmp/of-the-agent")

    with pytest.raises(OSError, match="place"), guard_step_files(environment):
        harm()
    assert files["GITHUB_PATH"].read_text() == "before"
