"""The base of the clients: one server, its lists of repositories, and one repository."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

from accord.core.clock import Clock, attempts, doubling_pauses, parse_timestamp
from accord.core.errors import NoToken, Refused, Stopped, WrongUsage
from accord.core.frozen import Frozen, json_field
from accord.github.limits import PAGE_SIZE, SEARCH_RESULTS, has_address
from accord.github.models import Access, AnswerLost, Forbidden, NotThere
from accord.github.pacing import Pacer
from accord.github.transport import Parsed, RateLeft, Response, Transport

_NAME = re.compile(r"\A[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/(?!\.{1,2}\Z)[A-Za-z0-9._-]+")
_TOKEN = re.compile(r"[!-~]+")

Sent = TypeVar("Sent")

TRIES = 4
FIRST_PAUSE_SECONDS = 2.0


def optional_timestamp(text: str | None) -> datetime | None:
    """Read a timestamp of GitHub; None where it gives none. Raises ValueError for any other text."""
    return parse_timestamp(text) if text else None


def segment(name: str) -> str:
    """Return a name as one segment of an address. Raises NotThere for a name that no address can carry."""
    if not has_address(name):
        hint = "Change or delete it on the pages of GitHub."
        raise NotThere(f"`{name[:100]}` cannot be part of an address of GitHub's API.", hint=hint)
    return quote(name, safe="")


def segments(path: str) -> str:
    """Return a path as segments of an address. Raises NotThere as ``segment`` does."""
    return "/".join(map(segment, path.split("/")))


class Server:
    """A GitHub server over REST with one token. A ``pacer`` is shared by clients that use the token in turn."""

    def __init__(
        self, access: Access, clock: Clock, tell_wait: Callable[[float, str], None], pacer: Pacer | None = None
    ) -> None:
        if not access.token:
            hint = "Set `GITHUB_TOKEN`, or log in with `gh auth login`."
            raise NoToken("No GitHub token found.", hint=hint)
        if not _TOKEN.fullmatch(access.token):
            raise NoToken("`GITHUB_TOKEN` contains whitespace.", hint="Set it without spaces and line breaks.")
        self.clock, self._access, self._root = clock, access, self._root_of(access)
        self._transport = Transport(access, clock, tell_wait, pacer or Pacer())
        self.requests = self._transport.requests

    def _root_of(self, _: Access) -> str:
        """Return the start of every path."""
        return ""

    @property
    def rate_left(self) -> RateLeft | None:
        """Return what the last response said is left of the hourly limit; None where GitHub sets no limit."""
        return self._transport.rate_left

    def send_once(self, send: Callable[[], Sent], find: Callable[[], Sent | None]) -> Sent:
        """Call ``send``; whenever its answer is lost, wait, and send again only if ``find`` finds nothing.

        The wait comes before the look, so that a request that is still under way can arrive. It doubles each time.
        Raises Stopped after four lost answers; the next run looks first as well.
        """
        problem = ""
        for attempt in attempts(self.clock, doubling_pauses(FIRST_PAUSE_SECONDS, TRIES)):
            if attempt:
                found = find()
                if found is not None:
                    return found
            if attempt < TRIES:
                try:
                    return send()
                except AnswerLost as lost:
                    problem = lost.message
        raise Stopped(f"GitHub did not answer {TRIES} times: {problem}", hint="Run the same command again to continue.")

    def send_until_answered(self, send: Callable[[], Sent]) -> Sent:
        """Call ``send`` until it is answered, as it does no harm twice. Raises Stopped after four lost answers."""
        return self.send_once(send, lambda: None)

    def _call(self, method: str, path: str, **given: Any) -> Response:
        """Send a request; ``given`` are the options of ``Transport.call``."""
        return self._transport.call(method, self._root + path, **given)

    def _list_items(
        self, path: str, parse: Callable[[dict[str, Any]], Parsed], *, key: str = "", **params: Any
    ) -> Iterator[Parsed]:
        """Yield the entries of a listing, page by page; ``key`` names them where a page is an object."""
        for page in self._transport.pages(self._root + path, {**params, "per_page": PAGE_SIZE}):
            yield from page.read(lambda data: [parse(entry) for entry in (data[key] if key else data)])

    def _find(self, path: str, parse: Callable[[dict[str, Any]], Parsed]) -> Parsed | None:
        """Read one object; None where GitHub answers 404."""
        try:
            return self._call("GET", path).read(parse)
        except NotThere:
            return None

    def _delete(self, path: str, is_there: Callable[[], bool] = bool) -> None:
        """Delete one object. A 404 counts as deleted; if ``is_there`` finds it, the token may not: raises Forbidden."""
        try:
            self._call("DELETE", path)
        except NotThere as refused:
            if is_there():
                raise Forbidden(refused.message, hint=refused.hint) from None


class ListedRepository(Frozen):
    """A repository in a list, with what decides whether it can be worked on (schema "minimal-repository")."""

    full_name: str = json_field()
    is_archived: bool = json_field("archived", bool, empty=False)
    is_disabled: bool = json_field("disabled", bool, empty=False)


class RepositoryLists(Server):
    """The lists of one server that a token can read."""

    def of_organisation(self, name: str) -> list[ListedRepository]:
        """List the repositories of an organisation that the token can see. GET /orgs/{org}/repos. Raises NotThere."""
        try:
            return list(self._list_items(f"/orgs/{segment(name)}/repos", ListedRepository.from_json))
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
    found = [ListedRepository.from_json(entry) for entry in data["items"]]
    return data["total_count"], data["incomplete_results"], found


class Rest(Server):
    """One repository over REST. Lists are read to their last page, where they are iterators only as far as consumed.

    PUT, PATCH and DELETE requests are safe to repeat; a 404 counts as deleted. A POST raises AnswerLost when it is
    unknown whether it was carried out, unless its method says that it is sent again.
    """

    def _root_of(self, access: Access) -> str:
        if not _NAME.fullmatch(access.repository):
            hint = "Pass `--repo OWNER/NAME` or set `GITHUB_REPOSITORY`."
            raise WrongUsage(f"`{access.repository}` is not a repository.", hint=hint)
        return f"/repos/{access.repository}"
