"""Choices of a repository change the templates, are remembered, and are never taken for edits."""

import re

import pytest
import yaml

from accord.core.errors import WrongUsage
from accord.kit.manifest import Manifest, manifest_text, read_manifest
from accord.kit.plan import KitPlan, plan_kit
from accord.kit.templates import (
    LABELS,
    REGISTRY,
    SOURCE,
    Choices,
    Kit,
    Pin,
    chosen_kit,
    given_choices,
    shipped_kit,
    with_pin,
)

OLD, NEW = Pin("a" * 40, "0.0.1"), Pin("b" * 40, "0.1.0")
KIT = shipped_kit()
PLAN, REVIEW, KEEPALIVE = (f".github/workflows/accord-{name}.yml" for name in ("plan", "review", "keepalive"))
ALWAYS = {".github/accord/.gitattributes", REGISTRY}
FORK = "octo/accord"


def installed(choices: Choices, kit: Kit = KIT, pin: Pin = OLD) -> tuple[Manifest, dict[str, str]]:
    """The manifest and the files of a repository that chose this in the beginning."""
    plan = plan_kit(kit, pin, None, {}, choices)
    return plan.manifest, after(plan)


def after(plan: KitPlan) -> dict[str, str]:
    return {file.path: file.after for file in plan.files if file.after is not None}


def actions(plan: KitPlan) -> dict[str, str]:
    return {file.path: file.action.value for file in plan.files if file.action.value != "up-to-date"}


@pytest.mark.parametrize(
    ("only", "chosen"),
    [
        (("plan",), {PLAN, ".github/prompts/plan.md"}),
        (("plan", "labels"), {PLAN, ".github/prompts/plan.md", LABELS, ".github/workflows/accord-labels.yml"}),
        (("start",), {".github/workflows/accord-start.yml", ".github/accord/config.yml"}),
        (("keepalive",), {KEEPALIVE, ".github/prompts/keepalive.md"}),
        ((), set()),
        (("a workflow that left the kit", "review"), {REVIEW, ".github/prompts/review.md"}),
    ],
)
def test_only_the_chosen_workflows_are_installed_each_with_its_files(only: tuple[str, ...], chosen: set[str]) -> None:
    assert chosen_kit(KIT, Choices(only=only)).files.keys() == ALWAYS | chosen


def test_each_file_of_the_kit_belongs_to_a_workflow_or_to_all() -> None:
    assert chosen_kit(KIT, Choices()).files == KIT.files
    assert chosen_kit(KIT, Choices(only=KIT.workflows)).files == KIT.files
    assert {"plan", "implement", "review", "keepalive", "autofix", "verifier", "bot-comments"} < {*KIT.workflows}


@pytest.mark.parametrize("agent", [name for name, secrets in KIT.agents.items() if secrets])
def test_an_agent_is_the_default_and_gets_only_its_own_secrets(agent: str) -> None:
    files = chosen_kit(KIT, Choices(agent=agent)).files
    assert yaml.safe_load(files[REGISTRY])["default_agent"] == agent
    for path, text in files.items():
        of_agents = re.sub(r" ANALYSIS_\w+: .*", "", text)
        assert set(re.findall(r"secrets\.(\w+)", of_agents)) - {"ACCORD_TOKEN", "ACCORD_REVIEW_TOKEN"} <= {
            *KIT.agents[agent]
        }
        assert ("secrets." in text) == ("secrets." in KIT.files[path])
        if path.endswith(".yml"):
            yaml.safe_load(text)


def test_an_agent_without_secrets_of_its_own_keeps_them_all() -> None:
    files = chosen_kit(KIT, Choices(agent="command")).files
    assert yaml.safe_load(files[REGISTRY])["default_agent"] == "command"
    assert files[PLAN] == KIT.files[PLAN]


@pytest.mark.parametrize(
    ("given", "said", "hint"),
    [
        ({"only": "plan,reveiw"}, "reveiw", "Did you mean `review`?"),
        ({"only": "x"}, "`x`", "plan"),
        ({"only": "all,plan"}, "`all`", "plan"),
        ({"agent": "cladue"}, "cladue", "Did you mean `claude`?"),
        ({"agent": "zzz"}, "zzz", "default_agent"),
        ({"source": "https://github.com/octo/accord"}, "not a repository", "--source OWNER/NAME"),
        ({"source": "octo"}, "not a repository", "--source OWNER/NAME"),
    ],
)
def test_a_choice_that_does_not_exist_is_refused(given: dict[str, str], said: str, hint: str) -> None:
    with pytest.raises(WrongUsage, match=said) as refused:
        given_choices(KIT, Choices(), **given)
    assert hint in refused.value.hint


BEFORE = Choices(only=("plan", "a workflow that left the kit"), agent="claude", source=FORK)


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({}, {}),
        ({"only": "review, plan,review"}, {"only": ("review", "plan")}),
        ({"only": "all"}, {"only": None}),
        ({"agent": "gemini"}, {"agent": "gemini"}),
        ({"source": "octo/mirror"}, {"source": "octo/mirror"}),
        ({"source": "Accord-CI/accord"}, {"source": ""}),
    ],
)
def test_a_new_choice_replaces_the_one_before_and_leaves_the_others(
    given: dict[str, str], changed: dict[str, object]
) -> None:
    assert given_choices(KIT, BEFORE, **given) == BEFORE.model_copy(update=changed)


@pytest.mark.parametrize(
    "choices",
    [Choices(), Choices(only=("plan", "review")), Choices(agent="claude"), Choices(source=FORK)],
    ids=["none", "only", "agent", "source"],
)
def test_choices_are_remembered_and_a_later_version_asks_for_them_again(choices: Choices) -> None:
    manifest, files = installed(choices)
    manifest = read_manifest(manifest_text(manifest))
    assert not plan_kit(KIT, OLD, manifest, files).is_change
    newer = plan_kit(KIT, NEW, manifest, files)
    assert set(actions(newer).values()) == {"update"}
    assert newer.manifest.choices == choices
    assert after(newer) == installed(choices, pin=NEW)[1]


def test_fewer_workflows_remove_unedited_files_and_more_add_theirs() -> None:
    manifest, files = installed(Choices(only=("plan", "review")))
    files[".github/prompts/review.md"] += "\nOurs.\n"
    fewer = plan_kit(KIT, OLD, manifest, files, Choices(only=("plan", "keepalive")))
    assert actions(fewer) == {
        REVIEW: "remove",
        ".github/prompts/review.md": "keep",
        KEEPALIVE: "add",
        ".github/prompts/keepalive.md": "add",
    }
    assert not plan_kit(KIT, OLD, fewer.manifest, after(fewer)).is_change


def test_another_agent_is_merged_with_edits_elsewhere() -> None:
    manifest, files = installed(Choices(agent="codex"))
    files[REGISTRY] += "# ours\n"
    files[PLAN] = files[PLAN].replace("timeout-minutes: 60", "timeout-minutes: 20")
    changed = plan_kit(KIT, OLD, manifest, files, Choices(agent="claude"))
    assert set(actions(changed).values()) == {"merge", "update"}
    text = after(changed)[PLAN]
    assert "timeout-minutes: 20" in text
    assert "ANTHROPIC_API_KEY" in text
    assert "OPENAI_API_KEY" not in text
    assert "default_agent: claude" in after(changed)[REGISTRY]


def test_an_agent_that_was_set_by_hand_does_not_conflict() -> None:
    manifest, files = installed(Choices())
    files[REGISTRY] = files[REGISTRY].replace("default_agent: codex", "default_agent: claude")
    changed = plan_kit(KIT, OLD, manifest, files, Choices(agent="claude"))
    assert "conflict" not in actions(changed).values()
    assert after(changed)[REGISTRY] == files[REGISTRY]


USES = f"uses: {SOURCE}/actions/check@{'0' * 40} # v0.0.0\n"


def uses(source: str, pin: Pin) -> str:
    return f"uses: {source}/actions/check@{pin}\n"


@pytest.mark.parametrize(
    ("before", "own", "chosen", "expected"),
    [
        ("", uses(SOURCE, OLD), FORK, uses(FORK, NEW)),
        (FORK, uses(FORK, OLD), "", uses(SOURCE, NEW)),
        (FORK, uses(FORK, OLD), "octo/mirror", uses("octo/mirror", NEW)),
        ("", f"# ours\n{uses(SOURCE, OLD)}", FORK, f"# ours\n{uses(FORK, NEW)}"),
        ("", uses(FORK, OLD), FORK, uses(FORK, NEW)),
        ("", uses("other/accord", OLD), FORK, uses("other/accord", OLD)),
        (FORK, uses(SOURCE, OLD), FORK, uses(SOURCE, OLD)),
        (FORK, "uses: octo/accord/actions/check@main\n", "", "uses: octo/accord/actions/check@main\n"),
    ],
    ids=["to a fork", "back", "to another", "edited", "by hand before", "a fork by hand", "upstream by hand", "branch"],
)
def test_the_repository_of_accord_is_part_of_the_pin(before: str, own: str, chosen: str, expected: str) -> None:
    kit = Kit("0.1.0", {PLAN: USES})
    manifest = Manifest(version=OLD.version, commit=OLD.commit, choices=Choices(source=before), files={PLAN: USES})
    plan = plan_kit(kit, NEW, manifest, {PLAN: own}, Choices(source=chosen))
    assert after(plan)[PLAN] == expected
    assert "conflict" not in actions(plan).values()
    assert not plan_kit(kit, NEW, plan.manifest, after(plan)).is_change


def test_the_shipped_kit_names_no_other_source_than_the_chosen() -> None:
    _, files = installed(Choices(source=FORK))
    assert not [path for path, text in files.items() if f"uses: {SOURCE}" in text]
    assert with_pin(f"not-{SOURCE}/a@{'0' * 40}", NEW) == f"not-{SOURCE}/a@{'0' * 40}"
