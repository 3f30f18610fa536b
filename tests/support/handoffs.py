"""Handoffs as tests need them: valid parts, and tasks made of them; a test says only what is different."""

import copy
import json
from datetime import UTC, datetime
from typing import Any

from accord.core.documents import Document
from accord.core.findings import Finding
from accord.core.kinds import KINDS
from accord.handoffs.models import normalise
from accord.handoffs.plan import Author

AT = "2026-11-02T09:00:00Z"
LATER = "2026-11-02T10:00:00Z"
NOW = datetime(2026, 11, 28, tzinfo=UTC)
PLAN = {"createdAt": "2026-11-01T08:00:00Z", "goals": ["Export"], "steps": ["Write it"], "risks": ["None known"]}
PLANNED = {"gherkinScenarios": ["Given a table"], "unitTestIntent": ["rows"], "integrationTestIntent": []}
IMPLEMENTED = {"testsAddedOrUpdated": ["tests/test_csv.py"], "evidenceLinks": [], "commandsRun": ["pytest"]}
OUTPUTS = {"planningArtifact": PLAN, "testingArtifacts": {"planned": PLANNED}}
REVIEW = {"changeSummary": ["Adds an export"], "filesTouched": ["csv.py"], "decision": "approved"}
VERIFICATION = {"commands": ["pytest"], "result": "passed", "notes": ["All green"]}
QUESTION = {
    "question": "Which separator?",
    "options": [{"label": "Comma", "description": "As most do"}, {"label": "Tab", "description": "As some do"}],
    "recommendedOption": "Comma",
    "requestedAt": AT,
}
DONE = {"completedAt": AT, "summary": ["Exports work"], "verification": ["pytest"]}
WORKFLOW = {"owner": "codex", "baseBranch": "main", "branchName": "task/t-00123-export"}
EVERYTHING = {
    "workflow": WORKFLOW,
    "planningArtifact": PLAN,
    "testingArtifacts": {"planned": PLANNED, "implemented": IMPLEMENTED},
    "reviewArtifact": REVIEW,
    "verificationArtifact": VERIFICATION,
    "awaitingHumanArtifact": QUESTION,
    "doneArtifact": DONE,
}

EDGES = {
    "backlog": "planning implementing done cancelled",
    "planning": "backlog implementing awaiting_human cancelled",
    "implementing": "backlog review awaiting_human cancelled",
    "review": "implementing verification done awaiting_human cancelled",
    "verification": "implementing done awaiting_human cancelled",
    "awaiting_human": "planning implementing review cancelled",
    "done": "review cancelled",
    "cancelled": "backlog",
}
"""The moves from each status."""


def handoff(status: str = "implementing", **metadata: Any) -> dict[str, Any]:
    """A task in a status, with these artifacts."""
    given = {"canonicalTaskId": "T-00123", **copy.deepcopy(metadata)}
    return normalise({"title": "Export tables", "status": status, "metadata": given})


def patch(**metadata: Any) -> dict[str, Any]:
    """A patch of the metadata."""
    return {"metadata": copy.deepcopy(metadata)}


def by(role: str, at: str = AT) -> Author:
    return Author(role, at)


def codes(reasons: Any) -> list[tuple[str, str]]:
    """The codes of findings, each with its place."""
    return [(reason.code, reason.path) for reason in reasons]


def checked(task: Any) -> tuple[dict[str, Any], list[Finding]]:
    """Return a task in today's form, and what the check of its document finds."""
    return normalise(task), KINDS["handoff"].check(Document(task, json.dumps(task)))
