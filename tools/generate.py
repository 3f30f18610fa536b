"""Generate every part of the documentation that the code defines: one source per fact, one command to update all.

    python -P tools/generate.py            write outdated parts
    python -P tools/generate.py --check    exit 1 and show the differences

A part is a whole file (``docs/cli.md``), or the text between ``<!-- name -->`` and ``<!-- /name -->`` of a page that
people write; ``reference/parts.py`` lists them. Finding codes are collected from the source, so that none stays without
a line in ``src/accord/cli/findings.yml``.
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


def with_content(page: str, mark: str, content: str, name: str) -> str:
    """Return a page with generated content between its marks."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    if page.count(start) != 1 or page.count(end) != 1 or page.index(start) > page.index(end):
        raise Problem(f"{name} needs {start} and {end}, once each, around its generated part.")
    before, _, rest = page.partition(start)
    return f"{before}{start}\n\n{content}\n\n{end}{rest.partition(end)[2]}"


def expected_pages(root: Path) -> tuple[dict[str, str], list[str]]:
    """Return the expected content of every generated file, and the problems that people must fix."""
    pages: dict[str, str] = {}
    problems: list[str] = []
    for part in parts(root):
        try:
            if part.mark:
                page = pages.get(part.path) or read(root / part.path)
                pages[part.path] = with_content(page, part.mark, part.render(), part.path)
            else:
                pages[part.path] = part.render()
        except Problem as problem:
            problems.append(str(problem))
    return pages, problems


def read(path: Path) -> str:
    """Read a page, or raise Problem if it is missing."""
    if not path.exists():
        raise Problem(f"{path.name} is missing in {path.parent}.")
    return path.read_text(encoding="utf-8")


def stale_schemas(root: Path, pages: Iterable[str]) -> list[str]:
    """List schemas of kinds that no longer exist."""
    return sorted({f"schemas/{path.name}" for path in root.glob("schemas/*.json")} - set(pages))


def difference(root: Path, name: str, wanted: str) -> str:
    """Return the difference between a file and its expected content, or an empty text."""
    path = root / name
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(found.splitlines(), wanted.splitlines(), name, f"{name} (generated)", lineterm="", n=1)
    return "\n".join(lines)


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write outdated parts, or with ``--check`` only report them."""
    pages, problems = expected_pages(root)
    stale = stale_schemas(root, pages)
    differences = [text for name, wanted in pages.items() if (text := difference(root, name, wanted))]
    if "--check" in arguments:
        problems += [*differences, *(f"{name} belongs to no kind of document." for name in stale)]
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
