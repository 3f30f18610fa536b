"""``accord classify``: a recorded log in, the contract's words out, for people, programs and later steps."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from support.act import ROOT, read_yaml
from support.commands import Accord
from support.runs import Run

from accord.cli.analyze import NO_ERROR


def test_a_failure_is_printed_with_all_keys(accord: Accord) -> None:
    run = Run("gemini/rate_limit_429")
    found = accord.document("classify", "--exit-code", run.exit_code, "--stderr", run.stderr, run.stdout)
    assert (found["category"], found["type"], found["recovery"]) == ("transient", "infrastructure", "retry")
    assert found["retry_after_seconds"] == 1
    assert found["evidence"].keys() == {"rule", "source", "line"}
    assert (found["evidence"]["rule"], found["cause"]) == ("http-429", "rate-limit")
    assert found["summary"]
    nothing = accord.document("classify", "--agent", "codex", "--exit-code", 0, Run("codex/success_change").stdout)
    assert (nothing, nothing.keys()) == (NO_ERROR, found.keys())


def test_the_text_says_what_happened_and_what_decided(accord: Accord) -> None:
    ended = accord("classify", "--agent", "claude", "--exit-code", 1, Run("claude/rate_limit_429").stdout)
    assert ended.out.startswith(
        "transient (infrastructure): retry after 1.2 s\n  The provider's rate limit was reached:"
    )
    assert "http-429, by event: " in ended.out
    assert ended.out.endswith("Next: `accord explain rate-limit` says more of the cause.\n")
    assert accord("explain", "rate-limit").code == 0


def test_the_output_of_an_unknown_agent_is_read_with_a_warning(accord: Accord) -> None:
    file = accord.file("log", "API Error: 401 Unauthorized\n")
    classify = partial(accord, "classify", "--exit-code", 1, "--format", "json", file, "--agent")
    warning = "warning: Unknown agent `codx`. Its output was read as plain text. Did you mean `codex`?\n"
    for agent, said in (("codx", warning), ("plain", "")):
        ended = classify(agent)
        assert (ended.document["category"], ended.err) == ("auth", said)
    accord.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert classify("codx").err.startswith("::warning title=accord::Unknown agent")


def test_stdin_is_read_and_recognised(accord: Accord) -> None:
    accord.given(Run("codex/auth_401").stdout.read_text())
    assert accord.document("classify", "-")["category"] == "auth"


@contextmanager
def piped(run: Run) -> Iterator[str]:
    """Yield the path of a pipe with a run's output, as ``<(cat FILE)`` gives it."""
    reading, writing = os.pipe()
    os.write(writing, run.stdout.read_bytes())
    os.close(writing)
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


def test_pipes_are_read(accord: Accord) -> None:
    run = Run("codex/auth_401")
    with piped(run) as log:
        assert accord.document("classify", log)["category"] == "auth"
    with piped(run) as log:
        assert accord.document("classify", "--stderr", log, accord.file("log", ""))["category"] == "auth"
    with piped(run) as log:
        found = accord.document("outputs", "--agent", "codex", "--exit-code", 1, "--stdout", log)
    assert found["error-category"] == "auth"


def test_a_secret_in_the_evidence_is_not_printed(accord: Accord) -> None:
    token = "ghp_" + "a1" * 18
    file = accord.file("log", f"Error: 401 Unauthorized for {token}\n::error::x\n")
    for form in ("text", "json"):
        ended = accord("classify", "--exit-code", 1, "--format", form, file)
        assert token not in ended.out
        assert "[redacted: github-token]" in ended.out


@pytest.mark.parametrize(
    ("log", "code", "category"),
    [("ERROR: unexpected status 401 Unauthorized: invalid key", 1, "auth"), ("all is well", 0, "")],
)
def test_a_step_gets_every_output_of_the_action(accord: Accord, log: str, code: int, category: str) -> None:
    step = accord.in_step(annotates=False)
    stderr = accord.file("stderr.log", log + "\n")
    assert accord("classify", "--exit-code", code, "--stderr", stderr, accord.file("stdout.log", "\n")).code == 0
    assert set(step.outputs) == set(read_yaml(ROOT / "actions/classify-error/action.yml")["outputs"])
    assert step.outputs["error-category"] == category
    assert (category or "no error") in step.summary


def test_the_summary_of_an_error_cannot_be_run_by_the_example_of_the_contract(accord: Accord) -> None:
    step, run = accord.in_step(annotates=False), accord.home / "run"
    odd = f'HTTP 429 Too Many Requests: "$(touch {run})" `touch {run}`; retry after 2592000 seconds\n'
    accord("classify", "--exit-code", 1, "--stderr", accord.file("stderr.log", odd), accord.file("stdout.log", "\n"))
    subprocess.run(["bash", "-c", f'echo "{step.outputs["error-summary"]}"'], check=True)
    assert "touch" in step.outputs["error-summary"]
    assert not run.exists()
    assert step.outputs["retry-after-seconds"] == "2592000"
