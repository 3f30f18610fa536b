"""Checks of a repository's label file and of its labels on GitHub."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.core.errors import AccordError, BrokenContract, WrongUsage
from accord.core.findings import DoctorCheck, warning
from accord.files.inside import read_inside
from accord.results.label_sync import parse_labels, plan_labels, shipped_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from accord.github.models import Label
    from accord.results.label_sync import LabelEntry

LABEL_FILES = (".github/labels.yml", ".github/labels.yaml", ".github/labels.json")
_LABELS_ON_GITHUB = "labels on GitHub"


def label_checks(
    root: Path, read_labels: Callable[[], tuple[str, Sequence[Label]]] | None = None
) -> Iterator[DoctorCheck]:
    """Check the label file and the labels on GitHub.

    ``read_labels`` returns the repository's name and its labels on GitHub; without it, that check is skipped.
    """
    path = next((name for name in LABEL_FILES if (root / name).exists()), None)
    entries: Sequence[LabelEntry] = shipped_labels()
    if path is None:
        yield DoctorCheck("label file", "none; the labels that accord ships apply")
    else:
        try:
            entries = parse_labels(read_inside(root, path))
            yield DoctorCheck("label file", f"{len(entries)} labels in {path}")
        except BrokenContract as broken:
            yield DoctorCheck("label file", path, [(path, finding) for finding in broken.findings])
            yield DoctorCheck(_LABELS_ON_GITHUB, "fix the label file first", is_skipped=True)
            return
    if read_labels is None:
        yield DoctorCheck(_LABELS_ON_GITHUB, "no GITHUB_TOKEN", is_skipped=True)
    else:
        yield _compare_labels(entries, path or LABEL_FILES[0], read_labels)


def _compare_labels(
    entries: Sequence[LabelEntry], path: str, read_labels: Callable[[], tuple[str, Sequence[Label]]]
) -> DoctorCheck:
    """Compare the label file with GitHub; a server that does not answer is a warning."""
    try:
        repository, labels = read_labels()
    except WrongUsage as error:
        return DoctorCheck(_LABELS_ON_GITHUB, error.message, is_skipped=True)
    except AccordError as error:
        return DoctorCheck(_LABELS_ON_GITHUB, "not readable", [(path, warning("labels-unknown", str(error)))])
    actions, _ = plan_labels(entries, labels, ())
    drift = [
        (path, warning("label-drift", f"The label `{action.name}` would be {action.action}. Run `accord labels sync`."))
        for action in actions
        if action.is_change
    ]
    return DoctorCheck(_LABELS_ON_GITHUB, repository, drift)
