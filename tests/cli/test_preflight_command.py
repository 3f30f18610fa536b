"""``accord preflight``: GitHub is asked before an agent runs, and nothing is created."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord
from support.stage import Stage, staged

from accord_sandbox.planting import INSTALLATION_TOKEN

READER = {
    "token": "reader",
    "login": "github-actions[bot]",
    "kind": "installation",
    "permissions": {"contents": "read"},
}
REPOSITORY = {"name": "accord/sandbox", "settings": "default", "files": {"README.md": "Hello"}}
SETTING = "Allow GitHub Actions to create and approve pull requests"


@pytest.fixture
def stage(tmp_path: Path, more: dict[str, Any]) -> Iterator[Stage]:
    with staged(tmp_path / "stage", seed={"tokens": [READER], "repositories": [REPOSITORY | more]}) as stage:
        yield stage


@pytest.fixture
def more() -> dict[str, Any]:
    return {}


def codes(document: Any) -> list[str]:
    return [finding["code"] for finding in document["findings"]]


def test_a_job_s_token_is_refused_before_the_agent_runs_and_passes_once_the_setting_is_on(
    accord: Accord, stage: Stage
) -> None:
    accord.on(stage, GITHUB_TOKEN=INSTALLATION_TOKEN)
    refused = accord.document("preflight", code=4)
    assert (refused["outcome"], codes(refused)) == ("refused", ["pulls-not-allowed"])
    hint = refused["findings"][0]["hint"]
    assert (
        f'"{SETTING}" under Settings → Actions → General ({stage.server.url}/accord/sandbox/settings/actions)' in hint
    )
    stage.send("PUT", "/repos/accord/sandbox/actions/permissions/workflow", can_approve_pull_request_reviews=True)
    assert accord.document("preflight") == {
        "outcome": "ok",
        "repository": "accord/sandbox",
        "login": "github-actions[bot]",
        "findings": [],
    }
    assert stage.get("/repos/accord/sandbox/pulls", state="all") == []


@pytest.mark.parametrize("arguments", [(), ("--dry-run",)])
def test_a_person_and_a_dry_run_ask_nothing(accord: Accord, stage: Stage, arguments: tuple[str, ...]) -> None:
    accord.on(stage, GITHUB_TOKEN=INSTALLATION_TOKEN if arguments else stage.server.token)
    assert accord.document("preflight", *arguments)["findings"] == []
    assert {method for method, *_ in stage.server.requests} == {"GET"}


def test_a_token_that_may_not_ask_is_a_warning(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN="reader")
    found = accord.document("preflight")
    assert (found["outcome"], codes(found)) == ("ok", ["pulls-unknown"])


@pytest.mark.parametrize("more", [{"rulesets": [{"branches": ["accord/**"], "rules": ["required_signatures"]}]}])
def test_a_rule_that_may_refuse_the_push_is_a_warning(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    found = accord.document("preflight")
    assert (found["outcome"], codes(found)) == ("ok", ["branch-rule"])
    assert '"Require signed commits"' in found["findings"][0]["message"]
    accord.on(stage, GITHUB_TOKEN=INSTALLATION_TOKEN)
    assert codes(accord.document("preflight", code=4)) == ["pulls-not-allowed"], "GitHub signs the commits of a bot"


CONFIG = {".github/accord.yml": "branch_prefix: bots\n"}


@pytest.mark.parametrize("more", [{"files": CONFIG, "rulesets": [{"branches": ["bots/**"], "rules": ["creation"]}]}])
@pytest.mark.parametrize("words", [("preflight",), ("doctor", "--root", ".")])
def test_rules_are_read_for_the_branches_that_the_configuration_names(
    accord: Accord, stage: Stage, words: tuple[str, ...]
) -> None:
    accord.on(stage, GITHUB_TOKEN=stage.server.token)
    (accord.home / ".github").mkdir()
    ended = accord(*words, "--format", "json")
    assert "Exclude `bots/**` under" in ended.out


@pytest.mark.parametrize("more", [{"archived": True}])
def test_an_archived_repository_is_refused(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN=INSTALLATION_TOKEN)
    assert "archived" in accord.document("preflight", code=4)["error"]["message"]


def test_a_step_is_annotated_and_gets_the_outcome(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN=INSTALLATION_TOKEN)
    step = accord.in_step()
    ended = accord("preflight")
    assert ended.code == 4
    assert "::error" in ended.err
    assert SETTING in ended.err
    assert step.outputs == {"outcome": "refused"}
    assert "### accord preflight: refused" in step.summary


@pytest.mark.parametrize(
    ("more", "other"),
    [
        ({"branches": {"accord": {"x.txt": "x"}}}, "accord"),
        (
            {
                "branches": {"bots": {"x.txt": "x"}},
                "files": {".github/accord/config.yml": "version: 1\nbranch_prefix: bots/accord\n"},
            },
            "bots",
        ),
        ({"branches": {"accord-notes": {"x.txt": "x"}, "accord/1/x": {"x.txt": "x"}}}, ""),
    ],
)
def test_a_branch_in_the_way_of_all_work_items_is_named(accord: Accord, stage: Stage, other: str) -> None:
    (accord.home / ".github").mkdir()
    accord.on(stage, GITHUB_TOKEN=stage.server.token)
    document = accord.document("preflight", code=4 if other else 0)
    assert codes(document) == (["branch-in-the-way"] if other else [])
    assert all(f"`{other}`" in finding["message"] for finding in document["findings"])
    (rules,) = (
        check for check in accord("doctor", "--format", "json").document["checks"] if check["name"] == "branch rules"
    )
    assert rules["status"] == ("error" if other else "ok")
