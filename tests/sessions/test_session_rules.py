"""Each rule of the documents of sessions, one document at a time."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rotation import NIGHTLY
from support.sessions import AT, GATES, NAME, acceptance, agent_input, agent_output, decision, status
from support.sessions import TASKS as PLAN

from accord.core.clock import parse_timestamp
from accord.core.documents import read_object
from accord.core.findings import Severity
from accord.core.kinds import KINDS, check_document
from accord.files.yaml import read_mapping
from accord.sessions.decision_rules import check_gate, is_approval, is_change_request
from accord.sessions.models import ROLES, SessionStatus
from accord.sessions.output_rules import is_open_concern
from accord.sessions.rules import is_inside, status_findings

INPUT, OUTPUT = KINDS["agent-input"], KINDS["agent-output"]
STATUS, TASKS, ACCEPTANCE = KINDS["session-status"], KINDS["session-tasks"], KINDS["session-acceptance"]


def found(kind: Any, value: Any, role: str = "") -> list[tuple[str, str]]:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    findings = kind.check(kind.read(raw), role)
    return [(f.code if f.severity is Severity.ERROR else f"({f.code})", f.path) for f in findings]


def without(value: dict[str, Any], *path: str) -> dict[str, Any]:
    copy = json.loads(json.dumps(value))
    part = copy
    for key in path[:-1]:
        part = part[key]
    del part[path[-1]]
    return copy


def changed(path: str, change_type: str, **more: str) -> dict[str, Any]:
    return {"session_changed_files": [{"path": path, "change_type": change_type, **more}]}


def tracked(approval: dict[str, Any]) -> dict[str, Any]:
    return {"gate_tracking": {"APPROVE_DESIGN": approval}}


VALID = [(OUTPUT, agent_output()), (INPUT, agent_input()), (STATUS, status()), (ACCEPTANCE, acceptance())]


def test_valid_documents_have_no_findings() -> None:
    for kind, value in (*VALID, (STATUS, status("IMPLEMENT_LOOP", user_decisions=GATES))):
        assert found(kind, value) == []


INPUT_KEYS = ["task/id", "task/title", "task/goal", "task/non_goals", "task/context_files", "task/constraints"]
INPUT_KEYS += ["task/acceptance_checks", "task/risk_flags", "project_type", "repo_state", "repo_state/branch"]
INPUT_KEYS += ["repo_state/ci_status", "tools_available"]
OUTPUT_KEYS = ["status", "summary", "artifacts", "gates", "next", "artifacts/commands_to_run", "artifacts/notes"]
OUTPUT_KEYS += ["gates/meets_definition_of_done", "gates/needs_review", "gates/needs_tests", "gates/security_concerns"]
OUTPUT_KEYS += ["next/recommended_agent", "next/recommended_task_id", "next/reason"]


REQUIRED = [(INPUT, agent_input(), INPUT_KEYS), (OUTPUT, agent_output(), OUTPUT_KEYS), (STATUS, status(), status())]


@pytest.mark.parametrize(("kind", "value", "path"), [(k, v, path) for k, v, paths in REQUIRED for path in paths])
def test_every_required_key_is_missed(kind: Any, value: dict[str, Any], path: str) -> None:
    assert found(kind, without(value, *path.split("/"))) == [("schema", f"/{path}")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"id": "T-1"}, ("schema", "/task/id")),
        ({"id": "meta"}, None),
        ({"risk_flags": ["danger"]}, ("schema", "/task/risk_flags/0")),
        ({"risk_flags": ["none", "perf"]}, ("(risk-flags-contradict)", "/task/risk_flags")),
        ({"risk_flags": ["Security", "BREAKING_CHANGE", " perf "]}, None),
        ({"acceptance_checks": ["run it"]}, ("(check-form)", "/task/acceptance_checks/0")),
        ({"acceptance_checks": [{"cmd": "npm test"}]}, None),
        ({"context_files": ["../secrets"]}, ("path-outside", "/task/context_files/0")),
        (changed("a", "renamed"), ("old-path-missing", "/task/session_changed_files/0/old_path")),
        (changed("a", "renamed", old_path="b"), None),
        (changed("a", "moved"), ("schema", "/task/session_changed_files/0/change_type")),
        *(
            (changed(path, "added"), ("path-outside", "/task/session_changed_files/0"))
            for path in ("/a", "a/../b", "../")
        ),
    ],
)
def test_an_input_is_judged_by_its_rules(changes: dict[str, Any], expected: tuple[str, str] | None) -> None:
    assert found(INPUT, agent_input(**changes)) == ([expected] if expected else [])


@pytest.mark.parametrize("role", ROLES)
def test_only_the_reviewer_gets_and_needs_the_changed_files(role: str) -> None:
    place = "/task/session_changed_files"
    without_files = agent_input()
    with_files = agent_input(**changed("a", "added"))
    is_reviewer = role == "Reviewer"
    assert found(INPUT, without_files, role) == ([("changed-files-missing", place)] if is_reviewer else [])
    for finding in INPUT.check(INPUT.read(json.dumps(agent_input(session_changed_files=[])).encode()), role):
        assert finding.hint == "List its files if it changed any."
    none = [("(changed-files-missing)", place)] if is_reviewer else []
    assert found(INPUT, agent_input(session_changed_files=[]), role) == none
    assert found(INPUT, with_files, role) == ([] if is_reviewer else [("(changed-files-unexpected)", place)])
    assert found(INPUT, {**without_files, "agent": role}) == found(INPUT, without_files, role)
    assert found(INPUT, {**without_files, "dispatch": {"agent": role}}) == found(INPUT, without_files, role)


@pytest.mark.parametrize("said", ["OK", "BLOCKED", "FAIL", "NEEDS_INFO", "NEEDS_DECISION"])
def test_needs_info_is_the_researchers_and_needs_decision_is_securitys(said: str) -> None:
    allowed = {"NEEDS_INFO": ("Researcher",), "NEEDS_DECISION": ("Security",)}.get(said, ROLES)
    refused = [("status-of-other-role", "/status")]
    for role in ROLES:
        assert found(OUTPUT, agent_output(status=said), role) == ([] if role in allowed else refused), role
        assert found(OUTPUT, agent_output(status=said, agent=role)) == ([] if role in allowed else refused), role


def test_only_coder_and_integrator_report_changes_of_code() -> None:
    names = ["src/a.py", "tests/test_a.py", "/work/pyproject.toml", ".agents-work/x/../../src/a.py", "docs/../a.html"]
    names += ["docs/a.md", "README.md", ".agents-work/x/a.py", "/r/.agents-work/x/a.py", "a/../.agents-work/x/a.py"]
    changed = {**agent_output()["artifacts"], "files_changed": names, "tests_added_or_updated": names[1:2]}
    planned = {**agent_output()["artifacts"], "files_to_create_or_update": names}
    places = [*(f"/artifacts/files_changed/{i}" for i in range(5)), "/artifacts/tests_added_or_updated/0"]
    refused = [("role-forbidden", place) for place in places]
    for role in ROLES:
        wrong = [] if role in ("Coder", "Integrator") else refused
        assert found(OUTPUT, agent_output(artifacts=changed), role) == wrong, role
        assert found(OUTPUT, agent_output(artifacts=planned), role) == [], role


def test_a_status_of_one_role_is_a_warning_while_the_role_is_unknown() -> None:
    assert found(OUTPUT, agent_output(status="NEEDS_INFO")) == [("(status-role-unknown)", "/status")]


@pytest.mark.parametrize("text", ["Here it is:\n{}", "```json\n{}\n```", "{}\nDone.", "{} // done"])
@pytest.mark.parametrize(("kind", "value"), VALID)
def test_json_with_anything_around_it_is_refused(kind: Any, value: Any, text: str) -> None:
    assert ("text-around", "") in found(kind, text.replace("{}", json.dumps(value)).encode())


GRAVE: list[Any] = [
    {"severity": "high", "what": "x"},
    {"Severity": " Critical "},
    "High: the token is logged.",
    "**High** - the token is logged",
    "High severity: SQL injection in the filter",
    "SQL injection (high)",
    "SQL injection, severity: critical",
    "High: 0. Critical: the token is logged",
    "High: none of the inputs are checked",
    "[security] High: the token is logged",
    {"severity": "medium/critical"},
    "high",
    {"low": 4, "critical": 1},
    "High: no authentication",
    "[low] the header (critical)",
    "1. High: the token is logged",
    "| critical | the token is logged |",
    {"severity": "n/a", "risk": "high"},
    "| High | 0 | the token is logged |",
    "CRITICAL (CVSS 9.8): remote code execution",
    "Critical vulnerability: SQL injection",
    "High/critical: the token is logged",
    "High priority vulnerability \u2014 the token is logged",
    "Critical CVEs: none. High CVEs: two of them",
    "High (0): the token is logged",
    "Critical (none), high (2)",
    "Critical (0)\nHigh (2)",
]
UNREAD: list[Any] = [
    {"what": "high"},
    "High-entropy strings were looked for.",
    "A critical security flaw in auth.py",
    "No findings, but high-risk code.",
    "Note: the token is logged",
    {"severity": None, "what": "the token is logged"},
    "No authentication found",
    "High-level review: the token is logged",
    "Critical files were read. Result: fine",
]
HARMLESS: list[Any] = [
    {"severity": "low"},
    "No high or critical findings.",
    "Low: the header names the version.",
    "Critical: 0, High: 0, Medium: 1, Low: 2",
    "High: none",
    "High \u2013 0; Critical \u2013 0",
    "High: nil, critical: nothing",
    "high severity: none found",
    "Critical: N/A; high: 0 (all of 3 modules)",
    {"severity": "high", "count": 0},
    {"critical": 0, "high": [], "medium": 1},
    {"critical": "not found", "high": "no issues detected", "medium": "nothing found."},
    "Security: high: not found",
    "High security findings: 0",
    "[high] none found",
    "No vulnerabilities found",
    "High: zero",
    "| High | none |",
    "| Severity | Count |\n| --- | --- |\n| **Critical** | 0 |\n| High | no issues found | - |",
    "Critical | 0\nHigh | 0",
    "Critical vulnerabilities: none; high vulnerabilities: 0",
    "HIGH (none)",
    "**High** (no findings)",
    "Critical (0), high (none found), medium (1 finding)",
    "high (n/a)",
    "Critical (none) and high (none)",
    "High (0 findings).",
    "low: rate limit is high (100)",
    "medium: the entropy is high (256), length is fine",
    "Severity: low. CVSS of the library is high (7), not reachable",
    "info: see critical (1)",
    "none; was high (1)",
    "- Critical (0)\n- **High (none)**\n",
    "",
]


@pytest.mark.parametrize("status", ["OK", "FAIL", "NEEDS_DECISION", "BLOCKED"])
def test_a_grave_security_finding_blocks(status: str) -> None:
    entries = [*GRAVE, *UNREAD, *HARMLESS]
    for part, key in (("artifacts", "findings"), ("gates", "security_concerns")):
        output = agent_output(status=status, **{part: {**agent_output()[part], key: entries}})
        wrong = [("security-severity", f"/{part}/{key}/{i}") for i in range(len(GRAVE))]
        wrong += [("(severity-missing)", f"/{part}/{key}/{len(GRAVE)}")]
        assert found(OUTPUT, output, "Security") == (wrong if status != "BLOCKED" else [])


@pytest.mark.parametrize("entry", UNREAD)
def test_a_severity_that_cannot_be_read_is_one_warning(entry: Any) -> None:
    places = [("artifacts", "findings"), ("gates", "security_concerns"), ("artifacts", "review_comments")]
    for role, warned in (("Security", places[:2]), ("Coder", places[1:2])):
        for part, key in places:
            output = agent_output(**{part: {**agent_output()[part], key: [entry, entry]}})
            expected = [("(severity-missing)", f"/{part}/{key}/0")] if (part, key) in warned else []
            assert found(OUTPUT, output, role) == expected


@pytest.mark.parametrize("role", ["Reviewer", "QA", "Coder", "Security", ""])
@pytest.mark.parametrize("key", ["findings", "review_comments"])
def test_a_grave_finding_that_says_security_blocks_in_the_output_of_every_role(role: str, key: str) -> None:
    about: list[Any] = [
        {"severity": "critical", "category": "security", "message": "SQL injection"},
        {"severity": "high", "security": True},
        "[CRITICAL][security] SQL injection in src/db.py",
        "critical security issue: SQL injection in export()",
        "**High-severity security issue:** the token is logged",
        "HIGH (security): the token is logged",
        "Security: critical SQL injection",
    ]
    other: list[Any] = [
        {"severity": "critical", "category": "tests", "message": "The main path has no test."},
        {"severity": "high", "security": False},
        {"severity": "low", "category": "security"},
        "[high] the parser is slow",
        "High CPU usage: the security scan is slow",
    ]
    output = agent_output(artifacts={**agent_output()["artifacts"], key: [*about, *other]})
    count = len(about)
    wrong = [*range(count), *((count, count + 1, count + 3, count + 4) if role == "Security" else ())]
    assert found(OUTPUT, output, role) == [("security-severity", f"/artifacts/{key}/{i}") for i in wrong]


def test_a_concern_that_security_marks_as_low_asks_for_nothing() -> None:
    nothing = ["High: none", "none found"]
    marked = [{"severity": "low"}, "[info] the header", "Low risk: x", {"low": 2}]
    open_ = [{"severity": "medium"}, "the header", {"what": "low"}, "Medium: 1, Low: 2"]
    assert [is_open_concern(one, "Security") for one in [*nothing, *marked, *open_]] == [False] * 6 + [True] * 4
    assert [is_open_concern(one, "Coder") for one in [*nothing, *marked, *open_]] == [False] * 2 + [True] * 8


NEXT = agent_output()["next"]


@pytest.mark.parametrize("name", ["coder", "spec-agent", "Tester", "", None])
def test_a_name_that_is_not_canonical_is_refused(name: Any) -> None:
    following = {**NEXT, "recommended_agent": name}
    assert found(OUTPUT, agent_output(next=following)) == [("schema", "/next/recommended_agent")]


def test_texts_of_an_output_are_judged_by_its_rules() -> None:
    for task_id in ("T-001", "T-1234", "meta", "same"):
        assert found(OUTPUT, agent_output(next={**NEXT, "recommended_task_id": task_id})) == []
    artifacts = {"commands_to_run": [], "notes": [], "review_comments": [{"path": "a"}, "b"], "findings": [{"x": 1}]}
    assert found(OUTPUT, agent_output(artifacts={**artifacts, "patch_summary": "more"})) == []
    assert found(OUTPUT, agent_output(summary="One. Two. Three, v1.2. Four!")) == [("(summary-long)", "/summary")]
    for summary in ("See src/a.py. It uses v1.2. Done.", "Changed e.g. a.py, i.e. nothing. See b.c. Done."):
        assert found(OUTPUT, agent_output(summary=summary)) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"current_state": "WORKING"}, ("schema", "/current_state")),
        ({"session": "csv"}, ("session-name", "/session")),
        ({"session": "2026-02-30_csv"}, ("session-name", "/session")),
        ({"last_update": "yesterday"}, ("timestamp-invalid", "/last_update")),
        ({"last_update": "9999-12-31T23:00:00-02:00"}, ("timestamp-invalid", "/last_update")),
        ({"last_update": "2126-01-31T09:30:00Z"}, ("(timestamp-future)", "/last_update")),
        ({"last_update": "2026-01-31T09:30:00.1234567Z"}, None),
        ({"last_update": "2026-01-31T09:30:00+01:00"}, None),
        ({"last_update": "2026-01-31T09:30:00"}, ("(timestamp-vague)", "/last_update")),
        ({"last_update": "2026-01-31"}, ("(timestamp-vague)", "/last_update")),
        ({"last_ci_result": "yellow"}, ("schema", "/last_ci_result")),
        ({"retry_counts": {"T-001": {"FIX_TESTS": 3}}}, None),
        ({"retry_counts": {"T-001": {"FIX_TESTS": 4}}}, ("retry-budget", "/retry_counts/T-001/FIX_TESTS")),
        ({"tasks": {"T-001": "completed"}}, ("task-status-duplicated", "/tasks")),
        ({"progress": {"T-001": "in_progress"}}, ("task-status-duplicated", "/progress")),
        ({"taskStates": {"T-001": {"status": "completed"}}}, ("task-status-duplicated", "/taskStates")),
        ({"T-001": {"status": "blocked"}}, ("task-status-duplicated", "/T-001")),
        ({"tasks_completed": ["T-001"]}, ("task-status-duplicated", "/tasks_completed")),
        ({"owners": {"T-001": "ann"}, "order": ["T-002", "T-001"], "progress": "half"}, None),
        ({"mode": "lean"}, ("mode-state", "/current_state")),
        (
            {
                "mode": "lean",
                "current_state": "INTEGRATE",
                "user_decisions": [decision("UD-1", "answered", state_context="PLAN")],
            },
            ("mode-state", "/user_decisions/0/state_context"),
        ),
        ({"current_state": "ASK_USER"}, ("question-missing", "/user_decisions")),
        ({"current_state": "ASK_USER", "user_decisions": GATES}, ("question-missing", "/user_decisions")),
        (
            {"user_decisions": [decision(f"UD-{i}", "answered") for i in (1, 3)]},
            ("(decision-order)", "/user_decisions"),
        ),
        ({"user_decisions": [decision(f"UD-{i}", "answered") for i in (2, 1)]}, None),
        ({"current_state": "BLOCKED", "blocker": "x"}, ("(blocked-from)", "/current_state")),
        ({"current_state": "BLOCKED", "blocked_from": "PLAN", "blocker": " "}, ("(blocker-missing)", "/blocker")),
        (
            {"current_state": "BLOCKED", "blocked_from": "DONE", "blocker": "x"},
            ("blocked-from-invalid", "/blocked_from"),
        ),
        (
            {"mode": "full", "current_state": "BLOCKED", "blocked_from": "INTAKE_LEAN", "blocker": "x"},
            ("mode-state", "/blocked_from"),
        ),
        ({"retry_counts": {"T-001": {"FIX_TEST": 1}}}, ("retry-unknown", "/retry_counts/T-001/FIX_TEST")),
        (tracked({"correction_status": "dispatched"}), ("correction-record", "/gate_tracking/APPROVE_DESIGN")),
        (
            tracked({"correction_status": "dispatched", "last_correction_dispatch": {"agent": "Architect", "at": AT}}),
            None,
        ),
        ({"runtime_flags": {"copilot_instructions_exists": True}}, ("schema", "/runtime_flags/copilot_checked_at")),
        (
            {"runtime_flags": {"copilot_instructions_exists": True, "copilot_checked_at": "2126-01-31T09:30:00Z"}},
            ("(timestamp-future)", "/runtime_flags/copilot_checked_at"),
        ),
        (
            tracked({"last_correction_dispatch": {"agent": "Architect", "at": "2126-01-31T09:30:00Z"}}),
            ("timestamp-future", "/gate_tracking/APPROVE_DESIGN/last_correction_dispatch/at"),
        ),
        ({"gate_tracking": {"APPROVE_DESIGN": {"correction_status": None}}}, None),
        (
            tracked({"last_correction_dispatch": {"agent": "Coder"}}),
            ("schema", "/gate_tracking/APPROVE_DESIGN/last_correction_dispatch/agent"),
        ),
        ({"anything": {"else": 1}}, None),
    ],
)
def test_a_status_is_judged_by_its_rules(changes: dict[str, Any], expected: tuple[str, str] | None) -> None:
    assert found(STATUS, {**status(), **changes}) == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (decision(), None),
        (decision(answer="x"), ("decision-record", "answer")),
        (decision(status="answered"), None),
        (decision(status="answered", answer=" "), ("decision-record", "answer")),
        (decision(status="answered", answer="\u200b"), ("decision-record", "answer")),
        (decision(status="answered", resolved_at=None), ("decision-record", "resolved_at")),
        (decision(status="cancelled"), None),
        (decision(status="skipped", resolution_reason=None), ("decision-record", "resolution_reason")),
        (decision(decision_id="UD-0"), ("schema", "decision_id")),
        (decision(status="open"), ("schema", "status")),
        (decision(asked_at="now"), ("timestamp-invalid", "asked_at")),
        (decision(asked_at="2126-01-31T09:30:00+01:00"), ("timestamp-future", "asked_at")),
        (decision(status="answered", resolved_at="2126-01-31T09:30:00Z"), ("timestamp-future", "resolved_at")),
        (decision(state_context="ASK_USER"), ("decision-context", "state_context")),
        (decision("UD-APPROVE-DESIGN", state_context="DESIGN"), ("decision-context", "state_context")),
        (decision("UD-APPROVE-DESIGN", "answered", answer="approved: nice"), None),
        (decision("UD-APPROVE-DESIGN", "answered", answer="changes-requested: smaller"), None),
        (decision("UD-APPROVE-DESIGN", "answered", answer="Approved"), ("gate-answer", "answer")),
        (decision("UD-APPROVE-DESIGN", "answered", answer="changes-requested: "), ("gate-answer", "answer")),
        (decision("UD-REVIEW-STRATEGY", "answered", answer="single-final"), None),
        (decision("UD-REVIEW-STRATEGY", "answered", answer="per batch"), ("gate-answer", "answer")),
        (
            decision(status="cancelled", category="security", resolution_reason="No response provided."),
            ("security-cancelled", "resolution_reason"),
        ),
        *(
            (decision(status="cancelled", category="security", resolution_reason=reason), None)
            for reason in (
                "user deferred: next sprint",
                "Deferred by the user to the next sprint",
                "The user has explicitly declined to answer",
                "Next sprint (user deferred)",
                "User chose to defer it; no hurry",
            )
        ),
        *(
            (
                decision(status="cancelled", category="security", resolution_reason=reason),
                (code, "resolution_reason"),
            )
            for code, reasons in (
                (
                    "(security-cancelled)",
                    (
                        *("User did not answer", "timed out", "user deferred: ", "no response needed"),
                        *("no longer applicable", "deferred", "Deferred by the user.", "deferred to next sprint"),
                        *("The user didn't answer and deferred it", "deferred since the user did not answer"),
                    ),
                ),
                ("security-cancelled", ("none", "n/a", "N/A.", "No response", "no", ".", "<reason>")),
            )
            for reason in reasons
        ),
        (decision(status="cancelled", category="security", resolution_reason="User declined: no risk"), None),
        (decision(status="skipped", category="security"), ("security-cancelled", "resolution_reason")),
        (decision("UD-APPROVE-DESIGN", "skipped"), ("decision-mandatory", "status")),
        (decision(status="cancelled", resolution_reason="no response provided"), None),
        (decision(category="Security"), None),
        (decision(category="secrity"), ("category-unknown", "category")),
        (decision(catgory="security"), ("key-misspelled", "catgory")),
        (without(decision(), "answer"), ("decision-record", "")),
        (without(decision(status="answered"), "resolution_reason"), None),
        (without(decision(status="cancelled", resolved_by="ada"), "answer"), None),
        (without(decision(status="cancelled", anser="x"), "answer"), ("(key-misspelled)", "anser")),
        (decision(status="answered", resolved_at="2026-01-31T09:29:59Z"), ("decision-times", "resolved_at")),
        (decision(status="answered", resolved_at="2026-01-31T10:30:00+01:00"), None),
    ],
)
def test_a_decision_record_is_valid_or_says_why_not(entry: dict[str, Any], expected: tuple[str, str] | None) -> None:
    wanted = [(expected[0], f"/user_decisions/0/{expected[1]}".rstrip("/"))] if expected else []
    assert found(STATUS, status("APPROVE_DESIGN", user_decisions=[entry])) == wanted


def test_the_hint_of_an_answer_names_the_folder_of_the_session() -> None:
    answered = decision("UD-APPROVE-DESIGN", "answered", answer="Approved")
    raw = json.dumps(status("APPROVE_DESIGN", user_decisions=[answered])).encode()
    (finding,) = STATUS.check(STATUS.read(raw), "")
    assert f"session ask .agents-work/{NAME} --id UD-APPROVE-DESIGN " in finding.hint


def test_a_time_is_in_the_future_by_the_clock_that_is_given() -> None:
    asked, at = SessionStatus.model_validate(status("ASK_USER", user_decisions=[decision()])), parse_timestamp(AT)
    found = [[one.code for one in status_findings(asked, at - timedelta(minutes=minutes))] for minutes in (10, 11)]
    assert found == [[], ["timestamp-future"] * 2], "of the question, and of the last change"


def test_a_gate_that_is_answered_with_nothing_is_called_that() -> None:
    answered = SessionStatus.model_validate(status(user_decisions=[{**GATES[0], "answer": None}]))
    assert check_gate(answered, "UD-APPROVE-DESIGN") == "UD-APPROVE-DESIGN is not answered with `approved`."


@pytest.mark.parametrize("name", ["UD-1", "UD-APPROVE-DESIGN"])
def test_a_decision_id_appears_once(name: str) -> None:
    state = "ASK_USER" if name == "UD-1" else "APPROVE_DESIGN"
    twice = status(state, user_decisions=[decision(name), decision(name, "answered")])
    assert found(STATUS, twice) == [("decision-repeated", "/user_decisions/1")]
    hints = {"UD-1": "Give one of them another id.", "UD-APPROVE-DESIGN": "Keep the newer one, and remove the other."}
    assert [one.hint for one in STATUS.read_model(read_object(json.dumps(twice).encode()))[1]] == [hints[name]]


@pytest.mark.parametrize("state", ["DESIGN", "PLAN", "IMPLEMENT_LOOP", "FIX_TESTS", "INTEGRATE", "RELEASE", "DONE"])
def test_a_session_does_not_go_on_while_a_question_waits(state: str) -> None:
    assert found(STATUS, status(state, user_decisions=[decision()])) == [("decision-left", "/user_decisions/0/status")]


def tasks(text: str) -> bytes:
    return f"tasks:\n{text}".encode()


ONE = "- {id: T-001, status: not-started, goal: g, acceptance_checks: ['cmd: x']%s}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ONE % "", None),
        (" []", ("schema", "/tasks")),
        ("- {status: blocked, goal: g, acceptance_checks: ['cmd: x']}", ("schema", "/tasks/0/id")),
        ("- {id: T-001, goal: g, acceptance_checks: ['cmd: x']}", ("schema", "/tasks/0/status")),
        ("- {id: T-001, status: blocked, acceptance_checks: ['cmd: x']}", ("schema", "/tasks/0/goal")),
        ("- {id: T-001, status: blocked, goal: g}", ("schema", "/tasks/0/acceptance_checks")),
        ("- {id: T-001, status: blocked, goal: g, acceptance_checks: []}", ("schema", "/tasks/0/acceptance_checks")),
        ("- {id: T-001, status: done, goal: g, acceptance_checks: ['cmd: x']}", ("schema", "/tasks/0/status")),
        ("- {id: T-001, status: blocked, goal: g, acceptance_checks: [cmd: npm test]}", None),
        (
            "- {id: T-001, status: blocked, goal: g, acceptance_checks: [{cmd: a, manual: b}]}",
            ("schema", "/tasks/0/acceptance_checks/0"),
        ),
        (
            "- id: T-001\n  status: blocked\n  goal: g\n  acceptance_checks:\n  - cmd:\n",
            ("check-form", "/tasks/0/acceptance_checks/0"),
        ),
        (ONE % "" + ONE % "", ("task-repeated", "/tasks/1/id")),
        (ONE % ", depends_on: [T-009]", ("dependency-unknown", "/tasks/0")),
        (ONE % ", deps: [T-009]", ("dependency-unknown", "/tasks/0")),
        (ONE % ", deps: T-001", ("dependency-cycle", "/tasks/0")),
        (ONE % ", depends_on: [], deps: [T-001]", ("(key-misspelled)", "/tasks/0/deps")),
        (ONE % ", risk_flags: [data]", ("risk-flag-unknown", "/tasks/0/risk_flags/0")),
        (ONE % ", context_files: [/etc/passwd]", ("path-outside", "/tasks/0/context_files/0")),
        (ONE % ", depends_on:", None),
        (ONE % ", risk_flags: [Security, ' breaking change']", None),
        (ONE.replace("cmd:", "Cmd :") % "", ("check-form", "/tasks/0/acceptance_checks/0")),
        *((ONE % f", {k}: x", ("(key-misspelled)", f"/tasks/0/{k}")) for k in ("dependsOn", "titles")),
        *((ONE % f", {k}: x", ("key-misspelled", f"/tasks/0/{k}")) for k in ("risk_flag", "riskFlags", "risk-flags")),
        (ONE % ", risk_flags: [], riskflags: [security]", ("key-misspelled", "/tasks/0/riskflags")),
        *(
            (ONE % "" + ONE.replace("001", "002") % f", {key}: {names}", ("(key-misspelled)", f"/tasks/1/{key}"))
            for key, names in (("blocked_by", "[T-001, T-002]"), ("needs", "'T-001, T-009'"), ("parent", "T-001"))
        ),
        *(
            (ONE % f", {key}: {names}", ("(key-misspelled)", f"/tasks/0/{key}"))
            for key, names in (("dependencies", "[T-009]"), ("blocked_by", "T-009"), ("needs", "[T-0010, T-009]"))
        ),
        (ONE % ", related: [T-001], depends_on: []", None),
        (ONE % ", related: [AC-009], tags: [], estimate: 3", None),
    ],
)
def test_a_plan_is_judged_by_its_rules(text: str, expected: tuple[str, str] | None) -> None:
    assert found(TASKS, tasks(text)) == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("dependsOn", "Did you mean `depends_on`?"),
        ("related", "If it depends on them, name them in `depends_on` too; else write `depends_on: []`."),
    ],
)
def test_a_key_that_names_tasks_keeps_its_meaning_by_the_hint(key: str, hint: str) -> None:
    (said,) = TASKS.check(TASKS.read(tasks(ONE % f", {key}: [T-001]")))
    assert said.hint == hint


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("cmd:", "The check is empty. Write the command after `cmd:`, or what a person does after `manual:`."),
        (" ", "The check is empty. Write the command after `cmd:`, or what a person does after `manual:`."),
        ("CMD: x", "The check begins with neither `cmd:` nor `manual:`. Did you mean `cmd:`?"),
        ("http://x", "The check begins with neither `cmd:` nor `manual:`. Begin it with one of them."),
    ],
)
def test_a_check_without_its_form_says_what_it_lacks(check: str, said: str) -> None:
    (found,) = KINDS["agent-input"].check(read_object(json.dumps(agent_input(acceptance_checks=[check])).encode()))
    assert found.text == said


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [([], ["/criteria"]), ([{"id": "AC-001", "description": "x"}], ["/criteria/0/verify"]), (None, [])],
)
def test_criteria_without_the_rest_of_the_key_are_read(criteria: list[Any] | None, expected: list[str]) -> None:
    written = {"criteria": acceptance()["acceptance_criteria"] if criteria is None else criteria}
    said = ACCEPTANCE.check(ACCEPTANCE.read(json.dumps(written).encode()))
    assert [one.path for one in said] == expected
    found, _ = check_document(json.dumps(written).encode(), None)
    assert found == (None if expected else "session-acceptance"), "the entries show the kind"


def test_a_bare_array_of_criteria_is_named_as_one() -> None:
    raw = json.dumps(acceptance()["acceptance_criteria"]).encode()
    (said,) = check_document(raw, "session-acceptance")[1]
    assert (said.code, said.hint) == ("bare-array", 'Write it as `{"acceptance_criteria": […]}`.')


CRITERION = acceptance()["acceptance_criteria"][0]


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ([], ("schema", "/acceptance_criteria")),
        (None, ("schema", "/acceptance_criteria")),
        *(([without(CRITERION, key)], ("schema", f"/acceptance_criteria/0/{key}")) for key in CRITERION),
        ([{**CRITERION, "verify": []}], ("schema", "/acceptance_criteria/0/verify")),
        ([CRITERION, CRITERION], ("criterion-repeated", "/acceptance_criteria/1/id")),
        ([{**CRITERION, "id": "AC-1"}], ("(criterion-id)", "/acceptance_criteria/0/id")),
        ([{**CRITERION, "verify": ["cmd: "]}], ("check-form", "/acceptance_criteria/0/verify/0")),
        ([{**CRITERION, "verify": ""}], ("check-form", "/acceptance_criteria/0/verify/0")),
        ([{**CRITERION, "verify": ["cmd: x", ""]}], ("(check-form)", "/acceptance_criteria/0/verify/1")),
    ],
)
def test_acceptance_has_a_criterion_with_id_description_and_verify(criteria: Any, expected: tuple[str, str]) -> None:
    assert found(ACCEPTANCE, {} if criteria is None else {"acceptance_criteria": criteria}) == [expected]


def test_an_answer_approves_by_a_word_and_asks_for_changes_with_a_text() -> None:
    approvals = ["approved", "approved, but look at the names"]
    requests = ["changes-requested: x", "changes-requested:\n- x"]
    neither = ["approvedish", "approved-later", "not approved", "changes-requested:", "changes requested: x"]
    answers = [*approvals, *requests, *neither]
    assert [text for text in answers if is_approval(text)] == approvals
    assert [text for text in answers if is_change_request(text)] == requests


@pytest.mark.parametrize("path", ["", " ", "/a", "../a", "a/../../b", "C:\\", "a\\..\\b", "~/a", "a\0b", "\\\\host\\a"])
def test_a_path_that_leads_out_of_the_repository_is_seen(path: str) -> None:
    assert not is_inside(path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=100 if NIGHTLY else 15, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (INPUT, agent_input(**changed("a", "added"))),
        (OUTPUT, agent_output()),
        (STATUS, status("ASK_USER", user_decisions=[decision(), *GATES], retry_counts={"T-001": {"FIX_TESTS": 1}})),
        (ACCEPTANCE, acceptance()),
        (TASKS, read_mapping(PLAN.encode()).value),
    ],
)
def test_any_value_anywhere_is_found_at_its_place_without_a_crash(kind: Any, value: Any, data: st.DataObject) -> None:
    changed = json.loads(json.dumps(value))
    part: Any = changed
    while True:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        key = data.draw(st.sampled_from(keys))
        inner = part[key]
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
            break
        part = inner
    part[key] = data.draw(VALUES)
    for finding in kind.check(kind.read(json.dumps(changed).encode())):
        assert finding.message.endswith((".", "]", ")"))
        assert finding.line
