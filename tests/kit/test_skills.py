"""Skills are chosen, kept in step, and removed; of AGENTS.md only accord's block changes."""

import json
import re
from pathlib import Path

import pytest
import yaml
from support.consumers import NEW, OLD, SHIPPED, consumer_stage, files_at, installed, sync

from accord.agents.registry import shipped_registry
from accord.core.kinds import KINDS
from accord.core.schemas import json_schema
from accord.git.steering import PathAudit, audit_paths
from accord.kit.install import install_kit, plan_folder
from accord.kit.manifest import manifest_text, read_manifest
from accord.kit.many import ManyOutcome
from accord.kit.plan import BROKEN, DELETED, plan_kit
from accord.kit.skills import AGENTS_FILE, RESULT_FILES, block_in, skill_files, with_block
from accord.kit.templates import Choices
from accord.runner.prompt import shipped_prompt

WITH, WITHOUT = Choices(only=("plan",), skills=True), Choices(only=("plan",))
BLOCK = skill_files()[AGENTS_FILE]
SKILL = ".agents/skills/accord-plan/SKILL.md"


def put(root: Path, choices: Choices | None = None) -> dict[str, str]:
    """Install, and return the action for each skill and for AGENTS.md."""
    plan = plan_folder(root, SHIPPED, NEW, choices)
    install_kit(root, plan)
    assert not plan_folder(root, SHIPPED, NEW).is_change
    return {file.path: file.action.value for file in plan.files if not file.path.startswith(".github/")}


@pytest.mark.parametrize("mode", ["plan", "implement", "review"])
@pytest.mark.parametrize("folder", [".agents", ".claude"])
def test_a_skill_has_its_prompt_and_its_schema_below_a_readable_head(folder: str, mode: str) -> None:
    text = skill_files()[f"{folder}/skills/accord-{mode}/SKILL.md"]
    _, head, body = text.split("---\n", 2)
    description = yaml.safe_load(head)["description"]
    assert yaml.safe_load(head)["name"] == f"accord-{mode}"
    file = next(name for name in RESULT_FILES if name in description)
    assert description.endswith(f"Writes {file}, which accord checks and applies.")
    assert shipped_prompt(mode).rstrip() in body
    schema = re.findall(r"```json\n(.*?)```", body, re.DOTALL)[-1]
    kind = file.removesuffix(".json")
    assert json.loads(schema) == json_schema(KINDS[kind].model, kind)
    assert f"accord check {file} --kind {kind}" in body


def test_every_file_of_the_skills_steers_agents() -> None:
    paths = tuple(sorted(skill_files()))
    assert audit_paths(paths, agent_files=shipped_registry().steering_patterns) == PathAudit(steering=paths)


OWN = "# Mine\n\nUse tabs.\n"


@pytest.mark.slow
@pytest.mark.parametrize("own", [None, OWN, OWN.replace("\n", "\r\n"), "no line break", "\n"])
def test_the_users_text_stays_when_skills_come_and_go(tmp_path: Path, own: str | None) -> None:
    place = tmp_path / AGENTS_FILE
    if own is not None:
        place.write_bytes(own.encode())
    assert set(put(tmp_path, WITH).values()) == {"add"}
    text = place.read_bytes().decode()
    assert text.startswith(own or "")
    assert block_in(text.replace("\r\n", "\n")) == BLOCK
    assert ("\r\n" in text) == ("\r\n" in (own or ""))
    assert set(put(tmp_path).values()) == {"up-to-date"}
    assert set(put(tmp_path, WITHOUT).values()) == {"remove"}
    assert not (tmp_path / SKILL).exists()
    if own and own.strip():
        assert place.read_bytes().decode().rstrip("\r\n") == own.rstrip("\r\n")
    else:
        assert not place.exists()


@pytest.mark.parametrize(("own", "gap"), [("", ""), ("line\n", "\n"), ("line", "\n\n"), ("line\n\n", "\n")], ids=repr)
def test_an_empty_line_sets_the_block_apart(own: str, gap: str) -> None:
    assert with_block(own, BLOCK) == f"{own}{gap}{BLOCK}"
    assert with_block(own, None) == own


def test_text_around_the_block_is_never_an_edit_and_edits_of_the_block_are_kept(tmp_path: Path) -> None:
    put(tmp_path, WITH)
    place = tmp_path / AGENTS_FILE
    place.write_text(f"Before\n{place.read_text()}After\n")
    assert put(tmp_path)[AGENTS_FILE] == "up-to-date"
    edited = place.read_text().replace("## Results for accord", "## Our results")
    place.write_text(edited)
    assert put(tmp_path)[AGENTS_FILE] == "keep"
    assert put(tmp_path, WITHOUT)[AGENTS_FILE] == "keep"
    assert place.read_text() == edited


def test_an_older_block_is_updated_in_its_place() -> None:
    manifest = plan_kit(SHIPPED, OLD, None, {}, WITH).manifest
    older = BLOCK.replace("Before you end", "At the end")
    manifest = manifest.model_copy(update={"files": {**manifest.files, AGENTS_FILE: older}})
    plan = plan_kit(SHIPPED, NEW, manifest, {AGENTS_FILE: f"Before\n{older}After\n"})
    found = next(file for file in plan.files if file.path == AGENTS_FILE)
    assert (found.action.value, found.after) == ("update", f"Before\n{BLOCK}After\n")


def test_a_block_that_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    put(tmp_path, WITH)
    (tmp_path / AGENTS_FILE).write_text(OWN)
    plan = plan_folder(tmp_path, SHIPPED, NEW)
    assert next(file.note for file in plan.files if file.path == AGENTS_FILE) == DELETED
    assert not plan.changes


@pytest.mark.parametrize(
    "text", ["<!-- accord -->\nmine\n", "<!-- /accord -->\n<!-- accord -->\n", BLOCK + BLOCK, "caf\udce9\n"]
)
def test_a_file_without_one_pair_of_marks_stays(text: str) -> None:
    plan = plan_kit(SHIPPED, NEW, None, {AGENTS_FILE: text}, WITH)
    found = next(file for file in plan.files if file.path == AGENTS_FILE)
    assert (found.before, found.after, found.note) == (text, text, BROKEN)
    assert AGENTS_FILE not in plan.manifest.files


@pytest.mark.slow
def test_sync_updates_the_skills_and_only_the_block(tmp_path: Path) -> None:
    files = installed(tmp_path / "kit", SHIPPED, OLD, WITH)
    manifest = read_manifest(files[".github/accord/manifest.json"])
    older = {AGENTS_FILE: BLOCK.replace("Before you end", "At the end"), SKILL: files[SKILL] + "\nOld.\n"}
    manifest = manifest.model_copy(update={"files": {**manifest.files, **older}})
    files |= {**older, AGENTS_FILE: f"{OWN}\n{older[AGENTS_FILE]}", "docs/own.md": "own\n"}
    files[".github/accord/manifest.json"] = manifest_text(manifest)
    with consumer_stage(tmp_path, files) as stage:
        synced = sync(stage)
        assert (synced.outcome, synced.error) == (ManyOutcome.APPLIED, None)
        before, after = files_at(stage, "main"), files_at(stage, "accord/sync")
        assert before.keys() == after.keys()
        changed = {path for path in before if before[path] != after[path]}
        assert {path for path in changed if not path.startswith(".github/")} == {AGENTS_FILE, SKILL}
        assert synced.plan
        assert {file.after for file in synced.plan.changes if file.path == AGENTS_FILE} == {f"{OWN}\n{BLOCK}"}
        assert sync(stage).outcome is ManyOutcome.UNCHANGED


def test_sync_refuses_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    files = installed(tmp_path / "kit", SHIPPED, OLD, WITH)
    files = {path: text for path, text in files.items() if not path.startswith(".claude/")}
    with consumer_stage(tmp_path, {**files, ".claude": "mine\n"}) as stage:
        synced = sync(stage)
        assert synced.outcome is ManyOutcome.REFUSED
        assert synced.error
        assert ".claude is not a folder" in synced.error.message
        assert "accord/sync" not in {branch["name"] for branch in stage.get("/repos/octo/consumer/branches")}
