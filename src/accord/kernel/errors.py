"""The error tree. Every error says what happened, why, and what mends it, and knows the exit code it leads to.

AccordError
├── BrokenContract   1  the input breaks its contract, nothing was written
├── WrongUsage       2  the command was called with the wrong words
├── Stopped          3  stopped part-way; running the same command again continues
└── Refused          4  GitHub or git refuses for a reason that running again does not mend
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.kernel.findings import Finding


def sentence(text: str) -> str:
    """End a text of others as a sentence, so that another one can follow it."""
    return text if not text or text.endswith((".", "!", "?", "…")) else f"{text}."


class AccordError(Exception):
    """The root of what accord raises on purpose; anything else that surfaces is a defect of accord, and ends with 3.

    ``message`` says what went wrong and why, ``mend`` what the reader can do about it.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, mend: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend

    def __str__(self) -> str:
        return f"{sentence(self.message)} {self.mend}" if self.mend else self.message


class BrokenContract(AccordError):
    """The input breaks its contract. Raised before the first write, so nothing was written."""

    exit_code = 1

    def __init__(self, message: str, *, findings: Sequence[Finding] = (), mend: str = "") -> None:
        super().__init__(message, mend=mend)
        self.findings = tuple(findings)

    @classmethod
    def of(cls, finding: Finding, *, mend: str = "") -> BrokenContract:
        """Return the error that a single finding makes."""
        return cls(finding.message, findings=[finding], mend=mend)


class WrongUsage(AccordError):
    """The command line, an input of an action or the environment does not say what is needed."""

    exit_code = 2


class Stopped(AccordError):
    """The work stopped part-way for a passing reason; the same command continues where it stopped."""

    exit_code = 3


class Refused(AccordError):
    """GitHub or git said no, and will say no again until a person changes something."""

    exit_code = 4
