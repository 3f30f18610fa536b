"""``accord classify``: a recorded log in, the contract's words out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.runs import Run

if TYPE_CHECKING:
    from conftest import Accord


def test_a_failure_is_printed_with_all_keys(accord: Accord) -> None:
    run = Run("gemini/rate_limit_429")
    ended = accord("classify", "--format", "json", "--exit-code", run.exit_code, "--stderr", run.stderr, run.stdout)
    assert ended.code == 0
    document = ended.document
    assert (document["category"], document["type"], document["recovery"]) == ("transient", "infrastructure", "retry")
    assert document["retry_after_seconds"] == 1
    assert document["evidence"].keys() == {"rule", "source", "line"}
    assert document["evidence"]["rule"] == "http-429"
    assert document["summary"]


def test_no_error_has_the_same_keys_empty(accord: Accord) -> None:
    ended = accord(
        "classify", "--format", "json", "--agent", "codex", "--exit-code", 0, Run("codex/success_change").stdout
    )
    assert ended.code == 0
    assert ended.document == {
        "category": "",
        "type": "",
        "recovery": "",
        "summary": "",
        "retry_after_seconds": None,
        "evidence": {"rule": "", "source": "", "line": ""},
    }


def test_the_text_says_what_happened_and_what_decided(accord: Accord) -> None:
    ended = accord("classify", "--agent", "claude", "--exit-code", 1, Run("claude/rate_limit_429").stdout)
    assert ended.out.startswith(
        "transient (infrastructure): retry after 1.2 s\n  The provider's rate limit was reached:"
    )
    assert "http-429, by event: " in ended.out


def test_the_output_of_an_unknown_agent_is_read_with_a_warning(accord: Accord) -> None:
    file = accord.file("log", "API Error: 401 Unauthorized\n")
    for agent, warning in (
        ("codx", "warning: Unknown agent `codx`. Its output was read as plain text. Did you mean `codex`?\n"),
        ("plain", ""),
    ):
        ended = accord("classify", "--agent", agent, "--exit-code", 1, "--format", "json", file)
        assert (ended.document["category"], ended.err) == ("auth", warning)
    accord.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert accord("classify", "--agent", "codx", file).err.startswith("::warning title=accord::Unknown agent")


def test_stdin_is_read_and_recognised(accord: Accord) -> None:
    given = Run("codex/auth_401").stdout.read_text()
    assert accord.process("classify", "--format", "json", "-", given=given).document["category"] == "auth"


def test_a_secret_in_the_evidence_is_not_printed(accord: Accord) -> None:
    token = "ghp_" + "a1" * 18
    file = accord.file("log", f"Error: 401 Unauthorized for {token}\n::error::x\n")
    for form in ("text", "json"):
        ended = accord("classify", "--exit-code", 1, "--format", form, file)
        assert token not in ended.out
        assert "[redacted: github-token]" in ended.out


def test_a_file_that_is_not_there_is_named(accord: Accord) -> None:
    ended = accord("classify", "nowhere")
    assert ended.code == 2
    assert "Cannot read `nowhere`" in ended.err
