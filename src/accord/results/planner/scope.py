"""The scope of exactly-once: which plans are versions of one another.

Plans of one request have one run key, so that a later plan changes the items of an earlier one. The request is given,
or it is the one specification that all new items name. Pure.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from accord.engine.receipts import default_run_key
from accord.results.bodies import SPEC_REFERENCE
from accord.results.planner.rules import Plan, item_number

if TYPE_CHECKING:
    from accord.results.models import PlannerResult
    from accord.results.run_options import PlanOptions

_NAMED = re.compile(r"(session|mission):\s*(\S.*)", re.DOTALL)
_WORD = re.compile(r"[^\s`'\"()<>\[\]]+")
_QUOTES = "`'\"<>"
_SUFFIXES = (".md", ".markdown")
_SPEC_ISSUE = re.compile(r"\s*((?:[\w.-]+/[\w.-]+)?#[1-9][0-9]{0,17})\s*")
_SPEC_REQUEST = re.compile(r"Plan the specification (\S.*\.(?i:md|markdown))\.")
_SPEC_LINE = re.compile(r"^[^\w\n]*spec(?:ification)?s?[^\w\n:]*:(.*)$", re.IGNORECASE | re.MULTILINE)


def plan_run_key(plan: Plan, options: PlanOptions) -> str:
    """Return the run key of a plan: the given one, that of the request, else a digest of result and repository."""
    if options.run_key:
        return options.run_key
    if options.request.strip():
        return run_key_of_request(options.request)
    lines = _spec_lines(plan)
    specs = _spec_files(lines)
    if len(specs) == 1:
        return run_key_of_spec(specs[0])
    issues = set() if specs else {found[1] for line in lines if (found := _SPEC_ISSUE.fullmatch(line))}
    if len(issues) == 1:
        place, _, number = issues.pop().rpartition("#")
        is_here = not place or place.lower() == options.repository.lower()
        return run_key_of_request(f"#{number}") if is_here else _digest_key("issue", f"{place}#{number}".lower())
    return default_run_key(_with_bare_numbers(plan.result), options.repository)


def _with_bare_numbers(result: PlannerResult) -> PlannerResult:
    """Return the result with ``42`` for ``#42`` where it names items, so that both have one digest."""

    def bare(reference: str) -> str:
        return str(item_number(reference) or reference)

    create = [item.model_copy(update={"blocked_by": [*map(bare, item.blocked_by)]}) for item in result.create]
    update = [each.model_copy(update={"work_item_id": bare(each.work_item_id)}) for each in result.update]
    return result.model_copy(update={"create": create, "close": [*map(bare, result.close)], "update": update})


def requested_issue(options: PlanOptions) -> int:
    """Return the number of the issue that is the request of a plan; 0 for any other request."""
    return 0 if options.run_key else item_number(options.request.strip()) or 0


def run_key_of_request(request: str) -> str:
    """Return the run key of a request: an issue, a session, a mission, a specification's path, or any other text.

    A text that mentions a file is not its path: it may ask for anything about that file.
    """
    words = " ".join(request.split())
    if number := item_number(words):
        return f"issue-{number}"
    if named := _NAMED.fullmatch(words):
        return _digest_key(named[1], named[2])
    if sentence := _SPEC_REQUEST.fullmatch(words):
        return run_key_of_spec(sentence[1])
    path = words.strip(_QUOTES)
    if _WORD.fullmatch(path) and (specs := _spec_files([path])):
        return run_key_of_spec(specs[0])
    is_path = "/" in words and " " not in words
    return run_key_of_spec(words) if is_path else _digest_key("request", words.casefold())


def request_of_spec(path: str) -> str:
    """Return the request to plan a specification, which has the run key of its path."""
    return f"Plan the specification {path}."


def run_key_of_spec(path: str) -> str:
    """Return the run key of a specification's plans."""
    return _digest_key("spec", posixpath.normpath(path))


def _spec_lines(plan: Plan) -> list[str]:
    """Return what new items name as their specification: paths, or issues such as ``#12`` and ``owner/name#12``."""
    references = (body.find(SPEC_REFERENCE) for body in plan.bodies)
    return [line for section in references if section for line in _SPEC_LINE.findall(section.text)]


def _spec_files(texts: Iterable[str]) -> list[str]:
    """Return the paths of Markdown files in some texts, each once and without its anchor."""
    words = (word.partition("#")[0].rstrip(".,;:") for text in texts for word in _WORD.findall(text))
    return list(dict.fromkeys(posixpath.normpath(word) for word in words if word.lower().endswith(_SUFFIXES)))


def _digest_key(kind: str, text: str) -> str:
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"
