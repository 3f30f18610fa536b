"""Skills for agents in an editor, made from the prompts and schemas of a run, and settings of their stop hooks.

With a stop hook an agent checks its result files before it may end: it gets one JSON object on stdin, and exit code 2
keeps the agent working, with stderr as the reason. ``stop_hook_active`` says that it is working on for that reason.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import accord
from accord.agents.registry import shipped_registry

MOST_REFUSALS = 3
"""Refusals in a row, after which the agent may end: one for the shape, one for the rules, one more."""

AGENTS_FILE = "AGENTS.md"
"""The file that most agents read first. It is the user's, apart from accord's block."""

FOLDERS = tuple(dict.fromkeys(agent.skills for agent in shipped_registry().agents.values() if agent.skills))
"""The folders in which agents look for skills."""

_PROMPTS = Path(accord.__file__).parent / "runner/prompts"
_BEGIN, _END = "<!-- accord -->", "<!-- /accord -->"


class _Skill(NamedTuple):
    """A skill's prompt, the kind of its result, the cases it is for, and what differs from a run."""

    mode: str
    kind: str
    use: str
    facts: str


_SKILLS = (
    _Skill(
        "plan",
        "planner-result",
        "Plan work items from a request or a specification. Use it to split work into tasks for agents.",
        "- `accord items list --format json` lists the existing work items.",
    ),
    _Skill(
        "implement",
        "implementor-result",
        "Implement a work item. Use it when a work item, such as #12, is to be done.",
        "- `accord items show 12` prints a work item.\n"
        "- Write `patch` as null. Then `accord patch --base REF --into implementor-result.json` fills it in.\n"
        "  REF is the branch that the work started from.",
    ),
    _Skill(
        "review",
        "reviewer-result",
        "Review a change. Use it when a pull request or a branch of a work item is to be reviewed.",
        "- The change is in the work tree itself, not in a folder `revision`. `git diff BASE...HEAD` prints the diff.\n"
        "- `accord items show 12` prints its work item. Ask for the number if nothing names it.",
    ),
)


RESULT_FILES = tuple(f"{skill.kind}.json" for skill in _SKILLS)
"""The files into which skills write results."""


def skill_files() -> dict[str, str]:
    """Return the skills, and the block for ``AGENTS.md``, by path."""
    texts = {f"accord-{skill.mode}/SKILL.md": _skill_text(skill) for skill in _SKILLS}
    files = {f"{folder}/{path}": text for folder in FOLDERS for path, text in texts.items()}
    rows = "\n".join(f"- `accord-{skill.mode}`: {skill.use}" for skill in _SKILLS)
    block = f"""\
{_BEGIN}
## Results for accord

accord checks the results of agents and applies them to GitHub. Its skills are in `{FOLDERS[0]}`:

{rows}

Each writes a result file. Before you end, run `accord check FILE` and correct the file until the check passes.
{_END}
"""
    return {**files, AGENTS_FILE: block}


def _skill_text(skill: _Skill) -> str:
    from accord.core.kinds import KINDS
    from accord.core.schemas import json_schema

    file = f"{skill.kind}.json"
    description = json.dumps(f"{skill.use} Writes {file}, which accord checks and applies.")
    prompt = (_PROMPTS / f"{skill.mode}.md").read_text(encoding="utf-8")
    schema = json.dumps(json_schema(KINDS[skill.kind].model, skill.kind), indent=1, ensure_ascii=False)
    return f"""\
---
name: accord-{skill.mode}
description: {description}
---

{prompt.rstrip()}

## In an editor

This is how a workflow asks for the work. In an editor, these points differ:

{skill.facts}
- Write the result to `{file}` at the top of the repository, and do not commit it.
- Run `accord check {file} --kind {skill.kind}`. It says what is wrong, where, and how to correct it.
  Correct the file until the check passes.
- Then stop. The user looks at `accord apply {file} --dry-run` and applies the result.

## Schema of the result

```json
{schema}
```
"""


def has_broken_block(text: str) -> bool:
    """Return whether a text has accord's marks otherwise than as one pair."""
    marks = text.count(_BEGIN), text.count(_END)
    return marks != (0, 0) and (marks != (1, 1) or text.index(_END) < text.index(_BEGIN))


def with_block(text: str, block: str | None) -> str | None:
    """Return a text with this block in place of its own or at the end, or without any; None if nothing is left."""
    parts = _parts(text)
    if parts is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return text if block is None else f"{text}{gap}{block}"
    before, _, after = parts
    if block is not None:
        return f"{before}{block}{after}"
    if before.endswith("\n\n") and not after:
        before = before[:-1]
    return before + after if (before + after).strip() else None


def block_in(text: str) -> str | None:
    """Return accord's block in a text without broken marks, ending with LF; None without one."""
    parts = _parts(text)
    return parts and parts[1]


def _parts(text: str) -> tuple[str, str, str] | None:
    before, begin, rest = text.partition(_BEGIN)
    inner, end, after = rest.partition(_END)
    return (before, f"{begin}{inner}{end}\n", after.removeprefix("\n")) if end else None


_SECONDS = 60
_HOOKS = {name: agent.stop_hook for name, agent in shipped_registry().agents.items() if agent.stop_hook}
HOOKED_AGENTS = tuple(sorted(_HOOKS))


class HookSettings(NamedTuple):
    """The settings of an agent's hook, the file that they belong in, and the user's next step."""

    file: str
    settings: dict[str, Any]
    next_step: str


def hook_settings(agent: str, files: Sequence[str]) -> HookSettings:
    """Return the settings for an agent that check these files; without any, those of the skills."""
    hook = _HOOKS[agent]
    command = shlex.join(["accord", "hooks", "--run", *(["--", *files] if files else [])])
    entry = {**hook.entry, "type": "command", "command": command, "timeout": _SECONDS * hook.seconds}
    return HookSettings(hook.file, {"hooks": {hook.event: [{"hooks": [entry]}]}}, hook.next_step)
