"""Each refusal keeps GitHub's words and says what to change."""

import pytest

from accord.core.errors import Refused
from accord.github.models import NotThere
from accord.github.transport import refusal

PERMISSIONS = "x-accepted-github-permissions"


@pytest.mark.parametrize(
    ("status", "message", "headers", "kind", "hint"),
    [
        (301, "Moved Permanently", {}, NotThere, "name octo/tools as it is called now"),
        (401, "Bad credentials", {}, Refused, "GITHUB_TOKEN"),
        (403, "Repository was archived so is read-only.", {PERMISSIONS: "issues=write"}, Refused, "unarchive it"),
        (403, "Unable to create comment because issue is locked.", {}, Refused, "unlock it"),
        (403, "Resource not accessible by integration", {}, Refused, '"issues: write"'),
        (403, "Resource not accessible", {PERMISSIONS: "issues=write"}, Refused, "it needs issues: write"),
        (403, "no", {PERMISSIONS: "issues=write; metadata=read"}, Refused, "issues: write or  metadata: read"),
        (403, "Resource protected by organization SAML enforcement.", {}, Refused, "single sign-on"),
        (403, "Must have admin rights to Repository.", {}, Refused, "write access"),
        (404, "Not Found", {}, NotThere, "octo/tools exists"),
        (410, "Issues are disabled for this repo", {}, NotThere, "octo/tools exists"),
        (422, "Validation Failed", {}, Refused, "correct what GitHub names"),
    ],
)
def test_a_refusal_says_what_to_change(
    status: int, message: str, headers: dict[str, str], kind: type[Refused], hint: str
) -> None:
    error = refusal("POST /x", status, message, [], headers, "octo/tools")
    assert isinstance(error, kind)
    assert isinstance(error, NotThere) == (kind is NotThere)
    assert error.exit_code == 4
    assert f'GitHub refused POST /x with {status}: "{message.rstrip(chr(46))}"' in error.message
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


def test_an_event_that_may_not_be_sent_names_the_permission_that_it_takes() -> None:
    error = refusal("POST /repos/o/n/dispatches", 403, "Resource not accessible by integration", [], {}, "o/n")
    assert '"contents: write"' in error.hint
