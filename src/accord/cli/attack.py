"""``accord attack``: a hostile agent and strangers against a copy of your repository in the sandbox."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import click

from accord.agents.registry import Registry
from accord.cli.attacks.ground import (
    IDENTITY,
    KNOWN,
    NAME,
    PATCHES,
    ROWS,
    TABLE,
    TEXTS,
    Attacked,
    AttackRow,
    HostileText,
    Playground,
)
from accord.cli.attacks.handed import play_handed
from accord.cli.attacks.remote import approval, marker, own_patches, play_people, play_results
from accord.cli.demo import sync_labels
from accord.cli.options import FormatArguments, RootArguments, command, top_of
from accord.cli.sources import policy_of, sandbox_server
from accord.cli.step import present
from accord.core.errors import AccordError
from accord.git.program import Git, split_nul
from accord.runner.isolation import REACHES_CLOUD, Confinement, choose_confinement, container_for
from accord.runner.models import AgentNotStarted
from accord.runner.proxy import serve_proxy
from accord_sandbox.calls import SandboxSettings

_PLAN_WORKFLOW = ".github/workflows/accord-plan.yml"


class _AttackArguments(RootArguments, FormatArguments):
    pass


@command(_AttackArguments)
def attack(given: _AttackArguments) -> int:
    """Play attacks against a copy of your repository.

    The copy has the files of the checked-out commit, with your registry and configuration. Nothing leaves this machine.
    Attacks that need more are only listed. Exits 1 if anything got through.
    """
    root = top_of(given.root)
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-") as folder:
        home = Path(folder)
        seed, commit = _seed(root, home)
        with sandbox_server()(home / "sandbox", seed=seed, settings=SandboxSettings(rate_limits=None)) as server:
            ground = Playground(server, home)
            tried = [
                *_play(ground),
                *play_handed(home / "handed", server.url),
                *play_in_container(home, server.url),
                *play_without_container(ground.registry),
            ]
    found = [_judged_row(row, [each for each in tried if each.row == row.id]) for row in ROWS]
    counts = Counter(row["outcome"] for row in found)
    numbers = f"{counts['held']} held, {counts['through']} got through, {counts['not-played']} were not played"
    next_step = (
        "Next: look at what your registry allows, such as `allowed_hosts` and `isolation: none`. "
        "Report any other row as SECURITY.md says."
        if counts["through"]
        else "Next: run `accord doctor`, which judges the workflows of the repository."
    )
    played = f"the files of {commit[:12]}" if commit else "accord's defaults, as this folder has no commit"
    present(
        given,
        {"ok": not counts["through"], "commit": commit, "attacks": found, "next": next_step[6:]},
        [f"Played against {played}.", *map(_lines, found), "", f"{len(found)} attacks: {numbers}.", next_step],
    )
    return 1 if counts["through"] else 0


def _judged_row(row: AttackRow, tried: Sequence[Attacked]) -> dict[str, Any]:
    """Return a row of the table with what was tried: it got through if any of that did."""
    reason = row.unplayed or next((each.unplayed for each in tried if each.unplayed), "")
    outcome = "through" if any(each.through for each in tried) else "not-played" if reason else "held"
    return {
        "section": row.section,
        "attack": row.title,
        "outcome": outcome,
        "reason": reason,
        "tests": row.tests,
        "tried": [{"tried": each.tried, "through": each.through, "seen": each.seen} for each in tried],
    }


def _lines(row: dict[str, Any]) -> str:
    if row["outcome"] == "not-played":
        return f"{click.style('not played', fg='yellow')}  {row['attack']}: {row['reason']}"
    word = click.style("THROUGH   ", fg="red") if row["outcome"] == "through" else click.style("held      ", fg="green")
    lines = [f"{word}  {row['attack']}"]
    for each in row["tried"]:
        got = f"THROUGH, {each['through']}; seen: " if each["through"] else ""
        lines.append(f"              {each['tried']}: {got}{each['seen']}")
    return "\n".join(lines)


def _seed(root: Path, home: Path) -> tuple[Path, str]:
    """Write the seed of a sandbox with the files of the checked-out commit; return it and the commit, empty if none."""
    seed = deepcopy(TABLE["seed"])
    (repository,) = seed["repositories"]
    commit = Git(root).commit_of("HEAD^{commit}")
    tree: Sequence[str] = ()
    if commit:
        copy = home / "copy"
        copy.mkdir()
        git = Git(copy, IDENTITY)
        git("init", "--quiet", "--initial-branch=main")
        top = Path(Git(root).line("rev-parse", "--show-toplevel"))
        git("fetch", "--quiet", "--depth=1", "--no-tags", top.as_uri(), commit)
        git("update-ref", "refs/heads/main", git.line("commit-tree", f"{commit}^{{tree}}", "-m", "Copy"))
        tree = split_nul(git("ls-tree", "-r", "-z", "--name-only", "main"))
        repository["git"] = str(copy)
    if _PLAN_WORKFLOW not in tree:
        repository["files"][_PLAN_WORKFLOW] = TABLE["workflow"]
    file = home / "seed.json"
    file.write_text(json.dumps(seed), encoding="utf-8")
    return file, commit


def _play(ground: Playground) -> Iterator[Attacked]:
    sync_labels(ground.github(ground.server.token))
    texts = [*TEXTS]
    for word in policy_of(ground.registry).words:
        alive = r"(?i)" + r"\s+".join(map(re.escape, word.split()))
        texts.append(HostileText("post", f"a word of `break_words`: {word}", word, alive, "a bot acts on it"))
    if ground.registry.references == "own":
        texts.append(HostileText("reference", "a reference", f"See {NAME}/x#1", f"{NAME}/x#1", "a link back", "iprc"))
    else:
        yield Attacked("reference", "a reference", unplayed="the registry lets references stay")
    yield from play_results(ground, texts, [*PATCHES, *own_patches(ground)])
    yield marker(ground)
    yield approval(ground)
    yield from play_people(ground)


_SECONDS = 60


_REACHED = {
    "home": ("a login in HOME and a key in RUNNER_TEMP", "they are read"),
    "memory": ("the environment of other processes, and a tool of the cache", "a secret is read, or the tool changed"),
    "end": ("a signal to accord", "it arrives"),
    "outlives": ("a process in the background", "it goes on"),
    "rights": ("capabilities and new privileges", "it has some"),
    "cloud": ("169.254.169.254", "it is reached"),
    "network": ("a server on this machine", "it is reached"),
}


def play_in_container(home: Path, server: str) -> Iterator[Attacked]:
    """Run a hostile program in the container that agents get here; once with a network, and once without.

    ``server`` is an address of this machine that answers.
    """
    reached, reason = _reached_targets(home, server)
    for row, (tried, harm) in _REACHED.items():
        why = REACHES_CLOUD if row == "cloud" and reason == REACHES_CLOUD else "" if reached else reason
        seen = "the program gets nothing of it"
        yield Attacked(row, tried, "" if why or not reached.get(row) else harm, "" if why else seen, why)
    all_of = [row for row, is_reached in reached.items() if is_reached and not (row == "cloud" and reason)]
    seen, why = ("one program tried all", "") if reached else ("", reason)
    yield Attacked("container", "all of them", ", ".join(all_of), seen, why)


def play_without_container(registry: Registry) -> Iterator[Attacked]:
    """Say of each agent that a registry starts without a container which attacks nothing stops."""
    for name in registry.enabled_agents():
        agent = registry.agents[name]
        choices = {"sandbox": agent.sandbox, "safety_strategy": agent.safety_strategy}
        open_by = [
            f"its `{key}` is `{one.default}` by default: use another one"
            for key, one in choices.items()
            if one and one.values[one.default].keeps_sudo
        ]
        keeps_rights = bool(open_by)
        open_by += ["it has `isolation: none`: remove that key"] if agent.isolation == "none" else []
        for row, (tried, harm) in {**_REACHED, "container": ("all of them", "no container is around it")}.items():
            if open_by and row != "outlives" and (row != "rights" or keeps_rights):
                yield Attacked(row, f"{tried}, by the agent `{name}`", harm, f"in your registry, {open_by[-1]}")


def _reached_targets(home: Path, server: str) -> tuple[dict[str, bool], str]:
    """Return what the program reached, and why it did not run, or could not be kept from the cloud."""
    places = {name: home / "machine" / name for name in ("home", "temp/agent", "cache", "work")}
    for place in places.values():
        place.mkdir(parents=True)
    (places["home"] / ".netrc").write_text(KNOWN, encoding="utf-8")
    (places["temp/agent"].parent / "key").write_text(KNOWN, encoding="utf-8")
    (places["cache"] / "tool").write_text("as it was", encoding="utf-8")
    job = {"HOME": str(places["home"]), "RUNNER_TEMP": str(places["temp/agent"].parent), "PATH": os.environ["PATH"]}
    job |= {"RUNNER_TOOL_CACHE": str(places["cache"]), "GITHUB_ACTIONS": "true"}
    folders = (job[name] for name in ("HOME", "RUNNER_TEMP", "RUNNER_TOOL_CACHE"))
    words = [sys.executable, "-c", TABLE["program"], *folders, str(os.getpid()), server.partition("//")[2], KNOWN]
    found: dict[str, bool] = {}
    for name in ("plain", "proxied"):
        private = places["temp/agent"] / name
        private.mkdir()
        proxy = private / "proxy" if name == "proxied" else None
        container = container_for(job, private, [places["work"]], [], [Path(sys.executable)], proxy=proxy)
        try:
            confinement, warning = choose_confinement(container, job, is_required=True)
            if proxy:
                with serve_proxy([], proxy, job):
                    found["network"] = _run(confinement, words, places["work"])["network"]
            else:
                found, reason = _run(confinement, words, places["work"]), warning
        except (AgentNotStarted, OSError, subprocess.SubprocessError, ValueError) as error:
            return {}, error.message if isinstance(error, AccordError) else f"{error}"
    tool = (places["cache"] / "tool").read_text(encoding="utf-8")
    found["memory"] |= tool != "as it was"
    return found, reason


def _run(confinement: Confinement, words: Sequence[str], work: Path) -> dict[str, bool]:
    secret = {**os.environ, "ATTACKED_TOKEN": KNOWN}
    command, data = confinement.command(words, work, {"PATH": os.environ["PATH"]})
    done = subprocess.run(command, input=data, capture_output=True, timeout=_SECONDS, check=True, env=secret)  # noqa: S603
    reached: dict[str, Any] = json.loads(done.stdout)
    before = (work / "beat").read_bytes() if (work / "beat").exists() else b""
    time.sleep(0.4)
    now = (work / "beat").read_bytes() if (work / "beat").exists() else b""
    return {**reached, "outlives": before != now}
