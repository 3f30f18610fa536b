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
ORGANISATION = "Although you appear to have the correct authorization credentials, the `octo` organization has "
SAID = {
    "pull-requests-not-allowed": (
        f'approve pull requests" under Settings → Actions → General ({URL}/settings/actions)',
        "GitHub Actions is not permitted to create or approve pull requests.",
        "GitHub Actions is not permitted to approve pull requests.",
    ),
    "unsigned-commits": (
        f"exclude `accord/**` from it under Settings → Rules → Rulesets ({URL}/settings/rules)",
        PUSH.format(code=GH013, reason="Commits must have verified signatures.", verdict=BY_RULES),
    ),
    "ruleset": (
        f"bypass list|{URL}/settings/rules",
        PUSH.format(code=GH013, reason="Cannot update this protected ref.", verdict=BY_RULES),
        "Repository rule violations found\n\nChanges must be made through a pull request.\n\n",
    ),
    "protected-branch": (
        f"Settings → Branches ({URL}/settings/branches)",
        PUSH.format(code=GH006, reason="Changes must be made through a pull request.", verdict="protected branch"),
        "Could not update file: Changes must be made through a pull request.",
    ),
    "push-protection": (
        "Revoke it",
        PUSH.format(code=GH013, reason="GITHUB PUSH PROTECTION\nPush cannot contain secrets", verdict=BY_RULES),
    ),
    "workflow-files": (
        '"workflows: write"|scope `workflow`',
        " ! [remote rejected] (refusing to allow a GitHub App to create or update workflow `a.yml` without permission)",
    ),
    "labels-not-created": ("labels sync", "You do not have permission to create labels on this repository."),
    "read-only-token": (
        "contents: write|pull requests from forks",
        "remote: Permission to octo/tools.git denied to github-actions[bot].",
        "remote: Write access to repository not granted.",
    ),
    "repository-archived": (
        f"unarchive|{URL}/settings)",
        "Repository was archived so is read-only.",
        "remote: This repository was archived so it is read-only.",
    ),
    "conversation-locked": (
        "unlock it|tokens of jobs and apps",
        "Unable to create comment because issue is locked.",
    ),
    "single-sign-on": ("single sign-on", "Resource protected by organization SAML enforcement."),
    "interactions-limited": (
        f"Interaction limits ({URL}/settings/interaction_limits)|that it lets in",
        "could not be created. Interactions on this repository have been restricted to contributors only.",
        "An owner of this repository has limited the ability to open a pull request to users that are prior users.",
    ),
    "account-blocked": (
        "end of the block|another account",
        "User is blocked",
        "You have been blocked from commenting by the owner.",
    ),
    "ip-allow-list": (
        "runner with a listed address",
        f"{ORGANISATION}an IP allow list enabled, and your IP address is not permitted to access this resource.",
    ),
    "email-not-verified": (
        "Settings → Emails",
        "At least one email address must be verified to do that.",
        "remote: You must verify your email address.",
    ),
    "app-not-approved": (
        "approve the app",
        f"{ORGANISATION}enabled OAuth App access restrictions, meaning that data access to third-parties is limited.",
    ),
}
"""Parts of the hint of each refusal, and GitHub's words for it."""


@pytest.mark.parametrize("code", [known.code for known in REFUSALS])
def test_words_of_github_name_the_setting(code: str) -> None:
    hint, *said = SAID[code]
    for words in said:
        known = known_refusal(words)
        assert known
        assert known.code == code
        assert all(part in known.hint_for(URL) for part in hint.split("|"))
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
