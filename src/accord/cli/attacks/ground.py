"""The table of ``accord attack``, ``attacks.yml``, and the sandbox in which both sides of an attack play.

A pattern of the table reads what the sandbox holds, as GitHub or a bot would: it uses none of the code that it judges.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, Request, build_opener

from accord.agents import REGISTRY_PATH
from accord.agents.registry import Registry
from accord.agents.registry_rules import registry_from
from accord.cli.output import print_wait
from accord.cli.sources import policy_of
from accord.core.clock import SystemClock
from accord.core.errors import AccordError, Interrupted
from accord.core.frozen import Frozen
from accord.files.yaml import read_yaml
from accord.github.client import GitHub
from accord.github.models import Access
from accord.loops.facts import LoopContext
from accord.loops.models import LoopDecision
from accord.loops.run import LOOPS, begin
from accord.results.run import apply_result, read_result
from accord.starts.events import check_repository, read_event
from accord.starts.facts import StartContext
from accord.starts.run import start
from accord.text.redaction import redactor_for
from accord.workflows.agents import shipped_agents
from accord_sandbox.planting import INSTALLATION_TOKEN, STRANGER_TOKEN
from accord_sandbox.show import document

if TYPE_CHECKING:
    from accord.engine.operations import ApplyOptions
    from accord.engine.receipts import Receipt
    from accord_sandbox.server import RunningSandbox

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
    """A hostile text, the pattern that finds it alive in a post or an answer, its harm, and where it is posted."""

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
    known = shipped_agents()
    action = next(name for name, one in known.actions.items() if one.app_token_unless and one.opened_by)
    agent = {b"action": action, b"program": min(known.programs)}
    for name, value in {b"token": _SHAPED, b"filler": "a1B2c" * 4, b"known": KNOWN, **agent}.items():
        raw = raw.replace(b"{%s}" % name, value.encode())
    return read_yaml(raw).value


TABLE: Any = _read_table()
ROWS = [AttackRow(section["title"], **row) for section in TABLE["sections"] for row in section["rows"]]
TEXTS = [HostileText(**row) for row in TABLE["texts"]]
HANDED = [HostileText(**row) for row in TABLE["handed"]]
PATCHES = [HostilePatch(**row) for row in TABLE["patches"]]


REPOSITORY, REQUEST, PULL, OWN = "accord/attack", 1, 2, 3
"""A copy of the repository: an issue of a stranger, the pull request of their fork, and one of its own."""


def task(key: str, scope: str, context: str) -> dict[str, Any]:
    """Return a task of a plan."""
    body = TABLE["task"].replace("{scope}", scope).replace("{context}", context)
    labels = ["task:implement", "status:pending", "priority:low", "complexity:low"]
    return {"tempID": key, "title": f"Task {key}", "body": body, "labels": labels, "blockedBy": []}


class Playground(Frozen):
    """The sandbox with the copy, and what both sides of an attack do there."""

    server: RunningSandbox
    home: Path
    clock: SystemClock = field(default_factory=SystemClock)

    def github(self, token: str = INSTALLATION_TOKEN) -> GitHub:
        """Connect as a token's person."""
        return GitHub(Access(REPOSITORY, token, self.server.url), self.clock, print_wait)

    @cached_property
    def registry(self) -> Registry:
        """The repository's own registry. Raises BrokenContract for a broken one."""
        return registry_from(self.github().find_file(REGISTRY_PATH.as_posix()))

    def apply(self, kind: type[ApplyOptions], result: dict[str, Any], **options: Any) -> Receipt:
        """Apply a result of an agent, as ``accord apply`` does."""
        redact = redactor_for({**os.environ, "ATTACKED_TOKEN": KNOWN})
        checked = read_result(json.dumps(result).encode())
        setting = kind(REPOSITORY, self.clock, redact, policy_of(self.registry, repository=REPOSITORY), **options)
        return _raise_interruption(apply_result(self.github(), checked, setting))

    def send(self, method: str, path: str, token: str, **body: object) -> Any:
        """Send a request to the sandbox as the person of a token, without any code of accord."""
        head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        url = f"{self.server.url}/repos/{REPOSITORY}{path}"
        request = Request(url, json.dumps(body).encode(), head, method=method)  # noqa: S310 (the sandbox's own)
        with build_opener(ProxyHandler({})).open(request, timeout=30) as answer:
            return json.loads(answer.read())

    def contents(self) -> dict[str, Any]:
        """Return what the sandbox holds."""
        return document(self.home / "sandbox")

    def git(self, *arguments: str) -> str:
        """Ask git about what was pushed."""
        return self.server.application.storage.open(REPOSITORY).git.line(*arguments)

    def event(self, action: str, sender: str, **payload: Any) -> dict[str, Any]:
        """Return the payload of an event about the request."""
        who = {"login": sender, "type": "Bot" if sender.endswith("[bot]") else "User"}
        issue = self.send("GET", f"/issues/{REQUEST}", STRANGER_TOKEN)
        return {"action": action, "issue": issue, "sender": who, "repository": {"full_name": REPOSITORY}, **payload}

    def start(self, name: str, action: str, sender: str, **payload: Any) -> Receipt:
        """Deliver an event, as the workflow of starts does. Raises WrongUsage for one of another repository."""
        event = self.event(action, sender, **payload)
        check_repository(event, REPOSITORY)
        context = StartContext(self.github(), REPOSITORY, self.server.url, self.clock, redactor_for(os.environ))
        return _raise_interruption(start(context, read_event(name, event)))

    def begin_keepalive(self, number: int) -> LoopDecision:
        """Begin a turn of keepalive on a pull request."""
        agents, policy = tuple(self.registry.agents), policy_of(self.registry, repository=REPOSITORY)
        where = (self.github(), REPOSITORY, number, "900", agents, self.clock, redactor_for(os.environ), policy)
        return begin(LOOPS["keepalive"], LoopContext(*where)).decision


def _raise_interruption(receipt: Receipt) -> Receipt:
    """Return a receipt, unless a signal ended its run."""
    if isinstance(receipt.error, Interrupted):
        raise receipt.error
    return receipt


def require(receipt: Receipt) -> Receipt:
    """Return the receipt of an applied result. Raises what kept it from that: without posts, no row says anything."""
    if receipt.error:
        raise receipt.error
    if receipt.exit_code:
        raise AccordError(f"The {receipt.kind} was refused: {receipt.findings[0].text}")
    return receipt
