"""Every recorded run of a real CLI is classified correctly: whether it failed, why, and how to recover."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.runs import CHOICES, EXPECTED, LOGS, Run, as_lines, words_of

from accord.files.yaml import read_yaml
from accord.runner.classify import classify, contract_exit_code
from accord.runner.transcripts.account import Todo
from accord.runner.transcripts.read import read_evidence, recognise

CHOSEN: dict[str, Any] = {run: row["error"] for row in read_yaml(CHOICES.read_bytes()).value for run in row["runs"]}


def expected(name: str) -> dict[str, str] | None:
    agreed = EXPECTED[name]["error"]
    return CHOSEN[name] if agreed == "open" else agreed


TEXTS = {
    "codex": ("message", "text", "aggregated_output"),
    "claude": ("result", "text", "content", "stdout", "errors"),
    "gemini": ("message", "content", "output"),
}
BY_WORDS_ALONE = {
    # codex has no field for the cause of a failed turn
    *(name for name, row in EXPECTED.items() if name.startswith("codex/") and row["exit-code"] == 1),
    *("codex/no_login_default_provider", "codex/refused_default"),
    # Gemini CLI: exit code 1, and only words
    *("gemini/model_404", "gemini/malformed_html_200", "gemini/refused"),
    # the reason is in the provider's answer inside the message
    *("gemini/auth_400_key_invalid", "gemini/auth_400_json_mode"),
    # the retried error is on stderr, in words
    "gemini/refused_default_attempts",
}
BY_WEAK_FIELDS = {"claude/malformed_html_200", "gemini/empty_answer", "gemini/malformed_function_call"}
NEUTRAL = "Worded in another way."
MISLEADING = "No space left on device, out of memory, 401 Unauthorized: rate limit, try again in 5s"


def reworded(value: Any, keys: tuple[str, ...], text: str, key: str = "") -> Any:
    """Replace texts for people, and keep the fields for programs."""
    if isinstance(value, dict):
        return {name: reworded(child, keys, text, name) for name, child in value.items()}
    if isinstance(value, list):
        return [reworded(child, keys, text, key) for child in value]
    return text if isinstance(value, str) and key in keys else value


def words_after_rewording(run: Run, text: str, stdout: Path) -> dict[str, str] | None:
    lines = run.stdout.read_bytes().splitlines()
    documents = [json.loads(line) for line in ([b"\n".join(lines)] if lines[0] == b"{" else lines)]
    stdout.write_bytes(as_lines(*(reworded(document, TEXTS[run.agent], text) for document in documents)))
    return words_of(classify(read_evidence(run.agent, run.agent, run.exit_code, stdout)))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_run_is_classified_as_expected(name: str, tmp_path: Path) -> None:
    """By its fields: other words change nothing, unless the run has only words or weak fields."""
    run, words = Run(name), expected(name)
    evidence = run.evidence()
    found = classify(evidence)
    seen = {
        "exit code": run.exit_code, "contract exit code": contract_exit_code(evidence), "words": words_of(found),
        "codec": recognise(run.stdout, run.stderr) if evidence.account.has_begun else "",
    }  # fmt: skip
    wanted = {
        "exit code": EXPECTED[name]["exit-code"],
        "contract exit code": run.exit_code or (1 if words else 0),
        "words": words,
        "codec": run.agent if evidence.account.is_structured and evidence.account.has_begun else seen["codec"],
    }
    if run.stdout.read_bytes().startswith(b"{") and name not in BY_WORDS_ALONE:
        seen["other words"] = words_after_rewording(run, NEUTRAL, tmp_path / "stdout")
        wanted["other words"] = words
        if name not in BY_WEAK_FIELDS:
            seen["misleading words"] = words_after_rewording(run, MISLEADING, tmp_path / "stdout")
            wanted["misleading words"] = words
    assert seen == wanted, found
    if found:
        lines = (found.summary, found.evidence.line, found.evidence.rule)
        assert all(line and "\n" not in line for line in lines)
        assert 20 < len(found.summary) <= 500
        assert len(found.evidence.line) <= 300


def test_every_run_with_an_open_verdict_has_a_reasoned_choice() -> None:
    undecided = {name for name, row in EXPECTED.items() if row["error"] == "open"}
    assert undecided <= CHOSEN.keys() <= EXPECTED.keys()
    recorded = {f"{path.parent.parent.name}/{path.parent.name}" for path in LOGS.glob("*/*/exit_code")}
    assert recorded == EXPECTED.keys()


@pytest.mark.parametrize("agent", ["codex", "claude", "gemini"])
def test_the_same_work_gives_the_same_account_for_every_agent(agent: str) -> None:
    account = Run(f"{agent}/success_change").account()
    assert account.ending == "success"
    assert account.final_message.startswith("Created tests/test_demo.py with one test.\n\nProgress:\n- [x] Add tests")
    assert account.todos == (Todo("Add tests", is_done=True), Todo("Update documentation", is_done=False))
    assert account.files[0].path.endswith("tests/test_demo.py")
    assert account.files[0].kind == "add"
    (command,) = account.commands
    assert "git status --short" in command.command
    assert command.exit_code == 0
    assert (account.warnings, account.errors) == ((), ())


@pytest.mark.parametrize(
    ("name", "tokens", "model"),
    [
        ("codex/success_change", (6000, 400), ""),
        ("claude/success_change", (11200, 640), "claude-opus-4-8[1m]"),
        ("claude/success_json_mode", (11200, 640), "claude-opus-4-8[1m]"),
        ("gemini/success_change", (8400, 560), "gemini-2.5-flash"),
        ("gemini/success_json_mode", (8400, 560), "gemini-mock"),
    ],
)
def test_tokens_and_model_are_counted(name: str, tokens: tuple[int, int], model: str) -> None:
    account = Run(name).account()
    assert ((account.usage.tokens_input, account.usage.tokens_output), account.model) == (tokens, model)
    assert (account.usage.cost_usd is not None) == name.startswith("claude")


@pytest.mark.parametrize("name", ["claude/success_json_mode", "gemini/success_json_mode"])
def test_the_one_document_of_json_mode_has_the_message(name: str) -> None:
    account = Run(name).account()
    assert account.final_message == Run(name.replace("json_mode", "change")).account().final_message
    assert account.is_structured


@pytest.mark.parametrize("agent", ["codex", "claude", "gemini"])
def test_text_mode_is_the_message_to_the_byte(agent: str) -> None:
    run = Run(f"{agent}/hostile_final_message_text_mode")
    account = run.account()
    assert not account.is_structured
    assert account.final_message.encode() == run.stdout.read_bytes()


@pytest.mark.parametrize(
    "name", ["claude/schema_ok", "claude/schema_ok_json_mode", "claude/schema_retry_ok", "codex/schema_ok"]
)
def test_a_structured_result_is_returned_as_an_object(name: str) -> None:
    assert Run(name).account().structured == {"summary": "Added tests", "completed_tasks": ["Add tests"]}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("claude/schema_ignored", "structured result"),
        ("claude/write_denied_default_mode", "not allowed to use: Write"),
        ("gemini/tool_not_approved", "run_shell_command, write_file"),
        ("codex/disk_full_repo", "file changes failed"),
        ("codex/empty_answer", "without a message"), ("claude/empty_answer", "without a message"),
        ("gemini/loop_detected", "Loop detected"),
    ],
)  # fmt: skip
def test_a_problem_in_a_successful_run_is_a_warning(name: str, says: str) -> None:
    assert any(says in warning for warning in Run(name).account().warnings), Run(name).account().warnings


def test_the_text_of_a_failed_request_is_not_the_agents_message() -> None:
    assert Run("claude/server_500_after_change").account().final_message == ""


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("gemini/rate_limit_429", 1.0), ("gemini/rate_limit_429_json_mode", 1.0), ("claude/rate_limit_429", 1.2)],
)
def test_the_delay_that_a_provider_asks_for_is_reported(name: str, seconds: float) -> None:
    found = classify(Run(name).evidence())
    assert found
    assert found.retry_after_seconds == seconds
