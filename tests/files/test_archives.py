"""Untrusted archives: unpacking restores exactly the packed files, and refuses harmful ones entirely."""

import io
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.archives import with_entry, zipped

from accord.core.errors import BrokenContract, WrongUsage
from accord.files import archives
from accord.files.archives import check_absent, read_members, unpack


def unpacked(content: bytes, into: Path) -> dict[str, bytes]:
    archive = io.BytesIO(content)
    unpack(archive, read_members(archive), into)
    return {str(path.relative_to(into)): path.read_bytes() for path in into.rglob("*") if path.is_file()}


def test_an_archive_becomes_the_files_that_were_packed(tmp_path: Path) -> None:
    files = {"result.json": b"{}", "a/deep/er/päth with blanks.txt": b"\0\xff", "a/empty": b""}
    assert unpacked(zipped(files), tmp_path / "into") == files


NAMES = st.lists(st.text("ab.ä ", min_size=1, max_size=4), min_size=1, max_size=3).map("/".join)


@pytest.mark.slow
@given(st.dictionaries(NAMES, st.binary(max_size=30), max_size=6))
def test_whatever_the_names_are_nothing_lands_outside_and_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, files: Mapping[str, bytes]
) -> None:
    home = tmp_path_factory.mktemp("home")
    try:
        found = unpacked(zipped(files), home / "in" / "to")
    except BrokenContract:
        assert list(home.rglob("*")) == []
    else:
        assert found == files
        assert {path.relative_to(home).parts[:2] for path in home.rglob("*") if path.is_file()} <= {("in", "to")}


HARMFUL = {
    "absolute": with_entry("/etc/passwd"), "upwards": with_entry("a/../../escape"),
    "a drive": with_entry("C:/windows"), "a backslash": with_entry("..\\escape"),
    "a control character": with_entry("a\nb"), "a name that is cut at NUL": with_entry("good\0.txt"),
    "a link": with_entry("link", b"/etc/passwd", mode=0o120777),
    "a device": with_entry("pipe", mode=0o010644), "encrypted": with_entry("secret", flags=0x1),
    "a name too long": with_entry("n" * 256), "a path too deep": with_entry("d/" * 600 + "f"),
    "a file that is also a folder": with_entry("good.txt/inside"),
    "no archive": b"PK but not really", "empty": b"", "cut": zipped({"a": "content"})[:-10],
}  # fmt: skip


@pytest.mark.parametrize("content", [pytest.param(content, id=name) for name, content in HARMFUL.items()])
def test_a_harmful_archive_is_refused_and_leaves_no_trace(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(BrokenContract, match="The archive cannot be unpacked"):
        unpacked(content, tmp_path / "into")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_there_twice_is_refused() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("result.json", "one")
        archive.writestr("result.json", "another")
    with pytest.raises(BrokenContract, match="is in it twice"):
        read_members(packed)


def test_an_archive_that_would_unfold_without_end_is_refused_before_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = io.BytesIO(zipped({f"{n}.txt": b"\0" * 100_000 for n in range(12)}))
    assert len(bomb.getvalue()) < 5_000
    monkeypatch.setattr(archives, "MOST_UNPACKED_BYTES", 1_000_000)
    with pytest.raises(BrokenContract, match="1200000 bytes"):
        read_members(bomb)
    monkeypatch.setattr(archives, "MOST_FILES", 11)
    with pytest.raises(BrokenContract, match="12 files"):
        read_members(bomb)


@pytest.mark.parametrize("is_large", [False, True], ids=["zip", "zip64"])
@pytest.mark.parametrize("comment", [b"", b"a comment"])
def test_a_list_of_files_without_end_is_refused_before_any_of_it_is_read(
    monkeypatch: pytest.MonkeyPatch, is_large: bool, comment: bytes
) -> None:
    if is_large:
        monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 5)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for n in range(200):
            archive.writestr(str(n), "")
        archive.comment = comment
    assert (b"PK\x06\x06" in packed.getvalue()) == is_large
    assert len(read_members(packed)) == 200
    made: list[str] = []
    monkeypatch.setattr(zipfile, "ZipInfo", made.append)
    monkeypatch.setattr(archives, "MOST_DIRECTORY_BYTES", 5_000)
    with pytest.raises(BrokenContract, match="list of files"):
        read_members(packed)
    assert made == []


def test_a_file_never_grows_beyond_the_size_that_the_archive_says(tmp_path: Path) -> None:
    honest = zipped({"a.txt": b"x" * 5_000})
    lying = honest.replace((5_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(BrokenContract, match="damaged"):
        unpacked(lying, tmp_path / "into")
    assert list(tmp_path.iterdir()) == []


def test_content_that_was_damaged_on_the_way_is_refused(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.txt", "the content")
    with pytest.raises(BrokenContract, match="damaged"):
        unpacked(packed.getvalue().replace(b"the content", b"another one"), tmp_path / "into")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for name in ("full", "full/mine.txt", "link"):
        with pytest.raises(WrongUsage, match="already exists"):
            check_absent(tmp_path / name)
    check_absent(tmp_path / "empty")
    check_absent(tmp_path / "new/one")
    assert unpacked(zipped({"a": b"1"}), tmp_path / "empty") == {"a": b"1"}
