"""Lists of repositories: those of an organisation, and those that a search finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from accord.core.errors import Refused, Stopped
from accord.github.limits import PAGE_SIZE, SEARCH_RESULTS
from accord.github.models import NotThere
from accord.github.rest import Server


@dataclass(frozen=True, slots=True)
class ListedRepository:
    """A repository in a list, with what decides whether it can be worked on."""

    full_name: str
    is_archived: bool
    is_disabled: bool


class RepositoryLists(Server):
    """The lists of one server that a token can read."""

    def of_organisation(self, name: str) -> list[ListedRepository]:
        """List the repositories of an organisation that the token can see. GET /orgs/{org}/repos, all pages.

        Raises NotThere for a name that is not one of an organisation.
        """
        try:
            return list(self._list_items(f"/orgs/{quote(name, safe='')}/repos", _listed_repository))
        except NotThere as refused:
            hint = f"Check that the organisation `{name}` exists and that the token may see it."
            raise NotThere(refused.message, hint=f"{hint} For a person, pass `--search user:{name}`.") from None

    def search_repositories(self, query: str) -> list[ListedRepository]:
        """Search for repositories. GET /search/repositories, all pages.

        Raises Refused where the search finds more than GitHub lists, and Stopped where it did not end.
        """
        found: list[ListedRepository] = []
        for page in self._transport.pages("/search/repositories", {"q": query, "per_page": PAGE_SIZE}):
            total, is_cut, repositories = page.read(_search_page)
            if total > SEARCH_RESULTS:
                message = f"The search finds {total} repositories, but GitHub lists only the first {SEARCH_RESULTS}."
                raise Refused(message, hint="Narrow it, for example with `topic:`, or pass `--org NAME`.")
            if is_cut:
                message = "GitHub ended the search before it had seen all repositories."
                raise Stopped(message, hint="Run the same command again, or pass `--org NAME`.")
            found += repositories
        return found


def _search_page(data: dict[str, Any]) -> tuple[int, bool, list[ListedRepository]]:
    return data["total_count"], data["incomplete_results"], [_listed_repository(entry) for entry in data["items"]]


def _listed_repository(data: dict[str, Any]) -> ListedRepository:
    """Read an entry (schemas "minimal-repository" and "repo-search-result-item")."""
    return ListedRepository(data["full_name"], bool(data.get("archived")), bool(data.get("disabled")))
