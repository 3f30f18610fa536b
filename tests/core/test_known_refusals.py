"""GitHub's words, over the API and in the report of a push, name the setting that refuses."""

from pathlib import Path

import pytest

from accord.core.refusals import REFUSALS, known_refusal

URL = "https://github.example/octo/tools"
PAGE = (Path(__file__).parents[2] / "docs/troubleshooting.md").read_text(encoding="utf-8")

PUSH = """remote: error: {code} for refs/heads/accord/12.
remote: - {reason}
To https://github.example/octo/tools.git
 ! [remote rejected] work -> accord/12 ({verdict})
error: failed to push some refs to 'https://github.example/octo/tools.git'"""
GH006 = "GH006: Protected branch update failed"
GH013 = "GH013: Repository rule violations found"
BY_RULES = "push declined due to repository rule violations"
REJECTED = " ! [remote rejected] work -> accord/12 ({})"


ORGANISATION = "Although you appear to have the correct authorization credentials, the `octo` organization has "
APPS = "enabled OAuth App access restrictions, meaning that data access to third-parties is limited."
ADDRESSES = "an IP allow list enabled, and your IP address is not permitted to access this resource."


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (
            "GitHub Actions is not permitted to create or approve pull requests.",
            "pull-requests-not-allowed",
            f'approve pull requests" under Settings → Actions → General ({URL}/settings/actions)',
        ),
        ("GitHub Actions is not permitted to approve pull requests.", "pull-requests-not-allowed", "settings/actions"),
        (
            PUSH.format(code=GH013, reason="Commits must have verified signatures.", verdict=BY_RULES),
            "unsigned-commits",
            f"exclude `accord/**` from it under Settings → Rules → Rulesets ({URL}/settings/rules)",
        ),
        (
            PUSH.format(code=GH013, reason="Cannot update this protected ref.", verdict=BY_RULES),
            "ruleset",
            "settings/rules",
        ),
        (
            "Repository rule violations found\n\nChanges must be made through a pull request.\n\n",
            "ruleset",
            "bypass list",
        ),
        (
            PUSH.format(code=GH006, reason="Changes must be made through a pull request.", verdict="protected branch"),
            "protected-branch",
            f"Settings → Branches ({URL}/settings/branches)",
        ),
        ("Could not update file: Changes must be made through a pull request.", "protected-branch", "work items"),
        (
            PUSH.format(code=GH013, reason="GITHUB PUSH PROTECTION\nPush cannot contain secrets", verdict=BY_RULES),
            "push-protection",
            "Revoke it",
        ),
        (
            REJECTED.format(
                "refusing to allow a Personal Access Token to create or update workflow `.github/workflows/ci.yml` "
                "without `workflow` scope"
            ),
            "workflow-files",
            "scope `workflow`",
        ),
        ("You do not have permission to create labels on this repository.", "labels-not-created", "labels sync"),
        ("remote: Permission to octo/tools.git denied to github-actions[bot].", "read-only-token", "contents: write"),
        ("remote: Write access to repository not granted.", "read-only-token", "pull requests from forks"),
        ("Repository was archived so is read-only.", "repository-archived", f"{URL}/settings)"),
        ("remote: This repository was archived so it is read-only.", "repository-archived", "unarchive"),
        ("Unable to create comment because issue is locked.", "conversation-locked", "unlock it"),
        ("Resource protected by organization SAML enforcement.", "single-sign-on", "single sign-on"),
        (
            "could not be created. Interactions on this repository have been restricted to contributors only.",
            "interactions-limited",
            f"Interaction limits ({URL}/settings/interaction_limits)",
        ),
        (
            "An owner of this repository has limited the ability to open a pull request to users that are prior users.",
            "interactions-limited",
            "that it lets in",
        ),
        ("User is blocked", "account-blocked", "end of the block"),
        ("You have been blocked from commenting by the owner.", "account-blocked", "another account"),
        (f"{ORGANISATION}{ADDRESSES}", "ip-allow-list", "runner with a listed address"),
        ("At least one email address must be verified to do that.", "email-not-verified", "Settings → Emails"),
        ("remote: You must verify your email address.", "email-not-verified", "Settings → Emails"),
        (f"{ORGANISATION}{APPS}", "app-not-approved", "approve the app"),
    ],
)
def test_words_of_github_name_the_setting(words: str, code: str, hint: str) -> None:
    known = known_refusal(words)
    assert known is not None
    assert known.code == code
    assert hint in known.hint_for(URL)
    assert "http" not in known.hint_for(""), "without an address, the way to the page is named"


@pytest.mark.parametrize(
    ("branch", "named"),
    [
        ("accord/12", "`accord/**`"),
        ("bots/accord/12-2", "`bots/accord/**`"),
        ("fix-1", "`fix-1`"),
        ("a.b/7", "`a.b/**`"),
    ],
)
@pytest.mark.parametrize("code", [GH013, GH006])
def test_the_hint_names_the_branches_that_were_refused(branch: str, named: str, code: str) -> None:
    words = PUSH.format(code=code, reason="Cannot update.", verdict=BY_RULES)
    for known in (
        known_refusal(words.replace("accord/12", branch)),
        known_refusal(words.partition(" for")[0], f"refs/heads/{branch}"),
        known_refusal(words.partition(" for")[0], f"/repos/o/r/git/refs/heads/{branch}"),
    ):
        assert known
        assert f"xclude {named} from it" in known.hint_for(URL)


@pytest.mark.parametrize(
    "words",
    [
        "Resource not accessible by integration",
        "You have been temporarily blocked from content creation. Please retry your request again later.",
        "An error occurred while adding the blocking issue to the issue.",
        "Must have admin rights to Repository.",
        "Not Found",
        "Validation Failed",
        "Reference update failed",
        "",
        "GH001",
    ],
)
def test_other_words_are_unknown(words: str) -> None:
    assert known_refusal(words) is None


def test_every_refusal_has_words_and_a_section_in_troubleshooting() -> None:
    codes = [known.code for known in REFUSALS]
    sections = {line.removeprefix("### ").lower().replace(" ", "-") for line in PAGE.splitlines() if line[:4] == "### "}
    assert set(codes) <= sections
