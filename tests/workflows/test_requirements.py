"""Workflows and an agent tell what a repository needs on GitHub."""

from pathlib import Path

import pytest

from accord.agents.registry import shipped_registry
from accord.core.refusals import CREATE_PULLS
from accord.core.shapes import read_shape
from accord.files.yaml import read_mapping
from accord.workflows.models import Workflow
from accord.workflows.requirements import Requirement, required_settings, secrets_of_callers

KIT = Path(__file__).parents[2] / "templates/consumer-repo/.github/workflows"
WRITES, BOT = "{contents: write, pull-requests: write}", "'${{ secrets.bot }}'"
URL = "https://github.example/octo/tools"


def workflow(text: str) -> Workflow:
    return read_shape(Workflow, read_mapping(text.encode()).value)


def kit(*names: str) -> dict[str, Workflow]:
    return {name: workflow((KIT / f"accord-{name}.yml").read_text(encoding="utf-8")) for name in names}


def needed(workflows: dict[str, Workflow], *agents: str, approves: bool = False) -> list[Requirement]:
    registry = shipped_registry()
    return required_settings(workflows, {name: registry.agents[name] for name in agents}, approves=approves)


@pytest.mark.parametrize(
    ("names", "approves", "setting"),
    [
        (("implement", "review"), False, True), (("review",), True, False), (("review",), False, None),
        (("plan", "keepalive", "labels"), True, None),
    ],
)  # fmt: skip
def test_the_kit_needs_pull_requests_where_it_opens_or_approves_them(
    names: tuple[str, ...], approves: bool, setting: bool | None
) -> None:
    found = [each for each in needed(kit(*names), approves=approves) if each.kind == "setting"]
    assert [(each.names, each.is_required) for each in found] == (
        [] if setting is None else [((CREATE_PULLS,), setting)]
    )


def test_each_requirement_is_a_step_for_a_person() -> None:
    found = needed(kit("implement", "keepalive"), "claude")
    assert [each.kind for each in found] == ["setting", "secret", "variable", "labels"]
    setting, secret, variable, labels = (each.step(URL) for each in found)
    assert setting.startswith(
        f'Turn on "{CREATE_PULLS}" under Settings → Actions → General ({URL}/settings/actions), or '
    )
    assert setting.endswith("or set the secret `ACCORD_TOKEN`.")
    assert secret.startswith("Add the secret `ANTHROPIC_API_KEY` or `CLAUDE_CODE_OAUTH_TOKEN` under Settings → Secrets")
    assert secret.endswith(f"({URL}/settings/secrets/actions), or to the environment `agents`.")
    assert variable.startswith(
        "If `ACCORD_TOKEN` is an app's token, set the variable `ACCORD_LOGIN` to the app's login"
    )
    assert labels == "Run `accord labels sync`."
    assert found[0].paths == ("implement",)
    assert found[1].paths == ("implement", "keepalive")
    assert "http" not in found[0].step()


def test_an_agent_whose_secrets_no_workflow_reads_needs_none() -> None:
    text = "on: push\njobs: {a: {steps: [{uses: accord-ci/accord/actions/check@v1}]}}\n"
    assert [each.kind for each in needed({"own.yml": workflow(text)}, "codex")] == ["labels"]


@pytest.mark.parametrize(
    ("job", "unless"),
    [
        ("{uses: o/accord/.github/workflows/reusable-apply-revision.yml@v1}", ""),
        (f"{{uses: o/accord/.github/workflows/reusable-apply-revision.yml@v1, secrets: {{token: {BOT}}}}}", "BOT"),
        (f"{{permissions: {WRITES}, steps: [{{uses: o/accord/actions/apply@v1, with: {{token: {BOT}}}}}]}}", "BOT"),
    ],
)
def test_a_token_of_another_account_replaces_the_setting(job: str, unless: str) -> None:
    (setting, *_) = needed({"own.yml": workflow(f"on: push\njobs: {{a: {job}}}\n")})
    assert (setting.names, setting.unless) == ((CREATE_PULLS,), unless)


def test_other_workflows_need_nothing() -> None:
    text = "on: push\njobs: {a: {permissions: {contents: write}, steps: [{uses: actions/checkout@v7}, {run: make}]}}\n"
    assert needed({"ci.yml": workflow(text)}, "codex") == []


def test_secrets_that_callers_pass_are_known() -> None:
    assert "openai_api_key" in secrets_of_callers(kit("keepalive")["keepalive"])
    assert secrets_of_callers(kit("implement")["implement"]) == {"accord_token"}
