"""The contract of a run's result: a JSON Schema, or a kind of document with all of its rules. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accord.core.documents import Document, read_object, short_name
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, Severity, has_errors, pointer
from accord.core.fixes import Fix, fix_document, read_corrected
from accord.core.frozen import Frozen
from accord.core.kinds import KINDS, kind_for
from accord.core.suggest import did_you_mean
from accord.runner.transcripts.lines import is_shallow
from accord.text.untrusted import data_section

if TYPE_CHECKING:
    from jsonschema_rs import Validator

BROKEN_RESULT = "The result breaks its contract: "
"""The beginning of each warning."""

MOST_FINDINGS = 50
"""Of a result; more do not help an agent that broke its contract so often."""

_MOST_WARNINGS = 10
_PROBLEM_CHARS = 300
_BEFORE = "You worked on this task before, and your changes are in the work tree. "
_REPAIR = (
    "Your result breaks its contract. Correct every finding below, and answer with the whole result, in the form that "
    "was asked for."
)


class ContractResult(Frozen):
    """A result, None if it breaks its contract, with the findings and the small faults that were corrected."""

    value: Any
    findings: Sequence[Finding] = ()
    fixes: Sequence[Fix] = ()

    @property
    def is_broken(self) -> bool:
        """Whether an error was found."""
        return has_errors(self.findings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The errors as warnings of a run."""
        errors = [finding for finding in self.findings if finding.severity is Severity.ERROR]
        more = len(errors) - _MOST_WARNINGS
        shown = [f"{BROKEN_RESULT}{placed_text(finding)}"[:_PROBLEM_CHARS] for finding in errors[:_MOST_WARNINGS]]
        return (*shown, f"{BROKEN_RESULT}{more} more errors.") if more > 0 else tuple(shown)


def placed_text(finding: Finding) -> str:
    """Return a finding's text with its place."""
    return f"at {finding.path}, {finding.text}" if finding.path else finding.text


def check_result(schema: Mapping[str, Any], kind: str, value: Any, message: str) -> ContractResult:
    """Check the CLI's structured value, or without one the JSON in its final message.

    ``kind`` names a kind of document, and is empty for a schema of the caller. Small faults of a document are corrected
    first. Raises WrongUsage for an unknown kind or an invalid schema.
    """
    if kind and kind not in KINDS:
        hint = f"{did_you_mean(kind, KINDS)} Run `accord schema` for the list.".strip()
        raise WrongUsage(f"Unknown kind of document `{short_name(kind)}`.", hint=hint)
    try:
        checked = _check_kind(kind, value, message) if kind else _check_schema(schema, value, message)
    except BrokenContract as broken:
        return ContractResult(None, broken.findings[:MOST_FINDINGS])
    value = None if checked.is_broken else checked.value
    return replace(checked, value=value, findings=checked.findings[:MOST_FINDINGS])


def _check_kind(name: str, value: Any, message: str) -> ContractResult:
    raw = (message if value is None else json.dumps(value)).encode("utf-8", "replace")
    document, first = read_corrected(raw, name)
    kind = kind_for(name, document.value)
    ours = {key: None for key in kind.own_keys if not isinstance(document.value.get(key), str)}
    # text around a result is refused by some kinds only
    given = Document({**document.value, **ours}, "", is_alone=document.is_alone or not kind.is_alone)
    fixed, fixes = fix_document(kind, given)
    shown = {**fixed, **dict.fromkeys(kind.own_keys)}
    findings = kind.check(Document(shown, ""))
    own = tuple(pointer(key) for key in kind.own_keys)
    return ContractResult(fixed, [finding for finding in findings if finding.path not in own], [*first, *fixes])


def _check_schema(schema: Mapping[str, Any], value: Any, message: str) -> ContractResult:
    found = []
    try:
        value = json.loads(message) if value is None else value
    except (ValueError, RecursionError):
        read = read_object(message.encode("utf-8", "replace")).value
        value = json.loads(json.dumps(read))  # the validator takes no numbers that keep their text
    try:
        if not is_shallow(value):
            raise ValueError("it nests too deeply")
        for error in validator(schema).iter_errors(value):
            text, place = error.message[:_PROBLEM_CHARS], pointer(*error.instance_path)
            found.append(Finding("schema", text, place, hint="Match the JSON Schema."))
            if len(found) == MOST_FINDINGS:
                break
    except (ValueError, RecursionError) as problem:
        text = f"The result cannot be checked: {problem}."[:_PROBLEM_CHARS]
        hint = "Nest it less deeply, and write no half of a surrogate pair (such as \\ud83d alone)."
        found.append(Finding("schema", text, hint=hint))
    return ContractResult(value, found)


def validator(schema: Mapping[str, Any]) -> Validator:
    """Return a validator that loads no references. Raises WrongUsage if this is not a JSON Schema."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=_refuse)
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise WrongUsage(
            f"The schema is not a valid JSON Schema: {reason}", hint="Correct it. External references are not loaded."
        ) from None


def _refuse(address: str) -> Any:
    raise ValueError(f"{address} is not loaded")


def repair_prompt(findings: Iterable[Finding]) -> str:
    """Ask an agent that knows its task and its result to correct the result; findings are quoted as data."""
    return f"{_REPAIR}\n\n{data_section({'findings': _finding_lines(findings)})}\n"


def second_prompt(task: str, message: str, findings: Iterable[Finding]) -> str:
    """Give the whole task again, with the result and its findings as data, to an agent that remembers nothing."""
    data = data_section({"findings": _finding_lines(findings), "your result": message})
    return f"{task.rstrip()}\n\n## Correct your result\n\n{_BEFORE}{_REPAIR}\n\n{data}\n"


def _finding_lines(findings: Iterable[Finding]) -> str:
    lines = []
    for finding in findings:
        place = f" at {finding.path}" if finding.path else ""
        lines.append(f"- {finding.severity} {finding.code}{place}: {' '.join(finding.message.split())}")
        lines += [f"  {line}" for line in finding.hint.splitlines()]
    return "\n".join(lines)
