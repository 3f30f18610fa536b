"""Let the pages that GitHub shows build as a site: links to files outside ``docs`` lead to GitHub."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/accord-ci/accord"
LINK = re.compile(r"\]\((?!https:|#)([^)#\s]+)(#[^)\s]*)?\)")


def site_target(target: str, folder: Path) -> str:
    """Return where a relative link of a page leads on the site: ``folder`` is the page's, below ``docs``."""
    there = Path(os.path.normpath(folder / target))
    if there.is_relative_to(ROOT / "docs"):
        return f"{target.rstrip('/')}/README.md" if there.is_dir() else target
    kind = "tree" if there.is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{there.relative_to(ROOT).as_posix()}"


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Return a page's Markdown with the links of the site; mkdocs calls this by name."""
    folder = Path(page.file.abs_src_path).parent
    return LINK.sub(lambda found: f"]({site_target(found[1], folder)}{found[2] or ''})", markdown)
