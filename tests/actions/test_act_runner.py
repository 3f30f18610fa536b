"""One workflow run in which a consumer calls the runner for everything that can happen to an agent."""
from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from support.act import Bench
from support.agent_calls import READER, Call, Calls, make_calls
from support.model_server import chat, serving_models

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLS = {
    "no-changes": Call("looks"),
    "with-changes": Call("works"),
    "auth-error": Call("unauthorized"),
    "crash": Call("crashes"),
    "protected": Call("works"),
    "may-not-push": Call("works", secrets={"token": READER}),
    "skipped": Call("works", {"skip": True}),
    "too-long": Call("hangs", {"max_runtime_minutes": 0.02}),
    "killed": Call("kills_its_runner"),
    "no-branch": Call(inputs={"pr_ref": "refs/heads/gone"}),
    "no-credential": Call(inputs={"agent": "gemini"}),
}
PROTECTED = {"work/protected": {"enforce_admins": True, "required_pull_request_reviews": {}}}
pytestmark = pytest.mark.xdist_group("act-runner")

@pytest.fixture(scope="module")
def calls(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calls]:
    folder = tmp_path_factory.mktemp("runner")
    with serving_models() as models:
        models.on = {
            "No changes needed": chat({"completed_tasks": [], "confidence": 0.9}, model="gpt-4o"),
            "Committed changes": chat({"completed_tasks": [1, 2], "confidence": 0.95}, model="gpt-4o"),
        }
        t=time.time()
        for c in make_calls(bench, folder, CALLS, protected=PROTECTED, environment={"ACCORD_GITHUB_MODELS_URL": f"{models.url}/v1"}):
            print(time.time()-t)
            yield c

def test_it(calls: Calls) -> None:
    print(calls.run.exit_code, calls.results)
    (open('/tmp/wt/out.txt','w')).write(calls.run.trouble)
    for n, o in calls.outputs.items(): print(n, json.dumps(o, indent=1))
