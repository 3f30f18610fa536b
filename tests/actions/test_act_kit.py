"""The consumer kit: a workflow updates it in other repositories, in shards of one matrix.

The installed workflows are those that test_act_loop.py, test_act_loops.py and test_act_labels.py run.
"""

import base64
from pathlib import Path
from typing import Any

import pytest
import requests
from support.act import CONSUMER, PUBLISHED, Bench, job_token, job_tokens, workflow_files
from support.consumers import OLD, PLAN, installed, older_kit
from support.stage import seed_file

from accord_sandbox.server import serving

pytestmark = pytest.mark.slow

COMMIT = "c" * 40
BEHIND, KITLESS = "octo/behind", "octo/kitless"
SYNC = f"""
on: workflow_dispatch
jobs:
  sync:
    uses: {PUBLISHED.replace("@", "/.github/workflows/reusable-repositories.yml@")}
    with:
      command: sync
      repositories: {BEHIND}
      search: kitless
      size: 1
      ref: "{COMMIT}"
    secrets:
      token: ${{{{ secrets.SYNC_TOKEN }}}}
"""


@pytest.mark.matrix
def test_the_shards_of_a_matrix_update_consumers_and_one_summary_names_them_all(bench: Bench, tmp_path: Path) -> None:
    writes = {"contents": "write", "pull_requests": "write", "workflows": "write"}
    app = {"token": "app", "login": "syncer[bot]", "kind": "installation", "permissions": writes}
    tokens = job_tokens([*(path.read_text() for path in workflow_files()), "jobs: {none: {}}"])
    repositories = [
        {"name": CONSUMER},
        {"name": BEHIND, "files": installed(tmp_path / "behind", older_kit(), OLD)},
        {"name": KITLESS, "files": {"README.md": "# Nothing\n"}},
    ]
    seed = seed_file(tmp_path, {"tokens": [*tokens, app], "repositories": repositories})
    with serving(tmp_path / "sandbox", seed=seed) as github:

        def api(path: str, **params: str) -> Any:
            headers = {"authorization": f"Bearer {github.token}"}
            return requests.get(f"{github.url}/repos/{path}", params=params, headers=headers, timeout=600).json()

        access = {"api_url": github.url, "token": job_token({}), "secrets": {"SYNC_TOKEN": "app"}}
        run = bench.with_own_tokens.run(SYNC, tmp_path, **access)
        (pull,) = api(f"{BEHIND}/pulls")
        updated = api(f"{BEHIND}/contents/{PLAN}", ref="accord/sync")["content"]
        assert api(f"{KITLESS}/pulls") == []
    assert run.exit_code != 0  # for the one without a kit
    assert (pull["head"]["ref"], pull["user"]["login"]) == ("accord/sync", "syncer[bot]")
    assert f"@{COMMIT} # v" in base64.b64decode(updated).decode()
    summary = run.summary.rpartition("### accord repositories")[2]
    assert "1 refused, 1 applied" in summary
    assert "does not have the kit" in summary
    assert f"[open]({pull['html_url']})" in summary
