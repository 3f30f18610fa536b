"""The data of a run: what was requested, how a failure is classified, and the outputs (contract ro).

Source: runner output contract, "Required Outputs". The six values of ``error-category`` are those of its table and the
``infrastructure`` of its edge cases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from accord.core.clock import Clock
from accord.core.errors import AccordError, Problem
from accord.core.frozen import Frozen
from accord.runner.causes import ErrorCategory, ErrorOrigin, InternalErrorKind, Recovery
from accord.text.redaction import Redactor, redactor_for

if TYPE_CHECKING:
    from accord.git.trusted_files import TrustedFiles

ErrorSource = Literal["own", "event", "stderr", "text", "exit"]
LineWatcher = Callable[[str], None]
"""Is called with each line of a program while it runs: redacted, without the line break."""

_SECRET_VARIABLE = re.compile(r"(?:TOKEN|(?<!CACHE_)(?<!PUBLIC_)KEY|SECRET|PASSWORD)\Z", re.IGNORECASE)
"""Variables that certainly hold secrets: a change with such a value is refused. Redaction takes a wider view."""


class RunContext(BaseModel):
    """The purpose of a run and its place in a loop and a repository, as given by the caller; empty if not given."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    mode: str = ""
    iteration: str = ""
    pull: str = ""
    pr_ref: str = ""
    base_ref: str = ""


class RunRequest(Frozen):
    """A request to run an agent and to keep the run."""

    agent: str  # empty for the registry's default
    run_dir: Path  # where the run is kept
    directory: Path  # where the agent works
    context: RunContext = field(default_factory=RunContext)
    prompt_file: Path | None = None
    appendix: str = ""
    data: Sequence[Path] = ()  # files with untrusted text for the prompt
    sandbox_mode: str = ""
    safety_strategy: str = ""
    model: str = ""
    schema: Path | Mapping[str, Any] | None = None  # the JSON Schema of the result, or its file
    command: Sequence[str] = ()
    kind: str = ""  # of the document that the result is
    repair_turns: int | None = None  # how often a broken result is asked for again; None: the registry's number
    max_runtime_minutes: float = 45
    registry: Path | None = None
    files: TrustedFiles | None = None  # reads registry and prompt; by default from the checkout of ``directory``
    install_dir: Path | None = None
    skip: bool = False


@dataclass
class StopSignals:
    """How many signals asked this process to stop."""

    count: int = 0

    def __bool__(self) -> bool:
        return self.count > 0


class JobContext(Frozen):
    """The job around the run. ``declared`` names the variables that the registry declares as secrets."""

    environment: Mapping[str, str]
    clock: Clock
    show: LineWatcher
    stop: StopSignals
    declared: frozenset[str] = frozenset()

    @cached_property
    def redactor(self) -> Redactor:
        """Return a redactor that knows the secrets of the job."""
        return redactor_for(self.environment, certain=self.secret_names)

    @property
    def secret_names(self) -> frozenset[str]:
        """Name the variables that certainly hold secrets; the path of a key file is not a secret."""
        named = (n for n, value in self.environment.items() if _SECRET_VARIABLE.search(n) and value[:1] != "/")
        return self.declared.union(named)


class InternalError(BaseModel):
    """An error that accord itself saw."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    kind: InternalErrorKind
    detail: str  # for people
    has_hint: bool = False  # it needs no general hint

    @classmethod
    def of(cls, kind: InternalErrorKind, error: Problem) -> InternalError:
        """Return the internal error that an exception amounts to."""
        return cls(kind=kind, detail=str(error), has_hint=bool(error.hint))


class AgentNotStarted(AccordError):
    """The agent was not started, or its changes cannot be used; ``error`` goes into the record."""

    def __init__(self, kind: InternalErrorKind, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.error = InternalError.of(kind, self)


class Evidence(BaseModel):
    """The rule that decided and what it read: accord's own error, an event, stderr, plain text, the exit code."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    rule: str
    source: ErrorSource
    line: str = ""


class Classification(BaseModel):
    """Why a run failed, where the failure came from, and how to recover."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    category: ErrorCategory
    type: ErrorOrigin
    recovery: Recovery
    summary: str
    retry_after_seconds: float | None = None
    evidence: Evidence
    cause: str = ""  # a key of ``accord.runner.causes.CAUSES``


class AgentText(Frozen):
    """Mark an output that holds words of the agent or of its program."""

    has_common_name: bool = False  # steps without an agent may have an output of this name


_AgentText = Annotated[str, AgentText()]
_CommonAgentText = Annotated[str, AgentText(has_common_name=True)]


class RunOutputs(BaseModel):
    """All outputs of a run as strings; an output that is not available is empty."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: name.replace("_", "-"),
        populate_by_name=True,
        defer_build=True,
    )

    final_message: _AgentText = Field("", description="The agent's final message, redacted and base64-encoded.")
    final_message_summary: _AgentText = Field(
        "", description="First 500 characters of the final message, safe in comments."
    )
    exit_code: str = Field("0", description="0 if the agent succeeded.")
    changes_made: str = Field("false", description="true if changes were committed and the push was confirmed.")
    commit_sha: str = Field("", description="Commit that was pushed.")
    files_changed: str = Field("0", description="Number of changed paths in the push; a renamed file counts once.")
    error_summary: _AgentText = Field("", description="The failure in one line that is safe in comments and scripts.")
    error_category: str = Field("", description="transient, auth, resource, logic, infrastructure or unknown.")
    error_type: str = Field("", description="agent, infrastructure, auth or unknown.")
    error_recovery: str = Field("", description="retry, manual or ignore.")
    llm_analysis_run: str = Field("false", description="true when the completed tasks were analyzed.")
    llm_provider: str = Field("", description="github-models, openai, anthropic or regex-fallback.")
    llm_model: str = Field("", description="Model that answered.")
    llm_confidence: str = Field("", description="0.0 to 1.0.")
    llm_completed_tasks: _AgentText = Field("[]", description="JSON array of the completed tasks.")
    llm_has_completions: str = Field("false", description="true when at least one task is completed.")
    llm_attempts: str = Field("", description="JSON array: provider, outcome, reason and ms of each attempt.")
    agent_name: str = Field("", description="Name of the agent in the registry.")
    agent_model: _CommonAgentText = Field("", description="Model that the agent used.")
    tokens_input: str = Field("", description="Input tokens of all requests.")
    tokens_output: str = Field("", description="Output tokens of all requests.")
    cost_usd: str = Field("", description="The cost that the agent reported, in US dollars.")
    duration_seconds: str = Field("", description="Duration of the agent's run in seconds.")
    retry_after_seconds: str = Field("", description="Wait before a retry that the provider or the agent named.")
    error_evidence: _AgentText = Field("", description="JSON with the rule, source and line that decided the category.")
    run_warnings: _CommonAgentText = Field("", description="JSON array of problems that did not fail the run.")
    result_json: _AgentText = Field("", description="Structured result of the agent.")
    attempts: _CommonAgentText = Field(
        "", description="JSON array: agent, turn, outcome, findings, fixes, seconds and cost of each attempt."
    )
    capability_id: str = Field("", description="Capability that the run exercised.")
    effect_fingerprint: str = Field("", description="Digest of the effect of that capability.")
    evidence_artifact_ref: str = Field("", description="Where the evidence of that effect is.")
    supervision_mode: str = Field("", description="How people supervised that capability.")
    capability_evidence_status: str = Field("", description="Verdict on that evidence.")
    terminal_disposition: str = Field("", description="success, patch, no-change, blocked, cancelled or failure.")

    _files_not_pushed: int = PrivateAttr(0)

    @property
    def files_not_pushed(self) -> int:
        """How many changed files are only in the run's folder."""
        return self._files_not_pushed

    def with_message(self, message: str, warnings: str, files_not_pushed: int) -> RunOutputs:
        """Return the outputs with the last parts."""
        outputs = self.model_copy(update={"final_message": message, "run_warnings": warnings})
        outputs._files_not_pushed = files_not_pushed
        return outputs

    def as_outputs(self) -> dict[str, str]:
        """Return all outputs by their wire names."""
        return self.model_dump(by_alias=True)
