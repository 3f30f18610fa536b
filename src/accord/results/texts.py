"""Texts of a result, sanitised once before anything is planned; names and keys stay unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from accord.core.findings import Finding, has_errors, pointer, warning
from accord.core.shapes import Model
from accord.text.hidden import hidden_edits, strip_hidden
from accord.text.markers import defuse
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.sanitise import KINDS, Sanitised, sanitise, sanitise_line, sanitise_plain
from accord.text.words import as_message, message_edits

if TYPE_CHECKING:
    from accord.engine.receipts import Receipt


_TEXTS = ("title", "body", "summary")


@dataclass
class TextSanitizer:
    """Sanitise texts, count what was changed, and warn about each text that contained a secret."""

    secrets: Redactor
    policy: PostingPolicy
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def body(self, text: str, path: str = "") -> str:
        """Return sanitised Markdown; ``path`` points at it in the result."""
        return self._record(posted_body(text, self.secrets, self.policy), path)

    def title(self, text: str, path: str = "") -> str:
        """Return a sanitised title."""
        return self._record(sanitise_line(text, secrets=self.secrets, policy=self.policy), path)

    def message(self, text: str) -> str:
        """Return a posted body that does nothing as a commit message, which a squash merge makes of it."""
        self.counts.update(edit.kind for edit in message_edits(text))
        return as_message(text)

    def path(self, text: str, path: str = "") -> str:
        """Return a file's path that can be shown as code."""
        shown, secrets = self.secrets.redact(text)
        hidden = len(list(hidden_edits(shown)))
        shown, markers = defuse(strip_hidden(shown))
        return self._record(Sanitised(shown, {"secrets": secrets, "hidden": hidden, "markers": markers}), path)

    def _record(self, sanitised: Sanitised, path: str) -> str:
        self.counts.update(sanitised.counts)
        if sanitised.counts.get("secrets") and path:
            message = "This text contains a secret and is posted without it."
            self.findings.append(warning("secret-redacted", message, path, hint="Revoke the secret: an agent saw it."))
        return sanitised.text

    @property
    def sanitised(self) -> dict[str, int]:
        """How many changes there were by kind, in the order of reports; kinds without a change are left out."""
        return {kind: self.counts[kind] for kind in KINDS if self.counts[kind]}


def posted_body(text: str, secrets: Redactor, policy: PostingPolicy) -> Sanitised:
    """Sanitise Markdown into the form in which GitHub returns it, with LF. Markers are defused in code too."""
    sanitised = sanitise(text.replace("\r\n", "\n"), secrets=secrets, policy=policy)
    safe, markers = defuse(sanitised.text)
    counts = {**sanitised.counts, "markers": sanitised.counts.get("markers", 0) + markers} if markers else None
    return Sanitised(safe.rstrip(), counts or sanitised.counts)


def posted_message(text: str, secrets: Redactor, policy: PostingPolicy) -> str:
    """Sanitise the text of a commit message, in which no backtick protects anything."""
    return sanitise_plain(text.replace("\r\n", "\n"), secrets=secrets, policy=policy).text.strip()


def with_safe_texts(result: Model, sanitizer: TextSanitizer, path: str = "") -> Model:
    """Return a result with its titles, bodies and summaries sanitised; names, labels, paths and a patch stay."""
    changes: dict[str, Any] = {}
    for name, value in result:
        here = path + pointer(name)
        if name in _TEXTS and isinstance(value, str):
            changes[name] = (sanitizer.title if name == "title" else sanitizer.body)(value, here)
        elif isinstance(value, BaseModel):
            changes[name] = with_safe_texts(value, sanitizer, here)
        elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
            changes[name] = [with_safe_texts(each, sanitizer, here + pointer(i)) for i, each in enumerate(value)]
    return result.model_copy(update=changes)


def errors_as_posted(findings: Iterable[Finding]) -> list[Finding]:
    """Return the errors that sanitising caused in a result that had none."""
    return [replace(found, message=f"As posted: {found.message}") for found in findings if has_errors([found])]


def require_postable(receipt: Receipt, sanitizer: TextSanitizer, check: Callable[[], Iterable[Finding]]) -> None:
    """Report what sanitising changed. Raises BrokenContract when it left nothing of a text whose content was hidden."""
    receipt.sanitised = sanitizer.sanitised
    found = check() if sanitizer.sanitised else ()
    empty = [each for each in found if each.code in ("summary-empty", "comment-empty")]
    receipt.require([*sanitizer.findings, *errors_as_posted(empty)])
