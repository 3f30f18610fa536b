"""What the agent is asked: the prompt file, what the workflow adds to it, and where in the loop the run stands.

Source: runner output contract, "Required Inputs" (``prompt_file``, ``appendix``, ``iteration``). The file's path comes
from a workflow, and the file from a checkout that strangers may have written to: neither may lead out of the workspace.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.core.documents import read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import pointer
from accord.runner.classify import AgentNotStarted
from accord.text.hidden import strip_hidden
from accord.text.untrusted import data_section, visible_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jsonschema_rs import Validator


SHIPPED = Path(__file__).parent / "prompts"
"""Prompts for the loops and for the workflows of the kit, each by its mode."""

OWN = Path(".github/prompts")
"""Where a repository has its own prompt of a mode, as ``MODE.md``."""

MOST_BYTES = 1024 * 1024
"""Some 250,000 tokens: a longer file was not meant as a prompt."""

MOST_ARGUMENT_BYTES = 128 * 1024 - 1
"""Linux takes 128 KiB a word of a command line, with the NUL at its end (MAX_ARG_STRLEN)."""

_MOST_CONTEXT_CHARS = 200


def read_prompt(path: Path, workspace: Path) -> str:
    """Read a prompt file of the workspace. Raises NotRun, ``prompt-invalid``, with the reason."""
    root = workspace.resolve()
    real = (root / path).resolve()
    if not real.is_relative_to(root):
        raise _invalid(f"The prompt file {path} lies outside of the workspace {root}.", "Put it into the repository.")
    try:
        if not real.is_file():
            raise _invalid(f"There is no prompt file {path}.", "Name a file of the workspace, and check it out first.")
        with real.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _invalid(f"The prompt file {path} cannot be read: {error.strerror}.", "Make it readable.") from None
    if len(raw) > MOST_BYTES:
        raise _invalid(f"The prompt file {path} has more than {MOST_BYTES // 1024} KiB.", "Shorten it.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise _invalid(f"Line {line} of the prompt file {path} is not UTF-8.", "Save it as UTF-8.") from None
    if not text.strip():
        raise _invalid(f"The prompt file {path} is empty.", "Say in it what the agent is to do.")
    return text


def prompt_for(path: Path | None, mode: str, workspace: Path) -> str:
    """Read the prompt file; where none is named, the repository's own prompt of the mode, else the one that is shipped.

    Raises NotRun, ``prompt-invalid``, where there is none or it cannot be used.
    """
    own = OWN / f"{mode}.md"
    if path is not None:
        return read_prompt(path, workspace)
    shipped = shipped_prompt(mode)
    return read_prompt(own, workspace) if (workspace / own).exists() else shipped


def shipped_prompt(mode: str) -> str:
    """Return the prompt that comes with accord for what a run is for. Raises NotRun where there is none."""
    found = {path.stem: path for path in SHIPPED.glob("*.md")}.get(mode)
    if found is None:
        raise _invalid("There is no prompt file.", "Name one by --prompt-file.")
    return found.read_text(encoding="utf-8")


def read_data(paths: Sequence[Path]) -> dict[str, str]:
    """Read texts of others, by the names of their files. Raises NotRun, ``prompt-invalid``."""
    texts = {}
    for path in paths:
        try:
            with path.open("rb") as file:
                texts[_one_line(path.name)] = file.read(2 * MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise _invalid(f"The file {path} cannot be read: {error.strerror}.", "Name a file by --data.") from None
    return texts


def assemble(prompt: str, appendix: str, context: Mapping[str, str], data: Mapping[str, str] | None = None) -> str:
    """Put the prompt together. What users may have written loses what only a machine sees.

    ``context`` are facts of the run by name, such as ``Iteration``; empty ones are left out. ``data`` are texts of
    others by name.
    """
    facts = [f"- {name}: {_one_line(value)}" for name, value in context.items() if value.strip()]
    parts = [prompt.rstrip()]
    if facts:
        parts.append("## This run\n\n" + "\n".join(facts))
    if appendix.strip():
        parts.append("## Added by the workflow\n\n" + visible_text(appendix).strip())
    if data:
        parts.append(data_section(data))
    whole = "\n\n".join(parts).replace("\0", "") + "\n"
    if len(whole.encode("utf-8", "replace")) > 2 * MOST_BYTES:
        raise _invalid(f"The prompt has more than {2 * MOST_BYTES // 1024} KiB with what is added.", "Shorten it.")
    return whole


def as_argument(text: str, what: str) -> str:
    """Check that a text fits into a word of a command line. Raises NotRun."""
    size = len(os.fsencode(text))
    if size > MOST_ARGUMENT_BYTES:
        hint = "Shorten it, or let the agent's entry of the registry take it on its input or as a file."
        raise _invalid(
            f"The {what} has {size} bytes; a word of a command line has at most {MOST_ARGUMENT_BYTES}.", hint
        )
    return text


def _one_line(value: str) -> str:
    return " ".join(strip_hidden(value).split())[:_MOST_CONTEXT_CHARS]


def _invalid(message: str, hint: str) -> AgentNotStarted:
    return AgentNotStarted("prompt-invalid", message, hint=hint)


UNFIT = "The answer does not fit its schema: "
"""How each problem begins."""

_MOST_PROBLEMS = 10
_PROBLEM_CHARS = 200


@dataclass(frozen=True)
class StructuredResult:
    """The result as compact JSON, empty when there is none that fits, and then why."""

    text: str
    problems: tuple[str, ...] = ()


def structured_result(schema: Mapping[str, Any], value: Any, message: str) -> StructuredResult:
    """Take the value that the CLI returned, else the one JSON document of its final message, and validate it."""
    if value is None:
        try:
            value = _document(message)
        except BrokenContract as broken:
            return StructuredResult("", (f"{UNFIT}the final message holds none. {broken.message}"[:_PROBLEM_CHARS],))
    errors = []
    for error in validator(schema).iter_errors(value):
        place = pointer(*error.instance_path)
        errors.append(f"{UNFIT}{f'at {place}, ' if place else ''}{error.message}"[:_PROBLEM_CHARS])
        if len(errors) == _MOST_PROBLEMS:
            break
    return StructuredResult("" if errors else json.dumps(value, ensure_ascii=False), tuple(errors))


def validator(schema: Mapping[str, Any]) -> Validator:
    """Make a validator, which loads nothing from anywhere. Raises WrongUsage when this is no JSON Schema."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=_refuse)
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise WrongUsage(f"The schema is no JSON Schema: {reason}", hint="Correct it, without references.") from None


def _refuse(address: str) -> Any:
    raise ValueError(f"{address} is not loaded")


def _document(message: str) -> Any:
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return read_object(message.encode("utf-8", "replace")).value
