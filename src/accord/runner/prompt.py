"""The prompt of a run: the prompt file, facts of the run, the workflow's appendix and untrusted data.

Source: runner output contract, "Required Inputs" (``prompt_file``, ``appendix``, ``iteration``). The path comes from a
workflow and the file from an untrusted checkout: neither may lead out of the workspace.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from accord.core.errors import WrongUsage
from accord.core.suggest import did_you_mean
from accord.git.trusted_files import TrustedFiles
from accord.runner.models import AgentNotStarted
from accord.text.hidden import strip_hidden
from accord.text.untrusted import data_section, visible_text

SHIPPED = Path(__file__).parent / "prompts"
"""Prompts for the loops and the kit's workflows, named by mode."""

REPOSITORY_PROMPTS = Path(".github/prompts")
"""A repository's own prompts, as ``MODE.md``."""

MOST_BYTES = 1024 * 1024
"""Some 250,000 tokens: a longer file is not a prompt."""

MOST_ARGUMENT_BYTES = 128 * 1024 - 1
"""Linux limits a word of a command line to 128 KiB with the NUL at its end (MAX_ARG_STRLEN)."""

_MOST_CONTEXT_CHARS = 200


def prompt_for(path: Path | None, mode: str, workspace: Path, files: TrustedFiles) -> str:
    """Read the prompt file, else the repository's prompt of the mode, else the shipped one. Raises AgentNotStarted.

    A relative path is one of the current directory, or else of the workspace.
    """
    root, own = workspace.resolve(), path or REPOSITORY_PROMPTS / f"{mode}.md"
    place = Path.cwd() / own if path and path.is_file() else root / own
    shipped = "" if path else shipped_prompt(mode)
    if not place.resolve().is_relative_to(root):
        raise _invalid(f"The prompt file {own} is outside the workspace {root}.", "Move it into the repository.")
    try:
        raw = files.read(place, is_named=path is not None)
    except WrongUsage as problem:
        raise _invalid(problem.message, problem.hint) from None
    except OSError as error:
        raise _invalid(f"The prompt file {own} cannot be read: {error.strerror}.", "Make it readable.") from None
    if raw is None and path:
        raise _invalid(f"Prompt file {path} not found.", "Pass a file of the workspace, and check it out first.")
    if raw is None:
        return shipped
    if len(raw) > MOST_BYTES:
        raise _invalid(f"The prompt file {own} is larger than {MOST_BYTES // 1024} KiB.", "Shorten it.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _invalid(f"Line {line} of the prompt file {own} is not UTF-8.", "Save it as UTF-8.") from None
    if not text.strip():
        raise _invalid(f"The prompt file {own} is empty.", "Describe the task in it.")
    return text


def shipped_prompt(mode: str) -> str:
    """Return the prompt that comes with accord for a mode. Raises AgentNotStarted for an unknown mode."""
    known = {path.stem: path for path in SHIPPED.glob("*.md")}
    if mode not in known:
        message = f"No prompt for the mode `{mode}`." if mode else "No prompt given."
        raise _invalid(message, f"{did_you_mean(mode, known)} Pass `--prompt-file FILE`.".strip())
    return known[mode].read_text(encoding="utf-8")


def read_data(paths: Sequence[Path]) -> dict[str, str]:
    """Read untrusted texts, by the names of their files. Raises AgentNotStarted, ``prompt-invalid``."""
    texts = {}
    for path in paths:
        try:
            with path.open("rb") as file:
                texts[_one_line(path.name)] = file.read(2 * MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise _invalid(f"Cannot read {path}: {error.strerror}.", "Pass an existing file as `--data`.") from None
    return texts


def assemble(prompt: str, appendix: str, context: Mapping[str, str], data: Mapping[str, str] | None = None) -> str:
    """Assemble the prompt; hidden characters are removed from the parts that users may have written.

    ``context`` has facts of the run by name, such as ``Iteration``; empty ones are left out. ``data`` has untrusted
    texts by name.
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
        raise _invalid(f"The prompt with its additions is larger than {2 * MOST_BYTES // 1024} KiB.", "Shorten it.")
    return whole


def check_argument(text: str, what: str) -> str:
    """Return the text if it fits into a word of a command line. Raises AgentNotStarted."""
    size = len(os.fsencode(text))
    if size > MOST_ARGUMENT_BYTES:
        hint = "Shorten it, or set `prompt: stdin` or `prompt: file` in the agent's registry entry."
        raise _invalid(
            f"The {what} has {size} bytes; the limit of a command line argument is {MOST_ARGUMENT_BYTES}.", hint
        )
    return text


def _one_line(value: str) -> str:
    return " ".join(strip_hidden(value).split())[:_MOST_CONTEXT_CHARS]


def _invalid(message: str, hint: str) -> AgentNotStarted:
    return AgentNotStarted("prompt-invalid", message, hint=hint)
