"""Facts of a repository's settings, as far as a token may read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from accord.core.errors import AccordError, Refused, Stopped
from accord.github.models import Forbidden, NotThere
from accord.workflows.requirements import ENVIRONMENT
from accord.workflows.settings import WORK_BRANCH, LiveFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.github.client import Connection

Read = TypeVar("Read")
_NEEDS = {
    "may_create_pulls": "administration: read",
    "secrets": "secrets: read",
    "environment_secrets": "environments: read",
    "variables": "variables: read",
    "rules": "metadata: read",
    "protected": "contents: read",
}
"""The permission that a token needs to read a fact."""


def gather_settings(connection: Connection) -> LiveFacts:
    """Read the settings; what the token may not read stays None, with the reason."""
    github, unread = connection.github, dict[str, str]()

    def read(fact: str, ask: Callable[[], Read]) -> Read | None:
        try:
            return ask()
        except (Forbidden, NotThere):
            unread[fact] = f"the token lacks {_NEEDS.get(fact, 'access')}"
        except Stopped:  # GitHub does not answer, or a person stopped the command: the other facts would fail, too
            raise
        except AccordError as error:
            unread[fact] = error.message
        return None

    identity = read("login", github.identity)
    repository = read("repository", github.repository)
    default = repository.default_branch if repository else ""
    settings = read("may_create_pulls", github.workflow_settings)
    branches = (WORK_BRANCH, default) if default else (WORK_BRANCH,)
    more: dict[str, Any] = {
        "secrets": read("secrets", github.secret_names),
        "environment_secrets": read("environment_secrets", lambda: github.environment_secret_names(ENVIRONMENT)),
        "variables": read("variables", github.variable_names),
        "rules": read("rules", lambda: {branch: github.branch_rules(branch) for branch in branches}),
        "protected": read("protected", github.protected_branches),
    }
    return LiveFacts(
        repository_url=connection.page,
        default_branch=default,
        login=identity.login if identity else "",
        is_person=bool(identity and identity.is_person),
        is_private=repository.is_private if repository else None,
        may_create_pulls=settings.may_create_pulls if settings else None,
        workflow_permissions=settings.permissions if settings else None,
        unread=unread,
        **more,
    )


def ask_before_run(connection: Connection, *, asks: bool) -> LiveFacts:
    """Ask whether this token may open pull requests, and read the rules of accord's branches.

    The setting is about a job's token only, which cannot read it: so it ``asks`` for a pull request that cannot be
    created. Raises Refused for an archived repository.
    """
    github = connection.github
    identity, repository = github.identity(), github.repository()
    if repository.is_archived:
        raise Refused("The repository is archived.", hint="Unarchive it under Settings → General.")
    refuses = github.refuses_pulls(repository.default_branch) if asks and not identity.is_person else False
    try:
        rules = {WORK_BRANCH: github.branch_rules(WORK_BRANCH)}
    except Refused:  # an old server
        rules = None
    return LiveFacts(
        repository_url=connection.page,
        default_branch=repository.default_branch,
        login=identity.login,
        is_person=identity.is_person,
        may_create_pulls=None if refuses is None else not refuses,
        rules=rules,
    )
