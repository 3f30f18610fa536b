"""Pull requests come from real git branches."""

import base64
from pathlib import Path
from typing import Any

import pytest
from support.code_repository import ADMIN, CODE, INSTALLATION, STRANGER, Client, Git
from support.stage import staged

from accord.github.checks import CONCLUSIONS
from accord_sandbox.pull_state import closed_numbers

SEED = CODE


def opened(client: Client, head: str = "other", **more: Any) -> Any:
    return client.send(201, "POST", "pulls", {"title": "A change", "head": head, "base": "main", **more})


@pytest.mark.slow
def test_a_pull_request_has_the_changes_of_its_branches(client: Client) -> None:
    pull = client("GET", "pulls/2").json()
    assert (pull["additions"], pull["deletions"], pull["changed_files"], pull["commits"]) == (3, 3, 4, 1)
    assert (pull["mergeable"], pull["mergeable_state"], pull["merged"]) == (True, "clean", False)
    assert (pull["head"]["label"], pull["head"]["sha"]) == ("octo:feature", client.tip("feature"))
    assert (pull["base"]["ref"], pull["base"]["sha"]) == ("main", client.tip("main"))
    files = {entry["filename"]: entry for entry in client("GET", "pulls/2/files").json()}
    states = {"added.txt": "added", "gone.txt": "removed", "long.txt": "modified", "new name.txt": "renamed"}
    assert {name: entry["status"] for name, entry in files.items()} == states
    assert files["new name.txt"]["previous_filename"] == "old name.txt"
    assert (files["long.txt"]["additions"], files["long.txt"]["deletions"], files["long.txt"]["changes"]) == (2, 2, 4)
    assert files["added.txt"]["patch"] == "@@ -0,0 +1 @@\n+New"
    assert "patch" not in files["new name.txt"]
    assert client("GET", "pulls/2/files?per_page=3&page=2").json() == [files["new name.txt"]]
    assert [commit["commit"]["message"] for commit in client("GET", "pulls/2/commits").json()] == ["Work on feature"]


LISTS = {
    "": [3, 2], "?state=closed": [4], "?state=all&direction=asc": [2, 3, 4], "?head=octo:feature": [2],
    "?head=OCTO:other": [3], "?head=feature": [3, 2], "?base=other": [],
}  # fmt: skip


def test_lists_are_filtered(client: Client) -> None:
    opened(client)
    client("PATCH", f"pulls/{opened(client, 'rival')['number']}", {"state": "closed"})
    found = {query: [pull["number"] for pull in client("GET", f"pulls{query}").json()] for query in LISTS}
    assert found == LISTS


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"head": "absent", "base": "main"}, {"field": "head", "code": "invalid"}),
        ({"head": "stranger:other", "base": "main"}, {"field": "head", "code": "invalid"}),
        ({"head": "other", "base": "absent"}, {"field": "base", "code": "invalid"}),
        ({"head": "main", "base": "other"}, {"message": "No commits between other and main"}),
        ({"head": "feature", "base": "main"}, {"message": "A pull request already exists for octo:feature."}),
        ({"head": "other", "base": "main", "title": " "}, {"field": "title", "code": "missing_field"}),
        ({"head": "other", "base": "main", "title": "x" * 257}, {"field": "title", "code": "custom"}),
        ({"head": "other", "base": "main", "body": "x" * 65_537}, {"field": "body", "code": "custom"}),
    ],
)
def test_invalid_pull_requests_are_refused(client: Client, body: dict[str, Any], error: dict[str, str]) -> None:
    answer = client("POST", "pulls", {"title": "x", **body})
    assert (answer.status_code, answer.json()["message"]) == (422, "Validation Failed")
    assert error.items() <= {**answer.json()["errors"][0]}.items()


@pytest.mark.parametrize(
    ("token", "status"),
    [
        (None, 401), (STRANGER, 403), ("reader", 403), ("fine", 403), ("writer", 201), (INSTALLATION, 201),
        ("flows", 201),
    ],
)  # fmt: skip
def test_opening_needs_write_access(client: Client, token: str | None, status: int) -> None:
    body = {"title": "x", "head": "other", "base": "main"}
    assert client("POST", "pulls", body, token=token).status_code == status


def test_a_pull_request_is_changed_but_stays_a_draft(client: Client) -> None:
    number = opened(client, draft=True)["number"]
    changed = client("PATCH", f"pulls/{number}", {"title": "New", "body": "b", "draft": False})
    document = changed.json()
    assert (document["title"], document["body"], document["draft"]) == ("New", "b", True)
    assert client("PATCH", f"pulls/{number}", {"title": "Mine"}, token=STRANGER).status_code == 403


@pytest.mark.slow
def test_a_push_moves_the_head(client: Client, git: Git) -> None:
    git.clone("feature")
    sha = git.commit({"more.txt": "More\n"})
    git("push", "-q", "origin", "feature")
    pull = client("GET", "pulls/2").json()
    assert (pull["head"]["sha"], pull["commits"], pull["changed_files"]) == (sha, 2, 5)
    git("fetch", "-q", "origin", "refs/pull/2/head")
    assert git("rev-parse", "FETCH_HEAD").strip() == sha
    git("push", "-q", "origin", "--delete", "feature")
    assert client("GET", "pulls/2").json()["state"] == "closed"
    refused = client("PATCH", "pulls/2", {"state": "open"})
    message = "state cannot be changed. The feature branch has been deleted."
    assert (refused.status_code, refused.json()["errors"][0]["message"]) == (422, message)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
def test_merging_closes_the_issues_in_the_body(client: Client, git: Git, method: str) -> None:
    head = client.tip("feature")
    sha = client.send(200, "PUT", "pulls/2/merge", {"merge_method": method, "sha": head})["sha"]
    parents = client("GET", f"git/commits/{sha}").json()["parents"]
    assert (client.tip("main"), len(parents)) == (sha, 2 if method == "merge" else 1)
    pull, issue = client("GET", "pulls/2").json(), client("GET", "issues/1").json()
    assert (pull["merged"], pull["merged_by"]["login"], pull["merge_commit_sha"]) == (True, "maintainer", sha)
    assert (issue["state"], issue["state_reason"]) == ("closed", "completed")
    assert client("PUT", "pulls/2/merge").status_code == 405
    assert client("PATCH", "pulls/2", {"state": "open"}).status_code == 422
    assert client("GET", "issues/2").json()["pull_request"]["merged_at"] is not None
    git.clone()
    assert (git.folder / "new name.txt").exists()


@pytest.mark.parametrize(
    ("body", "closed"),
    [
        ("Fixes #1, resolves GH-2", [1, 2]),
        ("closes accord/Sandbox#3 and Resolved: https://github.com/accord/sandbox/issues/4", [3, 4]),
        ("Fixes other/one#1, closes https://github.com/other/one/issues/1, fixes#1, GH-1", []),
    ],
)
def test_a_body_closes_issues_of_its_repository_in_all_forms(body: str, closed: list[int]) -> None:
    assert closed_numbers(body, "accord/sandbox") == closed


@pytest.mark.slow
def test_a_rebase_puts_new_commits_of_the_same_authors_on_the_base(client: Client, git: Git) -> None:
    git.clone("feature")
    git.commit({"more.txt": "More\n"})
    git("push", "-q", "origin", "feature")
    git("switch", "-q", "main")
    base = git.commit({"beside.txt": "Beside\n"})
    git("push", "-q", "origin", "main")
    sha = client.send(200, "PUT", "pulls/2/merge", {"merge_method": "rebase"})["sha"]
    git("fetch", "-q", "origin")
    assert client.tip("main") == sha
    fields = "--format=%s|%an|%ae|%at"
    moved, old = (git("log", fields, f"{start}..{end}") for start, end in ((base, sha), (base, "origin/feature")))
    assert (moved, moved.count("\n")) == (old, 2)
    assert git("log", "--format=%cn", f"{base}..{sha}").split() == ["maintainer"] * 2
    assert git("rev-list", "--min-parents=2", f"{base}..{sha}") == ""
    assert (
        git("diff", "--name-only", base, sha).splitlines()
        == git("diff", "--name-only", f"{base}...origin/feature").splitlines()
    )
    assert client("GET", "pulls/2").json()["merged"] is True


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["conflict", "merge"])
def test_a_branch_with_a_conflict_or_a_merge_is_not_rebased(client: Client, git: Git, kind: str) -> None:
    git.clone("feature")
    if kind == "merge":
        git("switch", "-q", "-c", "side", "HEAD~1")
        git.commit({"side.txt": "Side\n"})
        git("switch", "-q", "feature")
        git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    else:  # its two commits cancel out, so that it merges
        git.commit({"more.txt": "More\n"})
        git.commit({"more.txt": "Beside\n"})
        git("push", "-q", "origin", "feature")
        git("switch", "-q", "main")
        git.commit({"more.txt": "Beside\n"})
        git("push", "-q", "origin", "main")
        git("switch", "-q", "feature")
    git("push", "-q", "origin", "feature")
    refused = client("PUT", "pulls/2/merge", {"merge_method": "rebase"})
    assert (refused.status_code, refused.json()["message"]) == (405, "This branch can't be rebased")
    assert client("GET", "pulls/2").json()["merged"] is False


@pytest.mark.parametrize(
    ("head", "options", "body", "token", "expected"),
    [
        ("feature", {}, {"sha": "0" * 40}, ADMIN, (409, "Head branch was modified. Review and try the merge again.")),
        ("other", {"draft": True}, {}, ADMIN, (405, "Pull Request is still a draft")),
        ("rival", {"base": "feature"}, {}, ADMIN, (405, "Pull Request is not mergeable")),
        ("other", {}, {}, STRANGER, (403, "Must have admin rights to Repository.")),
    ],
)
def test_refused_merges_change_nothing(
    client: Client, head: str, options: Any, body: Any, token: str, expected: tuple[int, str]
) -> None:
    number = 2 if head == "feature" else opened(client, head, **options)["number"]
    answer = client("PUT", f"pulls/{number}/merge", body, token=token)
    assert (answer.status_code, answer.json()["message"]) == expected
    assert client("GET", f"pulls/{number}").json()["merged"] is False


def test_a_conflict_makes_a_pull_request_dirty(client: Client) -> None:
    pull = opened(client, "rival", base="feature")
    assert (pull["mergeable"], pull["mergeable_state"]) == (False, "dirty")


@pytest.mark.slow
def test_large_files_have_no_patch(client: Client, git: Git) -> None:
    git.clone()
    git("checkout", "-q", "-b", "huge", "main")
    (git.folder / "blob.bin").write_bytes(bytes(range(256)) * 10)
    git.commit({"huge.txt": "x\n" * 20_001, "small.txt": "x\n"})
    git("push", "-q", "origin", "huge")
    files = client("GET", f"pulls/{opened(client, 'huge')['number']}/files").json()
    assert [("patch" in entry, entry["additions"]) for entry in files] == [(False, 0), (False, 20_001), (False, 1)]


@pytest.mark.slow
def test_files_and_commits_are_read(client: Client) -> None:
    head = client.tip("feature")
    assert base64.b64decode(client("GET", "contents/src/é.py").json()["content"]) == b"x = 1\n"
    assert client("GET", "contents/added.txt?ref=feature").json()["size"] == 4
    assert [entry["name"] for entry in client("GET", "contents/src").json()] == ["é.py"]
    assert client("GET", "contents/absent").status_code == 404
    assert client("GET", "contents/a", token=None).status_code == 404
    assert [commit["sha"] for commit in client("GET", "commits?sha=feature&per_page=1").json()] == [head]
    assert client("GET", f"commits/{'0' * 40}/check-runs").status_code == 422
    compared = client("GET", "compare/rival...feature").json()
    assert (compared["status"], compared["ahead_by"], compared["behind_by"]) == ("diverged", 1, 1)
    tree = client("GET", f"git/trees/{head}?recursive=1").json()["tree"]
    assert [entry["path"] for entry in tree] == ["added.txt", "long.txt", "new name.txt", "src", "src/é.py"]
    assert client("GET", f"git/commits/{head}").json()["message"] == "Work on feature"
    for path in ("commits", "git/ref/heads/main"):
        assert client("GET", f"/repos/octo/empty/{path}").status_code == 409


@pytest.mark.slow
def test_a_file_is_put(client: Client) -> None:
    content = base64.b64encode(b"Text").decode()
    made = client("PUT", "contents/new/a.txt", {"message": "Add", "content": content, "branch": "other"})
    assert made.status_code == 201
    body = {"message": "Change", "content": content, "branch": "other"}
    assert client("PUT", "contents/new/a.txt", body).status_code == 422
    assert client("PUT", "contents/new/a.txt", {**body, "sha": "0" * 40}).status_code == 409
    again = client("PUT", "contents/new/a.txt", {**body, "sha": made.json()["content"]["sha"]})
    assert (again.status_code, client.tip("other")) == (200, again.json()["commit"]["sha"])
    first = client("PUT", "/repos/octo/empty/contents/a.txt", {"message": "First", "content": content})
    assert first.status_code == 201
    through = client("PUT", "contents/b.txt", {"message": "x", "content": content}, token="writer")
    assert (through.status_code, "through a pull request" in through.json()["message"]) == (409, True)
    flow = {"message": "x", "content": content, "branch": "other"}
    assert client("PUT", "contents/.github/workflows/x.yml", flow, token=INSTALLATION).status_code == 403


def test_refs_are_made_moved_and_deleted(client: Client) -> None:
    main, feature = client.tip("main"), client.tip("feature")
    made = client("POST", "git/refs", {"ref": "refs/heads/a/b", "sha": main})
    assert (made.status_code, made.json()["object"]["sha"]) == (201, main)
    assert client("PATCH", "git/refs/heads/a/b", {"sha": feature}).json()["object"]["sha"] == feature
    assert client("PATCH", "git/refs/heads/a/b", {"sha": main}).status_code == 422
    assert client("PATCH", "git/refs/heads/a/b", {"sha": main, "force": True}).status_code == 200
    assert client("GET", "git/ref/heads/a").status_code == 404
    assert client("DELETE", "git/refs/heads/a/b").status_code == 204
    assert [branch["name"] for branch in client("GET", "branches").json()] == ["feature", "main", "other", "rival"]


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        ("POST", "git/refs", {"ref": "refs/heads/main", "sha": "{main}"}, "Reference already exists"),
        ("POST", "git/refs", {"ref": "heads/x", "sha": "{main}"}, "heads/x is not a valid ref name."),
        ("POST", "git/refs", {"ref": "refs/heads/a..b", "sha": "{main}"}, "refs/heads/a..b is not a valid ref name."),
        ("POST", "git/refs", {"ref": "refs/heads/x", "sha": "1" * 40}, "Object does not exist"),
        ("POST", "git/refs", {"ref": "refs/heads/main/x", "sha": "{main}"}, "Reference update failed"),
        ("PATCH", "git/refs/heads/absent", {"sha": "{main}"}, "Reference does not exist"),
        ("PATCH", "git/refs/heads/main", {"sha": "{feature}"}, "Changes must be made through a pull request."),
        ("DELETE", "git/refs/heads/absent", None, "Reference does not exist"),
        ("DELETE", "git/refs/heads/main", None, "Cannot delete a protected branch"),
    ],
)
def test_invalid_ref_changes_are_refused(client: Client, method: str, path: str, body: Any, message: str) -> None:
    if body is not None:
        names = {name: client.tip(name) for name in ("main", "feature")}
        body = {key: value.format(**names) for key, value in body.items()}
    answer = client(method, path, body, token="writer")
    assert (answer.status_code, answer.json()["message"]) == (422, message)
    assert client(method, path, body, token="reader").status_code == 403


FORK = """
repositories:
  - name: octo/code
    files: {README.md: "Hello"}
    branches: {feature: {README.md: "Hello, world"}}
    issues: [{title: From outside, head: feature, fork: stranger/code}]
"""


@pytest.mark.slow
def test_a_pull_request_from_a_fork_stays_open_after_a_push(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with staged(tmp_path / "sandbox", seed=FORK) as stage:
        home = Git(stage.server, tmp_path / "work")
        home.clone("main")
        home.commit({"more.txt": "More\n"})
        home("push", "-q", "origin", "main")
        pull = stage.get("/repos/octo/code/pulls/1")
        assert (pull["state"], pull["head"]["label"]) == ("open", "stranger:feature")
        assert (pull["head"]["repo"]["full_name"], pull["base"]["repo"]["full_name"]) == ("stranger/code", "octo/code")
        assert [branch["name"] for branch in stage.get("/repos/octo/code/branches")] == ["main"]
        assert [file["filename"] for file in stage.get("/repos/octo/code/pulls/1/files")] == ["README.md"]


@pytest.mark.parametrize(
    ("token", "body", "status"),
    [
        (ADMIN, {}, 403), (None, {}, 401), ("flows", {}, 403), (INSTALLATION, {"head_sha": "0" * 40}, 422),
        (INSTALLATION, {"status": "completed"}, 422), (INSTALLATION, {"conclusion": "splendid"}, 422),
        (INSTALLATION, {"output": {"title": "x"}}, 422),
    ],
)  # fmt: skip
def test_invalid_check_runs_are_refused(client: Client, token: str | None, body: Any, status: int) -> None:
    answer = client("POST", "check-runs", {"name": "x", "head_sha": client.tip("feature"), **body}, token=token)
    assert answer.status_code == status
    assert client("GET", "commits/feature/check-runs").json()["total_count"] == 0


def test_a_seed_plants_a_check_with_every_conclusion_that_accord_knows(tmp_path: Path) -> None:
    checks = [{"name": conclusion, "conclusion": conclusion} for conclusion in CONCLUSIONS]
    issue = {"title": "x", "head": "feature", "checks": checks}
    repository = {"files": {"a": "1"}, "branches": {"feature": {"a": "2"}}, "issues": [issue]}
    with staged(tmp_path, seed={"repositories": [{"name": "octo/code", **repository}]}) as stage:
        found = stage.get("/repos/octo/code/commits/feature/check-runs", per_page=100)["check_runs"]
    assert {(each["name"], each["status"], each["conclusion"]) for each in found} == {
        (conclusion, "completed", conclusion) for conclusion in CONCLUSIONS
    }


def test_statuses_combine_into_one_state(client: Client) -> None:
    sha = client.tip("feature")
    assert client("GET", "commits/feature/status").json()["state"] == "pending"
    states = [("ci", "pending", "pending"), ("ci", "success", "success"), ("lint", "error", "failure")]
    for context, given, expected in states:
        made = client("POST", f"statuses/{sha}", {"state": given, "context": context, "description": "d"})
        assert (made.status_code, made.json()["creator"]["login"]) == (201, "maintainer")
        assert client("GET", f"commits/{sha}/status").json()["state"] == expected
    assert client("GET", f"commits/{sha}/status").json()["total_count"] == 2
    assert client("POST", f"statuses/{sha}", {"state": "fine"}).status_code == 422
    assert client("POST", f"statuses/{sha}", {"state": "success"}, token=STRANGER).status_code == 403
