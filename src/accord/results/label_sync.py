"""Label files, and syncing a repository's labels with one: read the file, plan from two lists, apply label by label."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, RootModel, model_validator

from accord.agents.registry import label_entries
from accord.core.errors import AccordError, BrokenContract, Interrupted, Problem, Refused, WrongUsage
from accord.core.findings import DoctorCheck, Finding, pointer, warning, with_lines
from accord.core.frozen import Frozen
from accord.core.shapes import read_shape
from accord.core.suggest import did_you_mean
from accord.engine.operations import OperationLog
from accord.files.store import read_inside, write_whole
from accord.files.yaml import read_yaml
from accord.github.limits import LABEL_DESCRIPTION_CHARS
from accord.github.models import Forbidden, Label, NotThere
from accord.results.labels import label_fault

if TYPE_CHECKING:
    from accord.github.client import GitHub


CREATED, UPDATED, RENAMED, DELETED = "created", "updated", "renamed", "deleted"
UP_TO_DATE, FAILED = "up-to-date", "failed"

_COLOR = re.compile(r"[0-9a-fA-F]{6}")


def _label_name(text: str) -> str:
    if fault := label_fault(text):
        raise ValueError(f"The value is not a name of a label. {fault.message.removesuffix('.')}", fault.hint)
    return text


def _color(value: Any) -> str:
    if not isinstance(value, str) or not _COLOR.fullmatch(value):
        raise ValueError("The value is not a color", "Write six hex digits without `#`, in quotes.")
    return value.lower()


_Name = Annotated[str, AfterValidator(_label_name)]


class LabelEntry(BaseModel):
    """A label of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: _Name
    description: str = Field("", max_length=LABEL_DESCRIPTION_CHARS)
    color: Annotated[str, BeforeValidator(_color)]  # in lower case
    aliases: tuple[_Name, ...] = ()  # former names

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return {key: each for key, each in value.items() if each is not None} if isinstance(value, dict) else value


class _LabelFile(RootModel[tuple[LabelEntry, ...]]):
    """The labels of a file."""


@cache
def shipped_labels() -> tuple[LabelEntry, ...]:
    """Return the labels that accord ships: the contract's taxonomy and those of the loops."""
    shipped = resources.files("accord.results").joinpath("labels.yml").read_text("utf-8")
    return parse_labels((shipped + label_entries()).encode())


def parse_labels(raw: bytes) -> tuple[LabelEntry, ...]:
    """Read a label file. Raises BrokenContract with every finding, each on its line."""
    document = read_yaml(raw)
    if not isinstance(document.value, list):
        hint = "Write a line `- {name: NAME, description: TEXT, color: 'RRGGBB'}` for each."
        raise BrokenContract.of(Finding("schema", "The file is not a list of labels.", line=1, hint=hint))
    try:
        entries = read_shape(_LabelFile, document.value).root
        findings = tuple(_repeated_names(entries))
    except BrokenContract as broken:
        findings = broken.findings
    if findings:
        raise BrokenContract("The label file is invalid.", findings=with_lines(findings, document.lines))
    return entries


def _repeated_names(entries: Iterable[LabelEntry]) -> Iterator[Finding]:
    """Find names that two entries claim; GitHub ignores case when it compares label names."""
    seen: dict[str, str] = {}
    for i, entry in enumerate(entries):
        for j, name in enumerate([entry.name, *entry.aliases]):
            path = pointer(i, "name") if j == 0 else pointer(i, "aliases", j - 1)
            if name.casefold() in seen:
                message = f"`{name}` is already used at {seen[name.casefold()]}; names are not case-sensitive."
                yield Finding("label-repeated", message, path, hint="Rename one.")
            seen.setdefault(name.casefold(), path)


class LabelAction(Frozen):
    """The action for one label. ``found`` is the repository's label, under its old name when it is renamed."""

    name: str
    action: str
    wanted: Label | None = None
    found: Label | None = None
    error: str = ""

    @property
    def is_change(self) -> bool:
        """Whether the repository differs here."""
        return self.action != UP_TO_DATE

    def description(self, outcome: str) -> str:
        """Describe the action to people: planned changes did not happen yet."""
        return f"to be {self.action}" if self.is_change and outcome in ("planned", "drift") else self.action


def plan_labels(
    entries: Sequence[LabelEntry], current: Sequence[Label], ours: Collection[str], named: Collection[str] = ()
) -> tuple[list[LabelAction], list[Finding]]:
    """Compare the file with the repository; delete labels in ``ours`` and ``named`` that the file lacks.

    An alias is renamed, so that issues keep the label. GitHub cannot merge labels: where alias and name both exist, a
    warning asks for help, and only ``named`` deletes the alias.
    """
    by_name = {label.name.casefold(): label for label in current}
    actions: list[LabelAction] = []
    findings: list[Finding] = []
    kept, left = set[str](), set[str]()
    for entry in entries:
        names = [name.casefold() for name in (entry.name, *entry.aliases)]
        here = [by_name[name] for name in names if name in by_name]
        found, others = (here[0] if here else None), here[1:]
        actions.append(_action(Label(entry.name, entry.description, entry.color), found))
        kept |= {entry.name.casefold(), found.name.casefold() if found else ""}
        for alias in others:
            message = f"`{alias.name}` is an alias of `{entry.name}`, but both labels exist, so it cannot be renamed."
            findings.append(warning("alias-left", message, hint="Relabel its issues by hand, then delete it."))
            left.add(alias.name.casefold())
    for name in named:
        if name.casefold() in kept:
            message = f"`{name}` is not removed, because the file lists it."
            findings.append(warning("not-removed", message, hint="Take it out of the file first."))
        elif name.casefold() not in by_name:
            hint = did_you_mean(name, [label.name for label in current]) or "Correct the name, or leave out `--remove`."
            findings.append(warning("not-removed", f"The repository has no label `{name}`.", hint=hint))
    gone = ({name.casefold() for name in ours} - left | {name.casefold() for name in named}) - kept
    actions += [LabelAction(by_name[name].name, DELETED, None, by_name[name]) for name in sorted(gone & by_name.keys())]
    return actions, findings


def _action(wanted: Label, found: Label | None) -> LabelAction:
    if found is None:
        return LabelAction(wanted.name, CREATED, wanted)
    action = RENAMED if found.name != wanted.name else UPDATED if found != wanted else UP_TO_DATE
    return LabelAction(wanted.name, action, wanted, found)


def apply_labels(
    github: GitHub,
    actions: Sequence[LabelAction],
    on_action: Callable[[LabelAction], None],
    log: OperationLog | None = None,
    track: Callable[[LabelAction], AbstractContextManager[object]] = nullcontext,
) -> tuple[list[LabelAction], Problem | None]:
    """Apply the actions until GitHub is unreachable or forbids all; return how they ended, and that error.

    Each change is made in a block of ``track``. After a signal, the actions that were not begun are left out.
    """

    def send(action: LabelAction) -> None:
        with track(action):
            _apply(github, action)

    ended, log = list[LabelAction](), log or OperationLog()
    problem: Problem | None = None
    for action in actions:
        result, refusal = action, problem
        try:
            if action.is_change and problem is None:
                log.write("sync-label", action.name, partial(send, action))
        except Problem as error:
            refusal, is_there = error, action.found or not isinstance(error, NotThere)
            is_of_all = isinstance(error, Forbidden) or not (isinstance(error, Refused) and is_there)
            problem = error if is_of_all else None
        if refusal is not None and action.is_change:
            hint = "" if refusal is problem else f" {refusal.hint}"
            result = replace(action, action=FAILED, error=f"{refusal.message}{hint}".rstrip())
        ended.append(result)
        try:
            on_action(result)
        except Problem as error:
            problem = problem or error
        if isinstance(problem, Interrupted):
            break
    return ended, problem


def _apply(github: GitHub, action: LabelAction) -> None:
    wanted, found = action.wanted, action.found
    if wanted and found:
        try:
            github.change_label(found.name, wanted)
        except NotThere:  # a rename that is sent again after a lost answer does not find the old name
            if github.label(wanted.name) != wanted:
                raise
    elif wanted:
        github.send_once(lambda: github.create_label(wanted), lambda: github.label(wanted.name))
    elif found:
        github.delete_label(found.name)


class LabelRecord:
    """The names of the repository's labels that syncs created, kept in a file for pruning.

    The label that a request creates or renames is there as it is sent. If the request is interrupted, the label counts
    at the next sync if the repository has exactly that one.
    """

    def __init__(self, path: Path, labels: Iterable[Label]) -> None:
        """Read the file, with the labels of the repository. Raises WrongUsage where it is broken."""
        self._path, self._stored = path, list[object]()
        try:
            self._stored = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise WrongUsage(f"Cannot read the record {path}: {error}", hint="Fix or delete the file.") from None
        stored = self._stored
        if not isinstance(stored, list) or not all(isinstance(entry, (str, dict)) for entry in stored):
            raise WrongUsage(f"The record {path} is not a list of names.", hint="Fix or delete the file.")
        found = [(label.name, asdict(label)) for label in labels]
        there = {name.casefold() for name, _ in found}
        self.names = {entry for entry in stored if isinstance(entry, str) and entry.casefold() in there}
        self.names |= {name for name, label in found if label in stored}

    def save(self, sent: Label | None = None) -> None:
        """Write the names, and the label that is being sent."""
        entries: list[object] = [*sorted(self.names), *([asdict(sent)] if sent else [])]
        if entries != self._stored:
            write_whole(self._path, json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
            self._stored = entries

    @contextmanager
    def track(self, action: LabelAction) -> Iterator[None]:
        """Record what the block does to a label, also if the block is interrupted."""
        wanted, old = action.wanted, {action.found.name} if action.found else set()
        is_ours = old <= self.names  # a new label is
        after = self.names - old | ({wanted.name} if wanted and is_ours else set())
        self.save(wanted if after - self.names else None)
        try:
            yield
        except Refused:
            self.save()
            raise
        self.names = after
        self.save()


LABEL_FILES = (".github/labels.yml", ".github/labels.yaml", ".github/labels.json")
LABELS_ON_GITHUB = "labels on GitHub"


def label_checks(root: Path, read_labels: Callable[[], tuple[str, Sequence[Label]]] | str) -> Iterator[DoctorCheck]:
    """Check the label file, and the labels on GitHub.

    ``read_labels`` returns repository and labels; a text instead says why they cannot be read.
    """
    names = [name for name in LABEL_FILES if (root / name).exists()]
    path = names[0] if names else ""
    text, hint = f"is not read: the label file is `{path}`.", "Move its labels there, and delete it."
    found = [(other, warning("config-unread", f"`{other}` {text}", hint=hint)) for other in names[1:]]
    try:
        entries = _entries_in(root, path)
    except BrokenContract as broken:
        yield DoctorCheck("label file", path, [*((path, finding) for finding in broken.findings), *found])
        yield DoctorCheck(LABELS_ON_GITHUB, "fix the label file first", is_skipped=True)
        return
    note = f"{len(entries)} labels in {path}" if path else "none; the labels that accord ships apply"
    yield DoctorCheck("label file", note, found)
    if isinstance(read_labels, str):
        yield DoctorCheck(LABELS_ON_GITHUB, read_labels, is_skipped=True)
    else:
        yield _compare_labels(entries, path or LABEL_FILES[0], read_labels)


def label_names(root: Path) -> tuple[str, ...]:
    """Return the names in the label file of a directory, those that accord ships without one; none of a broken file."""
    path = next((name for name in LABEL_FILES if (root / name).exists()), "")
    try:
        return tuple(entry.name for entry in _entries_in(root, path))
    except BrokenContract:
        return ()


def _entries_in(root: Path, path: str) -> tuple[LabelEntry, ...]:
    return parse_labels(read_inside(root, path)) if path else shipped_labels()


def _compare_labels(
    entries: Sequence[LabelEntry], path: str, read_labels: Callable[[], tuple[str, Sequence[Label]]]
) -> DoctorCheck:
    """Compare the label file with GitHub; labels that cannot be read are a warning."""
    try:
        repository, labels = read_labels()
    except WrongUsage as error:
        return DoctorCheck(LABELS_ON_GITHUB, error.message, is_skipped=True)
    except AccordError as error:
        found = [(path, warning("labels-unknown", error.message, hint=error.hint))]
        return DoctorCheck(LABELS_ON_GITHUB, "not readable", found)
    changes = [action for action in plan_labels(entries, labels, ())[0] if action.is_change]
    texts = [
        f"{action} {', '.join(f'`{change.name}`' for change in changes if change.action == action)}"
        for action in sorted({change.action for change in changes})
    ]
    count = "1 label differs" if len(changes) == 1 else f"{len(changes)} labels differ"
    message = f"{count} from the label file: to be {'; to be '.join(texts)}."
    file = f" --file {path}" if entries != shipped_labels() else ""
    hint = f"Run `accord labels sync{file}`."
    found = [(path, warning("label-drift", message, hint=hint))] if changes else []
    return DoctorCheck(LABELS_ON_GITHUB, repository, found)
