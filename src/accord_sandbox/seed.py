"""The seed file: the content of a new local GitHub, as YAML or JSON. docs/sandbox.md has an example."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from accord.core.clock import parse_timestamp
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, with_lines
from accord.core.shapes import read_shape
from accord.files.yaml import read_yaml
from accord_sandbox.commits import CHECK_STATUSES, SHOWN_CONCLUSIONS, STATUS_STATES
from accord_sandbox.issues import REASONS
from accord_sandbox.repositories import RULES
from accord_sandbox.tokens import BOT, MAINTAINER
from accord_sandbox.workflow_runs import RUN_DEFAULTS

_HINT = "`accord sandbox schema` prints the JSON Schema of a seed file."


def _check_timestamp(text: str) -> str:
    parse_timestamp(text)
    return text


def _one_of(allowed: Iterable[str]) -> Any:
    """Return a type for one of the given texts."""
    return Literal[tuple(allowed)]


def _distinct(key: str) -> AfterValidator:
    """Return a check of a list that no two entries have the same value of a key; case does not count."""

    def check(entries: list[Any]) -> list[Any]:
        values = [str(getattr(entry, key)).casefold() for entry in entries]
        if twice := next((value for value in values if values.count(value) > 1), ""):
            raise ValueError(f"The {key} `{twice}` is in the list twice")
        return entries

    return AfterValidator(check)


SeedTime = Annotated[str, AfterValidator(_check_timestamp), Field(description="ISO 8601 with an offset, such as Z.")]
FullName = Annotated[str, Field(pattern=r"^[^/\s]+/[^/\s]+$", description="OWNER/NAME")]
Files = Annotated[dict[str, str], Field(description="Texts by path.")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Dated(_Part):
    created_at: SeedTime | None = Field(None, description="Default: now.")


class SeedToken(_Part):
    """A token besides the three built-in ones; its account is created if it does not exist."""

    token: str
    login: str
    kind: Literal["user", "fine-grained", "installation"] = "user"
    permissions: dict[str, Literal["none", "read", "write", "admin"]] = Field({}, description="Not for kind user.")
    repositories: list[FullName] | None = Field(None, description="Default: all that the account can reach.")


class SeedLabel(_Part):
    """A label of a repository."""

    name: str
    color: str | None = Field(None, pattern=r"^[0-9a-fA-F]{6}$", description="Six hexadecimal digits.")
    description: str | None = None


class SeedComment(_Dated):
    """A comment in a conversation or a review thread."""

    body: str
    author: str = MAINTAINER


class SeedLabelEvent(_Dated):
    """An earlier change of an issue's labels."""

    label: str
    change: Literal["added", "removed"]
    author: str = MAINTAINER


class SeedCheck(_Dated):
    """A check run on a pull request's head; with ``run`` a job of GitHub Actions, with its log."""

    name: str
    app: str = BOT
    status: _one_of(CHECK_STATUSES) | None = None  # type: ignore[valid-type]
    conclusion: _one_of(SHOWN_CONCLUSIONS) | None = None  # type: ignore[valid-type]
    title: str | None = None
    summary: str | None = None
    run: int | None = None
    log: str | None = None


class SeedStatus(_Dated):
    """A commit status on a pull request's head."""

    context: str
    state: _one_of(STATUS_STATES)  # type: ignore[valid-type]
    description: str | None = None
    author: str = MAINTAINER


class SeedThread(_Part):
    """A review thread on a line that the pull request changes, or on a whole file."""

    path: str
    line: int | None = None
    resolved: bool = False
    comments: list[SeedComment] = Field(min_length=1)


class SeedIssue(_Dated):
    """An issue, or with ``head`` a pull request between two existing branches."""

    title: str
    body: str | None = None
    labels: list[str] = Field([], description="Created if they do not exist.")
    assignees: list[str] = []
    state: Literal["open", "closed"] = "open"
    state_reason: _one_of(REASONS) | None = None  # type: ignore[valid-type]
    author: str = MAINTAINER
    locked: bool = False
    blocked_by: list[int] = Field([], description="Numbers of issues in the same repository.")
    comments: list[SeedComment] = []
    label_events: list[SeedLabelEvent] = []
    pull_request: bool = Field(False, description="Alone: a pull request without branches.")
    head: str | None = None
    base: str = "main"
    fork: FullName | None = Field(None, description="The repository of the head; created if it does not exist.")
    draft: bool = False
    checks: list[SeedCheck] = []
    statuses: list[SeedStatus] = []
    threads: list[SeedThread] = []

    @model_validator(mode="after")
    def _check_head(self) -> SeedIssue:
        for name in ("fork", "checks", "statuses", "threads"):
            if getattr(self, name) and self.head is None:
                raise ValueError(f"`{name}` needs a pull request with `head`")
        return self


class SeedRun(_Part):
    """A workflow run. Pull requests are its own by head; a check with ``run`` creates its run."""

    id: int
    name: str = str(RUN_DEFAULTS["name"])
    path: str = str(RUN_DEFAULTS["path"])
    event: str = "pull_request"
    status: str = "completed"
    conclusion: str | None = None
    head: str | None = Field(None, description="A branch. Default: the default branch.")


class SeedProtection(_Part):
    """Rules of a protected branch, in the form of GitHub's PUT …/protection."""

    required_pull_request_reviews: dict[str, Any] | None = None
    enforce_admins: bool = False
    allow_force_pushes: bool = False
    allow_deletions: bool = False


class SeedSettings(_Part):
    """Settings for GitHub Actions. Keys that are left out are as GitHub makes a repository."""

    can_approve_pull_request_reviews: bool = Field(
        False, description="Allow GitHub Actions to create and approve pull requests."
    )
    default_workflow_permissions: Literal["read", "write"] = "read"


class SeedEnvironment(_Part):
    """An environment of deployments."""

    secrets: list[str] = Field([], description="Names.")


class SeedRuleset(_Part):
    """An active ruleset of branches."""

    branches: list[str] = Field(
        min_length=1, description="Patterns such as `accord/**`, or `~ALL` or `~DEFAULT_BRANCH`."
    )
    rules: list[_one_of(RULES)] = Field(min_length=1)  # type: ignore[valid-type]


class SeedRepository(_Part):
    """A repository; its issues and pull requests get the numbers 1, 2, 3 in their order."""

    name: FullName
    description: str | None = None
    private: bool = False
    archived: bool = False
    has_issues: bool = True
    default_labels: bool = Field(True, description="GitHub's nine labels.")
    collaborators: dict[str, Literal["read", "triage", "write", "maintain", "admin"]] = {}
    files: Files | None = Field(None, description="The first commit on main. Default: an empty git repository.")
    folder: str | None = Field(
        None, description="A folder beside the seed file; its texts are files of the first commit."
    )
    git: str | None = Field(None, description="A git repository; all its branches and tags are copied.")
    branches: dict[str, dict[str, str | None]] = Field(
        {}, description="Files by branch, in one commit on top of the default branch; null deletes a file."
    )
    protected: dict[str, SeedProtection] = Field({}, description="Rules by branch.")
    settings: Literal["default"] | SeedSettings | None = Field(
        None,
        description="`default`: as GitHub makes a repository. Without it, GitHub Actions may create pull requests.",
    )
    secrets: list[str] = Field([], description="Names of secrets for GitHub Actions.")
    organization_secrets: list[str] = Field([], description="Names of the organisation's secrets.")
    variables: dict[str, str] = Field({}, description="Variables for GitHub Actions.")
    organization_variables: dict[str, str] = Field({}, description="Variables of the organisation.")
    environments: dict[str, SeedEnvironment] = {}
    rulesets: list[SeedRuleset] = []
    labels: Annotated[list[SeedLabel], _distinct("name")] = []
    issues: list[SeedIssue] = []
    workflow_runs: Annotated[list[SeedRun], _distinct("id")] = []

    @model_validator(mode="after")
    def _check_blockers(self) -> SeedRepository:
        for issue in self.issues:
            for number in issue.blocked_by:
                if not 1 <= number <= len(self.issues):
                    raise ValueError(f"`blocked_by` has {number}, but the issues are 1 to {len(self.issues)}")
        return self


class Seed(_Part):
    """The content of a new sandbox. The first repository is the home repository, unless ``--repo`` names another."""

    tokens: Annotated[list[SeedToken], _distinct("token")] = []
    repositories: Annotated[list[SeedRepository], _distinct("name")] = []


def read_seed(path: Path) -> Seed:
    """Read and check a seed file. Raises WrongUsage with the place of each problem."""
    try:
        document = read_yaml(path.read_bytes())
    except OSError as error:
        raise WrongUsage(f"The seed `{path}` cannot be read: {error.strerror}.", hint=_HINT) from error
    except BrokenContract as error:
        raise _wrong_seed(path, error.findings) from error
    try:
        seed = read_shape(Seed, {} if document.value is None else document.value)
    except BrokenContract as error:
        raise _wrong_seed(path, with_lines(error.findings, document.lines)) from error
    for repository in seed.repositories:
        if repository.folder is not None:
            repository.files = {**_texts(path.parent / repository.folder), **(repository.files or {})}
    return seed


def _texts(folder: Path) -> dict[str, str]:
    """Return the texts of a folder by path, without those of git. Raises WrongUsage for other files."""
    if not folder.is_dir():
        raise WrongUsage(f"The seed's folder `{folder}` is not there.", hint=_HINT)
    texts = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if (path.is_dir() and not path.is_symlink()) or ".git" in name.parts:
            continue
        try:
            text = None if path.is_symlink() else path.read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            text = None
        if text is None:
            raise WrongUsage(f"`{path}` is not a text in UTF-8.", hint="Commit it with git, and seed `git:` instead.")
        texts[name.as_posix()] = text
    return texts


def _wrong_seed(path: Path, findings: Iterable[Finding]) -> WrongUsage:
    problems = [
        f"{path}{f':{finding.line}' if finding.line else ''}: {finding.path or 'seed'}: {finding.message}"
        for finding in findings
    ]
    return WrongUsage("The seed is wrong.\n" + "\n".join(problems), hint=_HINT)
