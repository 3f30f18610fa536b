"""What GitHub would refuse later, or do by half, refused before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.kernel.errors import Refused

if TYPE_CHECKING:
    from accord.github.port import GitHub, Identity, Repository


def require_unarchived(repository: Repository) -> None:
    """Raise Refused for a repository that takes nothing any more."""
    if repository.is_archived:
        raise Refused(
            f"{repository.full_name} is archived, so nothing can be written to it.",
            mend="Unarchive it in its settings, or name another repository.",
        )


def require_writable(github: GitHub, identity: Identity) -> Repository:
    """Refuse now what GitHub would refuse later, or do by half: it takes an issue and drops its labels in silence."""
    repository = github.repository()
    require_unarchived(repository)
    if not repository.has_issues:
        raise Refused(
            f"Issues are disabled in {repository.full_name}.",
            mend="Enable them under Settings → General → Features.",
        )
    if identity.is_person and repository.may_triage is False:
        raise Refused(
            f"{identity.login} may read {repository.full_name}, but not label or change its issues.",
            mend="Use a token of somebody with the role Triage or more.",
        )
    return repository
