"""A job grants what the workflow that it calls needs: GitHub does not start the caller otherwise."""

import json
from pathlib import Path

import pytest
from support.runner_workflows import SHA, workflow

from accord.core.findings import Finding
from accord.workflows.facts import RepositoryFacts
from accord.workflows.requirements import check_grants, needed_permissions
from accord.workflows.trust import starts_of

ROOT = Path(__file__).parents[2]
PLACE = ".github/workflows/"
LOCAL = "./.github/workflows/b.yml"
OWN = f"accord-ci/accord/.github/workflows/reusable-label-sync.yml@{SHA}"
CALLED = """\
name: Called
on:
  workflow_call:
permissions: {}
jobs:
  read:
    permissions: {contents: read, issues: write}
    steps: [{run: ls}]
  push:
    permissions: {contents: write}
    if: ${{ false }}
    steps: [{run: git push}]
"""
NEEDED = "permissions:\n  contents: write\n  issues: write"


def caller(job: str, *, top: str = "{}", uses: str = LOCAL, on: str = "push") -> str:
    """A workflow that calls another, with the permissions of its job and its own; empty text for none."""
    lines = ["name: Caller", f"on: {{{on}: }}", f"permissions: {top}" if top else "", "jobs:", "  call:"]
    return "\n".join([*lines, f"    uses: {uses}", f"    permissions: {job}" if job else ""])


def found(*texts: str) -> list[tuple[str, Finding]]:
    files = {f"{PLACE}{name}.yml": workflow(text) for name, text in zip("abc", texts, strict=False)}
    return list(check_grants(RepositoryFacts(files)))


@pytest.mark.parametrize(
    ("job", "top", "missing"),
    [
        ("{contents: write, issues: write}", "{}", ""), ("write-all", "{}", ""), ("", "write-all", ""),
        ("", "{contents: write, issues: write}", ""),
        ("{contents: read, issues: write}", "{}", "`contents: write`,"),
        ("{contents: write}", "{issues: write}", "`issues: write`,"),
        ("read-all", "{}", "`contents: write`, `issues: write`,"), ("", "{}", "`contents: write`, `issues: write`,"),
    ],
)  # fmt: skip
def test_a_job_grants_what_the_called_jobs_ask_for(job: str, top: str, missing: str) -> None:
    messages = [finding.message for _, finding in found(caller(job, top=top), CALLED)]
    start = f"`{LOCAL}` needs {missing} which the job `call` does not grant, so GitHub does not start this workflow."
    assert messages == ([start] if missing else [])


def test_the_finding_has_its_place_and_the_lines_to_paste() -> None:
    ((path, finding),) = found(caller("{contents: read, actions: read}"), CALLED)
    assert (path, finding.code, finding.path) == (f"{PLACE}a.yml", "permission-missing", "/jobs/call/permissions")
    assert finding.hint == "permissions:\n  actions: read\n  contents: write\n  issues: write"
    ((_, finding),) = found(caller(""), CALLED)
    assert (finding.path, finding.hint, finding.severity) == ("/jobs/call", NEEDED, "error")
    assert found(caller(finding.hint.partition("\n")[2].replace("\n", ",").join("{}")), CALLED) == []


def test_a_job_without_permissions_depends_on_the_default_of_the_repository() -> None:
    ((_, finding),) = found(caller("", top=""), CALLED)
    assert (finding.severity, finding.hint) == ("warning", NEEDED)
    twice = caller("", top="") + caller("", top="").partition("jobs:\n")[2].replace("call:", "again:")
    ((_, finding),) = found(twice, CALLED)
    assert "More jobs in this file: 1." in finding.message, "one warning for a workflow"
    reading = CALLED.replace("write", "read").replace("issues: read", "packages: read")
    assert found(caller("", top=""), reading) == []


MIDDLE = caller("", top="", uses="./.github/workflows/c.yml", on="workflow_call")


def test_calls_are_followed_to_the_end() -> None:
    """GitHub compares along the whole chain, and the workflow in between passes on what it is given."""
    ((path, finding),) = found(caller("{contents: read}"), MIDDLE, CALLED)
    assert (path, finding.hint) == (f"{PLACE}a.yml", NEEDED)
    assert found(caller("write-all"), MIDDLE, CALLED) == []
    identity = CALLED.replace("issues: write", "id-token: write")
    assert (len(found(caller("read-all"), identity)), found(caller("write-all"), identity)) == (1, [])
    limited = caller("{contents: read}", uses="./.github/workflows/c.yml", on="workflow_call")
    assert [path for path, _ in found(caller("{contents: read}"), limited, CALLED)] == [f"{PLACE}b.yml"]


def test_permissions_at_the_top_of_the_called_workflow_count() -> None:
    text = "name: B\non: {workflow_call: }\npermissions: {checks: write}\njobs: {a: {steps: [{run: ls}]}}\n"
    ((_, finding),) = found(caller(""), text)
    assert finding.hint == "permissions:\n  checks: write"


def test_circles_and_unknown_workflows_are_left_alone() -> None:
    circle = caller("", top="", uses="./.github/workflows/b.yml", on="workflow_call")
    assert found(caller(""), circle) == []
    assert found(caller("")) == []
    assert found(caller("", uses=f"octo/flows/.github/workflows/run.yml@{SHA}")) == []
    assert found(caller("", uses=OWN.replace("label-sync", "gone"))) == []


def test_accords_own_workflows_are_known() -> None:
    assert found(caller("{contents: read, issues: write}", uses=OWN)) == []
    ((_, finding),) = found(caller("{contents: read}", uses=OWN))
    assert finding.hint == "permissions:\n  contents: read\n  issues: write"


def test_the_generated_file_knows_every_reusable_workflow() -> None:
    needed = json.loads((ROOT / "src/accord/workflows/needed-permissions.json").read_bytes())
    assert list(needed) == sorted(path.name for path in (ROOT / PLACE).glob("reusable-*.yml"))
    assert needed["reusable-codex-run.yml"] == needed["reusable-agent-run.yml"]


def test_a_chain_of_calls_that_github_refuses_is_not_followed_to_its_end() -> None:
    paths = [f"{PLACE}{i}.yml" for i in range(1000)]
    calls = [caller("", top="", uses=f"./{path}", on="workflow_call") for path in paths[1:]]
    files = dict(zip(paths, map(workflow, [*calls, CALLED]), strict=True))
    assert needed_permissions(paths[0], files) == {}
    assert needed_permissions(paths[-10], files) == {"contents": "write", "issues": "write"}
    assert [start.event for start in starts_of(paths[-1], files)] == ["workflow_call"]
