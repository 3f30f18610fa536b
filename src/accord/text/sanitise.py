"""Make untrusted text safe to post under a user's name.

A text may inform; it may not act. So mentions, closing keywords, bot commands, HTML beyond the plain, hidden
characters, markers like ours, links that lead elsewhere than they say, and secrets are taken out or broken, in a way
that people do not notice. Code stays byte for byte, except secrets and escape sequences.

A round changes what it finds; rounds follow until one finds nothing, for a change may uncover something (a comment
that held two halves of a name apart). So sanitising a result again changes nothing. A text
that has not settled after a few rounds, or cannot be parsed within bounds, was made to confuse, and is shown as code.

An open fence or tag is closed, so that text that accord adds below stays out of it.

Each thing that is counted adds at most four characters, an image eight, a secret 36; a fence that the text left open
is closed with one of its length, a tag with one three characters longer, and a text shown as code gets two fences,
each at most half as long as the text and three more.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from accord.core.frozen import Frozen
from accord.text.edits import IMITATION, page_edits
from accord.text.hidden import GUARD, hidden_edits, invisible_runs, strip_hidden, without_escapes
from accord.text.html import closing_tags
from accord.text.inlines import read_inlines
from accord.text.markdown import cell, fence_for, in_fence, unfenced_text
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor, Secret, merge_overlaps, without_secrets
from accord.text.regions import WORDS, parse_markdown
from accord.text.views import Edit, View
from accord.text.words import (
    address_edits,
    chosen_words,
    command_edits,
    keyword_edits,
    linked_addresses,
    mention_edits,
    reference_edits,
    skip_edits,
)

KINDS = (
    "mentions", "closing-keywords", "commands", "html", "comments", "hidden", "links", "images", "markers", "secrets",
    "fences", "tags", "unreadable",
)  # fmt: skip
"""The kinds of changes, in the order of reports.

``fences`` and ``tags`` were left open and are closed; ``unreadable`` is a text shown whole as code.
"""

_ROUNDS = 8
_LONG = 16_384
_ROUNDS_OF_LONG = 4
"""Few, as a long text can be made to need a second for all eight: hidden characters, words, tags, and the last look."""

_UNSENDABLE = re.compile("[\x00\ud800-\udfff]+")
_NOISE = re.compile(r"[*~`]|\\(?=[!-/:-@\[-`{-~])|</?[A-Za-z!][^<>]{0,200}>")
_CHARACTER = re.compile(r"&(?:#[0-9]{2,8}|#[xX][0-9a-fA-F]{2,8}|lowbar|hyphen|period);?")


class Sanitised(Frozen):
    """A text that may be posted, and how often what was changed, by kind; a kind that did not occur is not there."""

    text: str
    counts: Mapping[str, int]


def sanitise(text: str, *, secrets: Redactor, policy: PostingPolicy) -> Sanitised:
    """Make Markdown fit to be posted as a body or a comment."""
    return _repeat_rounds(text, secrets, policy, _round, _as_code)


def sanitise_plain(text: str, *, secrets: Redactor, policy: PostingPolicy) -> Sanitised:
    """Make a text fit to be posted where Markdown means nothing, so that no backtick protects: a commit message."""
    return _repeat_rounds(text, secrets, policy, _plain_round, _as_words)


def sanitise_line(text: str, *, secrets: Redactor, policy: PostingPolicy) -> Sanitised:
    """Make a title or another one-line text fit to be posted; blanks are drawn together.

    Titles are not Markdown, except for backticks, and end up in commit messages.
    """
    line = _one_line(text)
    return _repeat_rounds(line, secrets, policy, lambda text, *more: _plain_round(_one_line(text), *more), _as_words)


def sanitise_cell(text: str, *, secrets: Redactor, policy: PostingPolicy) -> str:
    """Make a text fit to be posted as the plain content of a table's cell or of a line of Markdown."""
    return cell(sanitise_line(text, secrets=secrets, policy=policy).text)


def _repeat_rounds(
    text: str,
    secrets: Redactor,
    policy: PostingPolicy,
    once: Callable[[str, Redactor, PostingPolicy], tuple[str, Counter[str]]],
    give_up: Callable[[str], str],
) -> Sanitised:
    given = text
    text, unsendable = _UNSENDABLE.subn("", text)
    counts = Counter(hidden=unsendable)
    if policy.words:
        text = chosen_words(policy.words).sub(lambda hit: hit[0][0], text)
    for _ in range(_ROUNDS if len(text) <= _LONG else _ROUNDS_OF_LONG):
        changed, found = once(text, secrets, policy)
        if changed == text:
            break
        text = changed
        counts += found
    else:
        text = give_up(text)
        counts["unreadable"] += 1
    if policy.words:
        broken = chosen_words(policy.words).sub(lambda hit: hit[0][0] + GUARD, text)
        counts["commands"] += broken.count(GUARD) - text.count(GUARD)
        if (text := broken) == given:
            return Sanitised(text, {})
    return Sanitised(text, {kind: counts[kind] for kind in KINDS if counts[kind]})


def _round(text: str, secrets: Redactor, policy: PostingPolicy) -> tuple[str, Counter[str]]:
    text, taken = _cleaned_text(text, secrets)
    if unfenced_text(text) != text:  # it is code already
        return text, taken
    page = parse_markdown(text)
    if not page.is_readable:
        return _as_code(text), taken + Counter(unreadable=1)
    text, counts = _apply_edits(text, page_edits(page, policy))
    if page.open_fence:
        text += ("" if text.endswith("\n") else "\n") + page.open_fence
    every = (each.content[span.start : span.end] for each in page.prose for span in each.parts("html"))
    tags = closing_tags(every) if text == page.text else []
    if tags:
        text = "\n".join([text.rstrip("\n"), "", *tags])
    return text, counts + taken + Counter(fences=bool(page.open_fence), tags=len(tags))


def _plain_round(text: str, secrets: Redactor, policy: PostingPolicy) -> tuple[str, Counter[str]]:
    text, taken = _cleaned_text(text, secrets)
    if WORDS.fullmatch(text):
        return text, taken
    view, addresses = View(text, ()), linked_addresses(text, read_inlines(text, {}))
    edits = [
        *hidden_edits(text),
        *address_edits(text, (), policy),
        *mention_edits(text, view, addresses),
        *reference_edits(text, view, addresses, policy),
        *(edit for _, edit in keyword_edits([(text, view)])),
        *command_edits(text),
        *skip_edits(text),
        *(Edit(hit.start(), hit.start() + 2, "<! ", "markers") for hit in IMITATION.finditer(text)),
    ]
    text, counts = _apply_edits(text, edits)
    return text, counts + taken


def _apply_edits(text: str, edits: Iterable[Edit]) -> tuple[str, Counter[str]]:
    """Carry edits out; of those that overlap, the first, and the next round sees to the rest."""
    view = View(text, sorted(edits))
    return view.text, Counter(edit.kind for edit in view.done)


def _as_code(text: str) -> str:
    return in_fence(strip_hidden(text))


def _as_words(text: str) -> str:
    """Keep nothing but letters, digits, blanks and the plainest of marks."""
    return re.sub(r"[^\w\s.,-]", "", text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cleaned_text(text: str, secrets: Redactor) -> tuple[str, Counter[str]]:
    """Take out what must not be there even as code: escape sequences, and then the secrets that they may have split."""
    text, escapes = without_escapes(text)
    found = _secrets_in(text, secrets)
    return without_secrets(found, text), Counter(hidden=escapes, secrets=len(found))


def _secrets_in(text: str, secrets: Redactor) -> list[Secret]:
    """Find what is a secret as it stands, and what is one to a reader: without hidden characters, without markup."""
    found = secrets.find(text)
    unseen = [Edit(start, end) for start, end in invisible_runs(text)]
    markup = [Edit(*hit.span()) for hit in _NOISE.finditer(text)]
    markup += (Edit(*hit.span(), html.unescape(hit[0])) for hit in _CHARACTER.finditer(text))
    for changes in (unseen, [*unseen, *markup]):
        if changes:
            found = _joined_secrets(found, secrets, View(text, changes))
    return found


def _joined_secrets(found: Sequence[Secret], secrets: Redactor, view: View) -> list[Secret]:
    starts = [secret.start for secret in found]
    more = []
    for seen in secrets.find(view.text):
        secret = Secret(*view.span(seen.start, seen.end), seen.kind)
        i = bisect_right(starts, secret.end - 1) - 1
        if i < 0 or found[i].end <= secret.start:
            more.append(secret)
    return merge_overlaps([*found, *more])


_NO_SECRETS, _ANY_HOST = Redactor(), PostingPolicy(("*",))
_FENCE_LINES = 8
"""The length of two fences of three, with their line ends."""


def cut(text: str, space: int) -> tuple[str, str]:
    """Cut a sanitised text so that the head fits into ``space`` characters, at least 20: after a paragraph or a line.

    Head and tail make up the text again, without the fences if it is shown as code.
    """
    code = parse_markdown(text).code
    for end in ("\n\n", "\n", " "):
        position = _last(text, end, space, code)
        if text[:position].strip() and _is_fit(text[:position]) and _is_fit(text[position:]):
            return text[:position], text[position:]
    code_text = unfenced_text(text)
    overhead = 2 * (len(fence_for(code_text)) + 1)
    size = space - overhead if 2 * overhead <= space else (space - _FENCE_LINES) // 2
    position = code_text.rfind("\n", size // 2, size) + 1 or size
    return in_fence(code_text[:position]), in_fence(code_text[position:])


def _last(text: str, end: str, space: int, code: Sequence[tuple[int, int]]) -> int:
    """Return where the last of these ends outside of code, in the second half of the space; 0 if none does."""
    limit = space
    while (position := text.rfind(end, space // 2, limit)) >= 0:
        inside = [start for start, stop in code if start < position + len(end) < stop]
        if not inside:
            return position + len(end)
        limit = inside[0]
    return 0


def _is_fit(text: str) -> bool:
    """Return whether a part is harmless. Guards in words of the repository look hidden here."""
    return sanitise(text, secrets=_NO_SECRETS, policy=_ANY_HOST).counts.keys() <= {"hidden"}
