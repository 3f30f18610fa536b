"""Reviews for tests: small builders for valid results, and diffs as the files API gives them."""

from __future__ import annotations

from typing import Any

from accord.github.pull_port import PullFile

FINDING = "What: off by one.\nWhy: the spec says n.\nFix: use range(n)."


def comment(path: str, line: int | None = None, body: str = FINDING) -> dict[str, Any]:
    return {"path": path, "line": line, "body": body}


def warn(path: str, line: int | None = None, text: str = "outside of the scope") -> dict[str, Any]:
    return comment(path, line, f"[Warning] {text}")


def needs_changes(*comments: dict[str, Any], summary: str = "Some things are wrong.") -> dict[str, Any]:
    return {"role": "reviewer", "review": {"verdict": "needs-changes", "summary": summary, "comments": list(comments)}}


def approve(*comments: dict[str, Any], summary: str = "All checks pass.") -> dict[str, Any]:
    return {"role": "reviewer", "review": {"verdict": "approve", "summary": summary, "comments": list(comments)}}


def changed(path: str, patch: str | None, status: str = "modified", previous: str = "") -> PullFile:
    return PullFile(path, status, previous, patch)
