"""The error tree. Every error says what happened, why, and what fixes it, and knows the exit code it leads to.

AccordError
├── BrokenContract   1  the input breaks its contract, nothing was written
├── WrongUsage       2  the command was called with the wrong words
├── Stopped          3  stopped part-way; running the same command again continues
└── Refused          4  GitHub or git refuses for a reason that running again does not fix

``AccordError`` and ``Interrupted``, which is a signal, are a ``Problem``. ``Interrupted`` is not an ``Exception``:
handlers of errors, also those in libraries, must not catch a signal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from accord.core.findings import Finding, sentence
from accord.core.machine import NextMove


class Problem(BaseException):
    """The end of a command before it is done: a message, a hint, and the legal moves instead."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.next_moves: Sequence[NextMove] = ()

    def __str__(self) -> str:
        return f"{sentence(self.message)} {self.hint}" if self.hint else self.message


class AccordError(Problem, Exception):
    """An error that accord raises on purpose."""


class BrokenContract(AccordError):
    """The input breaks its contract. Raised before the first write, so nothing was written."""

    exit_code = 1

    def __init__(self, message: str, *, findings: Sequence[Finding] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.findings = tuple(findings)

    @property
    def first_hint(self) -> str:
        """The hint, else the first one of a finding; empty without any."""
        return self.hint or next((each.hint for each in self.findings if each.hint), "")

    @classmethod
    def of(cls, finding: Finding, *, hint: str = "") -> BrokenContract:
        """Return the error that a single finding makes."""
        return cls(finding.message, findings=[finding], hint=hint or finding.hint)


class WrongUsage(AccordError):
    """The command line, an input of an action or the environment does not say what is needed."""

    exit_code = 2


class NoToken(WrongUsage):
    """The environment has no usable token for GitHub."""


class Stopped(AccordError):
    """The work stopped part-way for a passing reason; the same command continues where it stopped."""

    exit_code = 3


class Refused(AccordError):
    """GitHub or git said no, and will say no again until a person changes something."""

    exit_code = 4


class Interrupted(Problem):
    """A signal asked the process to end, so nothing else is tried."""

    exit_code = 3
