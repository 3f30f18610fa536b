"""The table of ``accord attack``, ``attacks.yml``: each known attack, what is tried, and how it shows that it held.

A pattern reads what the sandbox holds, as GitHub or a bot would: it uses none of the code that it judges.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from accord.core.frozen import Frozen
from accord.files.yaml import read_yaml

NAME = "accord-attack"
"""Marks everything that an attack makes: a login, a host, a folder."""

KNOWN = "correct-horse-battery-staple"
"""The value of a variable of the job."""

IDENTITY = {f"GIT_{role}_{what}": NAME for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
"""The author and committer of commits, for git."""

_SHAPED = "ghp_" + "a1B2" * 9  # the shape of a token, and not one
PLACES = {"i": "an issue", "p": "a pull request", "r": "a review", "c": "a commit"}


class AttackRow(Frozen):
    """A known attack, its defence, its tests, and its ``id``, or why ``accord attack`` does not play it."""

    section: str
    attack: str
    defence: str
    tests: list[str]
    id: str = ""
    unplayed: str = ""

    @property
    def title(self) -> str:
        """The attack without links."""
        return re.sub(r"\[([^][]*)\]\([^()]*\)", r"\1", self.attack)


class Attacked(Frozen):
    """One try of a row: what got through (empty: nothing), and what a person sees.

    ``unplayed``: why it could not be tried here.
    """

    row: str
    tried: str
    through: str = ""
    seen: str = ""
    unplayed: str = ""


class HostileText(Frozen):
    """A text of an agent, the pattern that finds it alive in a post, what it would do there, and where it acts."""

    row: str
    tried: str
    text: str
    alive: str
    harm: str
    places: str = "ipr"

    def is_alive_in(self, post: str) -> bool:
        """Return whether a post does what the text was written for."""
        return re.search(self.alive, post, re.MULTILINE) is not None


class HostilePatch(Frozen):
    """A new file in the patch of an agent; ``draft``: it may be in a draft, which a person reads first."""

    row: str
    tried: str
    path: str
    content: str = "x"
    mode: str = "100644"
    draft: bool = False

    @property
    def scope(self) -> str:
        """The path that the work item allows: this one, so that nothing else stops the patch."""
        return f"{NAME}/other.txt" if self.path.startswith(("../", ".git/")) else self.path

    @property
    def patch(self) -> str:
        """The patch, as git writes it."""
        end = "" if self.mode != "120000" else "\n\\ No newline at end of file"
        head = f"diff --git a/{self.path} b/{self.path}\nnew file mode {self.mode}\nindex 0000000..1111111\n"
        return f"{head}--- /dev/null\n+++ b/{self.path}\n@@ -0,0 +1 @@\n+{self.content}{end}\n"


def _read_table() -> Any:
    raw = Path(__file__).with_name("attacks.yml").read_bytes()
    for name, value in {b"token": _SHAPED, b"filler": "a1B2c" * 4, b"known": KNOWN}.items():
        raw = raw.replace(b"{%s}" % name, value.encode())
    return read_yaml(raw).value


TABLE: Any = _read_table()
ROWS = [AttackRow(section["title"], **row) for section in TABLE["sections"] for row in section["rows"]]
TEXTS = [HostileText(**row) for row in TABLE["texts"]]
PATCHES = [HostilePatch(**row) for row in TABLE["patches"]]
