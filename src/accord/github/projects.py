"""Projects: reading one with its items, adding issues, and setting a field. They are only in GraphQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accord.github.graphql import GraphQL, next_page
from accord.github.models import NotThere
from accord.github.once import send_until_answered

_PROJECT = """
query Project($owner: String!, $number: Int!, $field: String!) {
  repositoryOwner(login: $owner) { ... on ProjectV2Owner { projectV2(number: $number) {
    id title url
    field(name: $field) { ... on ProjectV2SingleSelectField { id name options { id name } } }
  } } }
}"""
_ITEMS = """
query Items($project: ID!, $field: String!, $after: String) {
  node(id: $project) { ... on ProjectV2 { items(first: 100, after: $after) {
    pageInfo { hasNextPage endCursor }
    nodes {
      id isArchived
      content { ... on Issue { id number state repository { nameWithOwner } labels(first: 100) { nodes { name } } } }
      fieldValueByName(name: $field) { ... on ProjectV2ItemFieldSingleSelectValue { optionId } }
    }
  } } }
}"""
_ADD = """
mutation Add($project: ID!, $content: ID!) {
  addProjectV2ItemById(input: {projectId: $project, contentId: $content}) { item { id } }
}"""
_SET = """
mutation Set($project: ID!, $item: ID!, $field: ID!, $option: String!) {
  updateProjectV2ItemFieldValue(
    input: {projectId: $project, itemId: $item, fieldId: $field, value: {singleSelectOptionId: $option}}
  ) { projectV2Item { id } }
}"""
_HINT = (
    "Set `GITHUB_TOKEN` to the token of an app with the organization permission `Projects: read and write`, or to a "
    "personal token with the scope `project`. The token of a workflow's job cannot access projects."
)


@dataclass(frozen=True, slots=True)
class Project:
    """A project with one of its fields. ``options`` are the field's ids by name; None where it has no such field."""

    id: str
    title: str
    url: str
    field: str = ""
    options: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ProjectItem:
    """An issue of this repository in a project. ``option`` is the id of the field's value, empty without one."""

    id: str
    number: int
    is_open: bool
    labels: tuple[str, ...]
    option: str
    is_archived: bool


class ProjectMethods(GraphQL):
    """Requests about projects."""

    def project(self, owner: str, number: int, field: str) -> Project:
        """Read a project of a user or an organization. POST /graphql, which only reads.

        Raises NotThere without the owner or the project, and Forbidden for tokens that cannot access projects.
        """
        found = self._ask(_PROJECT, {"owner": owner, "number": number, "field": field}, _project, _HINT)
        if found is None:
            raise NotThere(f"`{owner}` has no project {number}.", hint=f"Check owner and number. {_HINT}")
        return found

    def project_items(self, project: Project, field: str) -> tuple[ProjectItem, ...]:
        """List the issues of this repository in a project. POST /graphql: one request for every 100 items."""
        asked: dict[str, Any] = {"project": project.id, "field": field, "after": None}
        found: list[ProjectItem] = []
        while True:
            page = self._ask(_ITEMS, asked, lambda data: (data.get("node") or {}).get("items"), _HINT)
            if page is None:
                raise NotThere("The project does not exist any more.", hint="Run the same command again.")
            found += [_item(node) for node in page["nodes"] if self._is_own(node)]
            asked["after"] = next_page(page)
            if not asked["after"]:
                return tuple(found)

    def add_to_project(self, project: Project, node_id: str) -> str:
        """Add an issue, and return the id of its item; safe to repeat, as GitHub answers with the item that is there.

        POST /graphql.
        """
        asked = {"project": project.id, "content": node_id}
        return send_until_answered(
            lambda: self._ask(
                _ADD, asked, lambda data: str(data["addProjectV2ItemById"]["item"]["id"]), _HINT, writes=True
            ),
            self._clock,
        )

    def set_project_option(self, project: Project, item: str, option: str) -> None:
        """Set the project's field of an item; safe to repeat. POST /graphql."""
        asked = {"project": project.id, "item": item, "field": project.field, "option": option}
        send_until_answered(lambda: self._ask(_SET, asked, dict, _HINT, writes=True), self._clock)

    def _is_own(self, node: dict[str, Any]) -> bool:
        """Return whether an item is an issue of this repository; pull requests and drafts have no such content."""
        content = node["content"] or {}
        repository = (content.get("repository") or {}).get("nameWithOwner", "")
        return bool(repository.lower() == self._access.repository.lower())


def _project(data: dict[str, Any]) -> Project | None:
    found = (data["repositoryOwner"] or {}).get("projectV2")
    if found is None:
        return None
    field = found["field"] or {}
    options = {option["name"]: option["id"] for option in field["options"]} if "options" in field else None
    return Project(found["id"], found["title"], found["url"], field.get("id", ""), options)


def _item(node: dict[str, Any]) -> ProjectItem:
    content = node["content"]
    return ProjectItem(
        node["id"],
        content["number"],
        is_open=content["state"] == "OPEN",
        labels=tuple(label["name"] for label in content["labels"]["nodes"]),
        option=(node["fieldValueByName"] or {}).get("optionId") or "",
        is_archived=node["isArchived"],
    )
