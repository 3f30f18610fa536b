"""Reviews for tests: small builders for valid results, and diffs as the files API gives them."""

import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from support.stage import Stage

from accord.core.shapes import read_shape
from accord.engine.receipts import Receipt
from accord.github.client import GitHub
from accord.github.models import Pull, PullFile
from accord.results.models import ReviewerResult
from accord.results.reviewer.run import apply_review
from accord.results.run_options import ReviewOptions
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

FINDING = "What: off by one.\nWhy: the spec says n.\nFix: use range(n)."


def finding(name: str) -> str:
    """Write a finding that shares no word with another one."""
    return f"What: {name}.\nWhy: {name}.\nFix: {name}."


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


OLD = "".join(f"line {n}\n" for n in range(1, 41))
NEW = OLD.replace("line 3\n", "line three\n").replace("line 30\n", "").replace("line 40\n", "line 40\nline 41\n")
ITEM, PULL, OWN, LOCKED, READERS = 1, 2, 3, 4, 5
SAME = "Same\ncontent\nas before\nand after\n"
BEFORE = {"src/long.txt": OLD, "gone.txt": "Farewell\nfor\never\n", "old name.txt": SAME, "untouched.txt": "Still\n"}
CHANGE = {"src/long.txt": NEW, "gone.txt": None, "old name.txt": None, "new name.txt": SAME, "added.txt": "New\nfile\n"}
READS = {"issues": "write", "contents": "read", "pull_requests": "read"}
REVIEWS = {**READS, "pull_requests": "write"}
TOKENS = [
    {"token": "wanda-token", "login": "wanda"},
    {"token": "rita-token", "login": "rita"},
    {"token": "job-token", "login": "github-actions[bot]", "kind": "installation", "permissions": REVIEWS},
    {"token": "blind-token", "login": "blind[bot]", "kind": "installation", "permissions": READS},
]
REPOSITORY = {
    "name": "accord/sandbox",
    "collaborators": {"wanda": "write", "rita": "read"},
    "files": BEFORE,
    "branches": {
        "accord/1": CHANGE,
        "own": {"added.txt": "Own\n"},
        "locked": {"added.txt": "Locked\n"},
        "read": {"added.txt": "R\n"},
    },
    "issues": [
        {"title": "The work", "labels": ["task:implement", "status:review", "priority:low"]},
        {"title": "The change", "head": "accord/1", "body": "Does it.\n\nCloses #1", "author": "wanda"},
        {"title": "My change", "head": "own", "body": "Closes #1"},
        {"title": "A locked one", "head": "locked", "author": "wanda", "locked": True},
        {"title": "A reader's", "head": "read", "author": "rita", "body": "Closes #1"},
    ],
}
SEED = {"tokens": TOKENS, "repositories": [REPOSITORY]}


def review_stage(directory: Path, **settings: Any) -> AbstractContextManager[Stage]:
    """Open a stage with pull requests of other people and of our own."""
    from support.stage import staged  # here, so that pure tests of reviews do without the sandbox

    return staged(directory, seed=SEED, **settings)


def post(
    stage: Stage,
    result: dict[str, Any],
    *,
    adapter: GitHub | None = None,
    pull: int = PULL,
    work_item: int | None = None,
    commit: str = "",
    approvals: str = "approve",
    **more: Any,
) -> Receipt:
    """Apply a reviewer's result, by default to the pull request of another author."""
    model = read_shape(ReviewerResult, result)
    options = ReviewOptions(
        stage.repository,
        stage.clock,
        Redactor(),
        PostingPolicy(),
        pull=pull,
        work_item=work_item,
        commit=commit,
        approvals=approvals,
        **more,
    )
    return apply_review(adapter or stage.adapter(), model, options)


def reviews(stage: Stage, number: int = PULL) -> list[dict[str, Any]]:
    """List the reviews that say something themselves, without the wrappings of single comments."""
    return [review for review in stage.listed(f"/pulls/{number}/reviews") if review["body"]]


def status(stage: Stage) -> list[str]:
    """Return the status labels of the work item."""
    labels = stage.get(f"/repos/{stage.repository}/issues/{ITEM}")["labels"]
    return [label["name"] for label in labels if label["name"].startswith("status:")]


_THREADS = """query($owner: String!, $name: String!, $number: Int!) {
repository(owner: $owner, name: $name) { pullRequest(number: $number) {
  reviewThreads(first: 100) { nodes {
    id path line originalLine isResolved isOutdated resolvedBy { login } viewerCanResolve
    comments(first: 100) { nodes { id body isMinimized author { login } } }
  } }
} } }"""


def ask(stage: Stage, query: str, token: str = "", **variables: Any) -> Any:
    """Send a query or mutation of GraphQL; return its data. An error fails the test."""
    answer = stage.send("POST", "/graphql", token=token, query=query, variables=variables)
    assert "errors" not in answer, answer
    return answer["data"]


def threads(stage: Stage, number: int = PULL) -> list[dict[str, Any]]:
    """List the review threads with their comments, oldest first."""
    owner, _, name = stage.repository.partition("/")
    pull = ask(stage, _THREADS, owner=owner, name=name, number=number)["repository"]["pullRequest"]
    found = pull["reviewThreads"]["nodes"]
    return [{**thread, "comments": thread["comments"]["nodes"]} for thread in found]


def resolve(stage: Stage, thread: dict[str, Any], token: str = "wanda-token", *, undo: bool = False) -> None:
    """Resolve a thread as a person, or open it again."""
    name = "unresolveReviewThread" if undo else "resolveReviewThread"
    ask(
        stage,
        f"mutation($id: ID!) {{ {name}(input: {{threadId: $id}}) {{ thread {{ id }} }} }}",
        token,
        id=thread["id"],
    )


def hide(stage: Stage, thread: dict[str, Any], token: str = "wanda-token") -> None:
    """Hide the first comment of a thread as a person."""
    query = "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { clientMutationId } }"
    ask(stage, query, token, id=thread["comments"][0]["id"])


def answer(stage: Stage, thread: dict[str, Any], body: str, token: str = "wanda-token") -> None:
    """Reply in a thread as a person."""
    first = int(thread["comments"][0]["id"].removeprefix("PRRC_kwDO"), 16)
    stage.send("POST", f"/repos/{stage.repository}/pulls/{PULL}/comments/{first}/replies", token=token, body=body)


def snapshot(stage: Stage, number: int = PULL) -> dict[str, Any]:
    """All that a user could see of the reviews, without what differs by nature: times, ids, and so ids of commits."""
    found = stage.listed(f"/pulls/{number}/reviews")
    commits = list(dict.fromkeys(review["commit_id"] for review in found))

    def stable(text: str) -> str:
        for position, commit in enumerate(commits):
            text = text.replace(commit, f"commit {position}").replace(commit[:7], f"commit {position}")
        text = re.sub(r"(#pullrequestreview-|#discussion_r|thread=)\d+", r"\1n", text)
        return re.sub(r"gone=[0-9a-f.]+", "gone=n", text)

    return {
        "reviews": [
            (review["user"]["login"], review["state"], stable(review["commit_id"]), stable(review["body"]))
            for review in found
        ],
        "comments": [
            (c["path"], c["line"], c["side"], c.get("subject_type"), stable(c["body"]))
            for c in stage.listed(f"/pulls/{number}/comments")
        ],
        "threads": [
            (thread["isResolved"], [stable(c["body"]) for c in thread["comments"]]) for thread in threads(stage, number)
        ],
        "conversation": [stable(c["body"]) for c in stage.listed(f"/issues/{number}/comments")],
        "labels": sorted(label["name"] for label in stage.get(f"/repos/{stage.repository}/issues/{ITEM}")["labels"]),
    }


CLOSING_PULL = Pull(
    number=5, url="https://github.com/accord/sandbox/pull/5", title="Do it", body="Closes #1", state="open",
    is_merged=False, is_draft=False, is_locked=False, author="rita", labels=(), head_branch="accord/1",
    head_sha="a" * 40, head_repository="accord/sandbox", base_branch="main", base_sha="b" * 40,
)  # fmt: skip
"""A pull request that closes #1."""
