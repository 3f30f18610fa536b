"""Which tasks of a pull request a run completed: models are asked in turn, and a narrow reading of words comes last.

Source: runner output contract, "LLM Analysis Requirements". A provider either gives an answer that fits the list of
tasks, or its try failed and the next one is asked; there is nothing in between. Every try is told of.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from accord.core.documents import read_object
from accord.core.errors import BrokenContract
from accord.core.schemas import strict_schema
from accord.runner.analysis.checkbox_evidence import completed_by_words
from accord.runner.analysis.prompt import task_prompt
from accord.runner.analysis.providers import ALL, REGEX_FALLBACK, ProviderFailed, Unavailable, ask, chosen, endpoint
from accord.text.checklists import tasks as tasks_of
from accord.text.redaction import redactor_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from accord.core.clock import Clock
    from accord.runner.analysis.prompt import TaskPrompt
    from accord.runner.analysis.providers import Endpoint, Provider
    from accord.runner.transcripts.events import Todo
    from accord.text.checklists import ChecklistTask
    from accord.text.redaction import Redactor


@dataclass(frozen=True)
class TaskEvidence:
    """The evidence: the pull request's body with its tasks, and what the agent said, ran and changed. All untrusted.

    ``todos`` is the to-do list that the agent kept for itself, where its CLI has one.
    """

    pr_body: str
    message: str
    commands: tuple[str, ...] = ()
    diff_stat: str = ""
    todos: tuple[Todo, ...] = ()


@dataclass(frozen=True)
class ProviderAttempt:
    """One try of a provider; ``milliseconds`` is its wall time."""

    provider: str
    outcome: Literal["answered", "failed", "skipped"]
    reason: str = ""
    milliseconds: int = 0


@dataclass(frozen=True)
class Analysis:
    """Who answered, and which of the unchecked tasks are done, in the wording and order of the body.

    ``provider`` is empty when nobody answered, ``model`` when no model did.
    """

    provider: str
    model: str
    confidence: float
    completed: tuple[str, ...]
    attempts: tuple[ProviderAttempt, ...]


DEADLINE_SECONDS = 60
REQUEST_SECONDS = 20.0
"""The longest that one request may take, so that one provider that hangs leaves time for the others."""

LONGEST_WAIT_SECONDS = 15.0
"""Longer waits before a second try are not worth it: the next provider answers sooner."""

_TRIES = 2
_SHORTEST_REQUEST_SECONDS = 0.5


class TaskAnswer(BaseModel):
    """What a model must answer: the numbers of the completed tasks, and how sure it is."""

    model_config = ConfigDict(strict=True)

    completed_tasks: list[int]
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)


@dataclass(frozen=True)
class _Found:
    model: str
    confidence: float
    completed: tuple[str, ...]


class _Time:
    """What is left of the deadline, by a clock that only goes forward."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock = clock
        self._end = clock.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._end - self.clock.monotonic()


def analyse(
    question: TaskEvidence,
    *,
    environment: Mapping[str, str],
    providers: Sequence[str] = ALL,
    deadline_seconds: float = DEADLINE_SECONDS,
    clock: Clock,
) -> Analysis:
    """Ask the providers in this order which open tasks are done; the first that answers is believed.

    Nobody is asked when there is no open task or nothing to judge by: those who would be are skipped with that reason.
    ``provider`` of the result is empty when nobody answered, which cannot be with the fallback among the providers.
    Raises WrongUsage for a provider that is not known.
    """
    redact = redactor_for(environment)
    tasks = tasks_of(question.pr_body)
    open_tasks = [task for task in tasks if task.text and not task.is_checked]
    needless = _why_needless(question, open_tasks)
    time = _Time(clock, deadline_seconds)
    asked = task_prompt(question, open_tasks, fence=secrets.token_hex(12), secrets=redact)
    attempts: list[ProviderAttempt] = []
    for provider in chosen(providers):
        name = provider.name if provider else REGEX_FALLBACK
        if provider is None:
            found: _Found | None = _by_words(question, tasks, attempts, clock)
        elif needless:
            attempts.append(ProviderAttempt(name, "skipped", needless))
            found = None
        else:
            found = _by_model(provider, environment, asked, attempts, time)
        if found:
            return Analysis(name, found.model, found.confidence, found.completed, _safe(attempts, redact))
    return Analysis("", "", 0.0, (), _safe(attempts, redact))


def llm_outputs(analysis: Analysis | None, redact: Callable[[str], str]) -> dict[str, str]:
    """Write an analysis as the ``llm-*`` outputs; None is an analysis that was not run.

    Texts are redacted here, since afterwards the escapes of JSON would hide a secret from the search.
    """
    attempts = analysis.attempts if analysis else ()
    completed = [redact(text) for text in analysis.completed] if analysis else []
    is_run = bool(analysis and analysis.provider)
    return {
        "llm-analysis-run": str(is_run).lower(),
        "llm-provider": analysis.provider if analysis else "",
        "llm-model": redact(analysis.model) if analysis else "",
        "llm-confidence": str(round(float(analysis.confidence), 2)) if analysis and is_run else "",
        "llm-completed-tasks": json.dumps(completed),
        "llm-has-completions": str(bool(completed)).lower(),
        "llm-attempts": json.dumps([_attempt_json(attempt) for attempt in attempts]) if analysis else "",
    }


def _attempt_json(attempt: ProviderAttempt) -> dict[str, Any]:
    return {
        "provider": attempt.provider,
        "outcome": attempt.outcome,
        "reason": attempt.reason,
        "ms": attempt.milliseconds,
    }


def _safe(attempts: Sequence[ProviderAttempt], redact: Redactor) -> tuple[ProviderAttempt, ...]:
    return tuple(replace(attempt, reason=redact(attempt.reason)) for attempt in attempts)


def _why_needless(question: TaskEvidence, open_tasks: Sequence[ChecklistTask]) -> str:
    if not open_tasks:
        return "The body has no open task."
    evidence = (question.message, *question.commands, question.diff_stat, *(todo.text for todo in question.todos))
    return "" if any(text.strip() for text in evidence) else "The run left nothing to judge by."


def _by_words(
    question: TaskEvidence, tasks: Sequence[ChecklistTask], attempts: list[ProviderAttempt], clock: Clock
) -> _Found:
    began = clock.monotonic()
    positions, confidence = completed_by_words(question, tasks)
    attempts.append(ProviderAttempt(REGEX_FALLBACK, "answered", "", _milliseconds(clock, began)))
    return _Found("", confidence, tuple(tasks[position].text for position in positions))


def _by_model(
    provider: Provider, environment: Mapping[str, str], asked: TaskPrompt, attempts: list[ProviderAttempt], time: _Time
) -> _Found | None:
    """Ask one provider; a second time where its first answer was a passing refusal and there is time to wait."""
    try:
        target = endpoint(provider, environment)
    except Unavailable as why:
        attempts.append(ProviderAttempt(provider.name, "skipped", str(why)))
        return None
    for number in range(_TRIES):
        if time.left < _SHORTEST_REQUEST_SECONDS:
            attempts.append(ProviderAttempt(provider.name, "skipped", "No time is left of the deadline."))
            return None
        began = time.clock.monotonic()
        try:
            found = _ask(target, asked, min(time.left, REQUEST_SECONDS))
        except ProviderFailed as failed:
            wait = _wait(failed, time) if number + 1 < _TRIES else None
            reason = _reason(failed, will_wait=wait is not None)
            attempts.append(ProviderAttempt(provider.name, "failed", reason, _milliseconds(time.clock, began)))
            if wait is None:
                return None
            time.clock.sleep(wait)
        else:
            attempts.append(ProviderAttempt(provider.name, "answered", "", _milliseconds(time.clock, began)))
            return found
    return None


def _ask(target: Endpoint, asked: TaskPrompt, seconds: float) -> _Found:
    reply = ask(target, asked.prompt, strict_schema(TaskAnswer), seconds)
    answer = answer_in(reply.text, asked.tasks)
    completed = (asked.tasks[number - 1] for number in sorted(set(answer.completed_tasks)))
    return _Found(reply.model or target.model, answer.confidence, tuple(completed))


def answer_in(text: str, tasks: Sequence[str]) -> TaskAnswer:
    """Read a model's answer and hold it against the list that it was shown, numbered from 1.

    A task may be named by its number, or, as servers that enforce no schema let a model do, by its exact text. One
    that is not in the list makes the whole answer void: it was not given by reading the list. Raises Failed.
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
    """Put numbers in the place of texts; of tasks with the same text, one after the other."""
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


def _wait(failed: ProviderFailed, time: _Time) -> float | None:
    """Return how long to wait before the second try; None for no second try."""
    wait = failed.retry_after
    fits = wait is not None and wait <= min(LONGEST_WAIT_SECONDS, time.left - _SHORTEST_REQUEST_SECONDS)
    return wait if fits else None


def _reason(failed: ProviderFailed, *, will_wait: bool) -> str:
    if will_wait and failed.retry_after is not None:
        return f"{failed.reason} Tried again after {failed.retry_after:.3g} s."
    return failed.reason


def _milliseconds(clock: Clock, began: float) -> int:
    return round((clock.monotonic() - began) * 1000)
