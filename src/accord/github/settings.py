"""Settings of the repository over REST: those of GitHub Actions, secrets by name, variables, and rules of branches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

from accord.core.errors import Refused
from accord.core.frozen import Frozen, json_field
from accord.github.models import Conflict, NotThere, PullsNotAllowed
from accord.github.rest import Rest, segment, segments


class WorkflowSettings(Frozen):
    """Whether GITHUB_TOKEN may create and approve pull requests, and its default permissions (read or write)."""

    may_create_pulls: bool = json_field("can_approve_pull_request_reviews", bool)
    permissions: str = json_field("default_workflow_permissions")


class SettingsMethods(Rest):
    """Requests about settings. Most need more than a job's token has, and raise Forbidden for others."""

    def workflow_settings(self) -> WorkflowSettings:
        """Read the settings of GitHub Actions. GET …/actions/permissions/workflow, with administration: read."""
        return self._call("GET", "/actions/permissions/workflow").read(WorkflowSettings.from_json)

    def names_of(self, kind: Literal["secrets", "variables"]) -> frozenset[str]:
        """List the names of these of the repository, and those of its organisation for it, with ``KIND: read``."""
        names = set(self._list_items(f"/actions/{kind}", _name, key=kind))
        with suppress(NotThere):  # the owner is a person
            names |= set(self._list_items(f"/actions/organization-{kind}", _name, key=kind))
        return frozenset(names)

    def environment_secret_names(self, environment: str) -> frozenset[str]:
        """List the names of an environment's secrets, with environments: read; none without such an environment."""
        path = f"/environments/{segment(environment)}/secrets"
        try:
            return frozenset(self._list_items(path, _name, key="secrets"))
        except NotThere:
            return frozenset()

    def branch_rules(self, branch: str) -> tuple[str, ...]:
        """List the types of rules that rulesets have for a branch, which need not exist. GET …/rules/branches."""
        found = self._list_items(f"/rules/branches/{segments(branch)}", lambda data: str(data["type"]))
        return tuple(dict.fromkeys(found))

    def branches(self, **params: str) -> Iterator[str]:
        """List the branches; ``protected="true"``: those that protection rules cover. GET …/branches."""
        return self._list_items("/branches", _name, **params)

    def refuses_pulls(self, branch: str) -> bool | None:
        """Return whether GitHub refuses pull requests of this token because of the setting; None for another reason.

        POST …/pulls from a branch into itself, which GitHub never creates: it has no commits. False promises little:
        GitHub does not document whether it looks at the setting or at the commits first.
        """
        content = {"title": "May GitHub Actions create pull requests?", "head": branch, "base": branch}
        try:
            self._call("POST", "/pulls", body=content, creates_content=True)
        except PullsNotAllowed:
            return True
        except Conflict:
            return False
        except Refused:
            return None
        return False


def _name(data: dict[str, Any]) -> str:
    return str(data["name"])
