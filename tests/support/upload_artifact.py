"""Stands for actions/upload-artifact: packs files as it does, and gives them to the local GitHub of the run.

Run by act as a script of its own, with the inputs as ``INPUT_…``. Packed files are also copied to ``$ARTIFACTS``.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path


def found(patterns: list[str]) -> dict[str, Path]:
    """Find files by patterns, folders with all in them; named by their path below what all patterns have in common."""
    roots: list[Path] = []
    files: set[Path] = set()
    for pattern in patterns:
        path = Path(pattern).absolute()
        matches = sorted(Path("/").glob(str(path).lstrip("/")))
        for match in matches:
            roots.append(match if match.is_dir() else match.parent)
            files |= {match} if match.is_file() else {child for child in match.rglob("*") if child.is_file()}
    root = Path(os.path.commonpath(roots)) if roots else Path()
    named = {str(path.relative_to(root)): path for path in sorted(files)}
    return {name: path for name, path in named.items() if not any(part.startswith(".") for part in Path(name).parts)}


def main() -> int:
    """Upload. The exit code and the words are those of the action."""
    files = found(os.environ["INPUT_PATH"].split("\n"))
    if not files:
        wanted = os.environ["INPUT_IF_NO_FILES_FOUND"]
        if wanted != "ignore":
            sys.stdout.write(
                f"::{'error' if wanted == 'error' else 'warning'}::No files were found with the provided path.\n"
            )
        return int(wanted == "error")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            archive.write(path, name)
            shutil.copy(path, Path(os.environ["ARTIFACTS"], path.name))
    names = (os.environ["GITHUB_REPOSITORY"], os.environ["GITHUB_RUN_ID"], urllib.parse.quote(os.environ["INPUT_NAME"]))
    url = (
        f"{os.environ['GITHUB_API_URL']}/_sandbox/artifacts/{'/'.join(names)}?overwrite={os.environ['INPUT_OVERWRITE']}"
    )
    try:
        urllib.request.urlopen(urllib.request.Request(url, packed.getvalue(), method="PUT"), timeout=600).close()
    except urllib.error.HTTPError as error:
        with error:
            sys.stdout.write(f"::error::Failed to CreateArtifact: ({error.code}) {error.read().decode()}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
