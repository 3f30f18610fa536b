"""Secrets leave no trace: every text that accord posts, prints, logs or encodes goes through ``Redactor`` first.

Two kinds of evidence: what a token of a known issuer looks like, and the values that this process holds itself.
A shape is documented by its issuer; only long, unmistakable ones are listed, because a false hit destroys text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHAPES = {
    "github-token": r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})",
    "anthropic-key": r"\bsk-ant-[A-Za-z0-9_-]{20,}",
    "openai-key": r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}",
    "google-key": r"\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    "slack-token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "aws-key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "json-web-token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "private-key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----[\s\S]*?(?:-----END (?:[A-Z]+ )*PRIVATE KEY-----|\Z)",
}
_SHAPE = re.compile("|".join(f"(?P<{name.replace('-', '_')}>{shape})" for name, shape in _SHAPES.items()))

_SECRET_NAME = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PRIVATE|CREDENTIAL|AUTH(?!OR)|API_?KEY|ACCESS_?KEY)", re.IGNORECASE
)
_SHORTEST_VALUE = 8
"""Shorter values occur in ordinary text, and masking them would garble it."""


@dataclass(frozen=True)
class Redactor:
    """Replaces secrets by ``[redacted: kind]``. ``values`` are known secrets, longest first; never printed."""

    values: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Redactor({len(self.values)} known values)"

    def redact(self, text: str) -> tuple[str, int]:
        """Return the text without secrets, and how many were taken out."""
        count = 0
        for value in self.values:
            if value in text:
                count += text.count(value)
                text = text.replace(value, "[redacted: secret of the environment]")
        text, shaped = _SHAPE.subn(lambda hit: f"[redacted: {(hit.lastgroup or '').replace('_', '-')}]", text)
        return text, count + shaped

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return self.redact(text)[0]


def redactor_for(environment: Mapping[str, str]) -> Redactor:
    """Know the secrets of this process: the values of variables whose names say that they hold one."""
    values = {
        form
        for name, value in environment.items()
        if _SECRET_NAME.search(name) and not value.startswith("/")
        for form in _forms(value.strip())
    }
    return Redactor(tuple(sorted(values, key=len, reverse=True)))


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret, each of its lines (GitHub masks them one by one too), and all as JSON or Python quote them."""
    for text in {secret, *(line.strip() for line in secret.splitlines())}:
        if len(text) >= _SHORTEST_VALUE:
            yield from (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1])
