"""``accord attack``: a hostile agent and strangers against a copy of your repository in the sandbox."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import click

from accord.cli.attacks.ground import (
    IDENTITY,
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
from accord.cli.attacks.local import play_in_container, play_without_container
from accord.cli.attacks.remote import approval, marker, own_patches, play_people, play_results
from accord.cli.demo import sync_labels
from accord.cli.options import FormatArguments, RootArguments, command, top_of
from accord.cli.sources import policy_of, sandbox_server
from accord.cli.step import present
from accord.git.program import Git, split_nul

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
        with sandbox_server()(home / "sandbox", seed=seed) as server:
            ground = Playground(server, home)
            tried = [
                *_play(ground),
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
