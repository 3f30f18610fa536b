"""Commits, trees and refs over the API."""

from typing import Any

import pytest
from support.code_repository import ADMIN, CODE, INSTALLATION, Client

from accord_sandbox.git_storage import EMPTY_TREE

SEED = CODE
REF = "refs/accord/test"
FILE = {"path": "state/a.txt", "mode": "100644", "type": "blob", "content": "é\n"}


class API:
    """Requests about git objects, with the status that each has to have."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def __call__(self, method: str, path: str, status: int, token: str = ADMIN, **body: Any) -> Any:
        answer = self.client(method, f"git/{path}", body or None, token=token)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def commit(self, message: str, *parents: str) -> str:
        tree = self("POST", "trees", 201, tree=[FILE])["sha"]
        return str(self("POST", "commits", 201, message=message, tree=tree, parents=list(parents))["sha"])


@pytest.fixture
def api(client: Client) -> API:
    return API(client)


FLOW = {"path": ".github/workflows/ci.yml", "mode": "100644", "type": "blob", "content": "on: push\n"}


@pytest.mark.slow
@pytest.mark.parametrize(("token", "is_allowed"), [(INSTALLATION, False), ("fine", False), ("flows", True)])
def test_no_way_through_the_api_brings_a_workflow_file_without_its_permission(
    api: API, token: str, is_allowed: bool
) -> None:
    made, moved = (201, 200) if is_allowed else (403, 403)
    api("POST", "trees", made, token=token, tree=[FLOW])
    tree = api("POST", "trees", 201, tree=[FLOW])["sha"]
    github = api("GET", f"trees/{tree}", 200)["tree"][0]["sha"]
    folder = {"path": ".github", "mode": "040000", "type": "tree", "sha": github}
    api("POST", "trees", made, token=token, tree=[folder])
    first = api.commit("one")
    flow = api("POST", "commits", 201, token=token, message="ci", tree=tree, parents=[first])["sha"]
    back = api.commit("and gone again", flow)
    api("POST", "refs", 201, token=token, ref=REF, sha=first)
    api("PATCH", REF, moved, token=token, sha=back)
    api("POST", "refs", made, token=token, ref="refs/heads/flow", sha=flow)
    assert api("GET", "ref/accord/test", 200)["object"]["sha"] == (back if is_allowed else first)
    if not is_allowed:
        api("POST", "refs", 201, ref="refs/heads/flow", sha=flow)
    api("POST", "refs", 201, token=token, ref="refs/heads/same", sha=flow)


@pytest.mark.slow
def test_a_tree_holds_what_was_put_over_another_one(api: API) -> None:
    below = api("POST", "trees", 201, tree=[FILE])["sha"]
    entries = [
        {"path": "b.sh", "mode": "100755", "type": "blob", "content": "true\n"},
        {"path": "copy", "mode": "040000", "type": "tree", "sha": below},
        {"path": "state/a.txt", "mode": "100644", "type": "blob", "sha": None},
    ]
    found = api("POST", "trees", 201, base_tree=below, tree=entries)
    assert [(entry["path"], entry["mode"]) for entry in found["tree"]] == [("b.sh", "100755"), ("copy", "040000")]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("commits", {"message": "x", "tree": EMPTY_TREE}),
        ("commits", {"message": "x", "tree": "0" * 40}),
        ("commits", {"message": "x", "tree": "{tree}", "parents": ["0" * 40]}),
        ("trees", {"tree": []}),
        ("trees", {"tree": [{"path": "../x", "mode": "100644", "type": "blob", "content": ""}]}),
        ("trees", {"base_tree": "0" * 40, "tree": [{"path": "x", "content": ""}]}),
    ],
)
def test_invalid_trees_and_commits_are_refused(api: API, path: str, body: dict[str, Any]) -> None:
    tree = api("POST", "trees", 201, tree=[FILE])["sha"]
    assert api("POST", path, 422, **(body | {"tree": tree} if body["tree"] == "{tree}" else body))["message"]


def test_a_reader_cannot_create_a_commit(api: API) -> None:
    assert "not accessible" in api("POST", "commits", 403, token="reader", message="x", tree=EMPTY_TREE)["message"]
