"""Results that a setting of the repository refuses: the reason names it, and once it is changed, work goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.implementations import apply, completed, implement_stage, work_of_agent
from support.reviews import approve, post, reviews
from support.stage import Stage

from accord.core.errors import Refused
from accord.engine.receipts import Outcome
from accord.github.models import Conflict
from accord_sandbox.planting import INSTALLATION_TOKEN

SETTING = "Allow GitHub Actions to create and approve pull requests"
ALLOWED = {"can_approve_pull_request_reviews": True}


@pytest.fixture
def new_repository(tmp_path: Path) -> Iterator[Stage]:
    """A repository with the settings with which GitHub makes it."""
    with implement_stage(tmp_path / "stage", "  settings: default\n") as stage:
        yield stage


def switch_on(stage: Stage) -> None:
    stage.send("PUT", f"/repos/{stage.repository}/actions/permissions/workflow", **ALLOWED)


def ledger(receipt: Any) -> dict[str, str]:
    return {entry.op: entry.status.value for entry in receipt.operations}


@pytest.mark.slow
def test_a_refused_pull_request_names_the_setting_and_is_opened_once_it_is_on(
    new_repository: Stage, tmp_path: Path
) -> None:
    stage, patch = new_repository, work_of_agent(new_repository, tmp_path / "tree")
    for pushed in ("done", "adopted"):
        refused = apply(stage, completed(patch), token=INSTALLATION_TOKEN)
        assert (refused.outcome, refused.exit_code) == (Outcome.REFUSED, 4)
        assert refused.error
        assert f'"{SETTING}" under Settings → Actions → General' in refused.error.hint
        assert f"{stage.server.url}/{stage.repository}/settings/actions" in refused.error.hint
        assert '"Re-run failed jobs"' in refused.error.hint
        assert "`accord/1` is pushed, so the agent does not need to run again" in refused.error.hint
        assert (ledger(refused)["push-branch"], ledger(refused)["create-revision"]) == (pushed, "failed")
    assert "status:in-progress" in stage.snapshot()[0]["labels"]
    switch_on(stage)
    ended = apply(stage, completed(patch), token=INSTALLATION_TOKEN)
    assert ended.outcome is Outcome.APPLIED
    assert (ledger(ended)["push-branch"], ledger(ended)["create-revision"]) == ("adopted", "done")
    assert "status:review" in stage.snapshot()[0]["labels"]
    again = apply(stage, completed(patch), token=INSTALLATION_TOKEN)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)


@pytest.mark.slow
def test_an_approval_that_is_not_allowed_is_a_comment_and_names_the_setting(
    new_repository: Stage, tmp_path: Path
) -> None:
    stage = new_repository
    apply(stage, completed(work_of_agent(stage, tmp_path / "tree")))
    receipt = post(stage, approve(), pull=2, adapter=stage.adapter(token=INSTALLATION_TOKEN))
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    assert [review["state"] for review in reviews(stage, 2)] == ["COMMENTED"]
    (finding,) = [found for found in receipt.findings if found.code == "verdict-as-comment"]
    assert SETTING in finding.hint


SIGNED = "{branches: [accord/**], rules: [required_signatures]}"
CREATION = "{branches: [~ALL], rules: [creation]}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "options", "hint", "said"),
    [
        pytest.param(SIGNED, {}, '"Require signed commits"', "GH013", marks=pytest.mark.matrix),
        (SIGNED, {"token": INSTALLATION_TOKEN, "author": "Robo <robo@example.org>"}, "without an author", "GH013"),
        pytest.param(
            CREATION, {}, "Exclude `accord/**` from it under Settings → Rules", "GH013", marks=pytest.mark.matrix
        ),
        (CREATION, {"token": INSTALLATION_TOKEN}, "Exclude `accord/**` from it", "Repository rule violations found"),
    ],
)
def test_a_branch_that_a_rule_forbids_is_refused_and_its_work_item_asks_a_person_once(
    tmp_path: Path, rules: str, options: dict[str, Any], hint: str, said: str
) -> None:
    with implement_stage(tmp_path / "stage", f"  rulesets: [{rules}]\n") as stage:
        result, item = completed(work_of_agent(stage, tmp_path / "tree")), f"/repos/{stage.repository}/issues/1"
        labels = {label["name"] for label in stage.get(item)["labels"]}
        refused = apply(stage, result, **options)
        assert refused.outcome is Outcome.REFUSED
        assert refused.error
        assert hint in refused.error.hint
        assert f"{stage.server.url}/{stage.repository}/settings/rules" in refused.error.hint
        assert said in refused.error.message
        assert stage.get(f"/repos/{stage.repository}/pulls") == []
        assert ledger(refused) == {"push-branch": "failed", "comment-work-item": "done", "label-work-item": "done"}
        assert {label["name"] for label in stage.get(item)["labels"]} == {*labels, "needs-human"}
        (comment,) = stage.get(f"{item}/comments")
        assert "The agent's patch needs a person." in comment["body"]
        assert said in comment["body"]
        before = stage.snapshot()
        again = apply(stage, result, **options)
        assert (again.outcome, stage.snapshot()) == (Outcome.REFUSED, before)


def test_a_ref_that_a_rule_forbids_is_not_taken_for_the_work_of_another_writer(tmp_path: Path) -> None:
    with implement_stage(tmp_path / "stage", "  rulesets: [{branches: [accord/**], rules: [creation]}]\n") as stage:
        github = stage.adapter(token=INSTALLATION_TOKEN)
        with pytest.raises(Refused, match="creations being restricted") as refused:
            github.create_ref("refs/heads/accord/sync", str(github.ref("refs/heads/main")))
        assert not isinstance(refused.value, Conflict)
