"""Writes every part of the documentation that the code already says: one source for a fact, one command to renew all.

    python -P tools/generate.py            write what is out of date
    python -P tools/generate.py --check    exit 1 and show the difference when something is

A part is a whole file (``docs/cli.md``), or what stands between ``<!-- name -->`` and ``<!-- /name -->`` of a page that
people write. Which parts there are, ``reference/parts.py`` says. Finding codes are collected from the source, so that
none stays without a line in ``tools/findings.yml``.
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))  # -P leaves it out

from reference.parts import parts
from reference.text import COMMAND, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).parents[1]


def filled(page: str, mark: str, content: str, name: str) -> str:
    """Put generated content into its place of a page."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    if page.count(start) != 1 or page.count(end) != 1 or page.index(start) > page.index(end):
        raise Problem(f"{name} needs {start} and {end}, once each, for what is generated there.")
    before, _, rest = page.partition(start)
    return f"{before}{start}\n\n{content}\n\n{end}{rest.partition(end)[2]}"


def expected(root: Path) -> tuple[dict[str, str], list[str]]:
    """Return what every generated file should hold, and the problems that are for people to fix."""
    pages: dict[str, str] = {}
    problems: list[str] = []
    for part in parts(root):
        try:
            if part.mark:
                page = pages.get(part.path) or read(root / part.path)
                pages[part.path] = filled(page, part.mark, part.render(), part.path)
            else:
                pages[part.path] = part.render()
        except Problem as problem:
            problems.append(str(problem))
    return pages, problems


def read(path: Path) -> str:
    """Read a page; Problem when it is not there."""
    if not path.exists():
        raise Problem(f"{path.name} is missing in {path.parent}.")
    return path.read_text(encoding="utf-8")


def stale_schemas(root: Path, pages: Iterable[str]) -> list[str]:
    """Name schemas of kinds that are gone."""
    return sorted({f"schemas/{path.name}" for path in root.glob("schemas/*.json")} - set(pages))


def difference(root: Path, name: str, wanted: str) -> str:
    """Show how a file differs from what it should hold; empty when it does not."""
    path = root / name
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(found.splitlines(), wanted.splitlines(), name, f"{name} (generated)", lineterm="", n=1)
    return "\n".join(lines)


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write what is out of date, or with ``--check`` only say so."""
    pages, problems = expected(root)
    stale = stale_schemas(root, pages)
    differences = [text for name, wanted in pages.items() if (text := difference(root, name, wanted))]
    if "--check" in arguments:
        problems += [*differences, *(f"{name} is of no kind that there is." for name in stale)]
        if problems:
            print("\n".join(problems))
            print(f"Generated parts are out of date. Run {COMMAND}.")
        return 1 if problems else 0
    for name, wanted in pages.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != wanted:
            path.write_text(wanted, encoding="utf-8", newline="\n")
            print(f"wrote {name}")
    for name in stale:
        (root / name).unlink()
        print(f"deleted {name}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
