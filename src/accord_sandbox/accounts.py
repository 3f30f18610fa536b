"""The accounts of the local GitHub and the owners of its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

BOT = "github-actions[bot]"
"""The account of GITHUB_TOKEN."""

MAINTAINER = "maintainer"

TokenKind = Literal["user", "fine-grained", "installation"]


@dataclass(frozen=True)
class TokenOwner:
    """The owner of a token. ``repositories`` is None when the token reaches all that the owner reaches."""

    user_id: int
    login: str
    token: str = field(repr=False)
    kind: TokenKind
    permissions: Mapping[str, str]
    repositories: frozenset[str] | None

    @property
    def is_actions(self) -> bool:
        """Whether the token is a job's GITHUB_TOKEN, to which the Actions settings of the repository apply."""
        return self.kind == "installation" and self.login == BOT

    @property
    def may_write_workflows(self) -> bool:
        """Whether the token may write workflow files; GITHUB_TOKEN never has the permission."""
        return self.kind == "user" or self.permissions.get("workflows") in ("write", "admin")
