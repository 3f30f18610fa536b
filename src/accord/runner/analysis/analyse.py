"""Which tasks of a pull request a run completed: models are asked in turn, last the agent's own words count.

Source: runner output contract, "LLM Analysis Requirements". A provider either gives an answer that fits the list of
tasks, or its attempt failed and the next one is asked. Every attempt is reported.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from accord.agents.providers import ALL, REGEX_FALLBACK
from accord.core.documents import read_object
from accord.core.errors import BrokenContract
from accord.core.numbers import Integer
from accord.core.schemas import strict_schema
from accord.runner.analysis.checkbox_evidence import completed_by_boxes
from accord.runner.analysis.prompt import task_prompt
from accord.runner.analysis.providers import (
    ProviderFailed,
    Unavailable,
    endpoint_of,
    request_answer,
    select_providers,
)
from accord.text.outline import tasks as tasks_of
from accord.text.redaction import redactor_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.agents.providers import Provider
    from accord.core.clock import Clock
    from accord.runner.analysis.prompt import TaskEvidence, TaskPrompt
    from accord.runner.analysis.providers import Endpoint
    from accord.text.outline import ChecklistTask

DEADLINE_SECONDS = 60
REQUEST_SECONDS = 20.0
"""The time limit of one request, so that a provider that hangs leaves time for the others."""

LONGEST_WAIT_SECONDS = 15.0
"""With a longer wait before a second attempt, the next provider is faster."""

Outcome = Literal["answered", "failed", "skipped"]
_ATTEMPTS = 2
_SHORTEST_REQUEST_SECONDS = 0.5


@dataclass(frozen=True)
class ProviderAttempt:
    """One attempt of a provider; ``milliseconds`` is its wall time."""

    provider: str
    outcome: Outcome
    reason: str = ""
    milliseconds: int = 0


@dataclass(frozen=True)
class Analysis:
    """The completed tasks among the unchecked ones, in the body's wording and order, and the provider that answered.

    ``provider`` is empty without an answer, ``model`` without a model's answer.
    """

    provider: str
    model: str
    confidence: float
    completed: tuple[str, ...]
    attempts: tuple[ProviderAttempt, ...]


class TaskAnswer(BaseModel):
    """A model's answer: the numbers of the completed tasks, and its confidence."""

    model_config = ConfigDict(strict=True)

    completed_tasks: list[Integer]
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)


def analyse(
    evidence: TaskEvidence,
    *,
    environment: Mapping[str, str],
    providers: Sequence[str] = ALL,
    deadline_seconds: float = DEADLINE_SECONDS,
    clock: Clock,
) -> Analysis:
    """Ask the providers in turn which open tasks are completed. Raises WrongUsage for an unknown provider."""
    redact = redactor_for(environment)
    tasks = tasks_of(evidence.pr_body)
    open_tasks = [task for task in tasks if task.text and not task.is_checked]
    needless = _why_needless(evidence, open_tasks)
    prompt = task_prompt(evidence, open_tasks, fence=secrets.token_hex(12), secrets=redact)
    asking = _Asking(environment, prompt, clock, clock.monotonic() + deadline_seconds, [])
    found = Analysis("", "", 0.0, (), ())
    for provider in select_providers(providers):
        if provider is None:
            found = asking.by_boxes(evidence, tasks)
        elif needless:
            asking.attempts.append(ProviderAttempt(provider.name, "skipped", needless))
        else:
            found = asking.by_model(provider) or found
        if found.provider:
            break
    attempts = tuple(replace(attempt, reason=redact(attempt.reason)) for attempt in asking.attempts)
    return replace(found, attempts=attempts)


def _why_needless(evidence: TaskEvidence, open_tasks: Sequence[ChecklistTask]) -> str:
    if not open_tasks:
        return "The body has no open task."
    texts = (evidence.message, *evidence.commands, evidence.diff_stat, *(todo.text for todo in evidence.todos))
    return "" if any(text.strip() for text in texts) else "The run left no evidence to judge by."


@dataclass(frozen=True)
class _Asking:
    """One analysis under way: its prompt, its deadline by ``clock.monotonic()``, and the attempts so far."""

    environment: Mapping[str, str]
    prompt: TaskPrompt
    clock: Clock
    deadline: float
    attempts: list[ProviderAttempt]

    def by_boxes(self, evidence: TaskEvidence, tasks: Sequence[ChecklistTask]) -> Analysis:
        began = self.clock.monotonic()
        positions, confidence = completed_by_boxes(evidence, tasks)
        self._add(REGEX_FALLBACK, "answered", "", began)
        return Analysis(REGEX_FALLBACK, "", confidence, tuple(tasks[position].text for position in positions), ())

    def by_model(self, provider: Provider) -> Analysis | None:
        """Ask one provider, a second time after a temporary failure if there is time to wait."""
        try:
            endpoint = endpoint_of(provider, self.environment)
        except Unavailable as why:
            self._add(provider.name, "skipped", str(why))
            return None
        for number in range(1, _ATTEMPTS + 1):
            if self._seconds_left() < _SHORTEST_REQUEST_SECONDS:
                self._add(provider.name, "skipped", "The deadline of the analysis has passed.")
                return None
            began = self.clock.monotonic()
            try:
                answered = self._answer(provider, endpoint)
            except ProviderFailed as failed:
                wait = self._wait_after(failed) if number < _ATTEMPTS else None
                again = "" if wait is None else f" Tried again after {wait:.3g} s."
                self._add(provider.name, "failed", f"{failed}{again}", began)
                if wait is None:
                    return None
                self.clock.sleep(wait)
            else:
                self._add(provider.name, "answered", "", began)
                return answered
        return None

    def _answer(self, provider: Provider, endpoint: Endpoint) -> Analysis:
        seconds = min(self._seconds_left(), REQUEST_SECONDS)
        text, model = request_answer(endpoint, self.prompt, strict_schema(TaskAnswer), seconds)
        answer = answer_in(text, self.prompt.tasks)
        completed = tuple(self.prompt.tasks[number - 1] for number in sorted(set(answer.completed_tasks)))
        return Analysis(provider.name, model or endpoint.model, answer.confidence, completed, ())

    def _wait_after(self, failed: ProviderFailed) -> float | None:
        wait = failed.retry_after
        longest = min(LONGEST_WAIT_SECONDS, self._seconds_left() - _SHORTEST_REQUEST_SECONDS)
        return wait if wait is not None and wait <= longest else None

    def _seconds_left(self) -> float:
        return self.deadline - self.clock.monotonic()

    def _add(self, provider: str, outcome: Outcome, reason: str, began: float | None = None) -> None:
        milliseconds = 0 if began is None else round((self.clock.monotonic() - began) * 1000)
        self.attempts.append(ProviderAttempt(provider, outcome, reason, milliseconds))


def answer_in(text: str, tasks: Sequence[str]) -> TaskAnswer:
    """Parse a model's answer and check it against the list that it was shown, numbered from 1.

    A task may be named by its number or by its exact text; one that is not in the list invalidates the whole answer.
    Raises ProviderFailed.
    """
    try:
        document = read_object(text.encode("utf-8", "surrogatepass")).value
    except BrokenContract:
        raise ProviderFailed("The answer is not one JSON object.") from None
    named = document.get("completed_tasks")
    if isinstance(named, list):
        document = {**document, "completed_tasks": _numbers(named, tasks)}
    try:
        answer = TaskAnswer.model_validate(document)
    except ValidationError as broken:
        places = {str(error["loc"][0]) for error in broken.errors(include_input=False)}
        raise ProviderFailed(f"The answer breaks its schema ({', '.join(sorted(places))}).") from None
    if any(not 1 <= number <= len(tasks) for number in answer.completed_tasks):
        raise ProviderFailed("The answer names a task that is not in the list.")
    return answer


def _numbers(named: Sequence[Any], tasks: Sequence[str]) -> list[Any]:
    """Replace texts by numbers; tasks with the same text are used one after the other."""
    free: dict[str, list[int]] = {}
    for number, task in enumerate(tasks, 1):
        free.setdefault(task, []).append(number)
    numbers: list[Any] = []
    for entry in named:
        text = " ".join(entry.split()) if isinstance(entry, str) else None
        if text is not None and not free.get(text):
            raise ProviderFailed("The answer names a task that is not in the list.")
        numbers.append(free[text].pop(0) if text is not None else entry)
    return numbers
