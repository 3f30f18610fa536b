"""``accord patch``: what an agent changed, as the adapter of an implementor takes it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from accord.cli.sources import read_bytes
from accord.kernel.documents import read_object
from accord.kernel.errors import BrokenContract
from accord.kernel.shapes import read_shape
from accord.kernel.store import write_whole
from accord.results.kinds import IMPLEMENTOR


@click.command()
@click.option("--base", required=True, metavar="REF", help="The branch or commit that the agent started from.")
@click.option("--dir", "directory", type=click.Path(path_type=Path), default=Path(), help="The agent's work tree.")
@click.option("--into", type=click.Path(path_type=Path), metavar="RESULT", help="Put the patch into this result.")
def patch(base: str, directory: Path, into: Path | None) -> None:
    """Print the patch from the merge base with REF to the work tree: commits, changes and untracked files.

    Ignored files and what agents leave behind are not in it. With --into, the patch is written into an implementor's
    result instead, in place of any that it has; a completed result without a change becomes a validation failure. That
    file is never a part of the patch.
    """
    from accord.cli.step import report_patch
    from accord.kernel.patches import extract_patch

    if into is None:
        sys.stdout.buffer.write(extract_patch(directory, base))
        return
    raw = read_bytes(str(into))
    taken = extract_patch(directory, base, without=into)
    try:
        document = read_object(raw)
        result = read_shape(IMPLEMENTOR.model, {"patch": None, **document.value})
    except BrokenContract as broken:
        raise _named(broken, into) from None
    written = enriched(result.model_dump(), taken)
    write_whole(into, json.dumps(written, indent=2) + "\n")
    report_patch(str(written["outcome"]), files_in(str(written["patch"] or "")))


def files_in(patch: str) -> int:
    """Count the files of a patch of ours; inside of a file, every line begins otherwise."""
    return sum(line.startswith("diff --git ") for line in patch.split("\n"))


def enriched(result: dict[str, object], taken: bytes) -> dict[str, object]:
    """Give a result its patch, or turn a completed one that changed nothing into a validation failure."""
    if result["outcome"] != "completed":
        return {**result, "patch": None}
    if not taken.strip():
        reason = (
            "The validation step that compares the work tree with its base failed: nothing was changed. What the agent "
            "tried left no trace, so the cause is outside of what accord can see."
        )
        summary = f"{reason}\n\n{result['summary']}"
        return {**result, "outcome": "validation-failure", "patch": None, "summary": summary}
    return {**result, "patch": taken.decode()}


def _named(broken: BrokenContract, into: Path) -> BrokenContract:
    """Name the file that is no implementor's result."""
    first = broken.findings[0].message if broken.findings else broken.message
    return BrokenContract(f"{into} is no implementor's result: {first}", findings=broken.findings)
