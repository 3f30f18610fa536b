"""The rules of reviewer results (workflow contracts, "ReviewerResult")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from accord.core.findings import Finding, pointer, warning
from accord.core.texts import line_end_findings
from accord.results.contents import says_something
from accord.results.layouts import read_parts, unwrapped_text, vocabulary_of

if TYPE_CHECKING:
    from accord.results.models import AgentReviewComment, ReviewerResult

_PARTS = vocabulary_of(
    {
        "fix": "fix fixes suggestion suggested solution recommendation remedy resolve how",
        "why": "why reason rationale because violates violation violated",
        "what": "what what's issue problem finding wrong",
    }
)
_NAMES = {"what": "What", "why": "Why", "fix": "Fix"}
_SUGGESTION = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*suggestion\b", re.MULTILINE)
_WARNING = re.compile(r"(?<!\s)\s*(?:(?:#{1,6}|[-*+]) )?(?:\*\*|__)?\[warning\]", re.IGNORECASE)
_NO_FILE = re.compile(r"^(?:\s*$|/|[A-Za-z]:[\\/])|(?:^|[\\/])(?:\.\.[\\/]|\.{0,2}$)")
_ROOT = re.compile(
    r"(?:(?:/(?:home|Users)/runner/work|/[^\n]*?/_work|/__w|[A-Za-z]:[\\/]a)[\\/]([^\\/\n]+)[\\/]\1|/github/workspace)[\\/]"
    r"|/(?!(?:app|builds|data|etc|github|home|mnt|opt|private|repo|root|tmp|usr|Users|var|workspaces?|__w)/)"
)
"""The root of a repository in the paths of runners, else a slash, except before folders of a machine or container."""


def is_warning(comment: AgentReviewComment) -> bool:
    """Return whether a comment is a warning, which does not influence the verdict, and not a finding."""
    return _WARNING.match(comment.body) is not None


def reviewer_findings(result: ReviewerResult) -> list[Finding]:
    """Check the verdict against the comments, and each comment by itself."""
    review = result.review
    found: list[Finding] = []
    if not says_something(review.summary):
        message = "The summary is empty, or the template's."
        hint = "Write the result of the review."
        found.append(Finding("summary-empty", message, pointer("review", "summary"), hint=hint))
    finding_positions = [i for i, comment in enumerate(review.comments) if not is_warning(comment)]
    if review.verdict == "needs-changes" and not finding_positions:
        message = "The verdict `needs-changes` has no finding."
        hint = "Add a comment with `What:`, `Why:` and `Fix:` for each problem that the summary names."
        found.append(Finding("needs-changes-without-finding", message, pointer("review", "comments"), hint=hint))
    for i, comment in enumerate(review.comments):
        path = pointer("review", "comments", i)
        found += _check_comment(comment, path)
        if i in finding_positions:
            if review.verdict == "approve":
                message = "An approval has no findings."
                hint = "Set `verdict` to `needs-changes`, or begin the comment with `[Warning]`."
                found.append(Finding("approve-with-finding", message, path + "/body", hint=hint))
            else:
                found += _check_parts(comment.body, path + "/body")
    return found


def _check_comment(comment: AgentReviewComment, path: str) -> Iterator[Finding]:
    if comment.line is not None and comment.line < 1:
        message = f"The line {comment.line} is not valid, because lines count from 1."
        yield Finding("line-invalid", message, path + "/line", hint="Use null for the whole file.")
    if _NO_FILE.search(comment.path):
        message = f"`{comment.path[:80]}` is not the path of a file in the repository."
        root = _ROOT.match(comment.path)
        inside = comment.path[root.end() :].replace("\\", "/") if root else ""
        example = "" if _NO_FILE.search(inside) or len(inside) > 200 else f", such as `{inside}`"
        hint = f"Use the path of a file relative to its root{example}."
        yield Finding("path-invalid", message, path + "/path", hint=hint)
    if not (_SUGGESTION.search(comment.body) or says_something(_WARNING.sub("\n", comment.body, count=1))):
        yield Finding("comment-empty", "The comment is empty.", path + "/body", hint="Write its text, or remove it.")


def _check_parts(body: str, path: str) -> Iterator[Finding]:
    """Check that a finding has its three parts. One without labels gets the template, and is still posted."""
    if escaped := line_end_findings(body, path):
        yield from escaped
        return
    reading = read_parts(unwrapped_text(body), _PARTS)
    missing = [name for part, name in _NAMES.items() if not reading.has(part)]
    if "Fix" in missing and _SUGGESTION.search(body):
        missing.remove("Fix")
    labels = " and ".join(f"`{name}:`" for name in missing)
    hint = "Add each label with its text."
    if missing and reading.is_labelled:
        yield Finding("finding-incomplete", f"The finding lacks {labels}.", path, hint=hint)
    elif missing:
        yield warning("finding-incomplete", f"The finding has no label {labels}.", path, hint=hint)
