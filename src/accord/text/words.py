"""Words that do something when GitHub or a bot reads them: mentions, closing keywords, commands, bare addresses.

Where GitHub looks: the mention filter runs over the text nodes of the rendered HTML, outside of ``pre``, ``code`` and
``a`` (html-pipeline, ``MentionFilter``: ``@`` that no letter or digit precedes, a letter or digit directly after it).
A backslash or an entity is gone by then, so neither helps: the run of characters itself must be broken, by ``GUARD``.
Keywords are those of GitHub Docs, "Linking a pull request to an issue"; the same words count in a commit message,
which a squash makes of a pull request's title and body. Bots read the raw text, line by line.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html.entities import html5
from itertools import accumulate

from accord.text.addresses import is_lookalike
from accord.text.hidden import GUARD, is_hidden
from accord.text.inlines import ENTITY, ESCAPE, InlineSpan, decoded_entity
from accord.text.posting import PostingPolicy
from accord.text.views import Cursor, Edit, Hole, View

CODE = "\x00"
"""Replaces code, an address or a comment in a view."""

TAG = "\x01"
"""Replaces an HTML tag in a view. A closing tag without an opening one vanishes, and the text around it joins."""

ISSUE_LINK = "\x02"
"""Replaces the address of a link to an issue in a view."""

LINK = "\x03"
"""Replaces the address of another link in a view."""

CLOSING_KEYWORDS = ("closes", "closed", "close", "fixes", "fixed", "fix", "resolves", "resolved", "resolve")
_MARKUP = rf"{TAG}{LINK}*_~\[\]!"
_JOINED = f"[{_MARKUP}{ISSUE_LINK}]*"
"""Markup that vanishes between two characters."""

_DUPLICATE = rf"{_JOINED.join('duplicate')}[\s{_MARKUP}]+{_JOINED.join('of')}"
"""GitHub Docs, "Marking issues or pull requests as a duplicate"."""

_KEYWORD = rf"(?<![A-Za-z0-9])(?:{'|'.join(_JOINED.join(word) for word in CLOSING_KEYWORDS)}|{_DUPLICATE})"
_SLASH = f"/{_JOINED}"
_ISSUE_PATH = (
    rf"[^ \t-\r]{{0,300}}?(?:{'|'.join(_JOINED.join(word) for word in ('issues', 'pulls', 'pull', 'discussions'))})"
    rf"{_JOINED}{_SLASH}[0-9]"
)
"""An address of an issue, of which any part before these words may be missing."""

_REFERENCE = (
    rf"(?:#{_JOINED}[0-9]|{_JOINED.join('GH-')}{_JOINED}[0-9]"
    rf"|(?:[\w.{_MARKUP}-]{{0,100}}/)?[\w.{_MARKUP}-]{{1,100}}#{_JOINED}[0-9]|{_ISSUE_PATH})"
)
_BEFORE = rf"[\s:(<>+\-\"'\\|{_MARKUP}]"
_TO_ISSUE = rf"{_BEFORE}*?\[(?s:.){{0,200}}?{ISSUE_LINK}"
_CLOSING = re.compile(
    rf"{_KEYWORD}(?=(?:{_BEFORE}+(?!{_BEFORE})(?:{_REFERENCE}|{ISSUE_LINK})|#[0-9]|{_TO_ISSUE}))", re.IGNORECASE
)
_ISSUE_ADDRESS = re.compile(r"(?:\A|[/\\])(?:issues|pulls?|discussions)/[0-9]", re.IGNORECASE)
_MENTION = re.compile(rf"@(?={_JOINED}[A-Za-z0-9])")
_SIGN = re.compile(rf"#(?={_JOINED}[0-9])|@(?={_JOINED}(?:[0-9a-f]{_JOINED}){{7}})", re.IGNORECASE)
_NAME_BACKWARDS = re.compile(rf"[\w./{_MARKUP}-]+")
_NOT_IN_NAME = re.compile(rf"[{TAG}{LINK}*~\[\]!]")
_LONGEST_NAME = 300
_MAIL_DOMAIN = re.compile(r"@[A-Za-z0-9-]+(?:\.[A-Za-z0-9][A-Za-z0-9-]*)+(?!\w|:/)")
_COMMAND = re.compile(r"(?:^|(?<=\r))[^\S\r\n]*(?=[/.!][A-Za-z][\w-]*(?![\w/-]|\.\w))", re.MULTILINE)
ADDRESS = re.compile(r"(?<![A-Za-z])(?:https?|ftp)://[^\s<]+|(?<![^\s*_~(])www\.[^\s<]+", re.IGNORECASE)
_BEFORE_HOST = re.compile(
    r"(?<![A-Za-z])((?:https?|ftp):)//[/\\]*|(?<![^\s*_~(\[])(www)(?=\.)",
    re.IGNORECASE,
)
_IN_HOST = r"[^/?#\x09-\x0d\x20<&\\]*"
_HOST = re.compile(
    rf"{_IN_HOST}(?:(?:&(?:#?[a-z0-9]{{1,31}};)?|\\[!-/:-@\[-`{{-~]?){_IN_HOST})*",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_TO_BLANK = re.compile(rf"(?:[^\s<]|{_TAG.pattern}){{1,2000}}")
"""A bare address, also with tags that close nothing, so that it goes on behind them."""

_AT = re.compile(r"@|&(?:#0*64|#[xX]0*40|commat;)")
_PLAIN_ADDRESS = re.compile(
    r"(?:(?:https?|ftp)://|(?<![a-z0-9.-])www\.)([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::[0-9]+)?(?=[/?#]|$)"
    r"(?:[a-z0-9./:%?#=+,;@!$-]|(?<=[a-z0-9])_)*",
    re.IGNORECASE,
)
_OLD_NAMES = "|".join(sorted((name for name in html5 if not name.endswith(";")), key=len, reverse=True))
_HTML_ENTITY = rf"&(?:#[0-9]{{1,20}};?|#[xX][0-9a-fA-F]{{1,20}};?|[A-Za-z][A-Za-z0-9]{{1,31}};|{_OLD_NAMES})"
"""In raw HTML, numbers and the names of HTML 2 need no semicolon (HTML Standard, "Named character reference state")."""

_ESCAPE = re.compile(rf"{ESCAPE.pattern}|{ENTITY.pattern}")
_SKIPPED = r"\w{1,30}(?:[\s:_-]{1,9}\w{1,30})?"
_COMMIT_COMMAND = re.compile(
    rf"\[\s{{0,9}}((?:skip[\s:_-]{{1,9}}|no\s{{1,9}}){_SKIPPED}|{_SKIPPED}[\s:_-]{{1,9}}skip)\s{{0,9}}\]"
    r"|\*{3}((?:no|skip)_\w{1,30})\*{3}"
    r"|^[ \t]*(skip-checks|release-as|[a-z0-9][a-z0-9-]{0,60}-by)[ \t]*(?::|(?=#))"
    r"|(?P<part>BEGIN|END)_(?=[A-Z_]{0,30}COMMIT)",
    re.IGNORECASE | re.MULTILINE,
)
_WORKING = frozenset("\u200b\u200c\u200d\u200e\u200f\ufe0e\ufe0f")


def leads_to_issue(address: str) -> bool:
    """Return whether an address leads to an issue, which GitHub treats as a reference to it."""
    return _ISSUE_ADDRESS.search(address) is not None


def as_rendered(content: str, holes: Iterable[Edit], *, has_escapes: bool, addresses: Sequence[Hole] = ()) -> View:
    """Return the text that a reader of the rendered page sees, with a sign in the place of each hole.

    These bare addresses show their source.
    """
    pattern = _ESCAPE if has_escapes else re.compile(_HTML_ENTITY)
    in_address = Cursor(addresses)
    decoded = []
    position = 0
    while hit := pattern.search(content, position):
        position = hit.end()
        if in_address(hit.start()):
            position = hit.start() + 1  # a backslash in an address escapes nothing behind it
        else:
            new = hit[1] if has_escapes and hit[1] else decoded_entity(hit[0])
            decoded.append(Edit(hit.start(), hit.end(), new))
    return View(content, [*holes, *decoded])


def mention_edits(content: str, view: View, addresses: Sequence[Hole]) -> Iterator[Edit]:
    """Break every mention, except in addresses, which GitHub makes links of as a whole.

    A Latin letter or a digit before it makes it harmless, unless it is an entity: GitHub ends an address before that.
    """
    in_address = Cursor(addresses)
    for hit in _MENTION.finditer(view.text):
        start, end = view.source(hit.start())
        before = view.text[max(0, hit.start() - 1) : hit.start()]
        is_part = before.isascii() and before.isalnum() and content[start] == "@"
        is_mail = before.isalpha() and not before.isascii() and _MAIL_DOMAIN.match(view.text, hit.start())
        if not is_part and not is_mail and not in_address(start):
            yield _guard_edit(content, start, end, "@", "mentions")


def reference_edits(content: str, view: View, addresses: Sequence[Hole], policy: PostingPolicy) -> Iterator[Edit]:
    """Break ``OWNER/REPO#1``, ``OWNER/REPO@COMMIT`` and ``OWNER@COMMIT`` where the policy does not let them stay.

    GitHub documentation, "Autolinked references and URLs". From the ``#`` of ``see evil/x#1``, the name is read in the
    reversed text before it: ``x/live``. Where the policy refuses ``evil/x``, the edit puts a guard behind the ``#``.
    """
    in_address = Cursor(addresses)
    for hit in _SIGN.finditer(view.text) if policy.repository is not None else ():
        name = _NAME_BACKWARDS.match(view.text[max(0, hit.start() - _LONGEST_NAME) : hit.start()][::-1])
        written = _NOT_IN_NAME.sub("", name[0][::-1]).lstrip("_") if name else ""
        start, end = view.source(hit.start())
        if written and (hit[0] == "@" or "/" in written) and not policy.may_refer(written) and not in_address(start):
            yield _guard_edit(content, start, end, hit[0], "links")


def keyword_edits(blocks: Sequence[tuple[str, View]], *, between: str = "\n") -> Iterator[tuple[int, Edit]]:
    """Break every closing keyword that a reference follows, be it in the next block; yield its block, too.

    ``between`` is the text that readers may see between two blocks.
    """
    starts = list(accumulate((len(view.text) + len(between) for _, view in blocks), initial=0))
    for hit in _CLOSING.finditer("".join(view.text + between for _, view in blocks)):
        i = bisect_right(starts, hit.start()) - 1
        content, view = blocks[i]
        yield i, _guard_edit(content, *view.source(hit.start() - starts[i]), hit[0][0], "closing-keywords")


def command_edits(content: str, holes: Sequence[Hole] = ()) -> Iterator[Edit]:
    """Break ``/word``, ``.word`` and ``!word`` at the start of a line outside of these holes; ``/usr/bin`` is a path.

    Bots read the source, so titles of links and attributes of tags count, too.
    """
    inside = Cursor(holes)
    for hit in _COMMAND.finditer(content):
        if not inside(hit.end()):
            yield Edit(hit.end(), hit.end() + 1, content[hit.end()] + GUARD, "commands")


def skip_edits(content: str) -> Iterator[Edit]:
    """Put round brackets where a commit message would skip a service, credit or sign for a person, or set a release.

    ``[skip NAME]`` and ``[NAME skip]`` skip a service (GitHub documentation, "Skipping workflow runs"), ``***NO_CI***``
    Azure Pipelines. release-please takes what is behind ``BEGIN_COMMIT_OVERRIDE`` for the message.
    """
    for hit in _COMMIT_COMMAND.finditer(content):
        harmless = f"{hit['part']} " if hit["part"] else f"({hit[hit.lastindex or 0]})"
        yield Edit(hit.start(), hit.end(), harmless, "commands")


def message_edits(content: str) -> Iterator[Edit]:
    """Break what acts in a commit message, in which no backtick protects anything, except for mentions."""
    yield from skip_edits(content)
    yield from (edit for _, edit in keyword_edits([(content, View(content, ()))]))


def as_message(content: str) -> str:
    """Return a text with ``message_edits`` carried out."""
    return View(content, message_edits(content)).text


def without_keywords(line: str) -> str:
    """Return a line that closes no issue, also if a reference follows it."""
    blocks = [(line, View(line, ())), ("#1", View("#1", ()))]
    return View(line, (edit for i, edit in keyword_edits(blocks) if not i)).text


def without_skips(content: str) -> str:
    """Return a text that skips no checks and credits no one when it becomes a commit message."""
    return View(content, skip_edits(content)).text


@cache
def chosen_words(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for words of a repository's own bots, whole or broken; its group is what follows the guard."""
    found = []
    for word in sorted(words, key=len, reverse=True):
        first, rest = re.escape(word[0]), r"\s+".join(map(re.escape, word[1:].split()))
        gap = r"\s+" if word[1:2].isspace() else ""
        end = r"(?!\w)" if word[-1].isalnum() else ""
        found.append(rf"(?<![\w./=-]){first}{GUARD}?(?={gap}{rest}{end})")
    return re.compile("|".join(found), re.IGNORECASE)


def address_edits(content: str, holes: Sequence[Hole], policy: PostingPolicy) -> Iterator[Edit]:
    """Break bare addresses that GitHub would make links of: of another host than they begin with, or not allowed."""
    inside = Cursor(holes)
    host_end = odd_until = 0
    for hit in _BEFORE_HOST.finditer(content):
        if hit.end() >= host_end:  # or else it is within the host before, and ends with it
            host = _HOST.match(content, hit.end())
            host_end = host.end() if host else hit.end()
            names = (at.end() for at in _AT.finditer(content, hit.end(), host_end))
            is_other = is_lookalike(html.unescape(content[hit.end() : host_end]))
            odd_until = host_end if is_other else max(names, default=0)
        is_refused = False
        if policy.repository is not None and (shown := _TO_BLANK.match(content, hit.start())):
            is_refused = not policy.may_link(("" if hit[1] else "//") + _TAG.sub("", shown[0]))
        if (is_refused or hit.end() < odd_until) and not inside(hit.start()):
            cut = hit.end(1) if hit[1] else hit.end(2)
            yield Edit(cut - 1, cut, content[cut - 1] + GUARD, "links")


def linked_addresses(content: str, spans: Iterable[InlineSpan]) -> list[Edit]:
    """List the bare addresses that every reader makes links of, as their host is plain. A mention in one is part of it.

    GFM, "Autolinks (extension)".
    """
    found = ((span, _PLAIN_ADDRESS.match(content, span.start)) for span in spans if span.kind == "address")
    return [Edit(span.start, min(plain.end(), span.end)) for span, plain in found if plain and "." in plain[1]]


def entity_edits(content: str, holes: Sequence[Hole], *, is_html: bool) -> Iterator[Edit]:
    """Take out hidden characters that are written as entities."""
    inside = Cursor(holes)
    for hit in (re.compile(_HTML_ENTITY) if is_html else ENTITY).finditer(content):
        char = decoded_entity(hit[0])
        if len(char) == 1 and is_hidden(char) and not inside(hit.start()):
            around = content[max(0, hit.start() - 1) : hit.start()] + content[hit.end() : hit.end() + 1]
            if char not in _WORKING or around.isascii():
                yield Edit(hit.start(), hit.end(), "", "hidden")


def _guard_edit(content: str, start: int, end: int, char: str, kind: str) -> Edit:
    """Set the guard behind a character, which is written as itself where it was an entity."""
    written = char if content.startswith("&", start) and end - start > 1 else content[start:end]
    return Edit(start, end, written + GUARD, kind)
