"""The people who choose the text in the parts of an event, and the parts that name code of a pull request.

Source: GitHub documentation, "Webhook events and payloads" and "Contexts".
"""

from __future__ import annotations

import re
from enum import Flag
from typing import TYPE_CHECKING

from accord.workflows.events import CALLED, OUTSIDERS, PULLS, has_part

if TYPE_CHECKING:
    from accord.workflows.expressions import Reference
    from accord.workflows.models import Workflow


class Origin(Flag):
    """Contents that a value may have: text of outsiders or of writers, or a name of code of a pull request."""

    OWN = 0
    WRITERS = 1
    OUTSIDERS = 2
    CODE = 4


_OWN, _WRITERS, _OUTSIDERS, _CODE = Origin.OWN, Origin.WRITERS, Origin.OUTSIDERS, Origin.CODE

SAFE = re.compile(
    r"(?:.*_)?(?:id|number|sha|url|at|association|count)|before|after|login|state|action|type|draft|merged|fork|private"
    r"|full_name|conclusion|status|event|mergeable\w*|additions|deletions|changed_files|commits|node_id|locked|schedule"
    r"|comments|active_lock_reason|state_reason|side|line|rebaseable|archived|visibility|repository|sender|installation"
)
"""Properties of an event that people cannot put free text into."""

_OF_WRITERS = frozenset({"label", "labels", "milestone", "base", "assignee", "assignees", "release", "repository"})

_WITH_REFS = frozenset({"push", "pull_request_target", "workflow_dispatch", "release", "create", "delete", CALLED})
"""Events whose branch or tag a writer chooses."""


def of_github(name: str, workflow: Workflow, event: str) -> Origin:
    """Return the origin of a property of the context ``github``, other than its event."""
    if name == "head_ref":
        return _OUTSIDERS | _CODE if event in {"pull_request", "pull_request_target", CALLED} else _OWN
    is_chosen = event in (PULLS if name == "base_ref" else _WITH_REFS)
    if name in {"ref", "ref_name", "base_ref"} and is_chosen and not _is_listed(workflow, event):
        return _WRITERS
    return _OWN


def of_event(ref: Reference, event: str) -> Origin:
    """Return the origin of a part of an event, other than inputs of people."""
    part = ref[2:]
    if not part:
        return _OUTSIDERS if event in OUTSIDERS else _WRITERS
    if not has_part(ref, event):
        return _OWN
    if part[0] == "client_payload":
        return _WRITERS | (_CODE if re.search(r"head|pull_request", ".".join(part)) else _OWN)
    code = _CODE if _names_head(part) else _OWN
    if SAFE.fullmatch(part[-1]) or part[0] in {"number", "repository"}:
        return code
    if set(part) & _OF_WRITERS and "head" not in part:
        return code | _WRITERS
    return code | (_OUTSIDERS if event in {*OUTSIDERS, CALLED} else _WRITERS)


def _names_head(part: Reference) -> bool:
    """Return whether a part of an event names the head or the merge of a pull request."""
    match part:
        case ("pull_request", "head", "user", *_):
            return False
        case ("pull_request", "head" | "merge_commit_sha", *_):
            return True
        case ("workflow_run" | "check_run" | "check_suite", *rest):
            return bool({"head_sha", "head_branch", "head_commit", "head_repository", "head"} & set(rest))
    return False


def _is_listed(workflow: Workflow, event: str) -> bool:
    """Return whether an event is limited to branches or tags that are written out."""
    filters = workflow.filters(event)
    named = [filters[key] for key in ("branches", "tags") if key in filters]
    if not named or (event == "push" and any(key.endswith("-ignore") for key in filters if key != "paths-ignore")):
        return False
    names = [name for value in named for name in ([value] if isinstance(value, str) else value or ())]
    return bool(names) and not any(re.search(r"[*?+\[!]", str(name)) for name in names)
