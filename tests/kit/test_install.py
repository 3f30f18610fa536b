import base64
import gzip
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from accord.core.errors import BrokenContract, Refused, WrongUsage
from accord.files import store
from accord.git.configuration import CONFIG_PATHS, KIT_CONFIG
from accord.kit import install as install_module
from accord.kit.install import install_kit, kit_check, plan_folder
from accord.kit.manifest import PLACE
from accord.kit.plan import CONFIGURED
from accord.kit.templates import Choices, Kit, Pin, shipped_kit, with_pin

OLD, NEW = Pin("a" * 40, "0.1.0"), Pin("b" * 40, "0.2.0")
ONE, TWO, THREE, OWN = (f".github/workflows/{name}.yml" for name in ("one", "two", "three", "own"))
TEXT = "name: X\non: push\njobs:\n  a: 1\n  b: 2\n  c: 3\n"
BEFORE = Kit("0.1.0", {ONE: TEXT, TWO: TEXT, OWN: TEXT})
AFTER = Kit("0.2.0", {ONE: TEXT.replace("c: 3", "c: 4"), TWO: TEXT.replace("c: 3", "c: 5"), THREE: TEXT, OWN: TEXT})


def packed(files: object) -> str:
    return base64.b64encode(gzip.compress(json.dumps(files).encode())).decode()


def put(root: Path, kit: Kit, pin: Pin) -> str:
    plan = plan_folder(root, kit, pin)
    install_kit(root, plan)
    return " ".join(file.action.value for file in plan.files)


def listing(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def consumer(root: Path) -> Path:
    (root / OWN).parent.mkdir(parents=True)
    (root / OWN).write_text("name: Mine\n")
    put(root, BEFORE, OLD)
    (root / TWO).write_text(TEXT.replace("a: 1", "a: mine"))
    return root


@contextmanager
def cut_off(monkeypatch: pytest.MonkeyPatch, cut: int) -> Iterator[None]:
    """Let a run end when so many files are written."""
    written = 0

    def failing(path: Path, text: str) -> None:
        nonlocal written
        if written == cut:
            raise KeyboardInterrupt
        written += 1
        store.write_whole(path, text)

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(install_module, "write_whole", failing)
        yield


def test_an_update_carries_everything_new_keeps_edits_and_writes_nothing_twice(tmp_path: Path) -> None:
    assert put(consumer(tmp_path), AFTER, NEW) == "update keep add merge"
    assert (tmp_path / TWO).read_text() == TEXT.replace("a: 1", "a: mine").replace("c: 3", "c: 5")
    assert (tmp_path / OWN).read_text() == "name: Mine\n"
    before = listing(tmp_path)
    assert not plan_folder(tmp_path, AFTER, NEW).is_change
    put(tmp_path, AFTER, NEW)
    assert listing(tmp_path) == before


def test_a_repository_keeps_its_own_configuration_alone_until_it_is_gone(tmp_path: Path) -> None:
    own, kits = (tmp_path / path for path in CONFIG_PATHS)
    kit = Kit("0.1.0", {ONE: TEXT, KIT_CONFIG: "version: 1\n"})
    assert put(tmp_path, kit, OLD) == "add add"
    own.write_text("branch_prefix: bots\n")
    assert put(tmp_path, kit, OLD) == "remove up-to-date"
    plan = plan_folder(tmp_path, kit, OLD)
    assert (plan.is_change, kits.exists(), own.read_text()) == (False, False, "branch_prefix: bots\n")
    assert {file.path: file.note for file in plan.files}[KIT_CONFIG] == CONFIGURED
    own.unlink()
    assert put(tmp_path, kit, OLD) == "add up-to-date"


@pytest.mark.parametrize("cut", range(5))
def test_a_run_that_is_cut_off_at_any_file_is_finished_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    clean, root = consumer(tmp_path / "clean"), consumer(tmp_path / "cut")
    put(clean, AFTER, NEW)
    with cut_off(monkeypatch, cut):
        put(root, AFTER, NEW)
    put(root, AFTER, NEW)
    assert listing(root) == listing(clean)


CHOSEN = Choices(only=("plan", "keepalive"), agent="claude", source="octo/accord")


@pytest.mark.parametrize("chosen", [Choices(), CHOSEN], ids=["none", "all choices"])
@pytest.mark.parametrize("cut", [0, 1, 8, 20])
def test_new_choices_that_were_cut_off_are_finished_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int, *, chosen: Choices
) -> None:
    kit, pin, others = shipped_kit(), Pin(NEW.commit, shipped_kit().version), Choices(agent="gemini", only=("plan",))

    def install(root: Path, choices: Choices | None) -> None:
        install_kit(root, plan_folder(root, kit, pin, choices))

    clean, root = tmp_path / "clean", tmp_path / "cut"
    for folder in (clean, root):
        install(folder, others)
    install(clean, chosen)
    with cut_off(monkeypatch, cut):
        install(root, chosen)
    install(root, chosen)
    assert listing(root) == listing(clean)


def test_the_shipped_kit_goes_into_an_empty_repository(tmp_path: Path) -> None:
    kit = shipped_kit()
    pin = Pin(NEW.commit, kit.version)
    put(tmp_path, kit, pin)
    expected = {path: with_pin(text, pin).encode() for path, text in kit.files.items()}
    assert listing(tmp_path) == {**expected, PLACE: (tmp_path / PLACE).read_bytes()}
    assert not plan_folder(tmp_path, kit, pin).is_change


@pytest.mark.parametrize(
    ("installed", "is_later"), [("0.2.1", True), ("0.10.0", True), ("0.2.0", False), ("0.1.9", False)]
)
def test_a_kit_of_a_later_version_is_not_taken_back(tmp_path: Path, installed: str, is_later: bool) -> None:
    put(tmp_path, BEFORE, Pin(OLD.commit, installed))
    before = listing(tmp_path)
    with pytest.raises(Refused, match=installed) if is_later else nullcontext():
        put(tmp_path, AFTER, NEW)
    assert (listing(tmp_path) == before) == is_later


@pytest.mark.parametrize("place", [".github", ".github/workflows", ONE])
def test_nothing_is_written_through_a_link(tmp_path: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root = tmp_path / "root"
    (root / place).parent.mkdir(parents=True)
    os.symlink(elsewhere, root / place)
    with pytest.raises(WrongUsage, match="symbolic link"):
        put(root, BEFORE, OLD)
    assert listing(elsewhere) == {}


@pytest.mark.parametrize(("is_folder", "said"), [(True, "is a folder"), (False, r"/\.github is not a folder")])
def test_one_file_that_cannot_be_written_prevents_all_writes(tmp_path: Path, is_folder: bool, said: str) -> None:
    if is_folder:
        (tmp_path / ONE).mkdir(parents=True)
    else:
        (tmp_path / ".github").write_text("")
    before = listing(tmp_path)
    with pytest.raises(WrongUsage, match=said):
        put(tmp_path, BEFORE, OLD)
    assert listing(tmp_path) == before


def test_the_check_of_a_kit_names_a_manifest_that_cannot_be_read(tmp_path: Path) -> None:
    assert "accord init" in kit_check(tmp_path).note
    (tmp_path / PLACE).parent.mkdir(parents=True)
    (tmp_path / PLACE).write_text("{}")
    assert [(path, finding.code) for path, finding in kit_check(tmp_path).findings] == [(PLACE, "kit-unreadable")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"files": packed({"../../etc/passwd": "x"})}, "plain names"),
        ({"files": packed({".github/../x": "x"})}, "plain names"),
        ({"files": packed({".github/..": "x"})}, "plain names"),
        ({"files": packed({ONE: 1})}, "string"),
        ({"files": packed({ONE: "x"})[:-8]}, "incomplete"),
        ({"files": packed({ONE: "0" * 5_000_000})}, "too large"),
        ({"files": "H4sI, or not"}, "unpacked"),
        ({"files": base64.b64encode(b"plain").decode()}, "unpacked"),
        ({"files": base64.b64encode(gzip.compress(b"{")).decode()}, "unpacked"),
        ({"format": 1}, "format"),
        ({"commit": "main"}, "commit|pattern"),
        ({"choices": {"source": "https://example.org/accord"}}, "source"),
        ({"choices": {"agent": "claude\n"}}, "agent"),
    ],
)
def test_a_broken_manifest_is_refused_before_any_write(tmp_path: Path, change: dict[str, object], said: str) -> None:
    put(tmp_path, BEFORE, OLD)
    document = json.loads((tmp_path / PLACE).read_text()) | change
    (tmp_path / PLACE).write_text(json.dumps(document))
    before = listing(tmp_path)
    with pytest.raises(BrokenContract, match=said):
        put(tmp_path, AFTER, NEW)
    assert listing(tmp_path) == before
