"""Recorded runs of real agent CLIs, and small transcripts made by hand."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord.runner.classify import classify
from accord.runner.models import Classification
from accord.runner.transcripts.account import Account
from accord.runner.transcripts.read import RunEvidence, read_evidence

LOGS = Path(__file__).parents[1] / "data" / "agent-logs"
EXPECTED: dict[str, dict[str, Any]] = json.loads((LOGS / "expected.json").read_text(encoding="utf-8"))
CHOICES = Path(__file__).parents[2] / "tools" / "runs.yml"


@dataclass(frozen=True)
class Run:
    """One recorded run."""

    name: str

    @property
    def agent(self) -> str:
        return self.name.partition("/")[0]

    @property
    def stdout(self) -> Path:
        return LOGS / self.name / "stdout"

    @property
    def stderr(self) -> Path:
        return LOGS / self.name / "stderr"

    @property
    def exit_code(self) -> int:
        return int((LOGS / self.name / "exit_code").read_text())

    def account(self) -> Account:
        return self.evidence().account

    def evidence(self) -> RunEvidence:
        return read_evidence(self.agent, self.agent, self.exit_code, self.stdout, stderr=self.stderr)


def as_lines(*events: Any) -> bytes:
    """Write events the way CLIs do: an object a line, without blanks."""
    return b"".join(
        event if isinstance(event, bytes) else json.dumps(event, separators=(",", ":")).encode() + b"\n"
        for event in events
    )


def words_of(found: Classification | None) -> dict[str, str] | None:
    """Return the three words of the contract, None without an error."""
    return found and {"category": found.category, "type": found.type, "recovery": found.recovery}


@dataclass(frozen=True)
class Reader:
    """Reads what a test says that an agent printed."""

    folder: Path

    def evidence(
        self, codec: str, stdout: bytes, *, exit_code: int | None = 0, stderr: bytes = b"", **more: Any
    ) -> RunEvidence:
        (self.folder / "stdout").write_bytes(stdout)
        (self.folder / "stderr").write_bytes(stderr)
        return read_evidence(codec, codec, exit_code, self.folder / "stdout", stderr=self.folder / "stderr", **more)

    def account(self, codec: str, *events: Any) -> Account:
        return self.evidence(codec, as_lines(*events)).account

    def classify(self, codec: str, stdout: bytes, **more: Any) -> Classification | None:
        return classify(self.evidence(codec, stdout, **more))

    def failure(self, codec: str, stdout: bytes, **more: Any) -> Classification:
        found = self.classify(codec, stdout, **more)
        assert found
        return found
