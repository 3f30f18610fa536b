"""The refs that a run may check out and push to: branches of the repository, not refs that GitHub keeps."""

from __future__ import annotations

import re
from pathlib import Path

from accord.core.errors import Refused, WrongUsage
from accord.git.program import Git

SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PULL_REF = re.compile(r"\A(?:(?:refs/)?pull/\d+/.+|\d+/merge)")
_SPECIAL_REF = re.compile(r"\s*(?:refs/heads/)?(?:@|(?:[A-Z]+_)?HEAD)\s*")
"""Names to which git gives a meaning of its own, such as ``FETCH_HEAD``."""

_BRANCH_HINT = "Pass a branch as `--pr-ref`, such as `my-branch` or `refs/heads/my-branch`."


def short_name(ref: str) -> str:
    """Return a ref as a branch is called."""
    return ref.strip().removeprefix("refs/heads/")


def branch_of(ref: str) -> str:
    """Return the branch that a ref names: ``refs/heads/x`` or ``x``. Raises Refused if it cannot be pushed to."""
    name = short_name(ref)
    if _PULL_REF.fullmatch(name):
        raise Refused(
            f"`{ref}` is a ref that GitHub keeps for a pull request, so it cannot be pushed to.",
            hint="Pass the pull request's branch as `--pr-ref`: `github.head_ref`.",
        )
    if name.startswith("refs/") or SHA.fullmatch(name) or is_special_ref(name):
        raise Refused(f"`{ref}` is not a branch, so it cannot be pushed to.", hint=_BRANCH_HINT)
    if not _is_valid_name(name):
        raise Refused(f"`{ref}` is not a valid branch name.", hint=_BRANCH_HINT)
    return name


def is_special_ref(ref: str) -> bool:
    """Return whether a ref is ``HEAD`` or the like, which names another branch in each checkout."""
    return _SPECIAL_REF.fullmatch(ref) is not None


def check_ref(ref: str, *, is_pushed: bool) -> None:
    """Raise WrongUsage for an invalid ref and, if it ``is_pushed`` to, for one that cannot be pushed to."""
    if is_pushed:
        try:
            branch_of(ref)
        except Refused as refused:
            raise WrongUsage(refused.message, hint=refused.hint) from None
    elif ref.strip() and not _is_valid_name(ref.strip()):
        raise WrongUsage(f"`{ref}` is not a valid name of a branch or another ref.", hint=_BRANCH_HINT)


def _is_valid_name(name: str) -> bool:
    """Return whether git accepts a name: of a branch, or of any ref if it begins with ``refs/``."""
    ref = name if name.startswith("refs/") else f"refs/heads/{name}"
    return not name.startswith("-") and Git(Path()).attempt("check-ref-format", ref).returncode == 0
