"""The page about handoffs lists every role."""

import re
from pathlib import Path

from accord.handoffs.rules import ROLES

ROOT = Path(__file__).parents[2]


def test_the_page_lists_every_role() -> None:
    page = (ROOT / "docs/handoffs.md").read_text(encoding="utf-8")
    part = page.partition("Each role must leave")[2].partition("\n\n")[2].partition("\n\n")[0]
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^- (`.*?):", part, re.MULTILINE)))
    assert set(listed) == set(ROLES)
