"""Repositories of consumers that have an older kit than the one of this checkout, each with edits of its own."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from support.stage import Stage, staged

from accord.kit.install import install_kit, plan_folder
from accord.kit.sync import SyncResult, sync_repository
from accord.kit.templates import Choices, Kit, Pin, shipped_kit

CONSUMER = "octo/consumer"
OLD, NEW = Pin("a" * 40, "0.0.1"), Pin("b" * 40, "0.1.0")
PLAN, REVIEW, LABELS, IMPLEMENT = (
    f".github/workflows/accord-{n}.yml" for n in ("plan", "review", "labels", "implement")
)
RETIRED = ".github/workflows/accord-retired.yml"
SHIPPED = shipped_kit()


def older_kit() -> Kit:
    """The kit of an earlier version: two workflows were different, one was not there yet, one more was."""
    files = dict(SHIPPED.files)
    files[PLAN] = files[PLAN].replace("timeout-minutes: 60", "timeout-minutes: 20")
    files[REVIEW] = files[REVIEW].replace("timeout-minutes: 60", "timeout-minutes: 20")
    files[RETIRED] = "name: Retired\non: workflow_dispatch\n"
    del files[LABELS]
    return Kit("0.0.1", files)


def installed(folder: Path, kit: Kit, pin: Pin = OLD, choices: Choices | None = None) -> dict[str, str]:
    """Return the files that a kit puts into an empty repository."""
    install_kit(folder, plan_folder(folder, kit, pin, choices))
    return {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def edited(files: Mapping[str, str]) -> dict[str, str]:
    """A consumer's own words: at another place than the new version's, and at the same."""
    plan = files[PLAN].replace("group: plan", "group: planning")
    review = files[REVIEW].replace("timeout-minutes: 20", "timeout-minutes: 90")
    return {**files, PLAN: plan, REVIEW: review, "README.md": "# Mine\n", ".github/workflows/own.yml": "name: Own\n"}


def consumer_stage(
    directory: Path, files: Mapping[str, str], tokens: Sequence[Mapping[str, Any]] = (), **more: Any
) -> AbstractContextManager[Stage]:
    """A local GitHub with one consumer's repository."""
    seed = {"tokens": [*tokens], "repositories": [{"name": CONSUMER, "files": files, **more}]}
    return staged(directory / "data", seed=seed)


def sync(stage: Stage, *, kit: Kit = SHIPPED, pin: Pin = NEW, **options: Any) -> SyncResult:
    return sync_repository(stage.adapter(repo=CONSUMER), CONSUMER, kit, pin, **options)


def files_at(stage: Stage, ref: str) -> dict[str, str]:
    """The names of all blobs of a branch, by path."""
    commit = stage.get(f"/repos/{CONSUMER}/git/ref/heads/{ref}")["object"]["sha"]
    tree = stage.get(f"/repos/{CONSUMER}/git/trees/{commit}", recursive="1")["tree"]
    return {entry["path"]: entry["sha"] for entry in tree if entry["type"] == "blob"}


def seen(stage: Stage) -> dict[str, Any]:
    """All that a user could see: the branches with their files, and the pull requests."""
    branches = [branch["name"] for branch in stage.get(f"/repos/{CONSUMER}/branches")]
    pulls = stage.get(f"/repos/{CONSUMER}/pulls", state="all")
    return {
        "branches": {name: files_at(stage, name) for name in branches},
        "pulls": [(p["title"], p["body"], p["state"], p["head"]["ref"], p["base"]["ref"]) for p in pulls],
    }
