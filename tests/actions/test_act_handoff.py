"""The action that holds a pull request against the handoff of its work item."""

import json
from pathlib import Path

import pytest
import requests
from support.act import CONSUMER, ROOT, Bench, job_with, read_yaml
from support.handoffs import REVIEW, VERIFICATION, by, patch
from support.stage import seed_file

from accord.core.clock import SystemClock
from accord.github.client import GitHub
from accord.github.models import Access
from accord.handoffs.plan import decide_patch
from accord.handoffs.store import HandoffStore
from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.server import serving

pytestmark = pytest.mark.slow

SEED = f"""
repositories:
  - name: {CONSUMER}
    files: {{a.txt: "One\\n"}}
    branches: {{feature: {{a.txt: "Two\\n"}}}}
    issues: [{{title: Export}}, {{title: The change, head: feature, body: "Closes #1"}}, {{title: Another}}]
"""
STEPS = {"open": {"pull": "2"}, "blocked": {"pull": "2", "work-item": "3", "to": "done"}}


def test_the_action_sets_the_check_and_lists_the_blocking_reasons(bench: Bench, tmp_path: Path) -> None:
    with serving(tmp_path / "sandbox", seed=seed_file(tmp_path, SEED), repository=CONSUMER) as github:
        adapter = GitHub(Access(CONSUMER, github.token, github.url), SystemClock(), lambda *_: None)
        both = patch(reviewArtifact=REVIEW, verificationArtifact=VERIFICATION)
        HandoffStore(adapter, 1).decide(lambda task: decide_patch(task, both, by("human")))
        workflow = job_with("accord-ci/accord/actions/handoff@v0", STEPS, failing=["blocked"])
        ended = bench.run(workflow, tmp_path / "run", api_url=github.url, token=INSTALLATION_TOKEN)

        assert ended.exit_code == 0, ended.trouble
        offered = set(read_yaml(ROOT / "actions/handoff/action.yml")["outputs"])
        first, second = ended.outputs("open"), ended.outputs("blocked")
        assert set(first) == set(second) == offered
        assert (first["ok"], first["status"], first["blocking-reasons"]) == ("true", "backlog", "[]")
        assert second["ok"] == "false"
        assert [reason["code"] for reason in json.loads(second["blocking-reasons"])] == ["HANDOFF_MISSING"]
        assert "### accord handoff: ✅ open" in ended.summary
        assert "### accord handoff: ❌ blocked" in ended.summary

        sha = adapter.pull(2).head_sha  # type: ignore[union-attr]
        url = f"{github.url}/repos/{CONSUMER}/commits/{sha}/check-runs"
        runs = requests.get(url, headers={"authorization": f"Bearer {github.token}"}, timeout=600).json()["check_runs"]
        assert [run["conclusion"] for run in runs] == ["failure"]
