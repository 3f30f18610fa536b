"""What a transcript tells, in the same words for every agent: an account of the run.

Codecs turn lines into events (``accord.runner.transcripts.events``); folding them gives one ``Account``. Memory stays
constant: lists of what grows with a run keep their last entries, and counters keep the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Ending = Literal["success", "failure", "cut"]
"""How the transcript ends: with its terminal success event, with a terminal failure, or with neither."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run cost: tokens summed over its requests, US dollars. None is what the CLI does not tell."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """A command that the agent ran. ``exit_code`` is None where the CLI does not tell one; ``output`` is its tail."""

    command: str
    exit_code: int | None
    is_failed: bool
    output: str = ""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that the agent says it changed; git, not this, tells what did change."""

    path: str
    kind: str


@dataclass(frozen=True, slots=True)
class Todo:
    """An entry of the agent's own to-do list."""

    text: str
    is_done: bool


@dataclass(frozen=True, slots=True)
class AgentError:
    """An error as the CLI reports it in a field of its transcript.

    ``status`` is the HTTP status where a field or the CLI's own wording names one; ``kind`` the class that the CLI
    gives it (``authentication_failed``, ``error_max_turns``); ``retry_after_seconds`` what the provider asks to wait,
    ``backoff_seconds`` what the CLI waited by itself before its last try; ``line`` the line of the transcript, cut, as
    evidence.
    """

    message: str
    status: int | None = None
    kind: str = ""
    retry_after_seconds: float | None = None
    line: str = ""
    backoff_seconds: float | None = None
    is_status_worded: bool = False
    """The status stands in the text only, so any field says more."""


@dataclass(frozen=True)
class Account:
    """What one run did, as its transcript tells it.

    ``errors`` are those that ended the run, never ones that the agent recovered from; where the transcript breaks off,
    the one that the CLI was last retrying. ``structured`` is what the CLI
    returned as structured result, None without one. ``warnings`` say what was off in a run that ended well.
    """

    agent: str
    ending: Ending
    model: str = ""
    final_message: str = ""
    structured: Any = None
    commands: tuple[AgentCommand, ...] = ()
    command_count: int = 0
    files: tuple[FileChange, ...] = ()
    todos: tuple[Todo, ...] = ()
    errors: tuple[AgentError, ...] = ()
    usage: Usage = field(default_factory=Usage)
    warnings: tuple[str, ...] = ()
    is_structured: bool = True
    """False for plain text, where nothing but the exit code tells how the run ended; ``ending`` is ``cut`` then."""
    codec: str = "plain"
    has_begun: bool = False
    """An event was read: the CLI came as far as starting its work."""
    has_worked: bool = False
    """The agent said or did something, so what went wrong before that was overcome."""
