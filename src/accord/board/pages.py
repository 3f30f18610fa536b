"""The pages of the board: HTML of an overview and its facts. Pure.

All text on a page is untrusted: Jinja escapes it, and ``clean`` takes out secrets and hidden characters. A page holds
no script of its own, and its links stay in one folder, so that the same pages can be served and written as files.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from accord.board.models import HEADINGS, WITH_COMMAND
from accord.core import graphs
from accord.results.labels import Category, in_category
from accord.results.status import WORK_ITEM, status_if_clear

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from accord.board.models import Entry, ItemFacts, PullFacts, RepositoryFacts, Snapshot

HERE = Path(__file__).parent
GENERATOR = '<meta name="generator" content="accord board">'
"""The line by which a page of the board is recognised."""
TABS = {
    "index.html": "Overview",
    "items.html": "Items",
    "graph.html": "Dependencies",
    "documents.html": "Sessions and missions",
}
UNCLEAR = "unclear"
COLUMNS = (*(status for status in WORK_ITEM.states if status != "closed"), UNCLEAR)
"""The columns of the page of items: the statuses in their order, and items without exactly one."""

_ITEM = re.compile(r"item-([1-9][0-9]{0,9})\.html")
_LABEL_CHARS = 30
MOST_EDGES = 2000
"""Arrows of the graph: drawing takes time for each pair that crosses a layer."""


def page_names(snapshot: Snapshot) -> Iterator[str]:
    """Yield the names of all pages."""
    yield from TABS
    yield from (f"item-{item.issue.number}.html" for item in _items(snapshot).values())


def render_page(name: str, snapshot: Snapshot, clean: Callable[[str], str], version: int | None = None) -> str | None:
    """Return the HTML of a page; None for an unknown name. A page with a version asks the server for later ones."""
    found = _context(name, snapshot)
    if found is None:
        return None
    template, context = found
    common = {
        "tabs": TABS,
        "name": name,
        "headings": HEADINGS,
        "repository": snapshot.facts.address.repository,
        "page": snapshot.facts.address.page,
        "counts": {section: len(entries) for section, entries in snapshot.overview.sections().items()},
        "at": snapshot.at,
        "problem": snapshot.problem,
        "notes": snapshot.overview.notes,
        "numbers": _items(snapshot).keys(),
        "version": version,
        "with_command": WITH_COMMAND,
        "clean": clean,
    }
    return _environment().get_template(template).render(common | context)


def _context(name: str, snapshot: Snapshot) -> tuple[str, dict[str, Any]] | None:
    if name == "index.html":
        return "overview.html", {"sections": snapshot.overview.sections()}
    if name == "documents.html":
        return "overview.html", {"sections": snapshot.documents.sections()}
    if name == "items.html":
        return "items.html", {"columns": columns_of(snapshot.facts), "status_of": item_status}
    if name == "graph.html":
        return "graph.html", graph_of(snapshot.facts)
    found = _ITEM.fullmatch(name)
    item = _items(snapshot).get(int(found[1])) if found else None
    return ("item.html", story_of(item, snapshot)) if item else None


def _items(snapshot: Snapshot) -> dict[int, ItemFacts]:
    facts = snapshot.facts
    return {item.issue.number: item for item in (*facts.closed, *facts.items)}


def item_status(item: ItemFacts) -> str:
    """Return the status of an item, or that it is unclear."""
    return status_if_clear(item.issue) or UNCLEAR


def columns_of(facts: RepositoryFacts) -> Mapping[str, list[ItemFacts]]:
    """Return the open work items by status; requests without a type label are in no column."""
    columns: dict[str, list[ItemFacts]] = {status: [] for status in COLUMNS}
    for item in facts.items:
        if in_category(item.issue.labels, Category.TYPE):
            columns[item_status(item)].append(item)
    return {status: items for status, items in columns.items() if items or status != UNCLEAR}


def graph_of(facts: RepositoryFacts) -> dict[str, Any]:
    """Return a drawing of each group of open work items: what blocks what, the longest chain, and which are ready."""
    nodes = {item.issue.number: item for items in columns_of(facts).values() for item in items}
    edges = [(blocker, number) for number, item in nodes.items() for blocker in item.blockers if blocker in nodes]
    edges = edges[:MOST_EDGES]
    ready = {number for number, item in nodes.items() if not item.open_blockers and item_status(item) == "ready"}
    drawings = [graphs.draw_graph(group) for group in graphs.graph_groups(edges)]
    linked = {number for drawing in drawings for number in drawing.boxes}
    chain = graphs.longest_path(edges)
    return {
        "drawings": drawings,
        "single": [item for number, item in nodes.items() if number not in linked],
        "nodes": nodes,
        "critical": frozenset(chain),
        "links_of_chain": frozenset(pairwise(chain)),
        "chain": chain,
        "ready": ready,
        "size": graphs,
        "status_of": item_status,
        "label_chars": _LABEL_CHARS,
    }


def story_of(item: ItemFacts, snapshot: Snapshot) -> dict[str, Any]:
    """Return all that is known of one item: its starts, its pull requests with loops and checks, and its neighbours."""
    number = item.issue.number
    pulls: list[PullFacts] = [pull for pull in snapshot.facts.pulls if number in pull.items]
    entries: list[Entry] = [
        entry
        for entries in snapshot.overview.sections().values()
        for entry in entries
        if entry.id in (f"#{number}", *(f"#{pull.pull.number}" for pull in pulls))
    ]
    return {
        "item": item,
        "status": item_status(item),
        "pulls": pulls,
        "entries": entries,
        "blocking": [other.issue.number for other in snapshot.facts.items if number in other.blockers],
    }


def safe_url(url: str) -> str:
    """Return an address that a page may link to; empty for one with another scheme."""
    return url if url.startswith(("https://", "http://")) else ""


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(HERE / "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["safe_url"] = safe_url
    environment.filters["day"] = lambda at: at.strftime("%Y-%m-%d %H:%M") if at else ""
    return environment
