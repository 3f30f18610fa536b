"""Attacks of ``accord attack`` on the container of an agent, and what is open without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from accord.agents.registry import Registry
from accord.cli.attacks.ground import KNOWN, TABLE, Attacked
from accord.core.errors import AccordError
from accord.runner.isolation import REACHES_CLOUD, Confinement, choose_confinement, container_for
from accord.runner.models import AgentNotStarted
from accord.runner.proxy import serve_proxy

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
    words = [
        sys.executable,
        "-c",
        TABLE["program"],
        job["HOME"],
        job["RUNNER_TEMP"],
        job["RUNNER_TOOL_CACHE"],
        str(os.getpid()),
    ]
    words += [server.partition("//")[2], KNOWN]
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
    """Run the program, and look whether a process of it goes on."""
    secret = {**os.environ, "ATTACKED_TOKEN": KNOWN}
    command, data = confinement.command(words, work, {"PATH": os.environ["PATH"]})
    done = subprocess.run(command, input=data, capture_output=True, timeout=_SECONDS, check=True, env=secret)  # noqa: S603
    reached: dict[str, Any] = json.loads(done.stdout)
    before = (work / "beat").read_bytes() if (work / "beat").exists() else b""
    time.sleep(0.4)
    now = (work / "beat").read_bytes() if (work / "beat").exists() else b""
    return {**reached, "outlives": before != now}
