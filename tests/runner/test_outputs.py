"""The outputs report a run whatever happened, and contain no command and no secret."""

import base64
import json
import re
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rotation import NIGHTLY

from accord.cli.run_step import summary_page
from accord.core.findings import Finding
from accord.gha.step import OUTPUT_BYTES, utf16_size
from accord.runner.analysis.analyse import Analysis, ProviderAttempt
from accord.runner.models import (
    Classification,
    ErrorCategory,
    ErrorOrigin,
    ErrorSource,
    Evidence,
    InternalError,
    Recovery,
    RunOutputs,
)
from accord.runner.outputs import (
    BUDGET,
    SUMMARY_CHARS,
    TRUNCATION_NOTICE,
    Published,
    RunFacts,
    attempts_output,
    outputs_of,
)
from accord.runner.record import Attempt
from accord.runner.transcripts.account import Account, Usage
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor, redactor_for
from accord.workflows.rules import CAPABILITY_OUTPUTS

CONTRACT = {
    "final-message", "final-message-summary", "exit-code", "changes-made", "commit-sha", "files-changed",
    "error-summary", "error-category", "error-type", "error-recovery", "llm-analysis-run",
    "llm-provider", "llm-model", "llm-confidence",
    "llm-completed-tasks", "llm-has-completions",
}  # fmt: skip
EXTRA = {
    "llm-attempts", "agent-name", "agent-model", "tokens-input", "tokens-output", "cost-usd", "duration-seconds",
    "retry-after-seconds", "error-evidence", "run-warnings", "result-json", "attempts",
    *CAPABILITY_OUTPUTS, "terminal-disposition",
}  # fmt: skip
NO_SECRETS = Redactor()


def error(category: str = "auth", type_: str = "agent", recovery: str = "manual", **more: Any) -> Classification:
    fields = {"summary": "It failed.", "evidence": Evidence(rule="rule", source="event", line="the line"), **more}
    return Classification.model_validate({"category": category, "type": type_, "recovery": recovery, **fields})


def account(message: str = "Done.", **more: Any) -> Account:
    return Account("codex", "success", final_message=message, **more)


def written(facts: RunFacts, redact: Redactor = NO_SECRETS) -> dict[str, str]:
    return outputs_of(facts, redact, PostingPolicy()).as_outputs()


@pytest.mark.parametrize(
    ("facts", "disposition"),
    [
        (RunFacts("codex"), "no-change"),
        (RunFacts("codex", published=Published()), "no-change"),
        (RunFacts("codex", published=Published("abc", 3)), "success"),
        (RunFacts("codex", has_changes=True), "patch"),
        (RunFacts("codex", has_changes=True, published=Published()), "no-change"),
        (RunFacts("codex", has_changes=True, is_result_broken=True), "failure"),
        (RunFacts("codex", 1, has_changes=True), "failure"),
        (RunFacts("codex", is_result_broken=True), "failure"),
        (RunFacts("codex", published=Published("abc", 3), is_result_broken=True), "success"),
        (RunFacts("codex", account=Account("codex", "success", structured={"outcome": "blocked"})), "blocked"),
        (RunFacts("codex", account=Account("codex", "success", structured=["blocked"])), "no-change"),
        (RunFacts("codex", 7), "failure"),
        (RunFacts("codex", 1, account=Account("codex", "success", structured={"outcome": "blocked"})), "failure"),
        (RunFacts("codex", published=Published("abc", 3, InternalError(kind="push-refused", detail=""))), "failure"),
        (RunFacts("codex", published=Published(failure=InternalError(kind="steering-files", detail=""))), "blocked"),
    ],
)
def test_a_caller_reads_how_the_run_ended_in_one_word(facts: RunFacts, disposition: str) -> None:
    assert written(facts)["terminal-disposition"] == disposition
    superseded = replace(facts, published=None, classification=error("transient", "infrastructure", "ignore"))
    assert written(superseded)["terminal-disposition"] == "cancelled"


def message_of(outputs: dict[str, str]) -> str:
    return base64.b64decode(outputs["final-message"], validate=True).decode()


SUCCESS = {"exit-code": "0", "error-summary": "", "error-category": "", "error-type": "", "error-recovery": ""}
UNCHANGED = {"changes-made": "false", "commit-sha": "", "files-changed": "0"}
NOT_ANALYSED = {
    "llm-analysis-run": "false", "llm-provider": "", "llm-model": "", "llm-confidence": "",
    "llm-completed-tasks": "[]", "llm-has-completions": "false",
}  # fmt: skip
SILENT = {"final-message": "", "final-message-summary": ""}
ANSWER = Analysis("github-models", "gpt-4o", 0.9, (), (ProviderAttempt("github-models", "answered", "", 12),))
ANALYSED = {
    "llm-analysis-run": "true", "llm-provider": "github-models", "llm-model": "gpt-4o", "llm-confidence": "0.9",
    "llm-completed-tasks": "[]", "llm-has-completions": "false",
}  # fmt: skip
AUTH = error(summary="Authentication failed: CODEX_AUTH_JSON is invalid or expired")
PUSH = error("infrastructure", "infrastructure", "retry", summary="The push failed.")
REFUSED = error("infrastructure", "infrastructure", "manual", summary="A rule protects the branch.")


def failure(*words: str) -> dict[str, str]:
    return dict(zip(("exit-code", "error-category", "error-type", "error-recovery"), words, strict=True))


ROWS = {
    "example: a successful run without changes": (
        RunFacts("codex", account=account("Inspected codebase. No changes needed."), analysis=ANSWER),
        SUCCESS | UNCHANGED | ANALYSED | {
            "final-message": base64.b64encode(b"Inspected codebase. No changes needed.").decode(),
            "final-message-summary": "Inspected codebase. No changes needed.",
        },
    ),
    "example: a successful run with changes": (
        RunFacts(
            "codex", account=account("Committed changes to 3 files."), published=Published("abc123def456789", 3),
            analysis=replace(ANSWER, confidence=0.95, completed=("Add unit tests", "Fix typo in README")),
        ),
        SUCCESS | ANALYSED | {
            "final-message-summary": "Committed changes to 3 files.", "changes-made": "true",
            "commit-sha": "abc123def456789", "files-changed": "3", "llm-confidence": "0.95",
            "llm-completed-tasks": '["Add unit tests", "Fix typo in README"]', "llm-has-completions": "true",
        },
    ),
    "example: a run that failed for its credentials": (
        RunFacts("codex", 1, AUTH, account("")),
        UNCHANGED | NOT_ANALYSED | SILENT | failure("1", "auth", "agent", "manual")
        | {"error-summary": "Authentication failed: CODEX_AUTH_JSON is invalid or expired"},
    ),
    "edge: an agent that crashes": (
        RunFacts("codex", 1, error("unknown", "unknown"), account("Half of")),
        UNCHANGED | NOT_ANALYSED | failure("1", "unknown", "unknown", "manual"),
    ),
    "edge: a push that fails": (
        RunFacts("codex", 1, PUSH, account(), Published(failure=InternalError(kind="push-unreachable", detail="away"))),
        UNCHANGED | failure("1", *["infrastructure"] * 2, "retry") | {"final-message-summary": "Done."},
    ),
    "edge: a push that is refused": (
        RunFacts("codex", 1, REFUSED, account(), Published("abc", 3, InternalError(kind="push-refused", detail="no"))),
        UNCHANGED | failure("1", *["infrastructure"] * 2, "manual"),
    ),
    "edge: a failed push of a run with a code of its own": (
        RunFacts("codex", 7, PUSH, account(), Published(failure=InternalError(kind="push-conflict", detail="moved"))),
        UNCHANGED | failure("1", *["infrastructure"] * 2, "retry"),
    ),
    "edge: all changes were on the branch already": (
        RunFacts("codex", account=account(), published=Published()), SUCCESS | UNCHANGED,
    ),
    "skip": (RunFacts("codex"), SUCCESS | UNCHANGED | NOT_ANALYSED | SILENT),
    "other exit codes are the agent's own": (
        RunFacts("codex", 53, error("logic"), account()), {"exit-code": "53", "error-category": "logic"},
    ),
    "an unexplained failure": (
        RunFacts("codex", 3),
        {"exit-code": "3", "error-category": "unknown", "error-type": "unknown", "error-recovery": "manual",
         "error-summary": "The agent failed for an unknown reason."},
    ),
    "an error is never hidden by a zero": (RunFacts("codex", 0, AUTH), {"exit-code": "1", "error-category": "auth"}),
    "an error without words has some": (
        RunFacts("codex", 1, error(summary="\n")), {"error-summary": "The agent failed for an unknown reason."},
    ),
    "an analysis without an answer was not run": (
        RunFacts("codex", analysis=Analysis("", "", 0.0, (), (ProviderAttempt("openai", "failed", "410", 3),))),
        NOT_ANALYSED | {"llm-attempts": '[{"provider": "openai", "outcome": "failed", "reason": "410", "ms": 3}]'},
    ),
    **{
        f"confidence {confidence} is a decimal number": (
            RunFacts("codex", analysis=replace(ANSWER, confidence=confidence)), {"llm-confidence": text},
        )
        for confidence, text in ((1, "1.0"), (0.85, "0.85"), (0.0, "0.0"), (0.123456, "0.12"), (1e-9, "0.0"))
    },
    "tasks are a JSON array": (
        RunFacts("codex", analysis=replace(ANSWER, completed=('Add "tests"', "é"))),
        {"llm-completed-tasks": '["Add \\"tests\\"", "\\u00e9"]',
         "llm-attempts": '[{"provider": "github-models", "outcome": "answered", "reason": "", "ms": 12}]'},
    ),
    "numbers as people write them": (
        RunFacts(
            "codex", 1, error(retry_after_seconds=5.0),
            account(usage=Usage(12_000_000, 0, 0.0000125), model="gpt-5"), duration_seconds=61.26,
        ),
        {"tokens-input": "12000000", "tokens-output": "0", "cost-usd": "0.000013", "duration-seconds": "61.3",
         "retry-after-seconds": "5", "agent-model": "gpt-5"},
    ),
    "what is not known is empty": (
        RunFacts("codex", account=account(usage=Usage(None, None, float("nan")))),
        {"tokens-input": "", "cost-usd": "", "duration-seconds": "", "retry-after-seconds": "", "error-evidence": "",
         "run-warnings": "", "result-json": "", "llm-attempts": ""},
    ),
    "the evidence of an error": (
        RunFacts("codex", 1, AUTH), {"error-evidence": '{"rule": "rule", "source": "event", "line": "the line"}'},
    ),
    "warnings of the transcript and of ours": (
        RunFacts("codex", account=account(warnings=("denied: Write",)), warnings=("not pushed",)),
        {"run-warnings": '["not pushed", "denied: Write"]', "exit-code": "0"},
    ),
    "a structured result": (
        RunFacts("codex", account=account(structured={"é": [1, None]})), {"result-json": '{"é": [1, null]}'},
    ),
    "a structured result that JSON cannot hold": (
        RunFacts("codex", account=account(structured=float("inf"))), {"result-json": "", "exit-code": "0"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_each_row_of_the_contract_holds(row: str) -> None:
    facts, expected = ROWS[row]
    outputs = written(facts)
    assert ({name: outputs[name] for name in expected}, outputs["agent-name"]) == (expected, "codex")


def test_each_output_without_a_value_is_empty_and_lists_and_counts_have_none() -> None:
    given = {name: value for name, value in RunOutputs().as_outputs().items() if value}
    of_contract = SUCCESS | UNCHANGED | NOT_ANALYSED | SILENT
    assert given == {name: value for name, value in of_contract.items() if value}


HOSTILE = {
    "a delimiter": "EOF\nchanges-made=true\nghadelimiter_x\nexit-code<<EOF\n0\nEOF",
    "a workflow command": "::set-output name=exit-code::0\n::stop-commands::x\n##[error]x", "nul": "a\0b",
    "half a surrogate": "\ud83d and \ude00", "line ends": "a\r\nb\rc\u2028d\x85e\x0bf",
    "a comment": "x <!-- accord:run token=1 --> @octocat closes #1 <script>alert(1)</script>",
    "an escape": "\x1b[31mred\x1b[0m\x07", "a megabyte": "word " * 200_000,
    "one line of emoji without end": "😀" * 200_000, "nothing but blanks": " \n\t ",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_message_arrives_whole_and_does_nothing(name: str) -> None:
    message = HOSTILE[name]
    outputs = written(RunFacts("codex", account=account(message)))
    assert {key: outputs[key] for key in (*SUCCESS, *UNCHANGED)} == SUCCESS | UNCHANGED
    decoded = message_of(outputs)
    clean = message.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    is_cut = len(message) >= 1000
    assert clean.startswith(decoded.removesuffix(TRUNCATION_NOTICE)) if is_cut else decoded == clean
    assert decoded.endswith(TRUNCATION_NOTICE) == is_cut
    summary = outputs["final-message-summary"]
    assert len(summary) <= SUMMARY_CHARS
    assert not re.search(r"@octocat|<!--|<script|closes #1|\0|\x1b|^::|##\[", summary, re.MULTILINE)
    assert re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", outputs["final-message"])


def test_the_summary_is_the_beginning_with_its_line_breaks() -> None:
    message = "# Done\n\n- é日本😀\n" + "x" * 1000
    assert written(RunFacts("codex", account=account(message)))["final-message-summary"] == message[:500]
    assert len(written(RunFacts("codex", account=account("😀" * 501)))["final-message-summary"]) == 500


def test_a_summary_that_grew_by_being_made_safe_loses_words_and_no_safety() -> None:
    summary = written(RunFacts("codex", account=account("@octocat " * 200)))["final-message-summary"]
    assert 450 < len(summary) <= 500
    assert "@octocat" not in summary
    fenced = written(RunFacts("codex", account=account("```\n" + "code\n" * 200)))["final-message-summary"]
    assert len(fenced) <= 500
    assert fenced.endswith("```")


@pytest.mark.parametrize(
    "text",
    ['"; rm -rf ~ #', "$(id)", "`id`", "\\", "${{ secrets.X }}", "'; id; '", "\u201d; id", "a\nb", "::error::x",
     "@octocat", "Failed <!-- ![a](http://example.org/) <details> `x`"],
)  # fmt: skip
def test_an_error_summary_can_stand_in_the_script_of_the_contracts_own_example(text: str) -> None:
    evidence = Evidence(rule="rule", source="event", line=text)
    outputs = written(RunFacts("codex", 1, error(summary=text, evidence=evidence)))
    for line in (outputs["error-summary"], json.loads(outputs["error-evidence"])["line"]):
        assert not re.search(r"[\"'`$<>\\\n\u201c\u201d]|!\[|^::|@octocat", line)


@pytest.mark.slow
def test_a_message_too_long_is_cut_with_a_mark_and_a_warning_and_nothing_else_is_lost() -> None:
    tasks = tuple(f"Task {i} " + "x" * 50 for i in range(100))
    long, analysis = account("é" * 300_000, structured={"a": "b"}), replace(ANSWER, completed=tasks)
    outputs = written(RunFacts("codex", account=long, published=Published("abc", 3), analysis=analysis))
    assert message_of(outputs).endswith(TRUNCATION_NOTICE)
    assert len(message_of(outputs)) > 100_000
    assert json.loads(outputs["llm-completed-tasks"]) == list(tasks)
    assert "cut" in json.loads(outputs["run-warnings"])[0]
    assert outputs["result-json"] == '{"a": "b"}'
    assert BUDGET - 100 < size(outputs) <= BUDGET


@pytest.mark.slow
def test_other_long_outputs_are_left_out_with_a_warning() -> None:
    many = tuple(f"{i} " + "x" * 1000 for i in range(1000))
    attempts = (ProviderAttempt("p" * 999, "failed", "r" * 9999),) * 999
    long = account("m" * 500_000, structured="x" * 200_000, warnings=many)
    outputs = written(RunFacts("codex", account=long, analysis=replace(ANSWER, completed=many, attempts=attempts)))
    assert size(outputs) <= BUDGET
    assert outputs["result-json"] == ""
    assert 0 < len(json.loads(outputs["llm-completed-tasks"])) < 1000
    assert len(message_of(outputs)) > 10_000


def size(outputs: dict[str, str]) -> int:
    return sum(utf16_size(name) + utf16_size(value) for name, value in outputs.items())


SECRET = "correct-horse-battery-staple"
ODD_SECRET = 'p"a\\ss/w\N{RIGHT SINGLE QUOTATION MARK}ord\twith it all'
KNOWN = redactor_for({"MY_TOKEN": SECRET, "ODD_SECRET": ODD_SECRET})


def test_a_secret_is_in_no_output_plain_or_encoded_however_it_is_wrapped() -> None:
    wrapped = f"{SECRET[:11]}\n    {SECRET[11:]}"
    outputs = written(RunFacts("codex", account=account(f"It is {wrapped}, that is {SECRET}.")), KNOWN)
    placeholder = "[redacted: secret of the environment]"
    assert message_of(outputs) == f"It is {placeholder}, that is {placeholder}."


def test_a_secret_at_the_five_hundredth_character_does_not_show_its_half() -> None:
    message = "x" * 490 + SECRET
    assert "correct" not in written(RunFacts("codex", account=account(message)), KNOWN)["final-message-summary"]


PIECES = st.sampled_from(
    [SECRET, ODD_SECRET, ODD_SECRET.replace("\u2019", "'"), "\n", "\0", "\ud800", "::set-output name=x::y", "@octocat",
     "```", "<!--", "-->", "EOF", " ghp_" + "a1B2" * 9, "é日本😀", "  ", '"', "\\", "$(id)", "closes #1 "]
)  # fmt: skip
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=10)), max_size=6).map("".join)
SEVERAL = st.lists(TEXTS, max_size=3).map(tuple)
NUMBERS = st.one_of(st.none(), st.floats(min_value=0, allow_infinity=False), st.just(float("nan")))
ERRORS = st.none() | st.builds(
    Classification, category=st.sampled_from(get_args(ErrorCategory)), type=st.sampled_from(get_args(ErrorOrigin)),
    recovery=st.sampled_from(get_args(Recovery)), summary=TEXTS, retry_after_seconds=NUMBERS,
    evidence=st.builds(Evidence, rule=TEXTS, source=st.sampled_from(get_args(ErrorSource)), line=TEXTS),
)  # fmt: skip
RESULTS = st.recursive(st.none() | TEXTS, lambda c: st.lists(c) | st.dictionaries(TEXTS, c), max_leaves=4)
ACCOUNTS = st.none() | st.builds(
    Account, agent=TEXTS, ending=st.just("success"), model=TEXTS, structured=RESULTS, warnings=SEVERAL,
    final_message=TEXTS | TEXTS.map(lambda text: text * 9_000),
    usage=st.builds(Usage, st.none() | st.integers(0), st.none() | st.integers(0), NUMBERS),
)  # fmt: skip
ATTEMPTS = st.builds(ProviderAttempt, st.just("openai"), st.just("failed"), TEXTS, st.integers(0))
ANALYSES = st.none() | st.builds(
    Analysis, provider=st.sampled_from(["", "openai"]), model=TEXTS, confidence=st.floats(0, 1), completed=SEVERAL,
    attempts=st.lists(ATTEMPTS, max_size=2).map(tuple),
)  # fmt: skip
REFUSAL = Published(failure=InternalError(kind="push-refused", detail="no"))
PUBLISHED = st.sampled_from([None, Published(), Published("a" * 40, 3), REFUSAL])
TURNS = st.builds(
    Attempt, agent=TEXTS, turn=st.integers(1), outcome=st.just("broken"), cost_usd=NUMBERS,
    duration_seconds=st.floats(0), fixes=SEVERAL,
    findings=st.lists(st.builds(Finding, code=TEXTS, message=TEXTS, path=TEXTS), max_size=2).map(tuple),
)  # fmt: skip
FACTS = st.builds(
    RunFacts, agent=TEXTS, exit_code=st.integers(-1, 255), classification=ERRORS, account=ACCOUNTS, published=PUBLISHED,
    analysis=ANALYSES, duration_seconds=NUMBERS, warnings=SEVERAL, attempts=st.lists(TURNS, max_size=2).map(tuple),
)  # fmt: skip


@given(FACTS)
@settings(max_examples=100 if NIGHTLY else 25)
@pytest.mark.slow
def test_whatever_happened_the_outputs_keep_the_contract(facts: RunFacts) -> None:
    outputs = written(facts, KNOWN)
    assert set(outputs) == CONTRACT | EXTRA
    assert size(outputs) <= BUDGET < OUTPUT_BYTES
    failed = outputs["exit-code"] != "0"
    words = ("summary", "category", "type", "recovery", "evidence")
    assert all(bool(outputs[f"error-{name}"]) == failed for name in words)
    assert (outputs["changes-made"] == "true") == bool(outputs["commit-sha"]) == (outputs["files-changed"] != "0")
    if facts.published and facts.published.failure:
        assert (outputs["exit-code"], outputs["changes-made"]) == ("1", "false")
    tasks = json.loads(outputs["llm-completed-tasks"])
    assert (outputs["llm-has-completions"] == "true") == bool(tasks)
    assert {outputs[name] for name in CAPABILITY_OUTPUTS} == {""}, "all or none, and accord knows no capability"
    assert outputs["terminal-disposition"] in ("success", "patch", "failure", "no-change", "blocked", "cancelled")
    assert outputs["terminal-disposition"] != "success" or outputs["changes-made"] == "true"
    assert (outputs["terminal-disposition"] in ("success", "patch", "no-change")) <= (outputs["exit-code"] == "0")
    for name in ("llm-attempts", "error-evidence", "run-warnings", "result-json", "attempts"):
        assert outputs[name] == "" or json.loads(outputs[name]) is not None
    for text in (*outputs.values(), message_of(outputs), summary_page(outputs_of(facts, KNOWN, PostingPolicy()))):
        text.encode("utf-8")
        assert SECRET not in text
        assert ODD_SECRET not in text
        assert "ghp_" + "a1B2" * 9 not in text


def test_a_turn_that_failed_repaired_nothing() -> None:
    finding = Finding(code="schema", message="It is wrong.")
    tries = [Attempt(agent="a", outcome="broken", findings=(finding,)), Attempt(agent="a", turn=2, outcome="budget")]
    assert json.loads(attempts_output(tries, Redactor(), PostingPolicy()))[1]["repaired"] == []


PUSHED = Published("c" * 40, 1)


@pytest.mark.parametrize(
    ("facts", "title"),
    [
        (RunFacts("codex", is_result_broken=True), "❌ codex ended without a valid result"),
        (RunFacts("codex", account=Account("", "done", structured={"outcome": "blocked"})), "✋ codex is blocked"),
        (RunFacts("codex", classification=error(), exit_code=1), "❌ codex failed (auth)"),
        (RunFacts("codex", classification=error(recovery="ignore"), exit_code=1), "⏹️ codex was cancelled"),
        (RunFacts("codex", published=PUSHED), "✅ codex changed 1 file"),
        (RunFacts("codex"), "✅ codex ended, and accord pushed nothing"),
        (RunFacts("codex", files_not_pushed=2), "✅ codex changed 2 files, not pushed yet"),
    ],
)
def test_the_title_of_the_summary_says_how_the_run_ended(facts: RunFacts, title: str) -> None:
    page = summary_page(outputs_of(facts, NO_SECRETS, PostingPolicy()))
    assert page.splitlines()[0] == f"### accord: {title}"
    assert ("| Files not pushed | 2, in changes.patch of the run folder or artifact |" in page) == (
        "not pushed" in title
    )
