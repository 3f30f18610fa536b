"""Refusals that settings of a repository cause: GitHub's words, the setting, and the page where a person changes it.

GitHub answers a request and reports a push in the same words, so both look their text up here. The words are GitHub's
of 2026, collected from reports of users; docs/troubleshooting.md has a section for each code.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class SettingsPage(NamedTuple):
    """A page of a repository's settings: how people get there, and its address below the repository's page."""

    place: str
    path: str

    def at(self, repository_url: str) -> str:
        """Return the way to the page, with its address where the repository's is known."""
        return f"{self.place} ({repository_url}/{self.path})" if repository_url else self.place


ACTIONS_PAGE = SettingsPage("Settings → Actions → General", "settings/actions")
RULES_PAGE = SettingsPage("Settings → Rules → Rulesets", "settings/rules")
BRANCHES_PAGE = SettingsPage("Settings → Branches", "settings/branches")
SECRETS_PAGE = SettingsPage("Settings → Secrets and variables → Actions", "settings/secrets/actions")
VARIABLES_PAGE = SettingsPage("Settings → Secrets and variables → Actions", "settings/variables/actions")
GENERAL_PAGE = SettingsPage("Settings → General", "settings")
LIMITS_PAGE = SettingsPage("Settings → Moderation options → Interaction limits", "settings/interaction_limits")
LABELS_PAGE = SettingsPage("Labels", "labels")
CREATE_PULLS = "Allow GitHub Actions to create and approve pull requests"
"""The name of the setting on its page."""


class KnownRefusal(NamedTuple):
    """A refusal by its words, a pattern. The hint names the setting; ``{page}`` is the page to change it on.

    ``{branches}`` are those that the words name.
    """

    code: str
    words: str
    hint: str
    page: SettingsPage = GENERAL_PAGE

    def hint_for(self, repository_url: str) -> str:
        """Return the hint, with the address of the page where that of the repository is known."""
        return self.hint.replace("{page}", self.page.at(repository_url))


REFUSALS = (
    KnownRefusal(
        "pull-requests-not-allowed",
        "github actions is not permitted to (?:create|approve)",
        f'Turn on "{CREATE_PULLS}" under {{page}}, or use the token of an app or a person. Then run the same again; in '
        'GitHub Actions, choose "Re-run failed jobs".',
        ACTIONS_PAGE,
    ),
    KnownRefusal(
        "push-protection",
        "push protection|push cannot contain secrets",
        "GitHub found a secret in the commits. Revoke it, and remove it from the changes.",
    ),
    KnownRefusal(
        "unsigned-commits",
        "commits must have (?:verified|valid) signatures",
        'The rule "Require signed commits" covers this branch, and a commit is not signed. GitHub signs those of bots: '
        "use `GITHUB_TOKEN` or the token of an app, without an author of your own. Or exclude {branches} from "
        "it under {page}.",
        RULES_PAGE,
    ),
    KnownRefusal(
        "workflow-files",
        r"refusing to allow [^\n]{1,100} to create or update workflow",
        "The changes contain a workflow file, which `GITHUB_TOKEN` may never push. Use the token of an app with "
        '"workflows: write", or a personal token with the scope `workflow`.',
    ),
    KnownRefusal(
        "ruleset",
        r"\bGH013\b|repository rule violations",
        "A ruleset forbids this change. Exclude {branches} from it under {page}, or add the token's owner to its "
        "bypass list.",
        RULES_PAGE,
    ),
    KnownRefusal(
        "protected-branch",
        r"\bGH006\b|protected branch|changes must be made through a pull request|cannot force-push to this branch",
        "A branch protection rule forbids this change. Exclude {branches} from it under {page}, or allow the token's "
        "owner to bypass it.",
        BRANCHES_PAGE,
    ),
    KnownRefusal(
        "labels-not-created",
        "permission to create labels",
        'A label does not exist, and this token may not create it. Run `accord labels sync` with "issues: write".',
        LABELS_PAGE,
    ),
    KnownRefusal(
        "read-only-token",
        r"\.git denied to |write access to repository not granted",
        'The token may not push: grant the job "contents: write", also in a workflow that calls it. Runs of pull '
        "requests from forks never get it.",
        ACTIONS_PAGE,
    ),
    KnownRefusal(
        "repository-archived",
        r"repository was archived|\barchived so (?:it )?is read-only",
        "The repository is archived: unarchive it under {page}.",
    ),
    KnownRefusal(
        "conversation-locked",
        r"\bis locked\b|locked conversation",
        "The conversation is locked, and the tokens of jobs and apps may not write there: unlock it, or use the token "
        "of a person with write access.",
    ),
    KnownRefusal(
        "interactions-limited",
        r"interactions? on this repository ha(?:s|ve) been (?:restricted|limited)|has limited the ability to|"
        r"\binteraction limits?\b",
        "The repository or its owner limits who may take part for a time. End the limit under {page}, or use the token "
        "of an account that it lets in.",
        LIMITS_PAGE,
    ),
    KnownRefusal(
        "account-blocked",
        r"\b(?:user|you|account)s? (?:is|are|was|were|has been|have been) blocked\b|\bblocked (?:user|account)s?\b",
        "The owner of the repository blocks this account. Ask for an end of the block, or use the token of another "
        "account.",
    ),
    KnownRefusal(
        "ip-allow-list",
        r"\bip allow list\b",
        "The organisation lets in listed addresses only, not that of this machine. Use a runner with a listed address, "
        "or let the organisation's owner add it.",
    ),
    KnownRefusal(
        "email-not-verified",
        r"email address must be verified|verify your email address",
        "The account of the token has no verified email address. Verify one in that account: Settings → Emails.",
    ),
    KnownRefusal(
        "app-not-approved",
        r"oauth app access restrictions",
        "The organisation restricts OAuth apps, and the token is from one that it did not approve. Let an owner "
        "approve the app, or use `GITHUB_TOKEN` or a personal token.",
    ),
    KnownRefusal(
        "single-sign-on",
        r"\bsaml\b",
        "The organisation enforces SAML: authorise the token for single sign-on.",
    ),
)
"""The known refusals; the first whose words are found counts."""


_BRANCH = re.compile(r"(?:refs/heads/|-> )((?:[\w.-]+/)*)([\w.-]*\w)")


def known_refusal(text: str, ref: str = "") -> KnownRefusal | None:
    """Return the refusal that GitHub's words are about, None for other words; ``ref`` is one that they do not name."""
    known = next((known for known in REFUSALS if re.search(known.words, text, re.IGNORECASE)), None)
    branch = _BRANCH.search(text) or _BRANCH.search(ref)
    names = "the branches of work items" if branch is None else f"`{branch[1]}**`" if branch[1] else f"`{branch[2]}`"
    return known and known._replace(hint=known.hint.replace("{branches}", names))
