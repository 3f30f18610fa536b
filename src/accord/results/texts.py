"""What agents wrote, as it is posted: the one way from the texts of a result to GitHub.

Each text goes through here once, before anything is planned; all that is planned, compared and posted afterwards is
what came out. Names and keys (tempIDs, labels, paths that are looked up) stay as they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from accord.core.errors import Refused
from accord.core.findings import Finding, has_errors, pointer, warning
from accord.github.markers import defuse
from accord.text.hidden import hidden_runs, strip_hidden
from accord.text.markdown import longer_run
from accord.text.sanitise import KINDS, Sanitised, sanitise, sanitise_line, sanitise_plain
from accord.text.words import skip_edits, without_skips

if TYPE_CHECKING:
    from collections.abc import Iterable

    from accord.github.client import GitHub
    from accord.github.models import Identity, Repository
    from accord.results.models import ImplementorResult, PlannerResult, ReviewerResult
    from accord.text.redaction import Redactor


@dataclass
class TextSanitizer:
    """Where texts are made fit to be posted: it counts what was changed, and remembers who leaked a secret."""

    secrets: Redactor
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def body(self, text: str, path: str = "") -> str:
        """Return Markdown as it is posted; ``path`` points at it in the result."""
        return self._noted(posted_body(text, self.secrets), path)

    def title(self, text: str, path: str = "") -> str:
        """Return a title as it is posted."""
        return self._noted(sanitise_line(text, secrets=self.secrets), path)

    def message(self, text: str) -> str:
        """Return a posted body as it may become a commit message, by a squash: without what would skip the checks."""
        self.counts["commands"] += len(list(skip_edits(text)))
        return without_skips(text)

    def path(self, text: str, path: str = "") -> str:
        """Return a path of a file fit to be shown as code."""
        shown, secrets = self.secrets.redact(text)
        hidden = len(list(hidden_runs(shown)))
        shown, markers = defuse(strip_hidden(shown))
        return self._noted(Sanitised(shown, {"secrets": secrets, "hidden": hidden, "markers": markers}), path)

    def _noted(self, made: Sanitised, path: str) -> str:
        self.counts.update(made.counts)
        if made.counts.get("secrets") and path:
            message = "This text holds a secret. It is posted without it; revoke the secret, since an agent saw it."
            self.findings.append(warning("secret-redacted", message, path))
        return made.text

    @property
    def sanitised(self) -> dict[str, int]:
        """What was changed, by kind, in the order of reports; what did not occur is not there."""
        return {kind: self.counts[kind] for kind in KINDS if self.counts[kind]}


def as_code(text: str) -> str:
    """Show a text of one line as code, whatever it holds."""
    fence = longer_run("`", text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def posted_body(text: str, secrets: Redactor) -> Sanitised:
    """Make Markdown fit to be posted, in the form in which GitHub gives it back: LF, and no blanks at the end.

    Code stays as it is, but a marker in code is no marker to a reader and one to a program, so that is made void too.
    """
    made = sanitise(text.replace("\r\n", "\n"), secrets=secrets)
    safe, markers = defuse(made.text)
    counts = {**made.counts, "markers": made.counts.get("markers", 0) + markers} if markers else made.counts
    return Sanitised(safe.rstrip(), counts)


def posted_message(text: str, secrets: Redactor) -> str:
    """Make the text of a commit message, in which no backtick protects anything."""
    return sanitise_plain(text.replace("\r\n", "\n"), secrets=secrets).text.strip()


def posted_plan(result: PlannerResult, desk: TextSanitizer) -> PlannerResult:
    """Return a planner's result with its texts as they are posted."""
    create = [
        item.model_copy(
            update={
                "title": desk.title(item.title, pointer("create", i, "title")),
                "body": desk.body(item.body, pointer("create", i, "body")),
            }
        )
        for i, item in enumerate(result.create)
    ]
    update = [
        change.model_copy(update={"body": desk.body(change.body, pointer("update", i, "body"))})
        if change.body is not None
        else change
        for i, change in enumerate(result.update)
    ]
    return result.model_copy(update={"create": create, "update": update})


def posted_summary(result: ImplementorResult, desk: TextSanitizer) -> ImplementorResult:
    """Return an implementor's result with its summary as it is posted. A patch is code, and stays."""
    return result.model_copy(update={"summary": desk.body(result.summary, pointer("summary"))})


def posted_review(result: ReviewerResult, desk: TextSanitizer) -> ReviewerResult:
    """Return a reviewer's result with its texts as they are posted; paths stay, as they are looked up."""
    review = result.review
    summary = desk.body(review.summary, pointer("review", "summary"))
    comments = [
        comment.model_copy(update={"body": desk.body(comment.body, pointer("review", "comments", i, "body"))})
        for i, comment in enumerate(review.comments)
    ]
    return result.model_copy(update={"review": review.model_copy(update={"summary": summary, "comments": comments})})


def posted_paths(result: ReviewerResult, desk: TextSanitizer) -> tuple[str, ...]:
    """Return the path of each comment as it is shown."""
    paths = [comment.path for comment in result.review.comments]
    return tuple(desk.path(path, pointer("review", "comments", i, "path")) for i, path in enumerate(paths))


def errors_as_posted(findings: Iterable[Finding]) -> list[Finding]:
    """Keep the errors of a result that was without any before its texts were made fit to be posted."""
    return [replace(found, message=f"As it is posted: {found.message}") for found in findings if has_errors([found])]


def says_nothing(findings: Iterable[Finding]) -> list[Finding]:
    """Keep the errors about texts of which nothing is left: all of it was hidden. Any other may be posted."""
    return errors_as_posted(found for found in findings if found.code in ("summary-empty", "comment-empty"))


def require_unarchived(repository: Repository) -> None:
    """Raise Refused for a repository that takes nothing any more."""
    if repository.is_archived:
        raise Refused(
            f"{repository.full_name} is archived, so nothing can be written to it.",
            hint="Unarchive it in its settings, or name another repository.",
        )


def require_writable(github: GitHub, identity: Identity) -> Repository:
    """Refuse now what GitHub would refuse later, or do by half: it takes an issue and drops its labels in silence."""
    repository = github.repository()
    require_unarchived(repository)
    if not repository.has_issues:
        raise Refused(
            f"Issues are disabled in {repository.full_name}.",
            hint="Enable them under Settings → General → Features.",
        )
    if identity.is_person and repository.may_triage is False:
        raise Refused(
            f"{identity.login} may read {repository.full_name}, but not label or change its issues.",
            hint="Use a token of somebody with the role Triage or more.",
        )
    return repository
