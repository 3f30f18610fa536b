"""The wire formats of contract ro: the outputs of a runner, and how an error is classified.

Source: runner output contract, "Required Outputs"; the six values of ``error-category`` are those of its table and the
``infrastructure`` of its edge cases.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Category = Literal["transient", "auth", "resource", "logic", "infrastructure", "unknown"]
Origin = Literal["agent", "infrastructure", "auth", "unknown"]
Recovery = Literal["retry", "manual", "ignore"]
Source = Literal["own", "event", "stderr", "text", "exit"]


class Evidence(BaseModel):
    """Which rule decided, by what: our own knowledge, an event of the transcript, stderr, plain text, the exit code."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    rule: str
    source: Source
    line: str = ""


class Classification(BaseModel):
    """Why a run failed, where that came from, and what helps."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    category: Category
    type: Origin
    recovery: Recovery
    summary: str
    retry_after_seconds: float | None = None
    evidence: Evidence


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class RunOutputs(BaseModel):
    """All outputs of a runner, each a string; empty is what is not available."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=_kebab, populate_by_name=True, defer_build=True
    )

    final_message: str = Field("", description="The agent's whole final message, redacted, then base64.")
    final_message_summary: str = Field("", description="Its first 500 characters, safe to post in a comment.")
    exit_code: str = Field("0", description="0 when the agent succeeded.")
    changes_made: str = Field("false", description="true when changes were committed and the push was confirmed.")
    commit_sha: str = Field("", description="The commit that was pushed.")
    files_changed: str = Field("0", description="How many paths the pushed range changes; a renamed file is one.")
    error_summary: str = Field("", description="What failed, in one line that is safe in comments and scripts.")
    error_category: str = Field("", description="transient, auth, resource, logic, infrastructure or unknown.")
    error_type: str = Field("", description="agent, infrastructure, auth or unknown.")
    error_recovery: str = Field("", description="retry, manual or ignore.")
    llm_analysis_run: str = Field("false", description="true when completed tasks were looked for.")
    llm_provider: str = Field("", description="github-models, openai, anthropic or regex-fallback.")
    llm_model: str = Field("", description="The model that answered.")
    llm_confidence: str = Field("", description="0.0 to 1.0.")
    llm_completed_tasks: str = Field("[]", description="JSON array of the tasks that were completed.")
    llm_has_completions: str = Field("false", description="true when there is one.")
    llm_attempts: str = Field("", description="JSON array: provider, outcome, reason and ms of each try.")
    agent_name: str = Field("", description="The agent's name in the registry.")
    agent_model: str = Field("", description="The model that the agent used.")
    tokens_input: str = Field("", description="Input tokens of all requests.")
    tokens_output: str = Field("", description="Output tokens of all requests.")
    cost_usd: str = Field("", description="What the agent says it cost, in US dollars.")
    duration_seconds: str = Field("", description="How long the agent ran.")
    retry_after_seconds: str = Field("", description="How long to wait before a retry, where somebody said so.")
    error_evidence: str = Field("", description="JSON: the rule, source and line that decided the category.")
    run_warnings: str = Field("", description="JSON array of what was off, although it is no error.")
    result_json: str = Field("", description="The agent's structured result.")

    def as_outputs(self) -> dict[str, str]:
        """Return all outputs by their wire names."""
        return self.model_dump(by_alias=True)
