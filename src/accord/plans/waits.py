"""Ids and issues that a text of a task list names, and the clauses that say what a task waits for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

_WAITS = r"(?:depends? on|after|requires|blocked by|needs(?=\s+#?(?-i:[A-Z]{1,10})-?\d))\b"
_CLAUSES = re.compile(r"[.;!?]\s+")
_WAITING = re.compile(
    rf"\b{_WAITS}[\s:*_`(\[]*(?P<all>(?P<ids>(?:(?:[\s*_`)\],&/.\u2013-]|\b(?:and|to|through)\b)*"
    r"(?:#?[A-Za-z]{1,10}-?\d{1,6}[a-z]?|#\d{1,18})\b)*)[^(:]*)",
    re.IGNORECASE,
)
_NEXT_WORD = re.compile(r"(?:-|[\s*_`.&/'\"\u2019]*)[^\W_]")
_NEGATION = re.compile(r"\b(?:no|not|never)\b|n['\u2019]t\b", re.IGNORECASE)
_OF_TASK = re.compile(
    r"(?:.*[,:])?[\s*_`]*(?:(?:this|it)(?: task)?|[A-Za-z]{1,10}-?\d{1,6}[a-z]?)?", re.IGNORECASE | re.DOTALL
)
"""The words before the verb of a clause about the task itself: none, a pronoun, or its id."""


def _is_about_task(before: str, hit: re.Match[str]) -> bool:
    begins = hit[0][0].isupper() or ":" in hit[0][: hit.start("all") - hit.start()]  # a line, or a label
    return bool(_OF_TASK.fullmatch(before)) or (begins and not _NEGATION.search(before))


def waited_for(texts: Iterable[str], own: str, known: frozenset[str]) -> Iterator[str]:
    """Yield what the task ``own`` waits for by the sentences about it: ids and first words of ``known`` tasks.

    A clause about it begins with the verb, a pronoun or its id, and ends with them; a label with a colon may stand
    anywhere. A number counts where it is all that a sentence says, and so does the task itself.
    """
    for sentence in chain.from_iterable(map(_CLAUSES.split, texts)):
        hit = _WAITING.search(sentence)
        before = sentence[: hit.start()].strip("*_` ") if hit else ""
        if hit and {*references_in([before])} <= {own} and _is_about_task(before, hit):
            is_all = not before and not sentence[hit.end("ids") :].strip("*_`)].- ")
            named = () if _NEXT_WORD.match(sentence, hit.end("ids")) else references_in([hit["ids"]])
            names = [name for name in named if is_all or name != own]
            is_known = any(name in known or (is_all and name.startswith("#")) for name in names)
            yield from names if is_known else ()
            yield from (part for part in hit["all"].split(",") if slug_of(part) in known)


_REFERENCE = re.compile(r"#[1-9][0-9]{0,17}\b|\b[A-Za-z]{1,10}-?\d{1,6}[a-z]?\b")
_RANGE = re.compile(r"\b([A-Za-z]{1,10}-?)(\d{1,6})\s*(?:-|\u2013|\u2014|to|through|\.\.)\s*(?:\1)?(\d{1,6})\b")
_JOINTS = re.compile(r"(?:[\W_]|\band\b)*")
_MOST_OF_RANGE = 200
_DIGITS = "0123456789"


def references_in(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the ids and issues that texts name, such as T012, WP03, ``T001-T004`` and #12, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(_REFERENCE.findall(_RANGE.sub(_range_ids, text)) for text in texts)))


def is_like(name: str, known: frozenset[str]) -> bool:
    """Return whether a name is that of an issue, or has the letters of a known task's id."""
    return name.startswith("#") or name in known or name.rstrip(_DIGITS) in _letters_of(known)


@lru_cache(maxsize=2)
def _letters_of(known: frozenset[str]) -> frozenset[str]:
    return frozenset(each.rstrip(_DIGITS) for each in known)


def _range_ids(span: re.Match[str]) -> str:
    first, last, width = int(span[2]), int(span[3]), len(span[2])
    is_range = first < last <= first + _MOST_OF_RANGE and len(span[3]) >= width
    return " ".join(f"{span[1]}{number:0{width}}" for number in range(first, last + 1)) if is_range else span[0]


def names_only(text: str) -> bool:
    """Return whether a text has no words but ids, issues and "and"."""
    return _JOINTS.fullmatch(_REFERENCE.sub("", _RANGE.sub("", text))) is not None


SLUG_WORDS = re.compile(r"[a-z0-9]+")
MOST_SLUG_WORDS = 6


def slug_of(text: str) -> str:
    """Return the first words of a text, as the id of a task that states none."""
    words = SLUG_WORDS.findall(text.casefold())
    return "-".join(words[:MOST_SLUG_WORDS]) or "task"
