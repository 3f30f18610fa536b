"""Refusals by settings of a repository: pull requests of GitHub Actions, and changes that break a ruleset."""

from typing import Any

import pytest
from support.code_repository import ADMIN, INSTALLATION, STRANGER, Client, Git
from support.trees import git as run_git

from accord_sandbox.server import RunningSandbox

SEED = """
tokens:
  - {token: admin-app, login: "setup[bot]", kind: installation, permissions: {administration: read, secrets: read}}
  - {token: flows, login: "flows[bot]", kind: installation, permissions: {contents: write, pull_requests: write}}
  - {token: writer, login: wanda}
repositories:
  - name: octo/code
    collaborators: {wanda: write}
    settings: default
    secrets: [openai_api_key]
    organization_secrets: [SHARED]
    environments: {agents: {secrets: [ANTHROPIC_API_KEY]}, empty: {}}
    variables: {accord_login: "flows[bot]"}
    organization_variables: {REGION: eu}
    rulesets:
      - {branches: ["accord/**"], rules: [required_signatures, non_fast_forward]}
      - {branches: ["~DEFAULT_BRANCH", "release/*"], rules: [pull_request, deletion]}
      - {branches: ["frozen*"], rules: [creation, update]}
    files: {a.txt: "One\\n"}
    branches: {change: {a.txt: "Two\\n"}, release/1: {a.txt: "R\\n"}}
    issues:
      - {title: By a person, head: release/1}
  - {name: octo/ready, files: {a.txt: "One\\n"}, branches: {change: {a.txt: "Two\\n"}}}
  - name: octo/open
    settings: {can_approve_pull_request_reviews: true, default_workflow_permissions: write}
"""
WORKFLOW = "actions/permissions/workflow"
REFUSED = "GitHub Actions is not permitted to create or approve pull requests."
NOT_BY_INTEGRATION = "Resource not accessible by integration"
BROKEN = "Repository rule violations found\n\n{}\n\n"


@pytest.mark.parametrize(
    ("repository", "may_create", "level"),
    [("octo/code", False, "read"), ("octo/ready", True, "read"), ("octo/open", True, "write")],
)
def test_settings_are_those_of_the_seed(client: Client, repository: str, may_create: bool, level: str) -> None:
    found = client.send(200, "GET", f"/repos/{repository}/{WORKFLOW}")
    assert found == {"default_workflow_permissions": level, "can_approve_pull_request_reviews": may_create}


@pytest.mark.parametrize("path", [WORKFLOW, "actions/secrets", "actions/variables", "environments/agents/secrets"])
@pytest.mark.parametrize(
    ("token", "message"), [(INSTALLATION, NOT_BY_INTEGRATION), (STRANGER, "Must have admin rights to Repository.")]
)
def test_settings_are_hidden_from_tokens_without_the_permission(
    client: Client, token: str, message: str, path: str
) -> None:
    answer = client("GET", path, token=token)
    assert (answer.status_code, answer.json()["message"]) == (403, message)


@pytest.mark.parametrize(
    ("token", "path", "status"),
    [
        ("admin-app", WORKFLOW, 200), ("admin-app", "actions/secrets", 200), ("admin-app", "actions/variables", 403),
        ("writer", WORKFLOW, 403), ("writer", "actions/secrets", 200), (None, WORKFLOW, 401),
        (ADMIN, "environments/none/secrets", 404),
    ],
)  # fmt: skip
def test_a_permission_or_a_role_opens_settings(client: Client, token: str | None, path: str, status: int) -> None:
    assert client("GET", path, token=token).status_code == status


@pytest.mark.parametrize(
    ("path", "key", "names"),
    [
        ("actions/secrets", "secrets", ["OPENAI_API_KEY"]),
        ("actions/organization-secrets", "secrets", ["SHARED"]),
        ("environments/Agents/secrets", "secrets", ["ANTHROPIC_API_KEY"]),
        ("environments/empty/secrets", "secrets", []),
        ("actions/variables", "variables", ["ACCORD_LOGIN"]),
        ("actions/organization-variables", "variables", ["REGION"]),
    ],
)
def test_secrets_and_variables_are_listed_by_name(client: Client, path: str, key: str, names: list[str]) -> None:
    found = client.send(200, "GET", path)
    assert (found["total_count"], [entry["name"] for entry in found[key]]) == (len(names), names)


def opened(client: Client, token: str, repository: str = "octo/code") -> Any:
    body = {"title": "A change", "head": "change", "base": "main"}
    return client("POST", f"/repos/{repository}/pulls", body, token=token)


def test_github_actions_opens_no_pull_request_by_default(client: Client) -> None:
    answer = opened(client, INSTALLATION)
    assert (answer.status_code, answer.json()["message"]) == (403, REFUSED)
    assert opened(client, "flows").status_code == 201, "the setting is about GITHUB_TOKEN only"


def test_a_pull_request_without_commits_shows_the_setting_and_creates_nothing(client: Client) -> None:
    body = {"title": "x", "head": "main", "base": "main"}
    assert client("POST", "pulls", body, token=INSTALLATION).status_code == 403
    client("PUT", WORKFLOW, {"can_approve_pull_request_reviews": True})
    assert client("POST", "pulls", body, token=INSTALLATION).status_code == 422
    assert len(client("GET", "pulls").json()) == 1


def test_an_administrator_switches_it_on(client: Client) -> None:
    assert client("PUT", WORKFLOW, {"can_approve_pull_request_reviews": True}, token="admin-app").status_code == 403
    assert client("PUT", WORKFLOW, {"can_approve_pull_request_reviews": True}).status_code == 204
    assert client.send(200, "GET", WORKFLOW)["default_workflow_permissions"] == "read"
    assert opened(client, INSTALLATION).status_code == 201


def test_github_actions_approves_nothing_by_default(client: Client) -> None:
    answer = client("POST", "pulls/1/reviews", {"event": "APPROVE"}, token=INSTALLATION)
    errors = ["GitHub Actions is not permitted to approve pull requests."]
    assert (answer.status_code, answer.json()["message"]) == (422, "Unprocessable Entity")
    assert answer.json()["errors"] == errors
    asked = {"event": "REQUEST_CHANGES", "body": "Please"}
    assert client("POST", "pulls/1/reviews", asked, token=INSTALLATION).ok
    client("PUT", WORKFLOW, {"can_approve_pull_request_reviews": True})
    assert client("POST", "pulls/1/reviews", {"event": "APPROVE"}, token=INSTALLATION).ok


@pytest.mark.parametrize(
    ("branch", "types"),
    [
        ("main", ["pull_request", "deletion"]),
        ("accord/12", ["required_signatures", "non_fast_forward"]),
        ("release/1", ["pull_request", "deletion"]),
        ("release/1/x", []),
        ("frozen-1", ["creation", "update"]),
        ("other", []),
    ],
)
def test_the_rules_of_a_branch_are_readable(client: Client, branch: str, types: list[str]) -> None:
    found = client.send(200, "GET", f"rules/branches/{branch}", token=INSTALLATION)
    assert [rule["type"] for rule in found] == types
    assert all(rule["ruleset_source"] == "octo/code" for rule in found)


SIGNATURES = "Commits must have verified signatures."
BY_PULL = "Changes must be made through a pull request."


BROKEN_BY_PUSHES = [
    ("HEAD:accord/1", "accord/1", SIGNATURES),
    ("HEAD:main", "main", BY_PULL),
    (":release/1", "release/1", "Cannot delete this protected ref."),
    ("+HEAD:release/1", "release/1", BY_PULL),
    ("HEAD:frozen", "frozen", "Cannot create ref due to creations being restricted."),
    ("HEAD:other", "", ""),
]


@pytest.mark.slow
def test_a_push_that_breaks_a_rule_is_refused_as_gh013(git: Git) -> None:
    git.clone("main", token=INSTALLATION)
    sha = git.commit({"x.txt": "x\n"})
    for refspec, branch, reason in BROKEN_BY_PUSHES:
        source, _, target = refspec.rpartition(":")
        name = f"refs/heads/{target}"
        written = git("push", "origin", f"{source}:{name}", ok=not reason)
        said = [
            f"remote: error: GH013: Repository rule violations found for {name}.",
            f"/octo/code/rules?ref=refs%2Fheads%2F{branch.replace('/', '%2F')}",
            f"remote: - {reason}",
            "(push declined due to repository rule violations)",
        ]
        assert [words for words in said if reason and words not in written] == [], (refspec, written)
        assert (sha in written) == (reason == SIGNATURES), "unsigned commits are listed"


def test_the_api_refuses_what_breaks_a_rule(client: Client) -> None:
    tip, main = client.tip("change"), client.tip("main")
    cases: list[tuple[str, str, dict[str, Any] | None, int, str]] = [
        (
            "POST",
            "git/refs",
            {"ref": "refs/heads/frozen", "sha": main},
            422,
            "Cannot create ref due to creations being",
        ),
        ("PATCH", "git/refs/heads/main", {"sha": tip}, 422, BY_PULL),
        ("DELETE", "git/refs/heads/release/1", None, 422, "Cannot delete this protected ref."),
        ("PUT", "contents/b.txt", {"message": "b", "content": "eA=="}, 409, BY_PULL),
    ]
    for method, path, body, status, reason in cases:
        answer = client(method, path, body, token=INSTALLATION)
        message = answer.json()["message"]
        assert (answer.status_code, message.startswith("Repository rule violations found\n\n")) == (status, True), path
        assert reason in message
    assert (client.tip("main"), client("GET", "git/ref/heads/frozen").status_code) == (main, 404)


@pytest.mark.parametrize(("token", "status"), [(INSTALLATION, 201), (ADMIN, 422)])
def test_commits_of_apps_over_the_api_count_as_signed(client: Client, token: str, status: int) -> None:
    tree = client("GET", f"git/commits/{client.tip('change')}").json()["tree"]["sha"]
    made = {"message": "Made by the API", "tree": tree, "parents": [client.tip("main")]}
    sha = client.send(201, "POST", "git/commits", made, token=token)["sha"]
    answer = client("POST", "git/refs", {"ref": "refs/heads/accord/7", "sha": sha}, token=token)
    assert answer.status_code == status
    assert status == 201 or answer.json()["message"] == BROKEN.format(SIGNATURES)


@pytest.mark.slow
def test_a_signed_commit_may_be_pushed(git: Git, sandbox: RunningSandbox) -> None:
    git.clone("main", token=INSTALLATION)
    git.commit({"x.txt": "x\n"})
    plain = git("cat-file", "commit", "HEAD")
    head, _, message = plain.partition("\n\n")
    path = git.folder / "signed"
    path.write_text(f"{head}\ngpgsig -----BEGIN SSH SIGNATURE-----\n -----END SSH SIGNATURE-----\n\n{message}")
    sha = run_git(git.folder, "hash-object", "-t", "commit", "-w", str(path)).strip()
    git("push", "origin", f"{sha}:refs/heads/accord/8")
    assert sandbox.application.storage.open("octo/code").branch("accord/8") == sha


def test_unsigned_commits_are_not_merged_where_signatures_are_required_but_a_squash_is_signed(client: Client) -> None:
    main = client.send(200, "GET", "git/ref/heads/main")["object"]["sha"]
    client.send(201, "POST", "git/refs", {"ref": "refs/heads/accord/base", "sha": main})
    pull = client.send(201, "POST", "pulls", {"title": "A change", "head": "change", "base": "accord/base"})
    answer = client("PUT", f"pulls/{pull['number']}/merge", {"merge_method": "merge"})
    assert (answer.status_code, answer.json()["message"]) == (405, BROKEN.format(SIGNATURES))
    assert client.send(200, "GET", "git/ref/heads/accord/base")["object"]["sha"] == main
    assert client.send(200, "PUT", f"pulls/{pull['number']}/merge", {"merge_method": "squash"})["merged"] is True
