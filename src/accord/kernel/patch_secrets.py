"""Secrets in what a patch adds: a push publishes them, and no later commit takes that back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.kernel.findings import Finding, warning
from accord.kernel.patches import content_of
from accord.kernel.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from accord.kernel.git import Git
    from accord.kernel.patches import Change


def secret_findings(git: Git, changes: Iterable[Change], redactor: Redactor) -> Iterator[Finding]:
    """Find secrets that changed files or their names have and had not before.

    A value that this process holds is an error: it is certain. What merely looks like a token is a warning, since
    tests and documentation have such texts too. Neither says the value, nor a path that holds one.
    """
    for change, new, old in _files(git, changes):
        shown = redactor(change.path)
        named = change.path if not old else ""
        if _values(redactor, new) - _values(redactor, old) or any(value in named for value in redactor.values):
            message = f"`{shown}` holds a secret of this job. Nothing is pushed; revoke the secret, an agent saw it."
            yield Finding("secret-in-patch", message, "/patch")
        elif _tokens(redactor, new) - _tokens(redactor, old):
            message = f"`{shown}` gets a text that looks like a token. Revoke it, if it is a real one."
            yield warning("token-in-patch", message, "/patch")


def paths_with_tokens(git: Git, changes: Iterable[Change]) -> Iterator[str]:
    """Yield the changed files that get a text which looks like a token of a known issuer; such a name is redacted."""
    by_shape = Redactor()
    for change, new, old in _files(git, changes):
        if _tokens(by_shape, new) - _tokens(by_shape, old):
            yield by_shape(change.path)


def _files(git: Git, changes: Iterable[Change]) -> Iterator[tuple[Change, bytes, bytes]]:
    """Yield what files are there afterwards, each with its new and its old content."""
    for change in changes:
        if change.leaves_content:
            yield change, content_of(git, change.blob) or b"", content_of(git, change.was) or b""


def _values(redactor: Redactor, content: bytes) -> set[str]:
    return {value for value in redactor.values if value.encode("utf-8", "surrogateescape") in content}


def _tokens(redactor: Redactor, content: bytes) -> set[str]:
    text = content.decode("utf-8", "replace")
    return {text[secret.start : secret.end] for secret in redactor.find(text)}
