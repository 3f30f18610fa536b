"""A repository's settings on GitHub, as far as a token may read them, and the checks of them.

A fact that could not be read is None, and ``unread`` says why. The check is skipped then, and names the page instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TypeVar

from accord.core.errors import AccordError, Refused, Stopped
from accord.core.findings import DoctorCheck, Finding, PlacedFinding, warning
from accord.core.frozen import Frozen
from accord.core.refusals import (
    ACTIONS_PAGE,
    BRANCHES_PAGE,
    CREATE_PULLS,
    RULES_PAGE,
    SECRETS_PAGE,
    VARIABLES_PAGE,
    SettingsPage,
)
from accord.git.configuration import BRANCH_PREFIX, find_config, folders_of, prefix_in, way_refusal, work_branch
from accord.github.client import Connection, GitHub
from accord.github.models import Forbidden, NotThere
from accord.workflows.facts import WORKFLOWS
from accord.workflows.models import Workflow
from accord.workflows.requirements import ENVIRONMENT, Requirement, secrets_of_callers

SIGNATURES = "required_signatures"
"""The rule that the commits of people's tokens break. GitHub signs those of bots."""

_REFUSING = {
    "creation": "Restrict creations",
    "update": "Restrict updates",
    "pull_request": "Require a pull request before merging",
    SIGNATURES: "Require signed commits",
    "required_status_checks": "Require status checks to pass",
    "required_deployments": "Require deployments to succeed",
    "branch_name_pattern": "Restrict branch names",
    "commit_message_pattern": "Restrict commit messages",
    "commit_author_email_pattern": "Restrict authors' addresses",
    "committer_email_pattern": "Restrict committers' addresses",
}
"""Rules that may refuse a push of accord, by the name that people see."""

_AT_MERGE = {SIGNATURES: _REFUSING[SIGNATURES]}
"""Rules of the default branch that keep accord's pull requests from being merged."""


class LiveFacts(Frozen):
    """Settings of a repository, as far as a token could read them."""

    repository_url: str
    default_branch: str = ""
    login: str = ""  # the account that the token writes as
    is_person: bool = False
    is_private: bool | None = None
    may_create_pulls: bool | None = None
    workflow_permissions: str | None = None
    secrets: frozenset[str] | None = None  # names in the repository and its organisation
    environment_secrets: frozenset[str] | None = None  # names in the environment of agents
    variables: frozenset[str] | None = None  # names in the repository and its organisation
    rules: Mapping[str, Sequence[str]] | None = None  # types of rules by branch
    protected: Sequence[str] | None = None  # branches that older protection rules cover
    prefix: str = BRANCH_PREFIX
    in_the_way: str = ""  # a branch that keeps all branches of work items from being made
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def work_branch(self) -> str:
        """A branch that stands for those of work items, to which rules may apply before they exist."""
        return work_branch(1, prefix=self.prefix)


Read = TypeVar("Read")
_NEEDS = {
    "may_create_pulls": "administration: read",
    "secrets": "secrets: read",
    "environment_secrets": "environments: read",
    "variables": "variables: read",
    "rules": "metadata: read",
    "protected": "contents: read",
}
"""The permission that a token needs to read a fact."""


def gather_settings(connection: Connection) -> LiveFacts:
    """Read the settings; what the token may not read stays None, with the reason."""
    github, unread = connection.github, dict[str, str]()

    def read(fact: str, ask: Callable[[], Read]) -> Read | None:
        try:
            return ask()
        except (Forbidden, NotThere):
            unread[fact] = f"the token lacks {_NEEDS.get(fact, 'access')}"
        except Stopped:  # GitHub does not answer: the other facts would fail, too
            raise
        except AccordError as error:
            unread[fact] = error.message
        return None

    identity = read("login", github.identity)
    repository = read("repository", github.repository)
    default = repository.default_branch if repository else ""
    settings = read("may_create_pulls", github.workflow_settings)
    prefix = read("prefix", lambda: _prefix_of(github, default)) or BRANCH_PREFIX
    in_the_way = read("in_the_way", lambda: _branch_in_the_way(github, prefix)) or ""
    branches = filter(None, (work_branch(1, prefix=prefix), default))
    return LiveFacts(
        repository_url=connection.page,
        default_branch=default,
        login=identity.login if identity else "",
        is_person=bool(identity and identity.is_person),
        is_private=repository.is_private if repository else None,
        may_create_pulls=settings.may_create_pulls if settings else None,
        workflow_permissions=settings.permissions if settings else None,
        secrets=read("secrets", lambda: github.names_of("secrets")),
        environment_secrets=read("environment_secrets", lambda: github.environment_secret_names(ENVIRONMENT)),
        variables=read("variables", lambda: github.names_of("variables")),
        rules=read("rules", lambda: {branch: github.branch_rules(branch) for branch in branches}),
        protected=read("protected", lambda: tuple(github.branches(protected="true"))),
        prefix=prefix,
        in_the_way=in_the_way,
        unread=unread,
    )


def ask_before_run(connection: Connection, *, asks: bool) -> LiveFacts:
    """Ask whether this token may open pull requests, and read the rules of accord's branches.

    The setting is about a job's token only, which cannot read it: so it ``asks`` for a pull request that cannot be
    created. Raises Refused for an archived repository.
    """
    github = connection.github
    identity, repository = github.identity(), github.repository()
    if repository.is_archived:
        raise Refused("The repository is archived.", hint="Unarchive it under Settings → General.")
    refuses = github.refuses_pulls(repository.default_branch) if asks and not identity.is_person else False
    prefix, in_the_way, rules = BRANCH_PREFIX, "", None
    with suppress(Refused):  # a token that may not read contents
        prefix = _prefix_of(github, repository.default_branch)
        in_the_way = _branch_in_the_way(github, prefix)
    with suppress(Refused):  # an old server
        rules = {(branch := work_branch(1, prefix=prefix)): github.branch_rules(branch)}
    return LiveFacts(
        repository_url=connection.page,
        default_branch=repository.default_branch,
        login=identity.login,
        is_person=identity.is_person,
        may_create_pulls=None if refuses is None else not refuses,
        rules=rules,
        prefix=prefix,
        in_the_way=in_the_way,
    )


def _prefix_of(github: GitHub, branch: str) -> str:
    return prefix_in(find_config(lambda path: github.find_file(path, branch)))


def _branch_in_the_way(github: GitHub, prefix: str) -> str:
    """Return the branch that keeps all branches of work items from being made, empty without one."""
    return next((name for name in folders_of(work_branch(1, prefix=prefix)) if github.ref(f"heads/{name}")), "")


# Checks

NAMES = ("token", "pull requests", "job permissions", "agent secrets", "logins", "branch rules")
"""The checks by their names in the report."""


def setting_checks(
    facts: LiveFacts | str, needed: Sequence[Requirement], workflows: Mapping[str, Workflow]
) -> list[DoctorCheck]:
    """Compare what workflows need with the repository; a text instead of facts says why nothing could be read."""
    if isinstance(facts, str):
        return [DoctorCheck(name, facts, is_skipped=True) for name in NAMES]
    kind = "a person or machine account" if facts.is_person else "an app's token, such as that of a job"
    writes = f"writes as {facts.login}, {kind}" if facts.login else facts.unread.get("login", "not read")
    permissions = f"{facts.workflow_permissions}, for jobs that declare none; those of the kit do"
    return [
        DoctorCheck(NAMES[0], writes, is_skipped=not facts.login),
        _pulls_check(facts, [each for each in needed if each.kind == "setting"]),
        DoctorCheck(NAMES[2], permissions)
        if facts.workflow_permissions is not None
        else _skipped_check(facts, "may_create_pulls", NAMES[2], ACTIONS_PAGE),
        _secrets_check(facts, [each for each in needed if each.kind == "secret"], workflows),
        _logins_check(facts, [each for each in needed if each.kind == "variable"]),
        _rules_check(facts),
    ]


def _skipped_check(facts: LiveFacts, fact: str, name: str, page: SettingsPage) -> DoctorCheck:
    reason = facts.unread.get(fact, "not read")
    return DoctorCheck(name, f"{reason}; look under {page.at(facts.repository_url)}", is_skipped=True)


def _pulls_check(facts: LiveFacts, wanted: Sequence[Requirement]) -> DoctorCheck:
    if not wanted:
        return DoctorCheck(NAMES[1], "no workflow opens or approves pull requests with the job's token")
    if facts.may_create_pulls:
        return DoctorCheck(NAMES[1], "GitHub Actions may create and approve them")
    missing = [each for each in wanted if each.unless not in (facts.secrets or ())]
    if not missing:
        return DoctorCheck(NAMES[1], f"opened with the secret {wanted[0].unless}")
    if facts.may_create_pulls is None:
        return _skipped_check(facts, "may_create_pulls", NAMES[1], ACTIONS_PAGE)
    found: list[PlacedFinding] = []
    for each in missing:
        message = f"GitHub Actions may not create and approve pull requests. {each.why}"
        finding = Finding("pulls-not-allowed", message, hint=each.step(facts.repository_url))
        if not each.is_required or (facts.secrets is None and each.unless):
            finding = warning("pulls-not-allowed", message, hint=finding.hint)
        found += [(path, finding) for path in each.paths]
    return DoctorCheck(NAMES[1], f'"{CREATE_PULLS}" is off', found)


def _secrets_check(facts: LiveFacts, wanted: Sequence[Requirement], workflows: Mapping[str, Workflow]) -> DoctorCheck:
    """Find what agents would sign in with in none of the places that their jobs can read."""
    if not wanted:
        return DoctorCheck(NAMES[3], "no workflow reads secrets of the default agent")
    if facts.secrets is None:
        return _skipped_check(facts, "secrets", NAMES[3], SECRETS_PAGE)
    all_secrets, found = facts.secrets | (facts.environment_secrets or frozenset()), list[PlacedFinding]()
    for each in wanted:
        if not _is_given(each, all_secrets):
            message = f"GitHub has no secret for the agent. {each.why}"
            finding = Finding("agent-secret-missing", message, hint=each.step(facts.repository_url))
            if facts.environment_secrets is None:
                finding = warning("agent-secret-missing", message, hint=finding.hint)
            found.append((each.paths[0], finding))
        elif not _is_given(each, facts.secrets):
            message = f"The agent's secret is in the environment `{ENVIRONMENT}` only, which this workflow cannot read."
            place = SECRETS_PAGE.at(facts.repository_url)
            hint = (
                f"Add it to the repository under {place}: GitHub passes no secrets of environments to called workflows."
            )
            finding = warning("agent-secret-out-of-reach", message, hint=hint)
            names = {name.lower() for name in each.names}
            called = (path for path in each.paths if path in workflows and names & secrets_of_callers(workflows[path]))
            found += [(path, finding) for path in called]
    note = ", ".join(sorted({name for each in wanted for name in each.names} & all_secrets))
    return DoctorCheck(NAMES[3], note, found)


def _is_given(requirement: Requirement, secrets: frozenset[str]) -> bool:
    present = [name.upper() in secrets for name in requirement.names]
    return all(present) if requirement.needs_all else any(present)


def _logins_check(facts: LiveFacts, wanted: Sequence[Requirement]) -> DoctorCheck:
    if not wanted:
        return DoctorCheck(NAMES[4], "no workflow takes a token from a secret")
    if facts.variables is None:
        return _skipped_check(facts, "variables", NAMES[4], VARIABLES_PAGE)
    if facts.secrets is None:
        return _skipped_check(facts, "secrets", NAMES[4], SECRETS_PAGE)
    given = sorted(each.unless for each in wanted if each.unless in facts.secrets)
    found: list[PlacedFinding] = []
    for each in wanted:
        (variable,) = each.names
        if variable in facts.variables and each.unless not in given:
            message = f"The variable {variable} names an account, but its token, the secret {each.unless}, is missing."
            hint = f"Add the secret {each.unless}, or delete the variable: it does not name the job's own token."
            found.append((each.paths[0], Finding("login-without-token", message, hint=hint)))
    return DoctorCheck(NAMES[4], f"tokens: {', '.join(given)}" if given else "the job's own token writes", found)


def _rules_check(facts: LiveFacts) -> DoctorCheck:
    if facts.rules is None:
        return _skipped_check(facts, "rules", NAMES[5], RULES_PAGE)
    found = [
        *_work_branch_findings(facts),
        *_rule_findings(facts, facts.default_branch, _AT_MERGE, "keeps accord's pull requests from being merged into"),
    ]
    for branch in facts.protected or ():
        if branch.startswith(f"{facts.prefix}/"):
            hint = f"Exclude `{facts.prefix}/**` under {BRANCHES_PAGE.at(facts.repository_url)}."
            message = f"A branch protection rule covers `{branch}`, so pushes to it may be refused."
            found.append(warning("branch-protected", message, hint=hint))
    note = "rulesets, and protection rules of existing branches"
    if facts.protected is None:
        note = f"rulesets only; protection rules: {facts.unread.get('protected', 'not read')}"
    return DoctorCheck(NAMES[5], note, [(WORKFLOWS, finding) for finding in found])


def preflight_findings(facts: LiveFacts) -> list[Finding]:
    """Find reasons for which GitHub would refuse the branch or the pull request of a result."""
    found = [*_work_branch_findings(facts)]
    place = ACTIONS_PAGE.at(facts.repository_url)
    if facts.may_create_pulls is None:
        message = f"The token of {facts.login} may not ask whether pull requests are allowed."
        hint = f'Grant the job "pull-requests: write", or check "{CREATE_PULLS}" under {place}.'
        found.insert(0, warning("pulls-unknown", message, hint=hint))
    elif not facts.may_create_pulls:
        message = f"{facts.login} may not create pull requests in this repository, so no agent should run."
        hint = f'Turn on "{CREATE_PULLS}" under {place}, or set the secret `ACCORD_TOKEN`. Then start again.'
        found.insert(0, Finding("pulls-not-allowed", message, hint=hint))
    return found


def _work_branch_findings(facts: LiveFacts) -> Iterator[Finding]:
    yield from _rule_findings(facts, facts.work_branch, _REFUSING, "covers branches of work items, such as")
    if facts.in_the_way:
        refused = way_refusal(f"{facts.in_the_way}/…", facts.in_the_way)
        yield Finding("branch-in-the-way", refused.message, hint=refused.hint)


def _rule_findings(facts: LiveFacts, branch: str, rules: Mapping[str, str], says: str) -> Iterator[Finding]:
    for rule in (facts.rules or {}).get(branch, ()):
        if rule in rules and not (rule == SIGNATURES and facts.login.endswith("[bot]")):
            message = f'The rule "{rules[rule]}" {says} `{branch}`.'
            place = RULES_PAGE.at(facts.repository_url)
            which = f"`{facts.prefix}/**`" if branch == facts.work_branch else "it"
            hint = f"Exclude {which} under {place}, or let the account that pushes bypass the rule."
            if rule == SIGNATURES:
                hint = f"GitHub signs only commits of bots: use `GITHUB_TOKEN` or the token of an app. {hint}"
            yield warning("branch-rule", message, hint=hint)
