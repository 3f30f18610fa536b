"""The action that tells which tasks are done, run as a step beside a provider on this machine."""

import json
from pathlib import Path

import pytest
from support.act import Bench, job_with
from support.model_server import chat, messages, serving_models
from support.runner_workflows import edited

pytestmark = pytest.mark.slow

TEXTS = {"pr-body": "body.md", "message": "message.md"}
STEPS = {
    "first": {**TEXTS, "openai-api-key": "key-of-the-input"},
    "second": {**TEXTS, "providers": "anthropic,regex-fallback"},
}
OF_JOB = {"ANTHROPIC_BASE_URL": "SERVER", "ANTHROPIC_API_KEY": "key-of-the-job"}
OF_FIRST = {"OPENAI_BASE_URL": "SERVER/v1", "ACCORD_OPENAI_MODEL": "some-model"}
WORKFLOW = edited(
    job_with("accord-ci/accord/actions/analyze-tasks@v0", STEPS),
    ("    steps:\n", f"    env: {json.dumps(OF_JOB)}\n    steps:\n"),
    ("      - id: first\n", f"      - id: first\n        env: {json.dumps(OF_FIRST)}\n"),
)


def test_keys_come_from_inputs_or_the_environment_and_outputs_reach_the_job(bench: Bench, tmp_path: Path) -> None:
    files = {"body.md": "- [ ] Add $(tests)\n- [ ] Fix `docs`\n", "message.md": "Both are there."}
    with serving_models() as server:
        server.play(
            chat({"completed_tasks": [1], "confidence": 0.8}), messages({"completed_tasks": [1, 2], "confidence": 1})
        )
        ended = bench.run(WORKFLOW.replace("SERVER", server.url), tmp_path, files=files)
    assert ended.exit_code == 0, ended.trouble
    first, second = ended.outputs("first"), ended.outputs("second")
    assert (first["llm-provider"], first["llm-confidence"]) == ("openai", "0.8")
    assert json.loads(first["llm-completed-tasks"]) == ["Add $(tests)"]
    assert (second["llm-provider"], second["llm-has-completions"]) == ("anthropic", "true")
    assert [attempt["outcome"] for attempt in json.loads(first["llm-attempts"])] == ["skipped", "answered"]
    asked, asked_again = server.seen
    assert (asked.headers["authorization"], asked.body["model"]) == ("Bearer key-of-the-input", "some-model")
    assert asked_again.headers["x-api-key"] == "key-of-the-job"
