"""Where a loop works: one pull request, as whom, and what the job around it tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from accord.core.errors import Refused
from accord.github.models import Forbidden
from accord.loops.models import LoopName, PullFacts, RateFacts, TokenFacts
from accord.loops.settings import NAME
from accord.loops.state import Place
from accord.text.untrusted import DATA, fenced

if TYPE_CHECKING:
    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.models import Identity, Pull
    from accord.text.redaction import Redactor


BOT = "[bot]"
"""How the logins of apps end; no person's can."""


@dataclass(frozen=True)
class Site:
    """A pull request and the job that works on it.

    ``run_id`` names the workflow run, or the run at a terminal: the same command run again has the same. ``agents`` are
    the enabled ones of the registry, the default first; ``minutes`` is the time limit of a run that begins; ``bots``
    are the logins whose review threads are answered, ``is_asked`` says that a person asked for a verdict,
    ``commenter`` who did so by a comment; ``by_person`` that a person's deed began this turn, and so somebody looks at
    what the loop makes of it. ``writers`` are logins of which it was asked whether they may write.
    """

    github: GitHub
    repository: str
    number: int
    run_id: str
    agents: tuple[str, ...]
    clock: Clock
    redact: Redactor
    token: TokenFacts = field(default_factory=TokenFacts)
    minutes: int = 45
    bots: tuple[str, ...] = ()
    is_asked: bool = False
    commenter: str = ""
    by_person: bool = False
    writers: dict[str, bool] = field(default_factory=dict, repr=False)

    @cached_property
    def identity(self) -> Identity:
        """Who we are: one request, once."""
        return self.github.identity()

    def place(self, loop: LoopName) -> Place:
        """Say where the state of a loop is kept."""
        return Place(self.github, self.number, loop, self.identity.counts, self.clock)

    def pull(self) -> Pull:
        """Read the pull request as it is now. Raises Refused when there is none."""
        pull = self.github.pull(self.number)
        if pull is None:
            raise Refused(
                f"There is no pull request #{self.number} in {self.repository}.", hint="Name one that is there."
            )
        return pull

    def may_write(self, login: str) -> bool:
        """Ask whether a person may write here: one request for each, once."""
        if login not in self.writers:
            self.writers[login] = bool(login) and self.github.may_write(login)
        return self.writers[login]

    def obeys(self, author: str) -> bool:
        """Ask whether what somebody wrote may start the agent.

        A program's text may not, as it may quote strangers; ours quotes nobody unseen. A token that may not ask may
        not write either.
        """
        if author.endswith(BOT):
            return self.identity.counts(author)
        try:
            return self.may_write(author)
        except Forbidden:
            return False

    def pull_facts(self, pull: Pull) -> PullFacts:
        """Say what the loops decide from; a branch of a repository that is gone is one of a fork."""
        return PullFacts(
            number=pull.number,
            is_open=pull.state == "open",
            is_merged=pull.is_merged,
            is_fork=pull.head_repository.lower() != self.repository.lower(),
            author_may_write=NAME not in pull.body or self.obeys(pull.author),
            head_sha=pull.head_sha,
            labels=pull.labels,
            body=pull.body,
        )

    def now(self) -> datetime:
        """Return the time by GitHub's clock, which all runners share."""
        return self.github.server_time()

    def rate(self) -> RateFacts:
        """Say what is left of the token's requests; asked of the last answer, not of GitHub."""
        left = self.github.rate_left
        if left is None:
            return RateFacts()
        seconds = (datetime.fromtimestamp(left.resets_at, UTC) - self.now()).total_seconds()
        return RateFacts(remaining=left.remaining, resets_in_seconds=max(0, int(seconds)))


__all__ = ["APPENDIX_CHARACTERS", "DATA", "fenced", "joined"]

APPENDIX_CHARACTERS = 30_000
"""Below 128 KiB in any script: one environment value or argument holds no more (Linux, MAX_ARG_STRLEN)."""


def joined(parts: list[str], left: str) -> str:
    """Join as many parts as fit; ``left`` with ``{n}`` says how many did not."""
    shown: list[str] = []
    size = 0
    for part in parts:
        size += len(part) + 2
        if size > APPENDIX_CHARACTERS:
            break
        shown.append(part)
    missing = len(parts) - len(shown)
    return "\n\n".join([*shown, left.format(n=missing)] if missing else shown)
