"""``accord report``: on repositories with records and without."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from support.commands import Accord
from support.plans import plan, task
from support.records import record
from support.stage import Stage
from support.starts import REQUEST, Starts, starts_stage

from accord.cli.output import duration
from accord.cli.report import since_of
from accord.core.clock import SystemClock
from accord.records.chain import append_record, read_records
from accord.records.models import PublicRecord
from accord.text.redaction import Redactor
from accord_sandbox.faults import Fault

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
ISSUES = {
    "token": "issues-only",
    "login": "github-actions[bot]",
    "kind": "installation",
    "permissions": {"issues": "write", "contents": "read"},
}
EVER = datetime(2020, 1, 1, tzinfo=UTC)


STAGE = partial(starts_stage, tokens=[ISSUES])


@pytest.fixture
def starts(stage: Stage, accord: Accord) -> Starts:
    accord.on(stage)
    return Starts(stage)


def keep(stage: Stage, *records: PublicRecord) -> None:
    for each in records:
        append_record(stage.adapter(), each, Redactor(), SystemClock())


def kept(stage: Stage) -> list[PublicRecord]:
    return list(read_records(stage.adapter(), EVER))


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("30d", NOW - timedelta(days=30)),
        ("2w", NOW - timedelta(days=14)),
        ("12h", NOW - timedelta(hours=12)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T06:00:00+02:00", datetime(2026, 11, 1, 4, tzinfo=UTC)),
    ],
)
def test_a_period_begins_at_a_date_or_so_long_ago(text: str, begin: datetime) -> None:
    assert since_of(text, NOW) == begin


@pytest.mark.parametrize("text", ["", "30", "d", "0d", "1y", "-1d", "2026-13-01", "yesterday", "2027-01-01", "9999w"])
def test_other_texts_are_refused_as_periods(text: str) -> None:
    with pytest.raises(ValueError, match="`"):
        since_of(text, NOW)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0.4, "0 s"), (59.6, "1 min"), (61, "1 min 1 s"), (7200, "2 h"), (90_061, "1 d 1 h")],
)
def test_durations_have_two_units(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.slow
def test_records_make_figures(accord: Accord, starts: Starts) -> None:
    failed = {"disposition": "failure", "error_category": "auth"}
    keep(starts.stage, record(1), record(2, hours=1, result=failed, cost_usd=None, agent="claude"))
    found = accord.document("report", "--since", "2026-10-01")
    assert (found["runs"], found["failed"], found["cost_usd"], found["with_cost"]) == (2, 1, 0.5, 1)
    assert found["failures"] == {"auth": 1}
    assert set(found["by"]["agent"]) == {"codex", "claude"}
    assert found["next"][0]["command"] == "accord doctor"
    text = accord("report", "--since", "2026-10-01")
    assert "Cost             $0.50, known of 1 of 2 runs" in text.out
    assert text.out.rstrip().endswith("accord doctor")


def test_a_repository_without_runs_says_how_to_start_one(accord: Accord, starts: Starts) -> None:
    ended = accord("report", "--since", "2026-10-01")
    assert (ended.code, ended.err) == (0, "")
    assert "No agent ran in this period. Comment `/accord implement`" in ended.out


def test_markdown_is_printed_and_added_to_the_summary(accord: Accord, starts: Starts) -> None:
    keep(starts.stage, record(agent="a|b"))
    step = accord.in_step()
    ended = accord("report", "--since", "2026-10-01", "--format", "markdown")
    assert ended.out.strip() == step.summary.strip()
    assert "| Runs | 1 (1 ended well, 0 failed) |" in ended.out
    assert "| a-b | 1 | 1 | 0 | $0.50 |" in ended.out
    assert "**Next**" in ended.out


def test_a_report_only_reads(accord: Accord, starts: Starts) -> None:
    keep(starts.stage, record())
    starts.stage.server.requests.clear()
    accord("report", "--since", "2026-10-01")
    sent = [method for method, *_ in starts.stage.server.requests]
    assert set(sent) == {"GET"}
    assert len(sent) <= 6


@pytest.mark.slow
def test_an_end_keeps_a_record_and_an_applied_result_too(
    accord: Accord, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"GITHUB_RUN_ID": "501", "GITHUB_RUN_ATTEMPT": "2", "GITHUB_ACTOR": "wanda"}.items():
        monkeypatch.setenv(name, value)
    words = ("--work", "plan", "--item", REQUEST)
    assert accord("start", "begin", *words).code == 0
    result = accord.file("result.json", plan(task("greet")))
    receipt = accord.home / "receipt.json"
    assert accord("apply", result, "--receipt", receipt).code == 0
    assert accord("start", "end", *words, "--needs", '{"plan": {"result": "success", "outputs": {}}}').code == 0
    applied, planned = sorted(kept(starts.stage), key=lambda each: each.kind)
    assert (planned.kind, planned.trigger.cause, planned.trigger.by) == ("plan", "hand", "wanda")
    assert (planned.links.issue, planned.links.workflow_run, planned.links.workflow_attempt) == (REQUEST, 501, 2)
    assert (applied.kind, applied.result.outcome, applied.inputs[0].name) == ("apply", "applied", "planner-result")
    assert applied.id in receipt.read_text()


@pytest.mark.slow
def test_the_same_commands_again_keep_no_second_record(
    accord: Accord, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_RUN_ID", "501")
    result = accord.file("result.json", plan(task("greet")))
    needs = ("--needs", '{"plan": {"result": "failure", "outputs": {}}}')
    for _ in range(2):
        assert accord("apply", result).code == 0
        assert accord("start", "end", "--work", "plan", "--item", "", "--key", "accord-1", *needs).code == 0
        starts.stage.clock.sleep(60)
    applied, planned = sorted(kept(starts.stage), key=lambda each: each.kind)
    assert applied.result.outcome == "applied"
    assert (planned.trigger.cause, planned.result.error) == ("specification", "job")


def test_a_dry_run_keeps_no_record(accord: Accord, starts: Starts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_RUN_ID", "501")
    result = accord.file("result.json", plan(task("greet")))
    assert accord("apply", result, "--dry-run").code == 0
    assert accord("start", "end", "--work", "plan", "--item", REQUEST, "--dry-run").code == 0
    assert kept(starts.stage) == []


def test_a_token_that_may_not_keep_records_changes_nothing_but_a_note(accord: Accord, starts: Starts) -> None:
    result = accord.file("result.json", plan(task("greet")))
    receipt = accord.home / "receipt.json"
    accord.on(starts.stage, GITHUB_TOKEN="issues-only")
    ended = accord("apply", result, "--receipt", receipt)
    assert ended.code == 0, ended.err
    assert "note: The token may not keep the record of this run in the repository" in ended.err
    assert '"record"' in receipt.read_text()
    assert kept(starts.stage) == []


@pytest.mark.slow
def test_a_record_that_cannot_be_kept_is_a_warning(
    accord: Accord, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemClock, "sleep", lambda *_: None)
    result = accord.file("result.json", plan(task("greet")))
    starts.stage.server.faults.add(Fault("error-500", times=1000, path="accord/records"))
    ended = accord("apply", result)
    assert (ended.code, ended.err.count("\n")) == (0, 1), ended.err
    assert ended.err.startswith("warning: The record of this run was not kept: ")
    starts.stage.server.faults.clear()
    assert accord("apply", result).code == 0
    (found,) = kept(starts.stage)
    assert found.result.outcome == "unchanged"


@pytest.mark.slow
def test_a_collector_that_is_away_stops_the_command_after_the_report(
    accord: Accord, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="no OpenTelemetry: uv sync --all-extras")
    keep(starts.stage, record())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    ended = accord("report", "--since", "2026-10-01", "--otlp", "http://127.0.0.1:9")
    assert ended.code == 3
    assert "Runs             1" in ended.out
    assert "did not take the spans" in ended.err


def test_without_an_address_of_a_collector_nothing_is_read(accord: Accord, starts: Starts) -> None:
    starts.stage.server.requests.clear()
    ended = accord("report", "--otlp")
    assert (ended.code, starts.stage.server.requests) == (2, [])
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in ended.err
