"""Each refusal keeps GitHub's words and says what to change."""

import pytest

from accord.core.errors import Refused
from accord.github.models import Conflict, Forbidden, NotThere, PullsNotAllowed
from accord.github.transport import refusal

PERMISSIONS = "x-accepted-github-permissions"


@pytest.mark.parametrize(
    ("status", "message", "headers", "kind", "hint"),
    [
        (301, "Moved Permanently", {}, NotThere, "name octo/tools as it is called now"),
        (401, "Bad credentials", {}, Refused, "GITHUB_TOKEN"),
        (403, "Resource not accessible by integration", {}, Refused, '"issues: write"'),
        (403, "Resource not accessible", {PERMISSIONS: "issues=write"}, Refused, "it needs issues: write"),
        (403, "no", {PERMISSIONS: "issues=write; metadata=read"}, Refused, "issues: write or  metadata: read"),
        (403, "Must have admin rights to Repository.", {}, Refused, "write access"),
        (403, "Commenting is disabled on issues with more than 2500 comments", {}, Forbidden, "GitHub's sentence says"),
        (403, "User is blocked", {PERMISSIONS: "issues=write"}, Forbidden, "end of the block"),
        (422, "User is blocked", {}, Conflict, "end of the block"),
        (403, "GitHub Actions is not permitted to create or approve pull requests.", {}, PullsNotAllowed, "settings/a"),
        (
            403,
            "Resource not accessible by integration",
            {},
            Forbidden,
            "gets no more than the job that calls it grants",
        ),
        (403, "You do not have permission to create labels on this repository.", {}, Forbidden, "accord labels sync"),
        (
            409,
            "Repository rule violations found\n\nNo.\n\n",
            {},
            Refused,
            "https://github.example/octo/tools/settings/",
        ),
        (409, "is at 1 but expected 2", {}, Conflict, "GitHub's sentence says why"),
        (404, "Not Found", {}, NotThere, "octo/tools exists"),
        (410, "Issues are disabled for this repo", {}, NotThere, "octo/tools exists"),
        (422, "Validation Failed", {}, Refused, "correct what GitHub names"),
    ],
)
def test_a_refusal_says_what_to_change(
    status: int, message: str, headers: dict[str, str], kind: type[Refused], hint: str
) -> None:
    error = refusal("POST /x", status, message, [], headers, "octo/tools", "https://github.example")
    assert isinstance(error, kind)
    assert isinstance(error, NotThere) == (kind is NotThere)
    assert error.exit_code == 4
    assert f'GitHub refused POST /x with {status}: "{" ".join(message.split()).rstrip(chr(46))}"' in error.message
    assert " ".join(hint.split()) in " ".join(error.hint.split())


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ([{"resource": "Label", "field": "name", "code": "already_exists"}], "Label.name: already_exists"),
        ([{"field": "body", "message": "body is too long"}], "body: body is too long"),
        ([{"message": "only words"}, "a text"], "only words; a text"),
        ([{}], "invalid"),
        ([], '"m".'),
    ],
)
def test_the_fields_that_github_names_are_reported(errors: list[object], said: str) -> None:
    assert said in refusal("POST /x", 422, "m", errors, {}, "octo/tools").message


@pytest.mark.parametrize("status", [409, 422])
def test_a_change_that_a_rule_forbids_is_not_a_conflict_with_another_writer(status: int) -> None:
    error = refusal("PATCH /x", status, "Repository rule violations found\n\nNo.\n\n", [], {}, "octo/tools")
    assert not isinstance(error, Conflict)


@pytest.mark.parametrize("path", ["git/trees", "contents/.github/workflows/ci.yml"])
def test_a_workflow_file_that_may_not_be_written_names_its_permission(path: str) -> None:
    request = f"POST /repos/o/n/{path}"
    assert '"workflows: write"' in refusal(request, 403, "Resource not accessible by integration", [], {}, "o/n").hint


def test_an_event_that_may_not_be_sent_names_the_permission_that_it_takes() -> None:
    error = refusal("POST /repos/o/n/dispatches", 403, "Resource not accessible by integration", [], {}, "o/n")
    assert '"contents: write"' in error.hint
