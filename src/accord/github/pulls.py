"""Pull requests over REST; implements ``accord.github.pull_port.PullPort``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.github.moments import moment_if_any
from accord.github.once import send_until_answered
from accord.github.pull_port import Pull
from accord.github.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class PullMethods(Rest):
    """The requests about pull requests themselves; their reviews are in ``accord.github.reviews``."""

    def pull(self, number: int) -> Pull | None:
        """GET …/pulls/{n}."""
        return self._found(f"{self._root}/pulls/{number}", read_pull)

    def pulls_from(self, branch: str, *, state: str = "all") -> list[Pull]:
        """GET …/pulls with the branch as head."""
        owner = self._access.repository.partition("/")[0]
        params = {"head": f"{owner}:{branch}", "state": state, "sort": "created", "direction": "desc"}
        found = self._listed(f"{self._root}/pulls", read_pull, **params)
        return [pull for pull in found if pull.head_branch == branch]

    def open_pulls(self) -> Iterator[Pull]:
        """GET …/pulls, page by page."""
        return self._listed(f"{self._root}/pulls", read_pull, state="open", sort="created", direction="asc")

    def create_pull(self, title: str, body: str, head: str, base: str, *, draft: bool) -> Pull:
        """POST …/pulls."""
        content = {"title": title, "body": body, "head": head, "base": base, "draft": draft}
        return self._transport.call("POST", f"{self._root}/pulls", body=content, creates_content=True).read(read_pull)

    def change_pull(self, number: int, *, title: str, body: str) -> Pull:
        """PATCH …/pulls/{n}."""
        content = {"title": title, "body": body}
        return self._transport.call("PATCH", f"{self._root}/pulls/{number}", body=content).read(read_pull)

    def change_body(self, number: int, *, was: str, body: str) -> bool:
        """GET and, if it still is what it was, PATCH …/pulls/{n}.

        GitHub changes a body without asking what was in it, so the moment between the two requests remains.
        """
        pull = self.pull(number)
        if pull is None or pull.body not in (was, body):
            return False
        if pull.body != body:
            self._transport.call("PATCH", f"{self._root}/pulls/{number}", body={"body": body})
        return True

    def add_labels(self, number: int, labels: Sequence[str]) -> None:
        """POST …/issues/{n}/labels. Adding twice is adding once, so a lost answer is answered by sending again."""
        path = f"{self._root}/issues/{number}/labels"
        body = {"labels": list(labels)}
        send_until_answered(lambda: self._transport.call("POST", path, body=body), self._clock)


def read_pull(data: dict[str, Any]) -> Pull:
    """Read the JSON of a pull request (schemas "pull-request" and "pull-request-simple" of GitHub's description)."""
    head = data["head"]
    return Pull(
        number=data["number"],
        url=data["html_url"],
        title=data["title"],
        body=data.get("body") or "",
        state=data["state"],
        is_merged=bool(data.get("merged_at")),
        is_draft=bool(data.get("draft")),
        is_locked=bool(data.get("locked")),
        author=(data.get("user") or {}).get("login", ""),
        labels=tuple(label["name"] for label in data.get("labels", [])),
        head_branch=head["ref"],
        head_sha=head["sha"],
        head_repository=(head.get("repo") or {}).get("full_name", ""),
        base_branch=data["base"]["ref"],
        base_sha=data["base"]["sha"],
        merge_commit=(data.get("merge_commit_sha") or "") if data.get("merged_at") else "",
        updated_at=moment_if_any(data.get("updated_at")),
    )
