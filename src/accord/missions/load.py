"""Facts of a mission, read from its folder: its documents, its log, and what is broken in them.

A broken part affects only itself: a work package that cannot be read is an error for a command about it, and a line in
the overview for all others. Layout: ``kitty-specs/SLUG/`` below the directory with ``.kittify/``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from accord.core.documents import read_object, short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, names_of, warning, with_lines
from accord.core.frozen import Frozen
from accord.core.shapes import Model, format_of, read_shape
from accord.core.suggest import did_you_mean
from accord.files.yaml import read_mapping
from accord.missions.lifecycle import CANCELED, IN_DOUBT, Blockers, People, blockers_of
from accord.missions.log import Log, current_status, read_mission_log
from accord.missions.models import (
    PLANNING_LANE,
    ExecutionMode,
    Frontmatter,
    Lanes,
    Meta,
    WorkPackageStatus,
    WorkspaceContext,
    first_name,
)
from accord.missions.modes import ResolvedMode, settle_mode
from accord.missions.projects import PARTS, SPECS, mission_entries, mission_slugs
from accord.missions.replay import lets_start, people_of

_Questions = ParamSpec("_Questions")
_AnswerOnce = TypeVar("_AnswerOnce")
WP_FILE = re.compile(r"\A(WP[0-9]{2,})(?:[-_.].*)?\.md")
_LIKE_WP_FILE = re.compile(r"wp[-_ ]?([0-9]{1,9})(?![0-9]).*", re.IGNORECASE)
_WP_KEY = re.compile(rb"^work_package_id[ \t]*:", re.MULTILINE)
_MOST_KNOWN = 200
_FRONTMATTER = re.compile(rb"\A---[ \t]*\r?(\n.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class WorkPackage(Frozen):
    """A work package that can be read, with its execution mode."""

    id: str
    path: Path
    head: Frontmatter
    body: str
    mode: ResolvedMode
    has_dependencies: bool

    @property
    def title(self) -> str:
        """The title, from the key of new or old files."""
        return self.head.title or self.head.work_package_title


class Mission(Frozen):
    """A mission as its files describe it."""

    root: Path
    slug: str
    meta: Meta
    lanes: Lanes | None
    contexts: dict[str, tuple[Path, WorkspaceContext]]
    log: Log
    # why work packages by their id, and other files by their path in the folder, cannot be used
    broken: dict[str, BrokenContract] = field(default_factory=dict)
    work_packages: dict[str, WorkPackage] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)  # of all work packages
    written: dict[str, str] = field(default_factory=dict)  # the statuses in those that can be read

    @property
    def folder(self) -> Path:
        """The directory of the mission."""
        return self.root / SPECS / self.slug

    @cached_property
    def known(self) -> dict[tuple[object, ...], Any]:
        """The answers of functions that are ``once_for_mission``, by function and arguments."""
        return {}

    @cached_property
    def dependents(self) -> dict[str, list[str]]:
        """The work packages that need each one."""
        found: dict[str, list[str]] = {}
        for wp_id, work_package in self.work_packages.items():
            for name in dict.fromkeys(work_package.head.dependencies):
                found.setdefault(name, []).append(wp_id)
        return found

    @cached_property
    def ids(self) -> list[str]:
        """The ids of all work packages that have a file, a lane or an event."""
        named = set(self.files)
        if self.lanes:
            named |= set(self.lanes.planning_artifact_wps)
            named |= {wp_id for lane in self.lanes.lanes for wp_id in lane.wp_ids}
        return sorted(named | set(self.log.latest), key=lambda name: (len(name), name))

    @property
    def unread(self) -> list[str]:
        """The files in the folder and below ``tasks/`` that are not read as work packages, but seem to be some."""
        return [name for name in self.broken if name not in self.files and name not in PARTS]

    @cached_property
    def open_boxes(self) -> tuple[str, ...]:
        """The first words of the boxes in ``tasks.md`` that are not ticked; a box begins with its subtask's name."""
        path = self.folder / "tasks.md"
        return open_boxes(path.read_bytes()) if path.is_file() else ()

    @cached_property
    def blockers(self) -> dict[str, Blockers]:
        """The blockers of each work package's start; a dependency with an unknown status is one, too."""
        stuck = {wp_id: CANCELED for wp_id in self.ids if self.known_status(wp_id) == "canceled"}
        stuck |= dict.fromkeys(filter(None, self.log.problems), IN_DOUBT)
        wanted = {wp_id: dict.fromkeys(one.head.dependencies) for wp_id, one in self.work_packages.items()}
        unready = {x for x in set().union(*wanted.values()) if x in stuck or not self.lets_start(x)}
        waits_for = {one: tuple(x for x in names if x in unready) for one, names in wanted.items()}
        unsure = {one: each.head.order_problem(self.files) for one, each in self.work_packages.items()}
        return blockers_of(waits_for, self.files, stuck, unsure)

    def work_package(self, wp_id: str) -> WorkPackage:
        """Return a work package. Raises BrokenContract when it is broken or missing."""
        self.check_readable(wp_id)
        if wp_id not in self.work_packages:
            for file in self.unread:
                if Path(file).name.upper().startswith(wp_id.upper()):
                    raise self.broken[file]
            message = f"Unknown work package `{short_name(wp_id)}` in mission {self.slug}."
            raise BrokenContract.of(Finding("unknown-work-package", message, hint=hint_of(wp_id, self.files)))
        return self.work_packages[wp_id]

    def status_of(self, wp_id: str) -> WorkPackageStatus:
        """Return the status of a work package. Raises BrokenContract where what may have it cannot be read."""
        self.log.check_readable(wp_id)
        if wp_id in self.files and wp_id not in self.written and not self.log.events:
            raise self.broken[wp_id]  # old missions have their statuses in these files alone
        return current_status(self.log, wp_id, self.written.get(wp_id, ""))

    def people_of(self, wp_id: str) -> People:
        """Return who works on a work package and who judges it."""
        return people_of(self.log.by_work_package.get(wp_id, ()))

    def lets_start(self, wp_id: str) -> bool:
        """Tell whether the dependents of a work package may start."""
        events = self.log.by_work_package.get(wp_id, ())
        return lets_start(self.known_status(wp_id), events, self.written.get(wp_id, ""))

    def known_status(self, wp_id: str) -> WorkPackageStatus | None:
        """Return the status of a work package; None where it cannot be read."""
        try:
            return self.status_of(wp_id)
        except BrokenContract:
            return None

    def check_readable(self, name: str) -> None:
        """Raise BrokenContract where a work package, ``meta.json`` or ``lanes.json`` cannot be used."""
        if name in self.broken:
            raise self.broken[name]


def open_boxes(raw: bytes) -> tuple[str, ...]:
    """Return the first words of the boxes in a text that are not ticked."""
    from accord.text.outline import tasks

    listed = tasks(raw.decode("utf-8", "replace"))
    return tuple(first_name(task.text) for task in listed if not task.is_checked)


def once_for_mission(
    function: Callable[Concatenate[Mission, _Questions], _AnswerOnce],
) -> Callable[Concatenate[Mission, _Questions], _AnswerOnce]:
    """Decorate a function so that it answers each question once, until the mission is read again."""

    @wraps(function)
    def answer_once(mission: Mission, /, *args: _Questions.args, **options: _Questions.kwargs) -> _AnswerOnce:
        key = (function, *args, *options.items())
        if key not in mission.known:
            mission.known[key] = function(mission, *args, **options)
        answer: _AnswerOnce = mission.known[key]
        return answer

    return answer_once


def missions_by_id(root: Path) -> dict[str, list[str]]:
    """Return the slugs of the missions with each ``mission_id``."""
    found: dict[str, list[str]] = {}
    for slug in mission_slugs(root):
        if (meta := _read_json(root / SPECS / slug / "meta.json", Meta, {})) and meta.mission_id:
            found.setdefault(meta.mission_id, []).append(slug)
    return found


def repeated_id(mission_id: str, slugs: Iterable[str]) -> Finding:
    """Return the finding of missions with one id."""
    message = f"The missions {' and '.join(slugs)} have one `mission_id`, {short_name(mission_id)}."
    return Finding("mission-id-repeated", message, "/mission_id", hint="Give one of them another id.")


def mission_folder(root: Path, slug: str) -> Path:
    """Return the folder of a mission, by its slug or its id. Raises BrokenContract unless one mission has the name."""
    entries = mission_entries(root)
    named = [slug] if slug in entries else missions_by_id(root).get(slug, [])
    if len(named) > 1:
        raise BrokenContract.of(repeated_id(slug, named))
    if not named:
        message = f"Unknown mission `{short_name(slug)}` in {root / SPECS}."
        raise BrokenContract.of(Finding("unknown-mission", message, hint=hint_of(slug, mission_slugs(root))))
    if problem := entries[named[0]]:
        raise BrokenContract.of(problem)
    return root / SPECS / named[0]


def load_mission(root: Path, slug: str, legacy_default: ExecutionMode | None = None) -> Mission:
    """Read a mission. Raises BrokenContract unless one has the name; every other problem is in ``broken``."""
    folder = mission_folder(root, slug)
    slug = folder.name
    broken: dict[str, BrokenContract] = {}
    meta = _read_json(folder / "meta.json", Meta, broken) or Meta()
    lanes = _read_json(folder / "lanes.json", Lanes, broken)
    log = read_mission_log(folder, meta.mission_id)
    mission = Mission(root, slug, meta, lanes, _contexts(root, slug), log, broken)
    others = []
    for path in sorted([*folder.iterdir(), *(folder / "tasks").rglob("*")]):
        if path.parent.parent == folder and (name := WP_FILE.fullmatch(path.name)) and path.is_file():
            _add_work_package(mission, name[1], path, legacy_default)
        elif path.name[0] != "." and not path.is_dir():
            others.append(path)
    found = ((path.relative_to(folder).as_posix(), _unread(path, mission)) for path in others)
    broken |= {name: BrokenContract.of(problem) for name, problem in found if problem}
    return mission


def _unread(path: Path, mission: Mission) -> Finding | None:
    """Return why a file is not a work package; None for one that does not seem to be one, or belongs to one."""
    like, is_text = _LIKE_WP_FILE.fullmatch(path.name), path.suffix.lower() in ("", ".md", ".markdown")
    head = _split(path.read_bytes()) if is_text and not like and path.is_file() and os.access(path, os.R_OK) else None
    wp_id = f"WP{int(like[1]):02}" if like else ""
    if (not like and not (head and _WP_KEY.search(head[1]))) or (not is_text and wp_id in mission.files):
        return None
    file = path.relative_to(mission.folder).as_posix()
    if not path.is_file():
        return Finding("work-package-not-read", f"`{file}` is not a file that can be read.", hint="Restore it.")
    message = f"`{file}` is not read: work packages are files `tasks/WP##-NAME.md`, with two or more digits."
    if wp_id in mission.files and file.count("/") != 1:
        return warning("work-package-not-read", message, hint=f"Nothing to do if it is not another {wp_id}.")
    hint = "Rename it so, with a free number, and correct `work_package_id`."
    return Finding("work-package-not-read", message, hint=hint)


def hint_of(word: str, known: Iterable[str]) -> str:
    """Return the hint about an unknown name of a mission or a work package, which may be a file or a title with one."""
    names, like = sorted(known), _LIKE_WP_FILE.match(Path(word).name)
    meant = f"WP{int(like[1]):02}" if like else ""
    near = f"Did you mean `{meant}`?" if meant in names else did_you_mean(word, names)
    return f"{near} Known: {names_of(names, _MOST_KNOWN) or 'none'}.".lstrip()


def _read_json(path: Path, model: type[Model], broken: dict[str, BrokenContract]) -> Model | None:
    try:
        return read_shape(model, read_object(_read(path)).value) if os.path.lexists(path) else None
    except BrokenContract as error:
        broken[path.name] = _with_file_name(path.name, error)
    return None


def _with_file_name(file: str, error: BrokenContract) -> BrokenContract:
    """Put the name of the file and the first finding into the message, the only part that some outputs show."""
    first = error.findings[0] if error.findings else Finding("schema", error.message, hint=error.hint)
    where = f" at {first.path}" if first.path else ""
    return BrokenContract(f"{file} cannot be used{where}: {first.text}", findings=error.findings)


def _contexts(root: Path, slug: str) -> dict[str, tuple[Path, WorkspaceContext]]:
    found = {}
    for path in sorted((root / ".kittify" / "workspaces").glob(f"{slug}-*.json")):
        try:
            context = read_shape(WorkspaceContext, read_object(path.read_bytes()).value)
        except BrokenContract:
            continue
        is_own = slug == (context.mission_slug or context.feature_slug or slug)
        if is_own and context.lane_id != PLANNING_LANE and path.name == f"{slug}-{context.lane_id}.json":
            found[context.lane_id] = (path, context)
    return found


def _add_work_package(mission: Mission, wp_id: str, path: Path, legacy_default: ExecutionMode | None) -> None:
    known, lanes = mission.files.setdefault(wp_id, path), mission.lanes or Lanes(lanes=[])
    of_lanes = mission.broken.get("lanes.json")
    try:
        if known != path:
            message = f"{wp_id} has two files, {known.name} and {path.name}."
            raise BrokenContract.of(Finding("work-package-repeated", message, hint="Remove one."))
        head, body, has_dependencies = read_work_package(_read(path), wp_id)
        mission.written[wp_id] = head.lane
        if of_lanes and not head.execution_mode:
            raise of_lanes
        names = [lane.lane_id for lane in lanes.lanes_of.get(wp_id, ())]
        mode = settle_mode(head, body, names, is_listed=wp_id in lanes.planning, legacy_default=legacy_default)
        mission.work_packages[wp_id] = WorkPackage(wp_id, path, head, body, mode, has_dependencies)
    except BrokenContract as error:
        mission.broken[wp_id] = error if error is of_lanes else _with_file_name(path.name, error)
        mission.work_packages.pop(wp_id, None)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        raise BrokenContract.of(Finding("file-unreadable", message, hint="Correct its permissions.")) from None


def lines_of(path: Path) -> Mapping[str, int]:
    """Return the line of each JSON pointer of a mission's file; for a work package of its frontmatter."""
    try:
        raw = path.read_bytes()
        if path.suffix != ".md":
            return (read_mapping(raw) if format_of(path.name) == "yaml" else read_object(raw)).lines
        parts = _split(raw)
        return read_mapping(parts[1]).lines if parts else {}
    except (OSError, BrokenContract):
        return {}


def _split(raw: bytes) -> re.Match[bytes] | None:
    """Find the frontmatter of a file: from the end of its first line, so that it has the lines of the file."""
    return _FRONTMATTER.match(raw.removeprefix(b"\xef\xbb\xbf"))


def read_work_package(raw: bytes, wp_id: str) -> tuple[Frontmatter, str, bool]:
    """Read a work package's file: its frontmatter, its text, and whether it declares dependencies."""
    parts = _split(raw)
    if not parts:
        hint = "Begin it with `---`, `work_package_id: WP…` and `---`."
        raise BrokenContract.of(Finding("frontmatter-missing", "The file has no frontmatter.", line=1, hint=hint))
    document = read_mapping(parts[1])
    try:
        head = read_shape(Frontmatter, document.value)
        if head.work_package_id != wp_id:
            message = f"The file name says {wp_id}, but its frontmatter says {head.work_package_id}."
            raise BrokenContract.of(Finding("work-package-id", message, "/work_package_id", hint="Correct one."))
    except BrokenContract as error:
        raise BrokenContract(error.message, findings=with_lines(error.findings, document.lines)) from None
    return head, parts.string[parts.end() :].decode("utf-8", "replace"), "dependencies" in document.value
