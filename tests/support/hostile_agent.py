"""Plays an agent that attacks its machine; writes what it reached to ``reached.json`` in its work tree.

usage: hostile_agent.py WANTED: a JSON file with ``hashes`` (SHA-256 of words to find) and ``places`` (files and folders
to change). It ends processes of its own run only, so that a lost defence harms nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

POISON = "poison-of-a-hostile-agent"
_WORD = re.compile(rb"[A-Za-z0-9_.-]{12,}")
_MOST_BYTES = 2_000_000


def ancestors() -> Iterator[int]:
    """Go up to the process of accord, and no further."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        if b"accord" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            return
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill() -> list[str]:
    """Kill accord and its guard."""
    killed = []
    own = [*ancestors()]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, parent = int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
            command = (stat.parent / "cmdline").read_bytes()
            if (parent in own and b"guard.py" in command) or pid in own:
                os.kill(pid, signal.SIGKILL)
                killed.append(command.decode(errors="replace")[:80])
    return killed


def find(hashes: list[str], places: list[str]) -> list[str]:
    """Look for the words in all processes and places."""
    patterns = ("environ", "cmdline", "root/proc/self/environ", "fd/*")
    files = [path for pattern in patterns for path in Path("/proc").glob(f"[0-9]*/{pattern}")]
    for place in [*places, "/run"]:
        files += [Path(place), *(Path(folder, name) for folder, _, names in os.walk(place) for name in names)]
    return [str(path) for path in files if _has_word(path, hashes)]


def _has_word(path: Path, hashes: list[str]) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            words = set(_WORD.findall(file.read(_MOST_BYTES)))
    except OSError:
        return False
    return any(hashlib.sha256(word).hexdigest() in hashes for word in words)


def poison(place: Path) -> str:
    """Append to a file, or to each file of a folder and to new ones; return what happened."""
    done = []
    targets = [place] if place.suffix or place.is_file() else [place / name for name in ("sitecustomize.py", "x.sh")]
    if place.is_dir():
        targets += [Path(folder, name) for folder, _, names in os.walk(place) for name in names][:200]
    for target in targets:
        with contextlib.suppress(OSError):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("a") as file:
                file.write(f"\n# {POISON}\n")
            done.append(str(target))
    return " ".join(done[:3])


def sockets() -> list[str]:
    """Connect to root's sockets."""
    reached = []
    for line in Path("/proc/net/unix").read_text().splitlines():
        path = line.split(maxsplit=7)[-1]
        if path.startswith("/") and os.path.lexists(path):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                reached.append(path)
    return reached


def main() -> None:
    """Attack, then leave a process behind."""
    wanted = json.loads(Path(sys.argv[1]).read_text())
    places = wanted["places"]
    reached = {
        "found": find(wanted["hashes"], places),
        "poisoned": {place: done for place in places if (done := poison(Path(place)))},
        "sockets": sockets(),
        "sudo": subprocess.run(["sudo", "-n", "true"], check=False).returncode == 0 if wanted.get("sudo") else False,
        "capabilities": re.findall(r"Cap(?:Prm|Eff|Bnd):\s*0*([1-9a-f]\w*)", Path("/proc/self/status").read_text()),
        "groups": [group for group in os.getgroups() if group != os.getgid()],
    }
    for name in ("config", "hooks/post-checkout", "hooks/pre-push"):
        with contextlib.suppress(OSError), Path(".git", name).open("a") as file:
            file.write(f"\n[core]\n\tfsmonitor = echo {POISON}\n")
    reached["killed"] = kill()
    subprocess.Popen(["sleep", wanted["sleep"]], start_new_session=True)
    Path("reached.json").write_text(json.dumps(reached, indent=1))
    sys.stdout.write("Done.\n")


if __name__ == "__main__":
    main()
