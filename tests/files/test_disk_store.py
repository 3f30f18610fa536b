"""Files under accidents: what a disk may answer, where a process may end, and what may not be replaced."""

import errno
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support.disks import COUNTED, FaultyDisk, fails
from support.sessions import clock

from accord.core.errors import BrokenContract, Stopped
from accord.files.store import (
    TRIES,
    Disk,
    NotWritten,
    Storage,
    append_once,
    can_be_written,
    change_file,
    folder_lock,
    write_checked,
    write_whole,
)


def storage(disk: Disk | None = None) -> Storage:
    return Storage(clock(), disk or Disk())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("call", ["create", "replace", "sync", "read"])
def test_a_write_that_fails_for_a_while_is_made_in_the_end(tmp_path: Path, call: str, number: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    disk = FaultyDisk(fails(call, number, times=TRIES - 1))
    write_checked(path, b"new", storage(disk))
    assert path.read_bytes() == b"new"
    assert disk.calls.count(call) == TRIES
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("call", ["create", "replace"])
def test_a_write_that_fails_for_good_leaves_what_was_there_and_says_so(tmp_path: Path, call: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    disk = FaultyDisk(fails(call, errno.ENOSPC))
    with pytest.raises(NotWritten, match=r"4 tries: No space left on device.*run the same command again"):
        write_checked(path, b"new", storage(disk))
    assert path.read_bytes() == b"old"
    assert disk.calls.count("create") == TRIES
    assert os.listdir(tmp_path) == ["file"]


def test_a_write_that_reads_back_differently_is_made_again(tmp_path: Path) -> None:
    class Forgetful(Disk):
        writes = 0

        def create(self, path: Path, data: bytes) -> None:
            self.writes += 1
            super().create(path, data[:3] if self.writes == 1 else data)

    write_checked(tmp_path / "file", b"whole", storage(Forgetful()))
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_a_change_is_repeated_after_another_write(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0")

    def change(before: bytes) -> bytes:
        if before == b"0":
            path.write_bytes(b"1")
        return before + b"+"

    assert change_file(path, change, storage()) == b"1+"
    assert path.read_bytes() == b"1+"


def test_a_file_that_never_holds_still_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")

    def change(before: bytes) -> bytes:
        path.write_bytes(before + b"x")
        return b"mine"

    with pytest.raises(Stopped, match="Another program wrote"):
        change_file(path, change, storage())
    assert path.read_bytes() == b"x" * TRIES


def test_a_change_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"same")
    disk = FaultyDisk()
    assert change_file(path, lambda before: before, storage(disk)) == b"same"
    assert disk.calls == ["read"]


@pytest.mark.parametrize("link", ["inside", "../below/inside", "chain", "folder/file", "{root}/other/file"])
def test_a_file_behind_a_link_is_written_and_the_link_stays(tmp_path: Path, link: str) -> None:
    root = tmp_path / "root"
    for name in (".git", "below", "other"):
        (root / name).mkdir(parents=True)
    for path in ("below/inside", "other/file"):
        (root / path).write_text("old")
    (root / "below/chain").symlink_to("inside")
    (root / "below/folder").symlink_to("../other")
    place = root / "below/link"
    place.symlink_to(link.format(root=root))
    change_file(place, lambda before: before + b" and new", storage())
    assert (place.is_symlink(), place.read_text()) == (True, "old and new")
    assert sorted(path.name for path in (root / "other").iterdir()) == ["file"]


@pytest.mark.parametrize("link", ["{tmp}/outside", "../../outside", "away/outside", "link"])
def test_a_link_out_of_the_repository_and_a_hard_link_are_refused(tmp_path: Path, link: str) -> None:
    root = tmp_path / "root"
    (root / ".git").mkdir(parents=True)
    (root / "below").mkdir()
    (tmp_path / "outside").write_text("old")
    (root / "below/away").symlink_to(tmp_path)
    place = root / "below/link"
    place.symlink_to(link.format(tmp=tmp_path))
    with pytest.raises(BrokenContract, match="leads out of"):
        change_file(place, lambda before: b"new", storage())
    (root / "one").write_text("old")
    (root / "two").hardlink_to(root / "one")
    with pytest.raises(BrokenContract, match="a hard link"):
        change_file(root / "two", lambda before: b"new", storage())
    assert ((tmp_path / "outside").read_text(), (root / "one").read_text()) == ("old", "old")


@pytest.mark.parametrize(
    ("there", "kept"),
    [
        (b"", b""), (b"[1]\n", b"[1]\n"), (b"[1]\n[2", b"[1]\n"), (b"[1]\n[2]", b"[1]\n"), (b"[1]\n{torn", b"[1]\n"),
        (b"{torn", b""), (b"[1]", b"[1]\n"), (b"{torn\n", b"{torn\n"), (b"# by hand", b"# by hand\n"),
        (b'[{"a": 1},', b'[{"a": 1},\n'),
        (b"[1]\n<<<<<<< HEAD", b"[1]\n<<<<<<< HEAD\n"), (b"[1]\n\0\0", b"[1]\n"), (b"[1]\n  ", b"[1]\n"),
        (b'[1]\n{"a": 1},', b'[1]\n{"a": 1},\n'),
    ],
)  # fmt: skip
def test_a_line_is_added_once_and_of_a_crash_only_the_cut_end_goes(tmp_path: Path, there: bytes, kept: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(there)
    for _ in range(2):
        append_once(path, b"[2]", storage())
        assert path.read_bytes() == kept + b"[2]\n"


@pytest.mark.parametrize("call", ["append", "read", "half"])
def test_a_line_is_added_once_though_the_disk_fails_three_times(tmp_path: Path, call: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"[1]\n")
    append_once(path, b"[2]", storage(FaultyDisk(fails(call, errno.EIO, times=TRIES - 1))))
    assert path.read_bytes() == b"[1]\n[2]\n"


def test_a_line_is_never_added_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"")
    (tmp_path / "log").symlink_to(tmp_path / "target")
    with pytest.raises(NotWritten):
        append_once(tmp_path / "log", b"x", storage())
    assert (tmp_path / "target").read_bytes() == b""


def test_a_writer_that_waits_too_long_for_a_lock_gets_a_hint(tmp_path: Path) -> None:
    with (
        folder_lock(tmp_path, storage()),
        pytest.raises(Stopped, match=r"writing in .* for 30 seconds\. Wait until"),
        folder_lock(tmp_path, storage()),
    ):
        pass


def test_a_program_that_inherits_a_lock_holds_it_until_it_ends(tmp_path: Path) -> None:
    with folder_lock(tmp_path, storage()) as lock:
        left_over = subprocess.Popen(["sleep", "60"], pass_fds=lock)
    with pytest.raises(Stopped), folder_lock(tmp_path, storage()):
        pass
    left_over.kill()
    left_over.wait(10)
    with folder_lock(tmp_path, storage()):
        pass


@pytest.mark.slow
def test_a_writer_that_waits_for_a_lock_says_on_stderr_for_whom_and_how_long_at_most(tmp_path: Path) -> None:
    wait = (
        "import sys; from pathlib import Path; from accord.core.clock import SystemClock\n"
        "from accord.files.store import Storage, folder_lock\n"
        "with folder_lock(Path(sys.argv[1]), Storage(SystemClock())): print('in')"
    )
    with folder_lock(tmp_path, storage()):
        command = [sys.executable, "-P", "-c", wait, str(tmp_path)]
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert waiting.stderr is not None
        told = waiting.stderr.readline()
    out, more = waiting.communicate(timeout=600)
    assert re.fullmatch(r"waiting, for 29 seconds at most: another process is writing in '.+'\n", told)
    assert (out, more) == ("in\n", "")


def test_files_of_killed_writers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    long = "n" * 150
    keeps = [".status.json.lock", ".other.json.0123456789abcdef", "status.json", ".status.json.0123456789ABCDEF"]
    for name in [*keeps, ".status.json.0123456789abcdef", f".{long[:100]}.0123456789abcdef"]:
        (tmp_path / name).write_text("")
    (tmp_path / ".status.json.fedcba9876543210").mkdir()
    with folder_lock(tmp_path, storage(), "status.json", long):
        assert sorted(os.listdir(tmp_path)) == sorted([*keeps, ".status.json.fedcba9876543210"])


def test_the_faulty_disk_fails_at_every_kind_of_call() -> None:
    assert set(COUNTED) == {name for name in vars(Disk) if not name.startswith("_")}


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "er" / "file.json"
    write_whole(file, "one\n")
    write_whole(file, "zwei é\n")
    assert file.read_bytes() == "zwei é\n".encode()
    assert list(file.parent.iterdir()) == [file]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file.json"
    write_whole(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "new \ud800")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space") as failed:
        write_whole(file, "new")
    assert failed.value.filename == str(file), "the file beside it is not the reader's"
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_long_name_leaves_space_for_the_file_beside_it(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 250)
    write_whole(file, "text")
    assert file.read_text() == "text"


def test_another_user_of_the_machine_can_read_a_receipt_as_far_as_the_umask_lets_him(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("old")
    old.chmod(0o640)
    before = os.umask(0o022)
    try:
        write_whole(new, "text")
        write_whole(old, "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE(new.stat().st_mode) == 0o644
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["new.json", "old.json", "missing/folders/new.json"])
def test_a_check_for_write_access_leaves_no_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "old.json").write_text("old")
    assert can_be_written(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]
    assert (tmp_path / "old.json").read_text() == "old"


@pytest.mark.parametrize(
    "name",
    ["folder", "file/new.json", "file/missing/new.json", "/proc/accord/new.json", "/dev/null/new.json", f"{'x' * 300}"],
)
def test_a_file_that_cannot_be_written_is_found_before_it_has_to_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("in the way")
    assert not can_be_written(tmp_path / name)
    assert not can_be_written(Path())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_pipe_or_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    """As root, ``--receipt /dev/stdout`` would take that from everybody on the machine."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "stdout").symlink_to("pipe")
    assert not can_be_written(tmp_path / "pipe")
    assert not can_be_written(tmp_path / "stdout")
