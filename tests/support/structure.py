"""How accord reads a text, held against what cmark-gfm, GitHub's own renderer, makes of it.

Raw HTML is left out of the pages, so that it is not taken for theirs.
"""

from __future__ import annotations

import html
import re
from collections import Counter

import cmarkgfm
from cmarkgfm.cmark import Options

from accord.text.blocks import read_blocks
from accord.text.outline import bot_controls, sections, tasks
from accord.text.regions import parse_markdown

_BLOCK = re.compile(
    r'<(pre|p|h[1-6]|table|hr)(?: lang="[^"]*")? data-sourcepos="([0-9]+):[^"]*"[^>]*>(?:<code>([^<]*)</code></pre>)?'
)
_PART = re.compile(r'<code>([^<]*)</code>(?!</pre>)|<(a) href="(?!#fn)|<(img) src="|<!-- (raw) HTML omitted -->')
_PARTS = {"html": "raw", "link": "a", "autolink": "a", "address": "a", "image": "img"}
_OUTLINE = re.compile(
    r'<(/?)(li|blockquote|section|h[1-6]|input)\b(?:[^>]*data-sourcepos="([0-9]+):)?([^>]*)>(?:([^<]*)</h)?'
)
_NAMES = {"paragraph": "p", "heading": "h", "rule": "hr", "table": "table"}


def _page(text: str, options: int = 0) -> str:
    try:
        return str(cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_FOOTNOTES | options))
    except UnicodeDecodeError as error:  # it cut a character in two
        return error.object.decode(errors="replace")


def assert_same_blocks(text: str) -> str | None:
    """Return how the blocks of a text differ. Paragraphs of tight lists and unused footnotes are on no page."""
    page = Counter[tuple[object, ...]]()
    for hit in _BLOCK.finditer(_page(text, Options.CMARK_OPT_SOURCEPOS)):
        if hit[1] in ("pre", "hr"):
            page["code" if hit[3] is not None else "hr", int(hit[2]), html.unescape(hit[3] or "").rstrip("\n")] += 1
        else:
            page[hit[1] if hit[1] in ("p", "table") else "h",] += 1
    blocks = read_blocks(text)
    ours = Counter[tuple[object, ...]]()
    for block in blocks.leaves:
        if block.kind == "fence":
            ours["code", block.first + 1, "\n".join(block.lines[1:]).rstrip("\n")] += 1
        elif block.kind == "code":
            ours["code", block.first + 1, re.sub(r"(\n[ \t]*)+\Z", "", block.content)] += 1
        elif block.kind == "rule":
            ours["hr", block.first + 1, ""] += 1
        elif block.kind != "html":
            ours[_NAMES[block.kind],] += 1
    missing, more = page - ours, ours - page
    del more["p",]
    if missing or (more and not blocks.footnotes):
        return f"cmark-gfm: {dict(missing)}, accord: {dict(more)}"
    return None


def check_outline(text: str) -> str | None:
    """Return how the boxes of a text, and the headings outside of lists and quotes, differ.

    For cmark-gfm, any ``[x]`` on the line of a box ticks it; for accord, only its own does.
    """
    boxes, headings, titles = list[tuple[int, bool]](), list[tuple[int, int]](), list[str]()
    depth = line = 0
    for closing, tag, place, rest, words in _OUTLINE.findall(_page(text, Options.CMARK_OPT_SOURCEPOS)):
        if tag == "input":
            boxes.append((line, "checked" in rest))
        elif tag[0] != "h":
            depth += -1 if closing else 1
            line = int(place) if tag == "li" and place else line
        elif not depth and not closing:
            headings.append((int(tag[1]), int(place)))
            titles.append(" ".join(html.unescape(words).split()))
    lines = re.split(r"\r\n?|\n", text)
    ours = [(task.line, task.is_checked or "[x]" in lines[task.line - 1].lower()) for task in tasks(text)]
    buttons = {item.first + 1 for item in bot_controls(text)}
    boxes = [(line, is_ticked) for line, is_ticked in boxes if line not in buttons]
    found = [(section.level, section.line) for section in sections(text)]
    named = [(one.title.replace("\\[", "["), page) for one, page in zip(sections(text), titles, strict=False) if page]
    if sorted(boxes) != ours or headings != found or any(title != page for title, page in named):
        return f"cmark-gfm: {boxes}, {headings}, accord: {ours}, {found}, {named}"
    return None


def assert_same_inlines(text: str) -> str | None:
    """Return how the code, tags, links and images of a text differ. It must contain neither footnotes nor fences."""
    ours, page = Counter[str](), Counter[str]()
    for hit in _PART.finditer(_page(text)):
        page[hit[2] or hit[3] or hit[4] or "code " + html.unescape(hit[1]).strip(" ")] += 1
    for prose in parse_markdown(text).prose:
        images = [(span.start, span.end) for span in prose.spans if span.kind == "image"]
        ours["raw"] += prose.is_html
        for span in () if prose.is_html else prose.spans:
            if any(start < span.start and span.end < end for start, end in images):
                continue
            written = prose.content[span.start : span.end]
            ticks = len(written) - len(written.lstrip("`"))
            code = "code " + written[ticks : len(written) - ticks].replace("\n", " ").strip(" ")
            ours[_PARTS.get(span.kind, code)] += 1
    if "@" in text:  # mail is a link on the page only
        del page["a"], ours["a"]
    return None if page == +ours else f"cmark-gfm: {dict(page - ours)}, accord: {dict(ours - page)}"
