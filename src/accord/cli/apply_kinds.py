"""How each kind of result is applied: its options on the command line, and the function that carries it out."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.kinds import kind_for
from accord.cli.sources import Lines, together
from accord.kernel.documents import read_object
from accord.kernel.errors import BrokenContract, WrongUsage
from accord.kernel.findings import with_lines
from accord.kernel.shapes import read_shape
from accord.results.kinds import IMPLEMENTOR, PLANNER, REVIEWER
from accord.results.models import PlannerResult
from accord.results.planner.rules import Plan, item_number, read_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from accord.cli.sources import Way
    from accord.kernel.documents import Document
    from accord.kernel.findings import Finding
    from accord.results.models import ImplementorResult, ReviewerResult
    from accord.results.receipts import Receipt
    from accord.results.setting import Setting

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class Choices:
    """What the user chose for this run, beyond the result itself."""

    work_item: str | None
    pull: str | None
    commit: str
    base: str
    checkout: Path
    author: str
    co_author: tuple[str, ...]
    commit_type: str
    protect: tuple[str, ...]


kind_options = together(
    click.option("--work-item", metavar="N", help="The work item that an implementor worked on."),
    click.option("--pull", metavar="N", help="The pull request that a reviewer read."),
    click.option("--commit", default="", metavar="SHA", help="The commit that a reviewer read; else the head."),
    click.option("--base", default="", metavar="BRANCH", help="What to open the pull request against."),
    click.option(
        "--checkout",
        type=click.Path(path_type=Path),
        default=Path(),
        help="A checkout whose objects need not be fetched again; it is only read.",
    ),
    click.option("--author", default="", metavar="'NAME <MAIL>'", help="Author of the commit."),
    click.option("--co-author", multiple=True, type=Lines(), metavar="'NAME <MAIL>'", help="Co-author of the commit."),
    click.option("--commit-type", default="feat", show_default=True, help="Prefix of the commit's subject."),
    click.option(
        "--protect",
        multiple=True,
        type=Lines(),
        metavar="PATTERN",
        help="One more protected path, as in .gitignore.",
    ),
)
"""The options of ``accord apply`` that only some kinds of results need."""


@dataclass(frozen=True)
class Subject:
    """What is to be applied: its kind, its model (of a planner's result the plan), and what checking it found.

    ``document`` is None when there is none in what was read, and ``model`` when it does not have the kind's shape.
    """

    kind: str
    model: Any
    findings: Sequence[Finding]
    document: Document | None

    def placed(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Say of findings where in the file they are."""
        return with_lines(findings, self.document.lines) if self.document and findings else findings


def read_subject(raw: bytes, only: str | None = None) -> Subject:
    """Read and check a document, once: what its rules worked out is what is applied.

    ``only`` names the one kind that is accepted; without it the document says what it is.
    """
    kind, model, document = only or "unknown", None, None
    try:
        document = read_object(raw)
        found = kind_for(only, document.value)
        kind, model = found.name, read_shape(found.model, document.value)
        if isinstance(model, PlannerResult):
            model = read_plan(model)
        findings = model.findings if isinstance(model, Plan) else found.rules(model)
    except BrokenContract as broken:
        findings = list(broken.findings)
    subject = Subject(kind, model, findings, document)
    return replace(subject, findings=subject.placed(findings))


def apply_subject(subject: Subject, way: Way, setting: Setting, choices: Choices) -> Receipt:
    """Apply a checked document. Raises WrongUsage for a kind that cannot be applied, or a missing option."""
    if subject.kind not in _APPLIERS:
        message = f"A document of the kind {subject.kind} is checked, not applied."
        raise WrongUsage(message, mend="Apply an agent's result.")
    receipt = _APPLIERS[subject.kind](subject.model, way, setting, choices)
    return replace(receipt, findings=subject.placed(receipt.findings))


def _planner(plan: Plan, way: Way, setting: Setting, choices: Choices) -> Receipt:
    from accord.results.planner.run import apply_plan

    return apply_plan(way.github, plan, setting)


def _implementor(result: ImplementorResult, way: Way, setting: Setting, choices: Choices) -> Receipt:
    from accord.kernel.branches import DEFAULT_AUTHOR, check_author
    from accord.kernel.path_patterns import path_patterns
    from accord.results.implementor.facts import Implementation
    from accord.results.implementor.run import apply_implementation

    for name in filter(None, (choices.author, *choices.co_author)):
        check_author(name)
    path_patterns(choices.protect)
    work = Implementation(
        _number(choices.work_item, "--work-item"),
        way.remote(setting.clock),
        choices.base,
        choices.checkout,
        choices.author or DEFAULT_AUTHOR,
        choices.co_author,
        choices.commit_type,
        choices.protect,
    )
    return apply_implementation(way.github, result, work, setting)


def _reviewer(result: ReviewerResult, way: Way, setting: Setting, choices: Choices) -> Receipt:
    from accord.results.reviewer.facts import Reviewed
    from accord.results.reviewer.run import apply_review

    commit = choices.commit.strip().lower()
    if commit and not _COMMIT.fullmatch(commit):
        raise WrongUsage(f'"{commit[:80]}" is no full SHA of a commit.', mend="Pass --commit with all its digits.")
    work_item = _number(choices.work_item, "--work-item") if choices.work_item else None
    reviewed = Reviewed(_number(choices.pull, "--pull"), work_item, commit)
    return apply_review(way.github, result, reviewed, setting)


def _number(text: str | None, option: str) -> int:
    number = item_number(text or "")
    if number is None:
        message = f'"{text[:80]}" is no number for {option}.' if text else f"This result needs {option}."
        raise WrongUsage(message, mend=f"Pass {option} 42.")
    return number


_APPLIERS: Mapping[str, Callable[[Any, Way, Setting, Choices], Receipt]] = {
    PLANNER.name: _planner,
    IMPLEMENTOR.name: _implementor,
    REVIEWER.name: _reviewer,
}

APPLICABLE = tuple(sorted(_APPLIERS))
"""The kinds of documents that can be applied."""
