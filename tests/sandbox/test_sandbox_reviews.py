"""Reviews are stored or refused as a whole, in GitHub's words."""

from pathlib import Path
from typing import Any

import pytest
from support.code_repository import ADMIN, CHANGED, CODE, INSTALLATION, STRANGER, Client, Git

from accord_sandbox.server import RunningSandbox
from accord_sandbox.show import document

HOSTILE = "<script>alert(1)</script> <!-- marker --> **bold**"
LINE = {"path": "long.txt", "body": "Why three?", "line": 3}
NO_REASON = "You need to leave a comment indicating the requested changes."
SEED = CODE


def review(client: Client, body: Any = None, **options: Any) -> Any:
    return client.send(200, "POST", "pulls/2/reviews", body or {}, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "state"),
    [("APPROVE", "APPROVED"), ("REQUEST_CHANGES", "CHANGES_REQUESTED"), ("COMMENT", "COMMENTED"), (None, "PENDING")],
)
def test_a_review_is_returned_unchanged(client: Client, event: str | None, state: str) -> None:
    comments = [
        LINE,
        {"path": "long.txt", "body": "Old", "line": 3, "side": "LEFT"},
        {"path": "gone.txt", "body": "Farewell", "line": 1, "side": "LEFT"},
    ]
    body = {"body": "Words", "comments": comments} | ({"event": event} if event else {})
    made = review(client, body)
    assert (made["state"], made["body"], made["commit_id"]) == (state, "Words", client.tip("feature"))
    assert ("submitted_at" in made) == (event is not None)
    assert client("GET", "pulls/2/reviews").json() == [made]
    found = client("GET", "pulls/2/comments").json()
    public = 0 if event is None else 3
    assert len(found) == len(client("GET", "pulls/2/comments", token="writer").json()) == public
    assert len(client("GET", "pulls/2/reviews", token="writer").json()) == bool(public)
    assert client("GET", "pulls/2").json()["review_comments"] == public
    if event is None:
        return
    assert [(comment["line"], comment["side"]) for comment in found] == [(3, "RIGHT"), (3, "LEFT"), (1, "LEFT")]
    assert found[0]["diff_hunk"].endswith("\n-line 3\n+line three")


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ({"line": 15}, "Line could not be resolved"),
        ({"line": 30, "side": "LEFT", "path": "added.txt"}, "Line could not be resolved"),
        ({"path": "absent.txt"}, "Path could not be resolved"),
        ({"path": "old name.txt"}, "Path could not be resolved"),
        ({"path": "new name.txt", "line": 1}, "Line could not be resolved"),
        ({"body": ""}, "Body can't be blank"),
        ({"body": "x" * 65_537}, "Body is too long (maximum is 65536 characters)"),
    ],
)
def test_one_bad_comment_refuses_the_whole_review(client: Client, comment: dict[str, Any], reason: str) -> None:
    answer = client("POST", "pulls/2/reviews", {"event": "COMMENT", "comments": [LINE, {**LINE, **comment}]})
    document = answer.json()
    assert (answer.status_code, document["message"], document["errors"]) == (422, "Unprocessable Entity", [reason])
    assert client("GET", "pulls/2/reviews").json() == []
    assert client("GET", "pulls/2/comments").json() == []


@pytest.mark.parametrize(
    ("token", "body", "status", "reason"),
    [
        ("writer", {"event": "APPROVE"}, 422, "Can not approve your own pull request"),
        ("writer", {"event": "REQUEST_CHANGES", "body": "x"}, 422, "Can not request changes on your own pull request"),
        (ADMIN, {"event": "COMMENT"}, 422, "Body can not be blank"),
        (ADMIN, {"event": "REQUEST_CHANGES", "body": " "}, 422, NO_REASON),
        (ADMIN, {"event": "APPROVE", "commit_id": "{main}"}, 422, "Commit is not part of the pull request"),
        (ADMIN, {"event": "APPROVE", "body": "x" * 65_537}, 422, "Body is too long (maximum is 65536 characters)"),
        ("reader", {"event": "APPROVE"}, 403, None),
        (None, {"event": "APPROVE"}, 401, None),
    ],
)
def test_invalid_reviews_are_refused(
    client: Client, token: str | None, body: dict[str, str], status: int, reason: str | None
) -> None:
    body = {name: value.format(main=client.tip("main")) for name, value in body.items()}
    answer = client("POST", "pulls/2/reviews", body, token=token)
    assert answer.status_code == status
    assert answer.json().get("errors") == (None if reason is None else [reason])


@pytest.mark.parametrize(
    ("token", "body"),
    [
        ("writer", {"event": "COMMENT", "body": "On my own"}),
        (STRANGER, {"event": "APPROVE"}),
        (INSTALLATION, {"event": "REQUEST_CHANGES", "comments": [LINE]}),
    ],
)
def test_strangers_and_installations_may_review(client: Client, token: str, body: Any) -> None:
    states = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
    assert review(client, body, token=token)["state"] == states[body["event"]]


def test_a_user_has_only_one_pending_review(client: Client) -> None:
    draft = review(client, {"comments": [LINE]})
    second = client("POST", "pulls/2/reviews", {"event": "APPROVE"})
    assert second.json()["errors"] == ["User can only have one pending review per pull request"]
    single = client("POST", "pulls/2/comments", {**LINE, "commit_id": client.tip("feature")})
    assert "one pending review" in single.json()["errors"][0]["message"]
    path = f"pulls/2/reviews/{draft['id']}"
    assert client("PUT", path, {"body": "Later words"}, token="writer").status_code == 404
    assert client("PUT", path, {"body": "Later words"}).json()["body"] == "Later words"
    assert client("DELETE", path).status_code == 200
    sent = review(client, {"event": "COMMENT", "body": "x"})
    answer = client("DELETE", f"pulls/2/reviews/{sent['id']}")
    assert answer.json()["errors"] == ["Can not delete a non-pending pull request review"]
    assert [entry["id"] for entry in client("GET", "pulls/2/reviews").json()] == [sent["id"]]


def test_dismissing_keeps_the_body(client: Client) -> None:
    made = review(client, {"event": "APPROVE", "body": "Fine"})
    path = f"pulls/2/reviews/{made['id']}/dismissals"
    assert client("PUT", path, {"message": "x"}, token=STRANGER).status_code == 403
    assert client("PUT", path, {"message": " "}).status_code == 422
    done = client("PUT", path, {"message": "Not so fine", "event": "DISMISS"}).json()
    assert (done["state"], done["body"]) == ("DISMISSED", "Fine")
    said = review(client, {"event": "COMMENT", "body": "x"})
    for identifier, state in ((made["id"], "dismissed"), (said["id"], "commented")):
        answer = client("PUT", f"pulls/2/reviews/{identifier}/dismissals", {"message": "x"})
        assert answer.json()["errors"] == [f"Can not dismiss a {state} pull request review"]
    assert "review_dismissed" in [entry["event"] for entry in client("GET", "issues/2/timeline").json()]


def test_a_single_comment_is_a_review_of_its_own(client: Client) -> None:
    commit = client.tip("feature")
    made = client("POST", "pulls/2/comments", {**LINE, "commit_id": commit})
    assert (made.status_code, made.json()["line"], made.json()["commit_id"]) == (201, 3, commit)
    wrapped = client("GET", "pulls/2/reviews").json()
    seen = [(entry["id"], entry["state"], entry["body"]) for entry in wrapped]
    assert seen == [(made.json()["pull_request_review_id"], "COMMENTED", "")]
    file = {"path": "new name.txt", "body": "All of it", "subject_type": "file", "commit_id": commit}
    on_file = client("POST", "pulls/2/comments", file).json()
    assert (on_file["subject_type"], on_file["line"]) == ("file", None)
    identifier = made.json()["id"]
    reply = client("POST", f"pulls/2/comments/{identifier}/replies", {"body": "Because"}, token="writer").json()
    assert (reply["in_reply_to_id"], reply["line"], reply["path"]) == (identifier, 3, "long.txt")
    assert client("POST", f"pulls/2/comments/{reply['id']}/replies", {"body": "x"}).status_code == 404
    listed = client("GET", "pulls/2/comments").json()
    assert [comment["id"] for comment in listed] == [identifier, on_file["id"], reply["id"]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"line": 15}, "pull_request_review_thread.line must be part of the diff"),
        ({"path": "absent"}, "pull_request_review_thread.path is invalid"),
        ({"commit_id": "0" * 40}, "pull_request_review_thread.commit_id is not part of the pull request"),
        ({"body": "x" * 65_537}, "body is too long (maximum is 65536 characters)"),
        ({"body": ""}, "body can't be blank"),
    ],
)
def test_a_single_comment_off_the_diff_says_why(client: Client, body: dict[str, Any], message: str) -> None:
    answer = client("POST", "pulls/2/comments", {**LINE, "commit_id": client.tip("feature"), **body})
    assert (answer.status_code, answer.json()["errors"][0]["message"]) == (422, message)


def test_a_comment_on_several_lines_is_refused(client: Client) -> None:
    answer = client("POST", "pulls/2/comments", {**LINE, "start_line": 2, "commit_id": client.tip("feature")})
    assert (answer.status_code, "does not support `start_line`" in answer.json()["message"]) == (422, True)


def test_only_writers_review_in_a_locked_conversation(client: Client, sandbox: RunningSandbox) -> None:
    commit = client.tip("feature")
    with sandbox.database.writing() as connection:
        connection.execute("UPDATE issues SET locked = 1 WHERE number = 2")
    for path, body in (("reviews", {"event": "APPROVE"}), ("comments", {**LINE, "commit_id": commit})):
        assert client("POST", f"pulls/2/{path}", body, token=STRANGER).status_code == 403
        refused = client("POST", f"pulls/2/{path}", body, token=INSTALLATION)
        assert (refused.status_code, refused.json()["message"][-10:]) == (403, "is locked.")
    review(client, {"event": "APPROVE"})


@pytest.mark.slow
def test_comments_follow_their_lines(client: Client, sandbox: RunningSandbox, tmp_path: Path) -> None:
    """A comment moves with its line; it is outdated when its line changes."""
    comments = [
        {"path": "long.txt", "body": "moves", "line": 40},
        {"path": "long.txt", "body": "stays", "line": 3, "side": "LEFT"},
        {"path": "long.txt", "body": "dies", "line": 3},
        {"path": "added.txt", "body": "file gone", "line": 1},
    ]
    changed = CHANGED.replace("line three\n", "line 3.0\n").replace("line 20\n", "line 20\nline 20.5\nline 20.6\n")
    review(client, {"event": "COMMENT", "comments": comments})
    first = client.tip("feature")
    git = Git(sandbox, tmp_path)
    git.clone("feature")
    second = git.commit({"long.txt": changed, "added.txt": None})
    git("push", "-q", "origin", "feature")
    found = {entry["body"]: entry for entry in client("GET", "pulls/2/comments").json()}
    places = {body: (entry["line"], entry["original_line"], entry["commit_id"]) for body, entry in found.items()}
    outdated = {"dies": (None, 3, first), "file gone": (None, 1, first)}
    assert places == {"moves": (42, 40, second), "stays": (3, 3, second), **outdated}
    assert found["dies"]["position"] is None
    old = {**LINE, "commit_id": first, "body": "on the old commit"}
    late = client("POST", "pulls/2/comments", old).json()
    assert (late["line"], late["original_line"], late["original_commit_id"]) == (None, 3, first)


@pytest.mark.slow
def test_the_page_shows_reviews_and_comments_under_their_lines(client: Client, sandbox: RunningSandbox) -> None:
    commit = client.tip("feature")
    client(
        "POST", "pulls/2/comments", {"path": "new name.txt", "body": "All", "subject_type": "file", "commit_id": commit}
    )
    made = review(client, {"event": "REQUEST_CHANGES", "body": HOSTILE, "comments": [{**LINE, "body": HOSTILE}]})
    client("POST", "issues/2/comments", {"body": "Said aside"})
    client("PUT", f"pulls/2/reviews/{made['id']}/dismissals", {"message": "Never <b>mind"})
    page = client("GET", "/octo/code/pull/2", token=None).text
    words = ["wants to merge 1 commit into", "reviewed, and was dismissed", "Never &lt;b&gt;mind", "Said aside"]
    words += ["old name.txt → new name.txt", "@@ -1,6 +1,6 @@", '<span class="sign">+</span>line three', "4 files"]
    assert [word for word in words if word not in page] == []
    assert "<script" not in page
    assert "marker" not in page
    added, under, after = page.index("</span>line three"), page.index("discussion_r"), page.index("</span>line 4<")
    assert added < under < after
    listing = client("GET", "/octo/code/pulls", token=None).text
    assert "The change" in listing
    assert "No closed pull requests." in client("GET", "/octo/code/pulls?state=closed", token=None).text
    assert "The change" not in client("GET", "/octo/code", token=None).text
    assert client("GET", "/octo/none/pulls", token=None).status_code == 404
    shown = document(sandbox.database.path.parent)
    seen = [(entry["state"], entry["pull"], len(entry["comments"])) for entry in shown["reviews"]]
    assert seen == [("COMMENTED", 2, 1), ("DISMISSED", 2, 1)]
    assert shown["reviews"][1]["comments"][0]["line"] == 3
    assert (shown["pulls"][0]["head"]["ref"], shown["pulls"][0]["merged"]) == ("feature", False)


@pytest.mark.parametrize("ref", ["main", "sha"])
def test_a_link_to_a_line_shows_the_file_at_that_commit(client: Client, ref: str) -> None:
    tip = client.tip("main")
    page = client("GET", f"/octo/code/blob/{tip if ref == 'sha' else ref}/long.txt", token=None)
    assert page.status_code == 200
    assert '<tr id="L30"><td></td><td data-number="30"></td><td>line 30</td></tr>' in page.text
    for path in (f"{tip}/no/such.txt", f"{tip}/docs", "nowhere/long.txt", "--help/x"):
        assert client("GET", f"/octo/code/blob/{path}", token=None).status_code == 404


@pytest.mark.slow
def test_outdated_comments_and_large_files_have_their_place_on_the_page(
    client: Client, sandbox: RunningSandbox, tmp_path: Path
) -> None:
    review(client, {"event": "APPROVE", "comments": [LINE]})
    git = Git(sandbox, tmp_path)
    git.clone("feature")
    git.commit({"long.txt": CHANGED.replace("three", "3"), "huge.txt": "x\n" * 3100, "tail": "no line break"})
    git("push", "-q", "origin", "feature")
    page = client("GET", "/octo/code/pull/2", token=None).text
    words = ["Outdated comments", "Why three?", "Too much to show here.", "No newline at end of file", "approved"]
    assert [word for word in words if word not in page] == []
    client("PUT", "pulls/2/merge")
    assert 'class="state merged"' in client("GET", "/octo/code/pull/2", token=None).text
