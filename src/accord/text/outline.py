"""The outline of a Markdown text: sections, entries of lists, tasks, and what is code, as GitHub shows them.

Headings and boxes inside code, block quotes and comments are text about structure, not structure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, filterfalse, groupby, pairwise
from typing import Literal, NamedTuple

from accord.core.frozen import Frozen
from accord.text.block_syntax import Block, Blocks
from accord.text.blocks import read_blocks
from accord.text.hidden import strip_hidden
from accord.text.inlines import plain_address, read_inlines, references_of

_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_VISIBLE = re.compile(r"[^\r\n]")
_TAG = re.compile(r"<[A-Za-z/!?][^<>]*>")
_EMPHASIS = re.compile(r"(?<![\\\s])(?:\*+|_+(?!\w))|(?<!\\)(?:\*+|(?<!\w)_+)(?!\s)")
_MARKUP = re.compile(r"^[ \t>]*(?:```|~~~)[^\n]*|<[^<>\n]*>|[^\w\n]", re.MULTILINE)
_REFERENCE = re.compile(r"`{1,3}#(?!\s)[^`]+`{1,3}")
_VERBATIM = frozenset({"fence", "code", "html"})
_WORD = re.compile(r"[^\W_]+")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ,;.()/'-]*")
_UNNAMED = frozenset(("a", "an", "begin", "end", "is", "of", "start", "the", "this"))
_CONSTANT = re.compile(r"\s*[A-Z0-9]+(?:[_-][A-Z0-9]+)+\s*")
_PROSE = re.compile(r"/?[^\W_][^\WA-Z_]*(?: [^\WA-Z_]+)*")
"""A comment of words and blanks, as people write a name; a program's has capitals, colons or joined words."""
_OF_PEOPLE = frozenset(("accord", "checklist", "criteria", "ignore", "task", "tasks", "todo", "todos"))
"""Words in the name of a region, or in a heading, by which its boxes are tasks; formatters begin one to `ignore`."""

_DEFINED_COMMENT = "//"
"""The label of a definition that serves as a comment: ``[//]: # (dependabot-start)``."""


@dataclass(frozen=True, slots=True)
class ListItem:
    """One entry of a list: its own text (one line, inline Markdown), and its checkbox if it has one."""

    text: str
    line: int
    checked: bool | None
    depth: int


class Section(Frozen):
    """A heading and the blocks below it, up to the next heading of any level; ``line`` counts from 1."""

    title: str
    level: int
    line: int
    parent: str
    blocks: Sequence[Block]

    @cached_property
    def text(self) -> str:
        """The visible text of the section, without comments; code and quotes count as content."""
        blocks, html = self.blocks, lambda content: _COMMENT.sub("", content).strip()
        return "\n".join(_texts_of(blocks, html, lambda content: _without_comments(content).strip())).strip()

    @cached_property
    def visible(self) -> str:
        """The text of the section as ``seen_text`` reads it."""
        return _visible(self.blocks)

    @property
    def items(self) -> list[ListItem]:
        """The entries of its lists."""
        return list_items(self.blocks)


@dataclass(frozen=True, slots=True)
class ChecklistTask:
    """A box and its text: one line, inline markup verbatim, without comments."""

    text: str
    is_checked: bool
    line: int  # from 1
    mark: int  # offset of the character between the brackets in the whole text


def sections(text: str) -> list[Section]:
    """Split a Markdown text at its top-level headings. Text before the first heading is left out."""
    blocks = read_blocks(text).leaves
    starts = [i for i, block in enumerate(blocks) if block.kind == "heading" and block.level == 1]
    found: list[Section] = []
    ancestry: list[Section] = []
    for start, end in pairwise([*starts, len(blocks)]):
        heading = blocks[start]
        ancestry = [section for section in ancestry if section.level < heading.length]
        parent = ancestry[-1].title if ancestry else ""
        title = shown_text(heading.content)
        section = Section(title, heading.length, heading.first + 1, parent, blocks[start + 1 : end])
        ancestry.append(section)
        found.append(section)
    return found


def list_items(blocks: Iterable[Block]) -> list[ListItem]:
    """Return the entries of all lists among these blocks, nested ones too, outside of block quotes."""
    found: dict[Block, ListItem] = {}
    for block in blocks:
        item = block.inside
        if item and item.kind == "item" and block.texts and item not in found:
            kinds = [each.kind for each in block.around]
            if "quote" not in kinds:
                checked = item.box != " " if item.box else None
                found[item] = ListItem(shown_text(block.texts[0]), block.first + 1, checked, kinds.count("item"))
    return list(found.values())


_NO_BOX = re.compile(r"\[(?:\]|([ xX])\](?=\S)(?!\*\s))(?![(\[:])\s*(\S.*)")


def malformed_boxes(markdown: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the line of brackets that, without a link, miss a blank to be a box, and their entry as it would be one.

    That is sure of ``[]`` only in a list that has a box.
    """
    blocks = read_blocks(markdown)
    lists = {item.inside for item in blocks.items if item.box}
    others = {item for item in blocks.items if not item.box and all(each.kind != "quote" for each in item.around)}
    for block in (each for each in blocks.leaves if each.kind == "paragraph"):
        item, hit = block.inside, _NO_BOX.match(block.texts[0])
        if hit and item and item in others and item.first == block.first:
            yield block.first + 1, f"- [{hit[1] or ' '}] {hit[2]}", bool(hit[1]) or item.inside in lists


_NOTE = re.compile(r"\[\^([^\[\]\s]+)\]")


def tasks(markdown: str) -> tuple[ChecklistTask, ...]:
    """Return the boxes of a text in its order.

    A box is ``[ ]`` or ``[x]`` with a blank behind it, on the line of a bullet or number that nothing stands before.
    Source: cmark-gfm, ``extensions/tasklist.c``. There, an ``[x]`` later on the line ticks it; here, only its own does.
    The boxes of ``bot_controls`` are left out.
    """
    blocks, controls = read_blocks(markdown), bot_controls(markdown)
    texts = {block.inside: block.texts for block in reversed(blocks.leaves)}
    uses = Counter(_NOTE.findall(markdown.casefold())) if blocks.footnotes else Counter()

    def is_shown(item: Block) -> bool:  # GitHub leaves out a footnote that nothing refers to
        notes = (markdown[slice(*blocks.lines[one.first])] for one in item.around if one.kind == "footnote")
        return all(uses[name] > 1 for note in notes for name in _NOTE.findall(note.casefold())[:1])

    return tuple(
        ChecklistTask(shown_text(" ".join(texts.get(item, ()))), item.box != " ", item.first + 1, item.mark)
        for item in blocks.items
        if item.box and item not in controls and is_shown(item)
    )


def bot_controls(markdown: str) -> set[Block]:
    """Return the entries whose box is a bot's button: ticking ``- [ ] <!-- rebase-check -->Rebase`` starts the bot.

    The text of such a box begins with a comment, or it is in a bot's region. Mostly a program writes the same name in a
    comment before and in one after a text: ``<!-- x -->`` and ``<!-- /x -->``, ``x-start`` and ``x-end``, or twice
    ``X_SUMMARY``. A person does below a heading of tasks, in one word or in plain words. A region with headings of both
    tasks and criteria is a plan for the agent, unless its name is joined with ``_``.
    """
    if "<!--" not in markdown and f"[{_DEFINED_COMMENT}]:" not in markdown:
        return set()
    blocks = read_blocks(markdown)
    texts = {block.inside: block.texts for block in reversed(blocks.leaves)}
    headings, ancestry, are_of_tasks = [one for one in blocks.leaves if one.kind == "heading"], list[Block](), [False]
    for heading in headings:
        ancestry = [*(one for one in ancestry if one.length < heading.length), heading]
        are_of_tasks.append(any(not _OF_PEOPLE.isdisjoint(_words(one.content)) for one in ancestry))
    lines = [heading.first for heading in headings]

    def is_plan(region: _Region) -> bool:
        words = {word for one in headings if region.start < one.first < region.end for word in _words(one.content)}
        return "criteria" in words and not words.isdisjoint(("task", "tasks")) and not region.is_of_program

    regions = [*filterfalse(is_plan, _named_regions(markdown, blocks))]

    def is_control(item: Block) -> bool:
        first = next(spans("".join(texts.get(item, ())[:1]).lstrip()), None)
        around = [region for region in regions if region.start <= item.first < region.end]
        is_of_people = all(one.is_plain for one in around) and are_of_tasks[bisect_right(lines, item.first)]
        return (first is not None and first.kind == "comment") or bool(around and not is_of_people)

    return {item for item in blocks.items if item.box and is_control(item)}


class _Region(NamedTuple):
    """The lines between two comments, from 0, and whether a person may, or only a program would have named it so."""

    start: int
    end: int
    is_plain: bool
    is_of_program: bool


def _named_regions(markdown: str, blocks: Blocks) -> Iterator[_Region]:
    """Yield the regions between comments with one name, except for those whose name says that boxes are tasks."""
    outside = (block for block in blocks.leaves if not any(each.kind == "item" for each in block.around))
    found = [(block.first, comment) for block in outside for comment in _comments(block)]
    starts = [start for start, _ in blocks.lines]
    named = (one for one in blocks.definitions if one.label == _DEFINED_COMMENT)
    found += [(bisect_right(starts, one.start) - 1, f": {markdown[one.start : one.end]}") for one in named]
    begun: dict[tuple[str, ...], int] = {}
    for line, comment in sorted(found):
        words = _words(comment)
        name = tuple(word for word in words if word not in _UNNAMED and not word.isdigit())
        if not name or not _OF_PEOPLE.isdisjoint(name):
            continue
        is_end = "end" in words or comment.lstrip().startswith("/")
        if name in begun and (is_end or _CONSTANT.fullmatch(comment)):
            is_joined = len(name) > 1 and "_".join(name) in comment.casefold()
            is_plain = bool(len(name) == 1 or _PROSE.fullmatch(comment.strip())) and comment[0] != ":"
            yield _Region(begun.pop(name), line, is_plain, is_joined or comment[0] == ":")
        elif not is_end:
            begun.setdefault(name, line)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def with_ticks(markdown: str, done: Iterable[ChecklistTask]) -> str:
    """Tick these boxes of the text that they were found in, and leave every other character as it is.

    Raises ValueError where a box is not where it should be, so that a text which was edited meanwhile stays whole.
    """
    characters = list(markdown)
    for task in done:
        if markdown[task.mark - 1 : task.mark + 2] not in ("[ ]", "[x]", "[X]"):
            raise ValueError(f"The box of line {task.line} is not at offset {task.mark} any more.")
        if not task.is_checked:
            characters[task.mark] = "x"
    return "".join(characters)


def without_ticks(markdown: str) -> str:
    """Return a text with every box open."""
    characters = list(markdown)
    for task in tasks(markdown):
        characters[task.mark] = " "
    return "".join(characters)


class Span(NamedTuple):
    """A verbatim part of a paragraph, marks included."""

    kind: Literal["text", "code", "comment"]
    text: str


def spans(content: str) -> Iterator[Span]:
    """Split the content of one paragraph, heading or cell; the parts together are the content again."""
    done = 0
    for part in read_inlines(content, {}) if "`" in content or "<!--" in content else ():
        is_comment = part.kind == "html" and content.startswith("<!--", part.start)
        if part.start >= done and (is_comment or part.kind == "code"):
            if done < part.start:
                yield Span("text", content[done : part.start])
            yield Span("comment" if is_comment else "code", content[part.start : part.end])
            done = part.end
    if done < len(content):
        yield Span("text", content[done:])


def comments(text: str) -> Iterator[str]:
    """Yield what the comments of a text say; those inside code do not count."""
    for block in read_blocks(text).leaves:
        yield from _comments(block)


def _comments(block: Block) -> Iterator[str]:
    if block.kind == "html":
        yield from (hit[1] for hit in _COMMENT.finditer(block.content) if hit[0].endswith("-->"))
    for content in block.texts:
        yield from (span.text[4:-3] for span in spans(content) if span.kind == "comment")


def shown_text(content: str) -> str:
    """Return inline Markdown on one line and without its comments; one in a code span is code, an open one is text."""
    return " ".join(_without_comments(content).split())


def _without_comments(content: str) -> str:
    if "<!--" not in content:
        return content
    return "".join(span.text for span in spans(content) if span.kind != "comment")


def seen_text(text: str) -> str:
    """Return what a reader sees of a Markdown text: no comments, tags and hidden characters; code as it is."""
    return text.strip() if _PLAIN.fullmatch(text) else _visible(read_blocks(text).leaves)


def _visible(blocks: Iterable[Block]) -> str:
    def of_html(html: str) -> str:
        return plain_address(_TAG.sub(lambda tag: _shown_tag(tag[0]), _COMMENT.sub("", html)))

    return strip_hidden("\n".join(_texts_of(blocks, of_html, _without_tags))).strip()


def _texts_of(
    blocks: Iterable[Block], of_html: Callable[[str], str], of_content: Callable[[str], str]
) -> Iterator[str]:
    """Yield the texts of blocks: code as it is, HTML and Markdown as these functions make them."""
    for block in blocks:
        contents = map(of_html, [block.content]) if block.kind == "html" else map(of_content, block.texts)
        yield from code_of(block) or contents


def _shown_tag(tag: str) -> str:
    return "image" if re.match(r"<img\s.*\bsrc\b", tag, re.IGNORECASE | re.DOTALL) else " "


def _without_tags(content: str) -> str:
    if "`" not in content and "<" not in content:
        return plain_address(content)
    inside = (span for span in read_inlines(content, {}) if span.kind in ("code", "html", "autolink"))
    kept = [(span, content[span.start : span.end]) for span in inside]
    marks = [(span.start, span.end, _shown_tag(text) if span.kind == "html" else text) for span, text in kept]
    return _with_replacements(content, marks, plain_address)


def _with_replacements(content: str, marks: Iterable[tuple[int, int, str]], change: Callable[[str], str]) -> str:
    pieces, done = [], 0
    for start, end, kept in [*sorted(marks), (len(content), len(content), "")]:
        if start >= done:
            pieces += [change(content[done:start]), kept]
            done = end
    return "".join(pieces)


def code_of(block: Block) -> list[str]:
    """Return the text of a block of code; none of another block."""
    lines = {"code": block.lines, "fence": block.lines[1:]}.get(block.kind)
    return ["\n".join(lines)] if lines else []


def plain_text(text: str) -> str:
    """Return the words of a Markdown text without its markup, such as emphasis and addresses of links."""
    blocks = read_blocks(text)
    references = references_of(blocks.definitions)
    return "\n".join(_texts_of(blocks.leaves, str, lambda content: _plain(content, references)))


def _plain(content: str, references: Mapping[str, str]) -> str:
    marks: list[tuple[int, int, str]] = []
    for span in read_inlines(content, references):
        if span.kind == "code":
            marks.append((span.start, span.end, content[span.start : span.end].strip("`")))
        elif span.kind in ("autolink", "link", "image"):
            start = span.start + 1 + (span.kind == "image")
            marks += [(span.start, start, ""), (span.label_end or span.end - 1, span.end, "")]
    return _with_replacements(content, marks, lambda text: plain_address(_EMPHASIS.sub("", text)))


def code_free_text(text: str, change: Callable[[str], str]) -> str:
    """Apply ``change`` to the parts of a text outside of code, except ```#42```, and of HTML blocks; others stay."""
    lines = ([Span("code", line)] if is_verbatim else spans(line) for line, is_verbatim in _lines(text))
    every = chain.from_iterable(lines)
    groups = groupby(every, lambda span: span.kind == "code" and not _REFERENCE.fullmatch(span.text))
    pieces = ((is_code, "".join(span.text for span in part)) for is_code, part in groups)
    return "".join(piece if is_code else change(piece) for is_code, piece in pieces)


def blank_code(text: str) -> str:
    """Put blanks in place of code blocks and HTML blocks; every other character keeps its position."""
    return "".join(_VISIBLE.sub(" ", line) if is_verbatim else line for line, is_verbatim in _lines(text))


def verbatim_words(text: str) -> str:
    """Leave only words of code blocks and HTML blocks: these say something, but have no structure of the text."""
    groups = groupby(_lines(text), key=lambda line: line[1])
    pieces = ((is_code, "".join(line for line, _ in lines)) for is_code, lines in groups)
    return "".join(_MARKUP.sub(" ", _COMMENT.sub(" ", piece)) if is_code else piece for is_code, piece in pieces)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line with its end, and whether it is one of code or HTML."""
    blocks = read_blocks(text)
    verbatim = {
        number
        for block in blocks.leaves
        if block.kind in _VERBATIM
        for number in range(block.first, block.first + len(block.lines) + block.is_closed)
    }
    starts = [start for start, _ in blocks.lines]
    for number, (start, end) in enumerate(pairwise([*starts, len(text)])):
        if start < end:
            yield text[start:end], number in verbatim
