"""Secrets of the job, and texts that look like tokens, in changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from accord.core.errors import Refused
from accord.core.findings import Finding, warning
from accord.git.patches import Change, contents_of
from accord.git.program import Git
from accord.text.redaction import BREAK, Redactor

_BREAK = re.compile(BREAK.encode())


def has_new_secret(old: bytes, new: bytes, secrets: Sequence[bytes]) -> bool:
    """Return whether a content holds a secret that it did not hold before, on one line or wrapped over several."""
    if any(secret in new and secret not in old for secret in secrets):
        return True
    joined, joined_before = _BREAK.sub(b"", new), _BREAK.sub(b"", old)
    return any(secret in joined and secret not in joined_before for secret in secrets)


def refuse_secrets(git: Git, changes: Iterable[Change], secrets: Sequence[str]) -> None:
    """Refuse changes with a secret in a content or a path: redacted they would be damaged. Raises Refused."""
    searched = [secret.encode("utf-8", "surrogateescape") for secret in secrets]
    for change, new, old in _contents_of(git, changes) if searched else ():
        name = change.path.encode("utf-8", "surrogateescape") if change.is_new else b""
        if has_new_secret(old, new, searched) or has_new_secret(b"", name, searched):
            raise Refused(
                f"`{change.path}` contains a secret of the job.",
                hint="None of the changes were published. Revoke the secret and find out why the agent wrote it.",
            )


def secret_findings(git: Git, changes: Iterable[Change], redactor: Redactor) -> Iterator[Finding]:
    """Find new secrets of this process in changes (errors), and texts like tokens (warnings); none is shown."""
    for change, new, old in _contents_of(git, changes):
        shown = redactor(change.path)
        named = change.path if change.is_new else ""
        values = [value.encode("utf-8", "surrogateescape") for value in redactor.values]
        if has_new_secret(old, new, values) or any(value in named for value in redactor.values):
            message = f"`{shown}` holds a secret of this job, so nothing is pushed."
            yield Finding("secret-in-patch", message, "/patch", hint="Revoke the secret, because an agent saw it.")
        elif _tokens(redactor, new) - _tokens(redactor, old):
            message = f"`{shown}` gets a text that looks like a token."
            yield warning("token-in-patch", message, "/patch", hint="Revoke it, if it is a real one.")


def _contents_of(git: Git, changes: Iterable[Change]) -> Iterator[tuple[Change, bytes, bytes]]:
    """Yield changes with their new and old content; that of a renamed file was there before."""
    changes = [*changes]
    before = {change.was for change in changes}
    for change, new, old in contents_of(git, changes):
        yield change, new or b"", (new if change.blob in before else old) or b""


def paths_with_tokens(git: Git, changes: Iterable[Change]) -> Iterator[str]:
    """Yield the changed files that get a text which looks like a token of a known issuer; such a name is redacted."""
    by_shape = Redactor()
    for change, new, old in contents_of(git, changes):
        if _tokens(by_shape, new) - _tokens(by_shape, old):
            yield by_shape(change.path)


def _tokens(redactor: Redactor, content: bytes | None) -> set[str]:
    text = (content or b"").decode("utf-8", "replace")
    return {text[secret.start : secret.end] for secret in redactor.find(text)}
