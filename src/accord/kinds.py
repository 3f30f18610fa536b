"""The table of kinds: the marks of each kind of document or folder, and the package that knows it.

Importing this module fills the table of ``accord.core.kinds``. The code of a kind is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from accord.core.kinds import FOLDERS, KINDS, READERS, Contents, Contract, FolderKind, Kind


def _imported_name(name: str) -> Any:
    """Return what a name such as ``files.yaml:read_mapping`` stands for."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"accord.{module}"), attribute)


def _contents(*names: str) -> Callable[[], Contents]:
    """Return the loader of a kind's model, rules, and correction."""
    return lambda: Contents(*map(_imported_name, names))


def _calls(name: str) -> Callable[[Any], Any]:
    return lambda value: _imported_name(name)(value)


def _is(of_type: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, of_type)


def _is_given(value: Any) -> bool:
    return value is not None


def _session_status() -> Contents:
    from accord.core.clock import SystemClock
    from accord.sessions.models import SessionStatus
    from accord.sessions.rules import status_findings

    return Contents(SessionStatus, lambda status: status_findings(status, SystemClock().now()))


def _handoff() -> Contents:
    from accord.core.clock import SystemClock
    from accord.handoffs.models import Handoff
    from accord.handoffs.rules import handoff_findings

    return Contents(Handoff, lambda handoff: handoff_findings(handoff, SystemClock().now()))


_RESULTS = Contract("workflow-contracts", "1.0.0")
_RUNNERS = Contract("runner-output-contract", "1.0")
_SESSIONS = Contract("global-agent-contract", None)
_MISSIONS = Contract("mission-contracts", "078")
_HANDOFFS = Contract("handoff-schema", "2026-02-18")

_TABLE = (
    Kind(
        "planner-result",
        _contents("results.models:PlannerResult", "results.planner.rules:result_findings", "results.fixes:fix_plan"),
        {"role": "planner"},
        contract=_RESULTS,
    ),
    Kind(
        "implementor-result",
        _contents(
            "results.models:ImplementorResult",
            "results.implementor.rules:findings_without_repository",
            "results.fixes:fix_implementation",
        ),
        {"role": "implementor"},
        own_keys=frozenset({"patch"}),
        contract=_RESULTS,
    ),
    Kind(
        "reviewer-result",
        _contents(
            "results.models:ReviewerResult", "results.reviewer.rules:reviewer_findings", "results.fixes:fix_review"
        ),
        {"role": "reviewer"},
        contract=_RESULTS,
    ),
    Kind(
        "runner-workflow",
        _contents("workflows.models:Workflow", "workflows.rules:runner_findings"),
        {"on": _calls("workflows.rules:is_reusable")},
        form="yaml",
        contract=_RUNNERS,
    ),
    Kind(
        "agent-registry",
        _contents("agents.registry:Registry", "agents.registry_rules:own_findings"),
        {"agents": _is_given},
        form="yaml",
    ),
    Kind(
        "accord-config",
        _contents("starts.config:AccordConfig"),
        dict.fromkeys(("starts", "approvals", "branch_prefix"), _is_given),
        form="yaml",
        has_any=True,
    ),
    Kind("plan-settings", _contents("results.planner.structure:PlanSettings"), {"plan": _is_given}, form="yaml"),
    Kind("autofix-facts", _contents("loops.autofix:AutofixFacts"), {"kind": "autofix-facts"}),
    Kind(
        "thread-answers",
        _contents("loops.bot_comments:ThreadAnswers", "loops.bot_comments:answer_findings"),
        {"role": "bot-comments"},
    ),
    Kind("bot-comments-facts", _contents("loops.bot_comments:BotCommentFacts"), {"kind": "bot-comments-facts"}),
    Kind("loop-history", _contents("loops.state:HistoryLine"), {"loop": _is_given, "iteration": _is_given}),
    Kind("keepalive-facts", _contents("loops.complete:KeepaliveFacts"), {"kind": "keepalive-facts"}),
    Kind("verify-facts", _contents("loops.verify:VerifyFacts"), {"kind": "verify-facts"}),
    Kind("verdict", _contents("loops.follow_up:Verdict", "loops.verify:verdict_findings"), {"role": "verifier"}),
    Kind(
        "agent-input",
        _contents("sessions.models:AgentInput", "sessions.rules:input_findings"),
        {"task": _is(dict)},
        is_alone=True,
        has_role=True,
        contract=_SESSIONS,
    ),
    Kind(
        "agent-output",
        _contents("sessions.models:AgentOutput", "sessions.rules:output_findings"),
        {"status": _is(str), "gates": _is(dict)},
        is_alone=True,
        has_role=True,
        contract=_SESSIONS,
    ),
    Kind("session-status", _session_status, {"current_state": _is(str)}, is_alone=True, contract=_SESSIONS),
    Kind(
        "session-tasks",
        _contents("sessions.models:SessionTasks", "sessions.rules:tasks_findings"),
        {"tasks": _is(list)},
        form="yaml",
        contract=_SESSIONS,
    ),
    Kind(
        "session-acceptance",
        _contents("sessions.models:Acceptance", "sessions.rules:acceptance_findings"),
        {"acceptance_criteria": _is(list)},
        is_alone=True,
        list_key="acceptance_criteria",
        contract=_SESSIONS,
    ),
    Kind(
        "next-query-response",
        _contents("missions.models:NextQueryResponse"),
        {"kind": "query", "is_query": True},
        contract=_MISSIONS,
    ),
    Kind(
        "stale-status",
        _contents("missions.models:StaleStatus"),
        {"status": lambda value: value in ("fresh", "stale", "not_applicable")},
        contract=_MISSIONS,
    ),
    Kind("handoff", _handoff, {"metadata": _is(dict)}, contract=_HANDOFFS),
    Kind(
        "run-record",
        _contents("records.models:PublicRecord"),
        {"id": _is(str), "kind": _is(str), "result": _is(dict), "ended_at": _is(str)},
    ),
)

READERS["yaml"] = _calls("files.yaml:read_mapping")
KINDS.update((kind.name, kind) for kind in _TABLE)
FOLDERS["session"] = FolderKind(_calls("sessions.folder:is_session"), _calls("sessions.folder_rules:check_session"))
