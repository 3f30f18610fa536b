"""The table of kinds: the marks of each kind of document or folder, and the package that knows it.

Importing this module fills the table of ``accord.core.kinds``. Each function imports the code of its kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from accord.core.findings import Finding
from accord.core.kinds import FOLDERS, KINDS, READERS, Contents, Contract, FolderKind, Kind
from accord.core.shapes import Located


def _is(of_type: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, of_type)


def _are_tasks(value: Any) -> bool:
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else (None,)
    tasks = (entry for entry in entries if isinstance(entry, dict))
    return not entries or any(is_mark(task.get(key)) for task in tasks for key, is_mark in _TASK.items())


def _are_criteria(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(entry, dict) and "verify" in entry for entry in value)


def _is_given(value: Any) -> bool:
    return value is not None


_TASK = {"metadata": _is(dict), "acceptanceCriteria": _is_given}  # a new one has no metadata yet


def _is_reusable(value: Any) -> bool:
    from accord.workflows.rules import is_reusable

    return is_reusable(value)


def _read_yaml(raw: bytes) -> Located:
    from accord.files.yaml import read_mapping

    return read_mapping(raw)


def _is_session(folder: Path) -> bool:
    from accord.sessions.folder import is_session

    return is_session(folder)


def _check_session(folder: Path) -> list[tuple[Path, str, list[Finding]]]:
    from accord.sessions.folder_rules import check_session

    return check_session(folder)


def _planner_result() -> Contents:
    from accord.results.fixes import fix_plan
    from accord.results.models import PlannerResult
    from accord.results.planner.rules import result_findings

    return Contents(PlannerResult, result_findings, fix_plan)


def _implementor_result() -> Contents:
    from accord.results.fixes import fix_implementation
    from accord.results.implementor.rules import findings_without_repository
    from accord.results.models import ImplementorResult

    return Contents(ImplementorResult, findings_without_repository, fix_implementation)


def _reviewer_result() -> Contents:
    from accord.results.fixes import fix_review
    from accord.results.models import ReviewerResult
    from accord.results.reviewer.rules import reviewer_findings

    return Contents(ReviewerResult, reviewer_findings, fix_review)


def _runner_workflow() -> Contents:
    from accord.workflows.models import Workflow
    from accord.workflows.rules import runner_findings

    return Contents(Workflow, runner_findings)


def _agent_registry() -> Contents:
    from accord.agents.registry import Registry
    from accord.agents.registry_rules import own_findings

    return Contents(Registry, own_findings)


def _accord_config() -> Contents:
    from accord.starts.config import AccordConfig

    return Contents(AccordConfig)


def _plan_settings() -> Contents:
    from accord.results.planner.structure import PlanSettings

    return Contents(PlanSettings)


def _loops() -> dict[str, Contents]:
    from accord.loops import bot_comments, complete, follow_up, keepalive, state, verify

    return {
        "autofix": Contents(keepalive.AutofixFacts),
        "answers": Contents(bot_comments.ThreadAnswers, bot_comments.answer_findings),
        "bot-comments": Contents(bot_comments.BotCommentFacts),
        "history": Contents(state.HistoryLine),
        "keepalive": Contents(complete.KeepaliveFacts),
        "verify": Contents(verify.VerifyFacts),
        "verdict": Contents(follow_up.Verdict, verify.verdict_findings),
    }


def _sessions() -> dict[str, Contents]:
    from accord.core.clock import SystemClock
    from accord.sessions import models, output_rules, rules

    return {
        "input": Contents(models.AgentInput, rules.input_findings),
        "output": Contents(models.AgentOutput, output_rules.output_findings),
        "status": Contents(models.SessionStatus, lambda found: rules.status_findings(found, SystemClock().now())),
        "tasks": Contents(models.SessionTasks, rules.tasks_findings),
        "acceptance": Contents(models.Acceptance, rules.acceptance_findings),
    }


def _missions() -> dict[str, Contents]:
    from accord.missions import models

    return {"query": Contents(models.NextQueryResponse), "stale": Contents(models.StaleStatus)}


def _handoff() -> Contents:
    from accord.core.clock import SystemClock
    from accord.handoffs.models import Handoff
    from accord.handoffs.rules import handoff_findings, store_findings

    now = SystemClock().now
    return Contents(
        Handoff,
        lambda handoff: handoff_findings(handoff, now()),
        store_findings=lambda value: store_findings(value, now()),
    )


def _run_record() -> Contents:
    from accord.records.models import PublicRecord

    return Contents(PublicRecord)


_RESULTS = Contract("workflow-contracts", "1.0.0")
_RUNNERS = Contract("runner-output-contract", "1.0")
_SESSIONS = Contract("global-agent-contract", None)
_MISSIONS = Contract("mission-contracts", "078")
_HANDOFFS = Contract("handoff-schema", "2026-02-18")
_CRITERIA = "acceptance_criteria"


def _of(contract: Contract, *kinds: Kind) -> Iterator[Kind]:
    return (replace(kind, contract=contract) for kind in kinds)


_TABLE = (
    *_of(
        _RESULTS,
        Kind("planner-result", _planner_result, {"role": "planner"}),
        Kind("implementor-result", _implementor_result, {"role": "implementor"}, own_keys=frozenset({"patch"})),
        Kind("reviewer-result", _reviewer_result, {"role": "reviewer"}),
    ),
    *_of(_RUNNERS, Kind("runner-workflow", _runner_workflow, {"on": _is_reusable}, form="yaml")),
    Kind("agent-registry", _agent_registry, {"agents": _is_given}, form="yaml"),
    Kind(
        "accord-config",
        _accord_config,
        dict.fromkeys(("starts", "approvals", "branch_prefix"), _is_given),
        form="yaml",
        has_any=True,
    ),
    Kind("plan-settings", _plan_settings, {"plan": _is_given}, form="yaml"),
    Kind("autofix-facts", lambda: _loops()["autofix"], {"kind": "autofix-facts"}),
    Kind("thread-answers", lambda: _loops()["answers"], {"role": "bot-comments"}),
    Kind("bot-comments-facts", lambda: _loops()["bot-comments"], {"kind": "bot-comments-facts"}),
    Kind("loop-history", lambda: _loops()["history"], {"loop": _is_given, "iteration": _is_given}),
    Kind("keepalive-facts", lambda: _loops()["keepalive"], {"kind": "keepalive-facts"}),
    Kind("verify-facts", lambda: _loops()["verify"], {"kind": "verify-facts"}),
    Kind("verdict", lambda: _loops()["verdict"], {"role": "verifier"}),
    *_of(
        _SESSIONS,
        Kind("agent-input", lambda: _sessions()["input"], {"task": _is(dict)}, is_alone=True, has_role=True),
        Kind(
            "agent-output",
            lambda: _sessions()["output"],
            {"status": _is(str), "gates": _is(dict)},
            is_alone=True,
            has_role=True,
        ),
        Kind("session-status", lambda: _sessions()["status"], {"current_state": _is(str)}, is_alone=True),
        Kind("session-tasks", lambda: _sessions()["tasks"], {"tasks": _is(list)}, form="yaml"),
        Kind(
            "session-acceptance",
            lambda: _sessions()["acceptance"],
            {_CRITERIA: _is(list), "criteria": _are_criteria},
            has_any=True,
            is_alone=True,
            list_key=_CRITERIA,
        ),
    ),
    *_of(
        _MISSIONS,
        Kind("next-query-response", lambda: _missions()["query"], {"kind": "query", "is_query": True}),
        Kind(
            "stale-status",
            lambda: _missions()["stale"],
            {"status": lambda value: value in ("fresh", "stale", "not_applicable")},
        ),
    ),
    *_of(_HANDOFFS, Kind("handoff", _handoff, {**_TASK, "tasks": _are_tasks}, has_any=True, is_alone=True)),
    Kind("run-record", _run_record, {"id": _is(str), "kind": _is(str), "result": _is(dict), "ended_at": _is(str)}),
)

READERS["yaml"] = _read_yaml
KINDS.update((kind.name, kind) for kind in _TABLE)
FOLDERS["session"] = FolderKind(_is_session, _check_session)
