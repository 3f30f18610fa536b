"""The files that the tools know, and the tools as functions of them.

Agents read their summaries and the descriptions of their inputs.

Errors are those of accord: what is wrong, and a hint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from accord.core.clock import SystemClock
from accord.core.documents import MAX_BYTES, short_name
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, has_errors, warning
from accord.core.frozen import Frozen
from accord.core.kinds import KINDS, check_document
from accord.core.schemas import strict_schema
from accord.core.suggest import did_you_mean
from accord.files.store import write_whole
from accord.git.patch_text import lines_of_files
from accord.git.program import Git, GitFailed
from accord.results.bodies import read_body
from accord.results.implementor.rules import BLOCKERS, audit_scope
from accord.results.run import example_folder
from accord.results.status import WORK_ITEM
from accord.text.markdown import as_code, as_entry, as_quote, with_label

ResultRole = Literal["planner", "implementor", "reviewer"]

SNAPSHOT = "work-items.json"
CHANGES = "change-lines.json"
RESULT = "result.json"


class Workspace(Frozen):
    """Files that a job gave its agent. No tool reaches another file, except through git's diff of ``root``."""

    run_dir: Path  # holds the result, the snapshot, and the lines of the reviewed change
    root: Path
    role: ResultRole
    base: str = ""  # the commit that the agent started from, or that the reviewed branch is compared with; else empty
    session: Path | None = None  # its folder

    @property
    def kind(self) -> str:
        """The kind of the result."""
        return f"{self.role}-result"

    @property
    def result(self) -> Path:
        """The file that the result is written to."""
        return self.run_dir / RESULT

    def items(self) -> dict[str, dict[str, Any]]:
        """Return the work items of the snapshot by number. Raises WrongUsage if the job took none."""
        hint = f"The job takes one with `accord items list --as-of run --format json > {SNAPSHOT}` in the run folder."
        raw = self._read(SNAPSHOT)
        if raw is None:
            raise WrongUsage("The job took no snapshot of work items.", hint=hint)
        try:
            items = json.loads(raw)["items"]
            return {str(item["id"]): item for item in items}
        except (ValueError, KeyError, TypeError) as error:
            raise WrongUsage("The snapshot of work items cannot be read.", hint=hint) from error

    def changes(self) -> dict[str, list[int]] | None:
        """Return the lines that the diff of the reviewed change shows of each file; None if the job gave no diff."""
        raw = self._read(CHANGES)
        files: dict[str, list[int]] | None = None if raw is None else json.loads(raw)
        return files

    def _read(self, name: str) -> bytes | None:
        """Read a file that the job left in the run folder; None without one."""
        path = self.run_dir / name
        is_plain = path.is_file() and not path.is_symlink()
        return path.read_bytes() if is_plain and path.stat().st_size <= MAX_BYTES else None

    def item(self, number: str | int) -> dict[str, Any]:
        """Return a work item of the snapshot. Raises WrongUsage if it has no such item."""
        items, wanted = self.items(), str(number).strip().removeprefix("#")
        if wanted not in items:
            known = ", ".join(f"#{each}" for each in list(items)[:20]) or "none"
            raise WrongUsage(f"The snapshot has no work item `{number}`.", hint=f"It has: {known}.")
        return items[wanted]


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(
            "`number` is not the number of a work item", "Write a number such as 42, or a text such as `#42`."
        )
    return value


Result = Annotated[dict[str, Any], Field(description="The whole result: one object, as `contract` describes it.")]
ItemNumber = Annotated[str | int, BeforeValidator(_number), Field(description="Number of a work item: 42 or #42.")]
FilePath = Annotated[str, Field(description="Path from the top of the repository.")]

DIFF = (
    "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames",
    "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short",
)  # fmt: skip


class Option(BaseModel):
    """A way out of a blocker."""

    model_config = ConfigDict(extra="forbid")

    choice: Annotated[str, Field(description="A decision that a person could take, in one sentence.")]
    trade_off: Annotated[str, Field(description="Its cost and its gain.")]


class Blocker(BaseModel):
    """A report that the work item cannot be finished without a decision."""

    model_config = ConfigDict(extra="forbid")

    type: Literal[BLOCKERS]  # type: ignore[valid-type]
    description: Annotated[str, Field(description="The obstacle, with the facts that a reader needs.")]
    options: Annotated[list[Option], Field(min_length=2, description="At least two ways out.")]
    recommendation: Annotated[str, Field(description="The option that you recommend, and why.")]
    impact: Annotated[str, Field(description="The work that stays undone until someone decides.")]
    spec: Annotated[str, Field(description="Path of the spec; needed for the types spec-…")] = ""
    section: Annotated[str, Field(description="Section of the spec; needed for the types spec-…")] = ""
    quote: Annotated[str, Field(description="The words of the spec in question; needed for the types spec-…")] = ""

    def summary(self) -> str:
        """Return the summary of a blocked result with every part that the contract asks for."""
        pairs = ((with_label("Choice:", o.choice), with_label("Trade-off:", o.trade_off)) for o in self.options)
        parts = {
            "Type": self.type,
            "Description": self.description,
            "Spec": self.spec and as_code(self.spec),
            "Section": self.section,
            "Quote": as_quote(self.quote) if "\n" in self.quote.strip() else self.quote and f'"{self.quote}"',
            "Options": "\n".join(as_entry(f"{n}.", with_label(*pair)) for n, pair in enumerate(pairs, 1)),
            "Recommendation": self.recommendation,
            "Impact": self.impact,
        }
        return "\n\n".join(with_label(f"{label}:", text) for label, text in parts.items() if text)


def contract(
    workspace: Workspace, role: Annotated[ResultRole | None, Field(description="Default: your own role.")] = None
) -> dict[str, Any]:
    """Show what your role must write: the JSON Schema of the result, and a complete example."""
    role = role or workspace.role
    example = example_folder() / f"{role}-result.json"
    return {
        "role": role,
        "kind": f"{role}-result",
        "schema": strict_schema(KINDS[f"{role}-result"].model),
        "example": json.loads(example.read_text(encoding="utf-8")),
    }


def check_result(workspace: Workspace, result: Result) -> dict[str, Any]:
    """Check a result without writing it. Each finding has a place and a hint."""
    _, findings, remarks = _checked_result(workspace, result)
    return {"ok": not has_errors(findings), "findings": [finding.as_json() for finding in findings], "remarks": remarks}


def submit_result(workspace: Workspace, result: Result) -> dict[str, Any]:
    """Check the result and write it to its file; a result that breaks the contract is refused. May be repeated."""
    content, findings, remarks = _checked_result(workspace, result)
    if has_errors(findings):
        raise BrokenContract("The result breaks its contract.", findings=findings)
    write_whole(workspace.result, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    warnings = [finding.as_json() for finding in findings]
    return {"written": workspace.result.name, "warnings": warnings, "remarks": remarks}


def _checked_result(
    workspace: Workspace, result: dict[str, Any]
) -> tuple[dict[str, Any], Sequence[Finding], Sequence[str]]:
    """Check a result as ``accord check`` does, after a completed change got its patch, with remarks, from the tree."""
    remarks: Sequence[str] = ()
    warnings = list[Finding]()
    raw = json.dumps(result, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if workspace.role == "implementor" and workspace.base and result.get("outcome") == "completed":
        from accord.git.extraction import extract
        from accord.results.run import with_patch
        from accord.runner.registry import registry_at

        own = registry_at(workspace.root).state_patterns
        found = extract(workspace.root, workspace.base, without=workspace.result, state_files=own)
        result, remarks = with_patch(raw, found.patch, "result"), found.remarks
        raw = json.dumps(result, ensure_ascii=False).encode("utf-8", "surrogatepass")
        if result["outcome"] != "completed":
            base = short_name(workspace.base)
            message = f"The work tree has no change since {base}: the result is a validation-failure."
            again = "Make the change and send the result again. If none is needed, say why in the summary."
            warnings.append(warning("patch-missing", message, "/patch", hint=again))
    hint = f'Write `"role": "{workspace.role}"`.'  # the usual one names an option of a command
    findings = [
        replace(one, hint=hint) if one.path == "/role" else one for one in check_document(raw, workspace.kind)[1]
    ]
    return result, [*findings, *warnings], remarks


def report_blocked(workspace: Workspace, blocker: Blocker) -> dict[str, Any]:
    """End with a report that the work item needs a decision. Builds and writes a complete result."""
    result = {"role": "implementor", "outcome": "blocked", "patch": None, "summary": blocker.summary()}
    return {**submit_result(workspace, result), "summary": result["summary"]}


def list_work_items(
    workspace: Workspace, status: Annotated[str, Field(description="Only items in this status, such as pending.")] = ""
) -> list[dict[str, Any]]:
    """List the work items of the repository, as they were when the job began."""
    keys = ("id", "title", "state", "status", "type", "priority", "complexity")
    items = workspace.items().values()
    if status and status not in WORK_ITEM.states:
        hint = did_you_mean(status, WORK_ITEM.states) or f"Use one of: {', '.join(WORK_ITEM.states)}."
        raise WrongUsage(f"Unknown status `{short_name(status)}`.", hint=hint)
    return [{key: item.get(key) for key in keys} for item in items if not status or item.get("status") == status]


def read_work_item(workspace: Workspace, number: ItemNumber) -> dict[str, Any]:
    """Read a work item: its body, and the paths in and out of its scope."""
    item = workspace.item(number)
    body = read_body(str(item.get("body") or ""))
    return {**item, "in_scope": list(body.in_scope), "out_of_scope": list(body.out_of_scope)}


def scope_of(workspace: Workspace, number: ItemNumber, path: FilePath) -> dict[str, Any]:
    """Tell whether a path belongs to the scope of a work item, and whether only people may approve its change."""
    plain = os.path.relpath(workspace.root / path, workspace.root)
    report = audit_scope([plain], read_body(str(workspace.item(number).get("body") or "")).scope)
    group = "in_scope" if report.in_scope else "test" if report.tests else "outside"
    return {"path": path, "group": group, "protected": bool(report.protected)}


def diff_lines(
    workspace: Workspace, path: Annotated[str, Field(description="A changed file. Empty: list the changed files.")] = ""
) -> dict[str, Any]:
    """Show which lines of a changed file can carry a review comment."""
    lines = workspace.changes()
    if lines is None:
        lines = _changed_lines(workspace)
    if not path:
        return {"files": list(lines)}
    if path not in lines:
        raise WrongUsage(f"The change has no file `{path}`.", hint="Call `diff_lines` without a path for its files.")
    ranges = []
    for _, group in groupby(enumerate(sorted(lines[path])), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        ranges.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return {"path": path, "lines": ranges}


def _changed_lines(workspace: Workspace) -> dict[str, list[int]]:
    if not workspace.base:
        hint = "Start the server with `--base REF`; a run takes the diff from its data file `change.diff`."
        raise WrongUsage("The job named no base.", hint=hint)
    try:
        return lines_of_files(Git(workspace.root)(*DIFF, f"{workspace.base}...HEAD", "--"))
    except GitFailed as error:
        raise WrongUsage(
            f"git cannot compare with `{workspace.base}`.", hint="Check it out in the job, with `fetch-depth: 0`."
        ) from error


def ask_user(
    workspace: Workspace,
    question: Annotated[str, Field(description="One question, for the person who follows the session.")],
    options: Annotated[list[str], Field(description="Possible answers.")] = [],  # noqa: B006 (never changed)
    category: Annotated[
        Literal["", "security"], Field(description="`security` for a question that only the user may resolve.")
    ] = "",
    id: Annotated[  # noqa: A002 (the name that agents write)
        str, Field(description="UD-APPROVE-DESIGN or UD-REVIEW-STRATEGY at its gate; else leave it out.")
    ] = "",
) -> dict[str, Any]:
    """Record a question of the session as pending, before you show it to the user."""
    from accord.sessions.apply import SessionWriter
    from accord.sessions.questions import UserQuestion
    from accord.sessions.run import ask

    asked = UserQuestion(question, id, category, tuple(options))
    status = ask(SessionWriter(_session(workspace), SystemClock()), [asked])
    pending = [decision.model_dump(mode="json", by_alias=True) for decision in status.pending]
    return {"state": status.current_state, "pending": pending}


def next_step(workspace: Workspace) -> dict[str, Any]:
    """Show what the session does next, its open questions, and the legal moves with their commands."""
    from accord.core.machine import moves_to_json
    from accord.sessions.folder import read_session
    from accord.sessions.next_moves import next_moves
    from accord.sessions.questions import next_step

    session = read_session(_session(workspace))
    found = next_step(session)
    pending = [decision.model_dump(mode="json", by_alias=True) for decision in found.pending]
    moves = moves_to_json(next_moves(session))
    return {"state": found.state, "next": found.next, "reason": found.reason, "pending": pending, "next_moves": moves}


def _session(workspace: Workspace) -> Path:
    if workspace.session is None:
        hint = "Start the server with `--session DIR`, or make one: `accord session new SLUG`."
        raise WrongUsage("The job named no session.", hint=hint)
    return workspace.session


TOOLS: tuple[Callable[..., Any], ...] = (
    contract,
    check_result,
    submit_result,
    list_work_items,
    read_work_item,
    scope_of,
    diff_lines,
    report_blocked,
    ask_user,
    next_step,
)

WRITING = (submit_result, report_blocked, ask_user)
"""The tools that write a file. An agent that may only read does without them."""

SESSION = (ask_user, next_step)
"""The tools of a session."""

_BLOCKER = {
    "type": "spec-ambiguity",
    "description": "The spec names two formats for dates.",
    "options": [
        {"choice": "Use ISO 8601.", "trade_off": "Longer, but it sorts."},
        {"choice": "Use Unix time.", "trade_off": "Short, but people cannot read it."},
    ],
    "recommendation": "Option 1, since people read these files.",
    "impact": "The export stays without dates.",
    "spec": "docs/specs/export.md",
    "section": "Dates",
    "quote": "Dates are short and readable.",
}
_RESULT = {"result": {"role": "…"}}
EXAMPLES: dict[str, dict[str, Any]] = {
    "contract": {"role": "planner"},
    "check_result": _RESULT,
    "submit_result": _RESULT,
    "list_work_items": {"status": "pending"},
    "read_work_item": {"number": 42},
    "scope_of": {"number": 42, "path": "src/export.py"},
    "diff_lines": {"path": "src/export.py"},
    "report_blocked": {"blocker": _BLOCKER},
    "ask_user": {"question": "Which format comes first?", "options": ["CSV", "vCard"]},
    "next_step": {},
}
"""Valid inputs of each tool. The result of a role is the ``example`` that ``contract`` shows."""
