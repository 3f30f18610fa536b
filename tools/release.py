"""Prepare a release: check that a version is ready, print its notes, pin the examples to its commit.

    python -P tools/release.py check [TAG]      exit 1 and say what a release still lacks
    python -P tools/release.py notes [TAG]      print its section of the changelog
    python -P tools/release.py pin COMMIT       write the released commit into every example
    python -P tools/release.py digests FOLDER   print the digests of the packages in a folder
    python -P tools/release.py compare FOLDER   exit 1 if they are not those in the variable DIGESTS

Without a tag, the version is that of the package. ``tools/pin.txt`` holds the pin of all examples: ``<sha>`` until the
first release.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).parents[1]
PIN = Path("tools/pin.txt")
OURS = re.compile(
    r"(accord-ci/accord(?:/[^@\s`]*)?@|accord-ci/accord\n +rev: |\bref: )(<sha>|[0-9a-f]{40}) # v(\d+\.\d+\.\d+)"
)
"""A use of an action, a workflow or the hooks of accord in an example. The consumer kit is pinned when installed."""

SECTION = re.compile(
    r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?\n(?P<text>.*?)(?=^## \[|^\[|\Z)",
    re.MULTILINE | re.DOTALL,
)
KIT = "0" * 40


def version_of(root: Path) -> str:
    """Return the version of the package in a checkout."""
    text = (root / "src/accord/__init__.py").read_text(encoding="utf-8")
    return str(re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)[1])  # type: ignore[index]


def notes_of(changelog: str, version: str) -> str:
    """Return the changelog's section of a version; empty if it has none with a date."""
    for section in SECTION.finditer(changelog):
        if section["version"] == version and section["date"]:
            return section["text"].strip()
    return ""


def unreleased(changelog: str) -> str:
    """Return the section of changes that no version has yet."""
    return next(
        (found["text"].strip() for found in SECTION.finditer(changelog) if found["version"] == "Unreleased"), ""
    )


def pins_of(pages: Iterable[str]) -> set[str]:
    """Return the pins of the examples in pages, such as ``<sha> # v0.1.0``."""
    return {f"{pin} # v{version}" for page in pages for _, pin, version in OURS.findall(page) if pin != KIT}


def problems(version: str, tag: str, changelog: str, pin: str, pages: Iterable[str]) -> list[str]:
    """Return everything that keeps a version from its release."""
    found = []
    if tag != f"v{version}":
        found.append(
            f"The tag is `{tag}`, but `src/accord/__init__.py` says {version}. Set `__version__`, or tag `v{version}`."
        )
    if not notes_of(changelog, version):
        found.append(
            f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD` with changes. Rename Unreleased to it."
        )
    elif f"\n[{version}]: https://" not in changelog:
        found.append(f"CHANGELOG.md has no link `[{version}]: https://…`. Add it at the end.")
    if unreleased(changelog):
        found.append("CHANGELOG.md has changes under Unreleased. Move them to the section of the version.")
    found += [
        f"Examples are pinned to `{other}`, but {PIN} says `{pin}`. Run `python -P tools/release.py pin COMMIT`."
        for other in sorted(pins_of(pages) - {pin})
    ]
    return found


def pinned(page: str, pin: str) -> str:
    """Return a page whose examples have this pin."""
    return OURS.sub(lambda found: found[0] if found[2] == KIT else f"{found[1]}{pin}", page)


def pages_of(root: Path) -> dict[Path, str]:
    """Return the tracked pages of a checkout by path."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=root, check=True, capture_output=True, text=True).stdout
    return {root / name: (root / name).read_text(encoding="utf-8") for name in listed.splitlines()}


def digests_of(folder: Path) -> str:
    """Return the name and the SHA-256 digest of each file in a folder, on one line.

    Hidden ones are left out, as ``actions/upload-artifact`` does: uv writes a ``.gitignore``.
    """
    files = sorted(file for file in folder.iterdir() if not file.name.startswith("."))
    return " ".join(f"{file.name}={hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files)


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Run a command; return its exit code."""
    command, value = [*arguments, "", ""][:2]
    version, changelog = version_of(root), (root / "CHANGELOG.md").read_text(encoding="utf-8")
    tag = value or f"v{version}"
    if command == "check":
        pages = pages_of(root)
        lacking = problems(version, tag, changelog, (root / PIN).read_text(encoding="utf-8").strip(), pages.values())
        print("\n".join(lacking) or f"{tag} is ready.")
        return int(bool(lacking))
    if command == "notes":
        print(notes_of(changelog, tag.removeprefix("v")) or unreleased(changelog))
        return 0
    if command == "digests":
        print(digests_of(Path(value)))
        return 0
    if command == "compare":
        built, found = os.environ.get("DIGESTS", ""), digests_of(Path(value))
        print("The packages are those that were built." if found == built else f"Built: {built}\nFound: {found}")
        return int(not built or found != built)
    if command == "pin" and re.fullmatch("[0-9a-f]{40}", value):
        pin = f"{value} # v{version}"
        (root / PIN).write_text(f"{pin}\n", encoding="utf-8")
        for path, page in pages_of(root).items():
            if pinned(page, pin) != page:
                path.write_text(pinned(page, pin), encoding="utf-8")
        print("Pinned. Run `./dev generate`, then commit.")
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
