"""Faults of a text as a whole: a placeholder for another text, and line ends that were escaped twice."""

from __future__ import annotations

import re
from functools import cache

from accord.core.findings import Finding

_TEMPLATES = """
one sentence: what this task achieves
test: path/to/test.ts passes
anything the agent needs beyond the spec
what the agent must not do
what is ambiguous, contradictory, or missing in the spec
option a — description and trade-offs
option b — description and trade-offs
which option and why
tasks that cannot be created until this is resolved
section(s): the relevant sections
an observable result of the task
test: path/to/its/test passes
information for the implementor beyond the specification
limits for the implementor
the ambiguous, contradictory or missing part
which one, and why
brief description of what was implemented and tested
what was done, or why it couldn't be done
what is blocking progress
the obstacle
file path, section name, and relevant quote
file, section and quote; for the three types of spec
at least two options with trade-offs
what happens if the blocker is not resolved
the consequence if nothing changes
which validation step failed
what the agent tried
why the failure is outside its scope
which validation step failed, what the agent tried, and why the failure is outside its scope
the failed step
your attempts
why the cause is outside
high-level overview of the review result
provides a high-level overview of the review result
confirms approval and includes any warnings for visibility
one or more checklist steps have findings
describes the findings
confirms all checks passed and lists any warnings
for approvals, it confirms all checks passed and lists any warnings
summarizes the findings
for rejections, it summarizes the findings
the specific file, line, or criterion with the issue
reference to the spec, convention, or criterion that is violated
concrete, actionable guidance for resolving the issue
todo
tbd
tba
fixme
"""
"""Texts of the contracts' templates and of accord's prompts, which an author replaces by words of their own."""

_CODE = re.compile(r"`[^`]*`")
_ESCAPED_BREAK = re.compile(r"\\n(?:\\n|[-*#>] |#{2,6} |\d+[.)] |[A-Z][\w ]{0,30}:)")
"""A line end as two characters, and the start of a line that has a place of its own."""

_WORDS = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SUBJECTS = ("the summary ", "it ", "a ", "an ", "the ")
"""Words before a template's text that do not change it: an article, or the subject of its sentence."""

_PLACEHOLDER = re.compile(r"[\W_]*|<[^<>]*>|\{+[^{}]*\}+|(?:todo|tbd|tba|fixme|text)\W*", re.IGNORECASE)


def is_placeholder(text: str) -> bool:
    """Tell whether a text is blank or a place for another one, such as ``...``, ``<summary>`` or ``TODO``."""
    return bool(_PLACEHOLDER.fullmatch(text.strip()))


_NOTHING = re.compile(
    r"\W*|[^\w<]*(?:(?:none|nothing|n/?a|tbd|todo|unknown|not applicable)[^\w<]*|(?:<[A-Za-z][^<>\n]{0,80}>[^\w<]*)+)?",
    re.IGNORECASE,
)


def is_nothing(shown: str) -> bool:
    """Tell whether what a reader sees of a text is a placeholder, a word such as none, or the text of a template."""
    return bool(_NOTHING.fullmatch(shown)) or is_template(shown)


_MIXED = re.compile(r"[A-Za-z\xc0-\u024f]\d{0,9}[\u0370-\u058f]|[\u0370-\u058f]\d{0,9}[A-Za-z\xc0-\u024f]")
"""A word with letters of Latin and of Greek, Cyrillic or Armenian, some of which look alike."""


def actor_problem(actor: str) -> str:
    """Return why a text is not the name of an actor, which is one line of printable characters; empty for one."""
    if _MIXED.search(actor):
        return "The actor mixes Latin letters with other ones in a word. Pass a name of one script with `--actor`."
    if actor.isprintable():
        return "" if actor.strip() else "No actor given. Pass `--actor`."
    return "The actor has a line break or another character that is not printed. Pass a name with `--actor`."


def is_template(text: str) -> bool:
    """Tell whether a text, or each sentence of it, is of a template, whatever its case, marks and numbers are."""
    sentences, templates = _SENTENCE_END.split(text), _templates()
    return templates.issuperset(map(_normal, sentences)) or (len(sentences) > 1 and _normal(text) in templates)


@cache
def _templates() -> frozenset[str]:
    return frozenset(map(_normal, _TEMPLATES.strip().splitlines()))


def _normal(text: str) -> str:
    words = " ".join(_WORDS.findall(text.casefold()))
    return words.removeprefix(next(filter(words.startswith, _SUBJECTS), ""))


def line_end_findings(text: str, path: str) -> list[Finding]:
    r"""Find a text on one line that has ``\n`` as two characters where its lines should end; ``path`` points at it."""
    if "\n" in text.strip() or not _ESCAPED_BREAK.search(_CODE.sub("", text)):
        return []
    message = "The text has `\\n` as two characters where its lines should end, so it is one line."
    return [Finding("line-ends-escaped", message, path, hint="In JSON, escape each line end once: `\\n`, not `\\\\n`.")]
