"""From a specification to a merged pull request, on a repository with GitHub's default settings.

The repository is what ``accord init`` leaves, with nothing changed but the line that switches on specifications. Events
start its workflows; each job has a token with just its permissions. The agent is codex by name and scripted in fact.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.act import CONSUMER, Bench, Run, job_tokens, make_consumer, workflow_files
from support.flow import Flow, programs
from support.stage import seed_file

from accord.cli.main import accord
from accord.core.clock import SystemClock
from accord.github.client import GitHub
from accord.github.models import Access
from accord.records.chain import read_records
from accord.starts.models import WORKFLOWS
from accord_sandbox.server import serving

pytestmark = pytest.mark.matrix

COMMIT = "a" * 40
CI = "name: CI\non: pull_request\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps: [{run: 'true'}]\n"
FILES = {"src/greeting.py": 'def greet() -> str:\n    return "Hello!"\n', ".github/workflows/ci.yml": CI}
SPEC = "---\nstatus: approved\n---\n\n# Greeting\n\n## Names\n\nA name is greeted, an empty one as everybody.\n"


SPEC_PATH, CONFIG = "docs/specs/greeting.md", ".github/accord/config.yml"
WRITES = {
    "contents": "write", "issues": "write", "pull_requests": "write", "actions": "write", "checks": "read",
    "statuses": "read",
}  # fmt: skip
APPS = {"writer": "accord-writer[bot]", "reviewer": "accord-reviewer[bot]"}


@contextmanager
def installed(bench: Bench, home: Path, **more: Any) -> Iterator[Flow]:
    """Serve a repository with GitHub's default settings, install the kit, and switch on specifications."""
    origin = make_consumer(home / "origin", FILES)
    apps = [
        {"token": f"token-of-{name}", "login": login, "kind": "installation", "permissions": WRITES}
        for name, login in APPS.items()
    ]
    tokens = [*job_tokens([*(path.read_text() for path in workflow_files()), "jobs: {none: {}}"]), *apps]
    repository = {"name": CONSUMER, "git": str(origin), "settings": "default"}
    seed = seed_file(home, {"tokens": tokens, "repositories": [repository]})
    with serving(home / "sandbox", seed=seed) as github:
        flow = Flow(bench, github, home, programs(home / "programs"), **more)
        checkout = home / "checkout"
        flow.git("clone", "--quiet", flow.url, str(checkout))
        done = CliRunner().invoke(accord, ["init", "--root", str(checkout), "--ref", COMMIT, "--yes"])
        assert done.exit_code == 0, done.output
        config = checkout / CONFIG
        config.write_text(config.read_text().replace("specs: false", "specs: true") + "approvals: approve\n")
        flow.git("add", "--all", cwd=checkout)
        flow.git("commit", "--quiet", "--message", "Install accord", cwd=checkout)
        flow.git("push", "--quiet", "origin", "HEAD:main", cwd=checkout)
        yield flow


def planned(flow: Flow) -> None:
    """Push an approved specification: it becomes a work item, which a person declares ready."""
    before, after = flow.push({SPEC_PATH: SPEC}, "Approve the greeting")
    change = {"added": [SPEC_PATH], "modified": [], "removed": []}
    runs = flow.deliver("push", {"ref": "refs/heads/main", "before": before, "after": after, "commits": [change]})
    assert ("accord-plan.yml", 0) in [(name, run.exit_code) for name, run in runs]
    (issue,) = flow.world()["issues"]
    assert (issue["title"], issue["author"]) == ("Greet people by name", flow.writer)
    ready = [label.replace("pending", "ready") for label in issue["labels"]]
    flow.api("PUT", "issues/1/labels", labels=ready)


def reason(flow: Flow, runs: list[tuple[str, Run]]) -> str:
    """Return why keepalive did what it did, in the last of its runs."""
    summaries = [run.summary for name, run in runs if name == "accord-keepalive.yml"]
    return re.findall(r"### accord keepalive on #2: \w+ \(`([\w-]+)`\)", "".join(summaries))[-1]


def test_a_specification_becomes_a_merged_pull_request_on_a_repository_with_default_settings(
    bench: Bench, tmp_path: Path
) -> None:
    with installed(bench, tmp_path, secrets={"OPENAI_API_KEY": "sk-test"}) as flow:
        planned(flow)
        refused = flow.label(1, "agent:codex")
        (implement,) = [run for name, run in refused if name == "accord-implement.yml"]
        assert implement.exit_code != 0
        assert "Allow GitHub Actions to create and approve pull requests" in implement.summary
        assert flow.world()["pulls"] == []

        flow.api("PUT", "actions/permissions/workflow", can_approve_pull_request_reviews=True)
        flow.comment(1, "/accord retry")
        (pull,) = flow.world()["pulls"]
        assert pull["body"].count("- [ ] ") == 2
        assert "the implementation is done" in flow.status(1)
        assert "Opened #2." in flow.status(1)

        assert reason(flow, flow.label(2, "agents:keepalive", is_pull=True)) == "checks-held"
        assert flow.finish_checks() == []
        flow.control(f"approvals/{CONSUMER}/2")
        assert "CI" in flow.finish_checks()

        flow.comment(2, "/accord review")
        assert "status:needs-refinement" in flow.world()["issues"][0]["labels"]
        (review,) = flow.world()["reviews"]
        (comment,) = review["comments"]
        assert {pull["author"], review["author"]} == {"github-actions[bot]"}
        assert (review["state"], review["commit_id"]) == ("COMMENTED", pull["head"]["sha"])
        assert (comment["path"], comment["line"], comment["subject_type"]) == ("src/greeting.py", 2, "line")
        flow.deliver("schedule", {})
        assert "everybody" in flow.git(
            "--git-dir", str(tmp_path / "sandbox/git/octo/consumer.git"), "show", "accord/1:src/greeting.py"
        )
        (issue,), (pull,) = flow.world()["issues"], flow.world()["pulls"]
        assert pull["body"].count("- [x] ") == issue["body"].count("- [x] ") == 2

        assert flow.finish_checks() == []
        flow.control(f"approvals/{CONSUMER}/2")
        assert flow.finish_checks() == ["CI"]
        flow.comment(2, "/accord review")
        assert reason(flow, flow.deliver("schedule", {})) == "complete"
        assert any("@maintainer" in entry["body"] for entry in flow.api("GET", "issues/2/comments"))

        flow.api("PUT", "pulls/2/merge")
        runs = flow.on_issue("pull_request", 2, action="closed")
        assert [name for name, _ in runs if name == "accord-verifier.yml"]
        (issue,) = flow.world()["issues"]
        assert (issue["state"], [label for label in issue["labels"] if label.startswith("status:")]) == ("closed", [])
        records_tell_what_happened(flow)


def records_tell_what_happened(flow: Flow) -> None:
    """Hold the records and the report against the runs of the flow, its loops' comments and its pull request."""
    github = GitHub(Access(CONSUMER, flow.github.token, flow.github.url), SystemClock(), lambda *_: None)
    records = read_records(github, datetime.now(UTC) - timedelta(days=1))
    started = [(name, run.exit_code) for name, run in flow.runs]
    for work in ("plan", "implement", "review"):
        wanted = ["success" if code == 0 else "failure" for name, code in started if name == f"accord-{work}.yml"]
        found = [record for record in records if record.kind == work]
        assert [record.result.disposition.replace("no-change", "success") for record in found] == wanted, work
    causes = [record.trigger.cause for record in records if record.kind in ("plan", "implement")]
    assert causes == ["specification", "label", "comment"]
    texts = [entry["body"] for number in (1, 2) for entry in flow.api("GET", f"issues/{number}/comments")]
    iterations = sum(len(re.findall(r"^\| \d+ \| [✅❌]", text, re.MULTILINE)) for text in texts)
    loops = [record for record in records if record.kind in ("keepalive", "verify")]
    assert len(loops) == iterations > 0
    applied = [record.links.pull for record in records if record.kind == "apply" and record.links.issue]
    assert applied == [2]
    assert all(record.agent == "codex" for record in records if record.is_agent_run)
    assert all(record.inputs for record in records if record.is_agent_run and record.result.disposition == "success")

    options = ["--since", "1d", "--format", "json"]
    done = CliRunner().invoke(accord, ["report", "--repo", CONSUMER, *options], env={
        "GITHUB_API_URL": flow.github.url, "GITHUB_TOKEN": flow.github.token,
    })  # fmt: skip
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    work_runs = [code for name, code in started if name in {f"accord-{work}.yml" for work in WORKFLOWS}]
    assert report["runs"] == len(work_runs) + iterations
    assert report["failed"] == sum(code != 0 for code in work_runs)
    assert (report["results"]["merged"], report["results"]["pending"]) == (1, 0)
    assert report["repeated_runs"] == 1
    assert not any("without a record" in note for note in report["not_known"])
