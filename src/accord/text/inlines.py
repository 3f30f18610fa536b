"""The inside of a paragraph, as GitHub reads it: code, tags, links and images.

This follows cmark-gfm 0.29.0.gfm.13 (``src/inlines.c``, ``extensions/autolink.c``), also where it is odd: a bare
address takes backticks and brackets in, and a run of backticks may be overlooked after one that nothing closed.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from accord.text.block_syntax import LONGEST_LABEL, TITLE, Definition, address_end, match_end


@dataclass(frozen=True, slots=True)
class InlineSpan:
    """Something inside prose, as offsets: ``code``, ``html``, ``autolink``, bare ``address``, ``link`` or ``image``."""

    kind: str
    start: int
    end: int
    label_end: int = 0  # where the text of a link ends and its address begins
    address: str | None = None  # decoded, None by reference
    target: str | None = None


_SIGN = re.compile(r"[\\`<\[\]]|!(?=\[)|:(?=//)|w(?=ww\.)")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_TICKS = re.compile("`+")
_LONGEST_TICKS = 80
_AUTOLINK = re.compile(
    r"<(?:[A-Za-z][A-Za-z0-9.+-]{1,31}:[^\x00-\x20<>]*"
    r"|[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*)>"
)
_B = r"[ \t\v\f\r\n]"
_VALUE = r"""(?:[^ \t\r\n\v\f"'=<>`]+|'[^']*'|"[^"]*")"""
_TAG = re.compile(
    rf"<(?:[A-Za-z][A-Za-z0-9-]*(?:{_B}+[a-zA-Z_:][a-zA-Z0-9:._-]*(?:{_B}*={_B}*{_VALUE})?)*{_B}*/?"
    rf"|/[A-Za-z][A-Za-z0-9-]*{_B}*)>"
)
_COMMENT = re.compile(r"<!--(?:-?>|[^-]*(?:(?:-[^-]|--[^>])[^-]*)*-->)")
_CDATA = re.compile(r"<!\[CDATA\[[^\]]*(?:(?:\][^\]]|\]\][^>])[^\]]*)*\]\]>", re.IGNORECASE)
_DECLARATION = re.compile(rf"<![A-Z]+{_B}[^>]*>")
_INSTRUCTION = re.compile(r"<\?[^?]*(?:\?[^>][^?]*)*\?>")
_BEGINNING = re.compile(rf"(<!--)|(<\?)|(<!\[(?i:CDATA)\[)|(<![A-Z]+{_B})")
_A_COMMENT = 1
_BLANKS = re.compile(rf"{_B}*")
_NOTE = re.compile(r"\\?\^|&(?:#0{0,6}94|#[xX]0{0,6}5[eE]|Hat);")
_LABEL = re.compile(r"\[([^\[\]\\]*(?:\\.[^\[\]\\]*)*)\]", re.DOTALL)
ENTITY = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,31});")
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SCHEME = re.compile(r"(?<![A-Za-z])(?:https?|ftp)\Z", re.IGNORECASE)
_LONGEST_SCHEME = 5
_BEFORE_WWW = frozenset(("", *"*_~( \t\r\n"))
_ADDRESS = re.compile(r"[^ \t\r\n<]*")
_ENTITY_END = re.compile(r"&[A-Za-z]+;\Z")
_NO_HOST = _PUNCTUATION | frozenset("\t\n\f\r ")
_SPACES = frozenset("\xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))
_MOST_SEGMENTS = 10


def plain_label(label: str) -> str:
    """Return a label as it is compared with others."""
    return " ".join(re.split(r"[ \t\r\n]+", label.strip(" \t\r\n"))).casefold()


def decoded_entity(entity: str) -> str:
    """Return the character that an entity stands for; renderers keep control characters, which the library drops."""
    number = "" if (char := html.unescape(entity)) else entity.strip("&#;").lower()
    return chr(int(number.lstrip("x"), 16 if number.startswith("x") else 10)) if number else char


def plain_address(address: str) -> str:
    """Return an address without entities and backslashes."""
    if "&" not in address and "\\" not in address:
        return address
    return ESCAPE.sub(r"\1", ENTITY.sub(lambda hit: decoded_entity(hit[0]), address))


def references_of(definitions: Iterable[Definition]) -> dict[str, str]:
    """Return addresses by label. Of several definitions with the same label, the first counts."""
    references: dict[str, str] = {}
    for definition in definitions:
        references.setdefault(plain_label(definition.label), plain_address(definition.address))
    return references


def read_inlines(content: str, references: Mapping[str, str]) -> list[InlineSpan]:
    """Return what is inside a paragraph, in order of its start."""
    reader = _InlineReader(content, references)
    while found := _SIGN.search(content, reader.position):
        reader.position = found.start()
        reader.read(found[0])
    return sorted(reader.spans, key=lambda span: (span.start, -span.end))


@dataclass(slots=True)
class _Bracket:
    """An open bracket; ``position`` is behind it."""

    position: int
    is_image: bool
    has_later: bool = False


class _InlineReader:
    def __init__(self, content: str, references: Mapping[str, str]) -> None:
        self.content = content
        self.references = references
        self.position = 0
        self.spans: list[InlineSpan] = []
        self.brackets: list[_Bracket] = []
        self.may_link = False
        self.ticks: list[tuple[int, int]] | None = None
        self.next_tick = 0
        self.last_ticks: dict[int, int] = {}
        self.has_all_ticks = False
        self.without_end: set[int | None] = set()

    def read(self, sign: str) -> None:
        """Read what a sign at the current position begins, and go on behind it."""
        content, position = self.content, self.position
        self.position = position + 1
        match sign:
            case "\\":
                self.position += content[position + 1 : position + 2] in _PUNCTUATION
            case "`":
                self._read_code(position)
            case "<":
                self._read_tag(position)
            case "[":
                self._open(position + 1, is_image=False)
            case "!":
                if not content.startswith("^", position + 2):
                    self._open(position + 2, is_image=True)
            case "]":
                self._close(position)
            case _:
                if not self.brackets:
                    self._read_address(sign, position)

    def _read_code(self, start: int) -> None:
        if self.ticks is None:
            self.ticks = [hit.span() for hit in _TICKS.finditer(self.content)]
        begin = match_end(_TICKS, self.content, start)
        self.position = begin
        size = begin - start
        if size > _LONGEST_TICKS or (self.has_all_ticks and self.last_ticks.get(size, 0) <= begin):
            return
        while self.next_tick < len(self.ticks) and self.ticks[self.next_tick][0] < begin:
            self.next_tick += 1
        for tick in range(self.next_tick, len(self.ticks)):
            first, last = self.ticks[tick]
            if last - first <= _LONGEST_TICKS:
                self.last_ticks[last - first] = first
            if last - first == size:
                self.position = last
                self.spans.append(InlineSpan("code", start, last))
                return
        self.has_all_ticks = True

    def _read_tag(self, start: int) -> None:
        content = self.content
        if found := _AUTOLINK.match(content, start):
            self.position = found.end()
            address = found[0][1:-1]
            self.spans.append(InlineSpan("autolink", start, found.end(), 0, address, address))
            return
        beginning = _BEGINNING.match(content, start)
        kind = beginning.lastindex if beginning else None
        if kind in self.without_end or (_A_COMMENT in self.without_end and content.startswith("!", start + 1)):
            return
        match kind:
            case None:
                found = _TAG.match(content, start)
            case 1:
                found = _COMMENT.match(content, start)
            case 2:
                found = _INSTRUCTION.match(content, start)
            case 3:
                found = _CDATA.match(content, start)
            case _:
                found = _DECLARATION.match(content, start)
        if found:
            self.position = found.end()
            self.spans.append(InlineSpan("html", start, found.end()))
        elif kind:
            self.without_end.add(kind)

    def _open(self, position: int, *, is_image: bool) -> None:
        if self.brackets:
            self.brackets[-1].has_later = True
        self.brackets.append(_Bracket(position, is_image))
        self.position = position
        self.may_link = self.may_link or not is_image

    def _close(self, position: int) -> None:
        """Make a link or an image of the text since the last open bracket, if an address follows."""
        if not self.brackets:
            return
        opener = self.brackets.pop()
        if not opener.is_image and not self.may_link:
            return
        start = opener.position - 1 - opener.is_image
        kind = "image" if opener.is_image else "link"
        if found := self._address_after(position + 1):
            address, end = found
            span = InlineSpan(kind, start, end, position, address, address)
        else:
            label = _LABEL.match(self.content, position + 1, position + 3 + LONGEST_LABEL)
            if label and _is_long(label[1]):
                label = None
            end = label.end() if label else position + 1
            name = label[1].strip(" \t\r\n") if label else ""
            if not name and not opener.has_later:
                name = self.content[opener.position : position]
            target = self._target(name)
            if target is None:
                self._forget_note(opener.position)
                return
            span = InlineSpan(kind, start, end, position, None, target)
        self.spans.append(span)
        self.position = span.end
        if not opener.is_image:
            self.may_link = False

    def _target(self, name: str) -> str | None:
        return None if not name or _is_long(name) else self.references.get(plain_label(name))

    def _forget_note(self, begin: int) -> None:
        """Forget what is inside a footnote: GitHub shows a number, or the source if the note does not exist."""
        note = _NOTE.match(self.content, begin)
        if note and self.content[note.end()] != "]":
            while self.spans and self.spans[-1].start >= begin:
                self.spans.pop()

    def _address_after(self, position: int) -> tuple[str, int] | None:
        content = self.content
        if not content.startswith("(", position):
            return None
        begin = match_end(_BLANKS, content, position + 1)
        after = address_end(content, begin)
        if after < 0:
            return None
        gap = match_end(_BLANKS, content, after)
        title = match_end(TITLE, content, gap) if gap > after else gap
        end = match_end(_BLANKS, content, title)
        if not content.startswith(")", end):
            return None
        is_bracketed = content.startswith("<", begin)
        return plain_address(content[begin + is_bracketed : after - is_bracketed].strip(" \t\r\n")), end + 1

    def _read_address(self, sign: str, position: int) -> None:
        """Read an address without brackets, of which ``www.`` or ``://`` begins here."""
        content, start = self.content, position
        if sign == "w":
            before = content[position - 1 : position]
            is_address = before in _BEFORE_WWW and _is_domain(content, position, is_short=False)
        else:
            scheme = _SCHEME.search(content, max(0, position - _LONGEST_SCHEME), position)
            begin = position + len("://")
            start = scheme.start() if scheme else position
            first = content[begin : begin + 1]
            may_begin = bool(first) and first not in _NO_HOST | _SPACES and unicodedata.category(first)[0] != "P"
            is_address = scheme is not None and may_begin and _is_domain(content, begin, is_short=True)
        if is_address:
            self.position = position + _address_length(content[position : match_end(_ADDRESS, content, position)])
            self.spans.append(InlineSpan("address", start, self.position))


def _is_long(label: str) -> bool:
    return len(label.encode(errors="replace")) > LONGEST_LABEL


def _is_domain(content: str, begin: int, *, is_short: bool) -> bool:
    """Return whether an address may begin with this host: with a dot unless short, and no underscore in the end."""
    dots = before_last = last = 0
    position = begin + 1
    while position < len(content) - 1 and content[begin].isascii():  # the second byte of another character ends it
        if content[position] == "\\" and position < len(content) - 2:
            position += 1
        char = content[position]
        if char == "_":
            last += 1
        elif char == ".":
            before_last, last = last, 0
            dots += 1
        elif not char.isascii() or (char in _NO_HOST and char != "-"):
            break
        position += 1
    if (before_last or last) and dots <= _MOST_SEGMENTS:
        return False
    return is_short or dots > 0


def _address_length(address: str) -> int:
    """Return the length of an address without what may follow it in a sentence."""
    end = len(address)
    surplus = address.count(")") - address.count("(")
    while end:
        char = address[end - 1]
        if char == ")":
            if surplus <= 0:
                break
            surplus -= 1
            end -= 1
        elif char == ";":
            found = _ENTITY_END.search(address, max(0, end - 64), end)
            end = found.start() if found and found.start() else end - 1
        elif char in "?!.,:*_~'\"":
            end -= 1
        else:
            break
    return end
