"""The job around a run, and the facts of the run so far: shared by its modules."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.text.redaction import redactor_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.core.clock import Clock
    from accord.git.snapshots import Snapshot
    from accord.runner.models import InternalError
    from accord.runner.process import LineWatcher, StopSignals
    from accord.runner.record import Attempt
    from accord.text.redaction import Redactor

_SECRET_VARIABLE = re.compile(r"(?:TOKEN|(?<!CACHE_)(?<!PUBLIC_)KEY|SECRET|PASSWORD)\Z", re.IGNORECASE)
"""Variables that certainly hold secrets: a change with such a value is refused. Redaction takes a wider view."""


@dataclass(frozen=True)
class JobContext:
    """The job around the run. ``declared`` names the variables that the registry declares as secrets."""

    environment: Mapping[str, str]
    clock: Clock
    show: LineWatcher
    stop: StopSignals
    declared: frozenset[str] = frozenset()

    @property
    def redactor(self) -> Redactor:
        """Return a redactor that knows the secrets of the job."""
        return redactor_for(self.environment, certain=self.secret_names)

    @property
    def secret_names(self) -> frozenset[str]:
        """Name the variables that certainly hold secrets; the path of a key file is not a secret."""
        named = (n for n, value in self.environment.items() if _SECRET_VARIABLE.search(n) and value[:1] != "/")
        return self.declared.union(named)


@dataclass
class RunProgress:
    """The facts known so far; the record is made of them, however the run ends.

    ``agent``, ``codec``, ``exit_code`` and ``error`` are those of the attempt that counts.
    """

    agent: str
    codec: str = "plain"
    base_sha: str = ""
    snapshot: Snapshot | None = None
    exit_code: int | None = None
    error: InternalError | None = None
    declared: frozenset[str] = frozenset()
    has_run: bool = False
    patch_sha256: str = ""
    merged: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)

    def warn(self, *texts: str) -> None:
        """Add warnings, each once."""
        self.warnings += [text for text in dict.fromkeys(texts) if text and text not in self.warnings]
