"""The table of kinds: the marks of each kind of document or folder, and where its model, rules and fixes are.

Importing this module fills the table of ``accord.core.kinds``. The code of a kind is imported when it is first used.
"""

from __future__ import annotations

from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from accord.core.kinds import FOLDERS, KINDS, READERS, Contents, FolderKind, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _load(model: str, *functions: str) -> Contents:
    """Import a model, its rules and its fixes by their names below ``accord``."""
    return Contents(*(resolve_name(f"accord.{name}") for name in (model, *functions)))


def _kind(name: str, marks: Mapping[str, Any], *code: str, **options: Any) -> Kind:
    return Kind(name, partial(_load, *code), marks, **options)


def _later(name: str) -> Callable[[Any], Any]:
    """Return a function of one argument that is imported when it is called."""
    return lambda argument: resolve_name(f"accord.{name}")(argument)


def _is(of_type: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, of_type)


def _is_given(value: Any) -> bool:
    return value is not None


_RESULTS = "results.models"
_SESSIONS = "sessions.models"
_TABLE = (
    _kind(
        "planner-result",
        {"role": "planner"},
        f"{_RESULTS}:PlannerResult",
        "results.planner.rules:result_findings",
        "results.fixes:fix_plan",
    ),
    _kind(
        "implementor-result",
        {"role": "implementor"},
        f"{_RESULTS}:ImplementorResult",
        "results.implementor.rules:implementor_findings",
        "results.fixes:fix_implementation",
        own_keys=frozenset({"patch"}),
    ),
    _kind(
        "reviewer-result",
        {"role": "reviewer"},
        f"{_RESULTS}:ReviewerResult",
        "results.reviewer.rules:reviewer_findings",
        "results.fixes:fix_review",
    ),
    _kind(
        "runner-workflow",
        {"on": _later("workflows.rules:is_reusable")},
        "workflows.models:Workflow",
        "workflows.rules:runner_findings",
        form="yaml",
    ),
    _kind(
        "agent-registry",
        {"agents": _is_given},
        "agents.registry:Registry",
        "agents.registry_rules:own_findings",
        form="yaml",
    ),
    _kind("accord-config", {"starts": _is_given}, "starts.config:AccordConfig", form="yaml"),
    _kind("plan-settings", {"plan": _is_given}, "results.planner.structure:PlanSettings", form="yaml"),
    _kind("autofix-facts", {"kind": "autofix-facts"}, "loops.autofix:AutofixFacts"),
    _kind(
        "thread-answers",
        {"role": "bot-comments"},
        "loops.bot_comments:ThreadAnswers",
        "loops.bot_comments:answer_findings",
    ),
    _kind("bot-comments-facts", {"kind": "bot-comments-facts"}, "loops.bot_comments:BotCommentFacts"),
    _kind("loop-history", {"loop": _is_given, "iteration": _is_given}, "loops.state:HistoryLine"),
    _kind("keepalive-facts", {"kind": "keepalive-facts"}, "loops.complete:KeepaliveFacts"),
    _kind("verify-facts", {"kind": "verify-facts"}, "loops.verify:VerifyFacts"),
    _kind("verdict", {"role": "verifier"}, "loops.verify:Verdict", "loops.verify:verdict_findings"),
    _kind(
        "agent-input",
        {"task": _is(dict)},
        f"{_SESSIONS}:AgentInput",
        "sessions.rules:input_findings",
        is_alone=True,
        has_role=True,
    ),
    _kind(
        "agent-output",
        {"status": _is(str), "gates": _is(dict)},
        f"{_SESSIONS}:AgentOutput",
        "sessions.rules:output_findings",
        is_alone=True,
        has_role=True,
    ),
    _kind(
        "session-status",
        {"current_state": _is(str)},
        f"{_SESSIONS}:SessionStatus",
        "sessions.rules:status_findings",
        is_alone=True,
    ),
    _kind(
        "session-tasks", {"tasks": _is(list)}, f"{_SESSIONS}:SessionTasks", "sessions.rules:tasks_findings", form="yaml"
    ),
    _kind(
        "session-acceptance",
        {"acceptance_criteria": _is(list)},
        f"{_SESSIONS}:Acceptance",
        "sessions.rules:acceptance_findings",
        is_alone=True,
        list_key="acceptance_criteria",
    ),
    _kind("next-query-response", {"kind": "query", "is_query": True}, "missions.models:NextQueryResponse"),
    _kind(
        "stale-status",
        {"status": lambda value: value in ("fresh", "stale", "not_applicable")},
        "missions.models:StaleStatus",
    ),
    _kind("handoff", {"metadata": _is(dict)}, "handoffs.models:Handoff", "handoffs.rules:handoff_findings"),
    _kind(
        "run-record",
        {"id": _is(str), "kind": _is(str), "result": _is(dict), "ended_at": _is(str)},
        "records.models:PublicRecord",
    ),
)

READERS["yaml"] = _later("files.yaml:read_mapping")
KINDS.update((kind.name, kind) for kind in _TABLE)
FOLDERS["session"] = FolderKind(_later("sessions.folder:is_session"), _later("sessions.folder_rules:check_session"))
