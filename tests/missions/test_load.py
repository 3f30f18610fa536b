"""Reading a mission: what is broken stays with its part."""

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.missions import NOW, SLUG, Project, event

from accord.core.errors import BrokenContract
from accord.missions.load import load_mission, read_work_package
from accord.missions.log import Log, current_status, log_path, read_log
from accord.missions.models import STATUSES
from accord.missions.projects import find_root, mission_slugs, named_root
from accord.missions.query import answer_query, mission_overview, mission_status, readiness, unreadable_statuses
from accord.missions.rules import check_missions, mission_findings
from accord.missions.workspace import lane_branch

BROKEN: dict[str, tuple[str, str]] = {
    "no head": ("# Only text\n", "frontmatter-missing"),
    "an open head": ("---\nwork_package_id: WP02\n", "frontmatter-missing"),
    "no YAML": ("---\nwork_package_id: [\n---\n", "not-yaml"),
    "a list": ("---\n- a\n---\n", "schema"),
    "no id": ("---\ntitle: a\n---\n", "schema"),
    "another id": ("---\nwork_package_id: WP03\n---\n", "work-package-id"),
    "a strange id": ("---\nwork_package_id: ../WP02\n---\n", "schema"),
    "a repeated key": ("---\nwork_package_id: WP02\nwork_package_id: WP02\n---\n", "duplicate-key"),
    "a deep head": ("---\nwork_package_id: " + "[" * 5000 + "\n---\n", "too-large"),
    "a wrong type": ("---\nwork_package_id: WP02\nowned_files: {a: 1}\n---\n", "schema"),
}


def codes(error: BrokenContract) -> list[str]:
    return [finding.code for finding in error.findings]


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_work_package_only_affects_itself(project: Project, case: str) -> None:
    text, code = BROKEN[case]
    project.work_package("WP01", "planning_artifact")
    project.write("tasks/WP02-broken.md", text)
    mission = project.load()
    assert mission.work_package("WP01").mode.value == "planning_artifact"
    with pytest.raises(BrokenContract, match=r"WP02-broken\.md") as broken:
        mission.work_package("WP02")
    assert codes(broken.value) == [code]
    assert [item.code for item in mission_findings(mission, NOW)["kitty-specs/078-ships/tasks/WP02-broken.md"]] == [
        code
    ]


def test_the_status_of_an_old_file_survives_an_unknown_mode_and_is_unknown_if_the_file_is_broken(
    project: Project,
) -> None:
    project.work_package("WP01", "bogus", lane="done")
    project.write("tasks/WP02-broken.md", "lane: done\n")
    assert project.status("WP01") == "done"
    assert list(unreadable_statuses(project.load())) == ["WP02"]
    project.event("WP01", "approved", "done")
    assert unreadable_statuses(project.load()) == {}


def test_two_files_of_one_work_package_are_an_error_for_it_and_findings_have_lines(project: Project) -> None:
    project.work_package("WP01", "planning_artifact")
    project.write("tasks/WP01-again.md", (project.folder / "tasks/WP01-part.md").read_text(encoding="utf-8"))
    mission = project.load()
    with pytest.raises(BrokenContract, match=r"WP01-again\.md and WP01-part\.md"):
        mission.work_package("WP01")
    assert mission.work_packages == {}
    for line, place in ((b"execution_mode: [a]", "/execution_mode"), (b"title: b", "")):
        with pytest.raises(BrokenContract) as broken:
            read_work_package(b"---\nwork_package_id: WP01\ntitle: a\n" + line + b"\n---\n", "WP01")
        assert [(item.path, item.line) for item in broken.value.findings] == [(place, 4)]


@pytest.mark.parametrize(
    ("written", "read"),
    [("[]", []), ("WP01, WP02", ["WP01", "WP02"]), ('["WP01"]', ["WP01"]), (None, []), (["WP01"], ["WP01"])],
)
def test_dependencies_of_old_files_are_lists_as_well(written: Any, read: list[str]) -> None:
    raw = f"---\nwork_package_id: WP03\ndependencies: {json.dumps(written)}\n---\n".encode()
    head, _, has_dependencies = read_work_package(raw, "WP03")
    assert (head.dependencies, has_dependencies) == (read, True)


def test_a_title_and_a_status_of_old_files_are_read(project: Project) -> None:
    head = "work_package_id: WP01\r\nwork_package_title: Old\r\nlane: doing"
    project.write("tasks/WP01.md", f"\ufeff---\r\n{head}\r\n---\r\nsrc/\r\n")
    mission = project.load()
    assert mission.work_package("WP01").title == "Old"
    assert mission.status_of("WP01") == "in_progress"


@pytest.mark.parametrize("slug", ["nope", "..", "../078-ships", "", "a/b", ".x", "078-ships/", "x" * 5000, "a\x00b"])
def test_a_mission_that_is_not_there_is_named_with_those_that_are(project: Project, slug: str) -> None:
    with pytest.raises(BrokenContract, match="Known: 078-ships") as broken:
        load_mission(project.root, slug)
    assert codes(broken.value) == ["unknown-mission"]


@pytest.mark.parametrize(
    "mission_id",
    [
        "01KX7094EYXKC6EJZC9XZCADS3",
        "01kx7094eyxkc6ejzc9xzcads3",
        "8f14e45f-ceea-467f-ab0e-3f6d2b1c9a77",
        "größe 7",
        "x/y",
    ],
)
def test_a_mission_is_found_by_its_id_of_any_form(project: Project, mission_id: str) -> None:
    project.begin(mission_id=mission_id)
    assert load_mission(project.root, mission_id).slug == project.slug
    Project(project.root, "079-trains").begin(mission_id=mission_id)
    with pytest.raises(BrokenContract, match="have one `mission_id`"):
        load_mission(project.root, mission_id)
    with pytest.raises(BrokenContract, match=f"Unknown mission `{mission_id[:-1]}4`"):
        load_mission(project.root, f"{mission_id[:-1]}4")


def test_the_slug_of_a_mission_is_never_the_id_of_another(project: Project) -> None:
    Project(project.root, "079-trains").begin(mission_id=project.slug)
    assert load_mission(project.root, project.slug).slug == project.slug


LIKE_WORK_PACKAGES = ("tasks/wp02-api.md", "tasks/Wp 7.md", "tasks/WP04a-split.md", "tasks/WP1-part.md", "tasks/api.md")
LIKE_WORK_PACKAGES += ("tasks/planned/WP05-docs.md", "tasks/WP21-api.txt", "WP20-top.md")
NOT_READ = dict.fromkeys(LIKE_WORK_PACKAGES, ("error", "with a free number"))
NOT_READ["tasks/done/WP01-part.md"] = ("warning", "Nothing to do if it is not another WP01")


@pytest.mark.parametrize("path", NOT_READ)
def test_a_file_that_seems_to_be_a_work_package_is_read_or_found(project: Project, path: str) -> None:
    project.work_package("WP01", "planning_artifact")
    project.write("tasks/README.md", "---\ntitle: a\n---\n")
    for name in ("tasks/.WP02-b.md", "tasks/WP01-drawing.png", "tasks/WP01-part.md~", "spec.md", "notes"):
        project.write(name, "")
    project.write("tasks/WP01/review-cycle-1.md", "WP01 is fine.")
    project.write(path, "---\nwork_package_id: WP09\n---\n")
    mission = project.load()
    found = {path: items for path, items in mission_findings(mission, NOW).items() if items}
    (finding,) = found.pop(f"kitty-specs/078-ships/{path}")
    assert (found, finding.code) == ({}, "work-package-not-read")
    assert path in finding.message
    assert (finding.severity, NOT_READ[path][1] in finding.hint) == (NOT_READ[path][0], True), finding.hint
    assert any(path in text for text in mission_status(mission, NOW)["diagnostics"])
    assert mission.ids == ["WP01"]


def test_a_file_that_cannot_be_read_hides_no_other(project: Project) -> None:
    project.work_package("WP01", "planning_artifact")
    (project.folder / "tasks/WP02-gone.md").symlink_to("nowhere.md")
    (project.folder / "tasks/WP03-loop.md").symlink_to("WP03-loop.md")
    mission = project.load()
    assert (list(mission.work_packages), mission.unread) == (["WP01"], ["tasks/WP02-gone.md", "tasks/WP03-loop.md"])


def test_an_entry_that_is_not_a_mission_hides_no_other_and_is_found(project: Project) -> None:
    specs = project.folder.parent
    for name in ("001-größe", "two words", "-x"):
        (specs / name / "tasks").mkdir(parents=True)
    (specs / "900-link").symlink_to("078-ships")
    (specs / "901-gone").symlink_to("nowhere")
    (specs / "902-folder/status.events.jsonl").mkdir(parents=True)
    (specs / "903-nowhere").mkdir()
    (specs / "903-nowhere/status.events.jsonl").symlink_to("nowhere")
    for name in (".hidden", "_old", "assets"):
        (specs / name).mkdir()
    (specs / "README.md").symlink_to("078-ships/meta.json")
    assert mission_slugs(project.root) == ["078-ships", "assets"]
    found = check_missions(project.root, [], "", None, NOW)
    told = {path: [one.code for one in items] for path, items in found.files.items() if items}
    odd = ("-x", "001-größe", "900-link", "901-gone", "902-folder", "903-nowhere", "two words")
    assert told == {f"kitty-specs/{name}": ["mission-not-read"] for name in odd}
    assert [one["mission_slug"] for one in found.standings] == ["078-ships", "assets"]
    with pytest.raises(BrokenContract, match="is a link") as broken:
        load_mission(project.root, "900-link")
    assert "900-link" not in broken.value.findings[0].hint, "what was typed is not suggested"
    with pytest.raises(BrokenContract, match=r"its status\.events\.jsonl is not a file"):
        load_mission(project.root, "902-folder")
    for name in ("meta.json", "lanes.json"):
        (specs / "assets" / name).mkdir()
    assert [*load_mission(project.root, "assets").broken] == ["meta.json", "lanes.json"]


def test_an_id_of_two_missions_names_neither(project: Project) -> None:
    ulid = "01KX7094EYXKC6EJZC9XZCADS3"
    for slug in ("001-copy", "002-other", "078-ships"):
        Project(project.root, slug).begin(mission_id=ulid[:-1] + "4" if slug == "002-other" else ulid)
    with pytest.raises(BrokenContract, match="001-copy and 078-ships have one `mission_id`"):
        load_mission(project.root, ulid)
    assert load_mission(project.root, ulid[:-1] + "4").slug == "002-other"
    found = check_missions(project.root, [], "", None, NOW).files
    told = {path: [(one.code, one.line) for one in items] for path, items in found.items() if items}
    assert told == {f"kitty-specs/{slug}/meta.json": [("mission-id-repeated", 4)] for slug in ("001-copy", "078-ships")}


def test_the_project_is_found_from_below_and_from_the_work_tree_of_a_lane(project: Project) -> None:
    tree = project.root / ".worktrees" / "078-ships-lane-a"
    (tree / ".kittify").mkdir(parents=True)
    (tree / "src").mkdir()
    assert find_root(project.folder) == project.root
    assert find_root(tree / "src") == project.root
    (project.root / "kitty-specs" / "README.md").write_text("a", encoding="utf-8")
    assert (mission_slugs(project.root), mission_slugs(project.folder)) == (["078-ships"], [])
    with pytest.raises(BrokenContract, match="No `kitty-specs/` directory"):
        find_root(project.root.parents[-1])


CHECKOUTS: dict[str, tuple[str, str, str, str]] = {
    # the project, the work tree below it, its branch, the directory in it
    "a lane": ("", "078-ships-lane-a", "kitty/mission-078-ships-lane-a", ""),
    "below a lane": ("", "078-ships-lane-a", "kitty/mission-078-ships-lane-a", "src"),
    "a lane of a subfolder": ("pkg", "078-ships-lane-a", "kitty/mission-078-ships-lane-a", "pkg"),
    "the top of a lane of a subfolder": ("pkg", "078-ships-lane-a", "kitty/mission-078-ships-lane-a", ""),
    "a lane of a renamed mission": ("a/pkg", "001-old-lane-a", "kitty/mission-001-old-lane-a", "a/pkg/src"),
    "a lane on another branch": ("pkg", "078-ships-lane-a", "elsewhere", "pkg"),
}


@pytest.mark.parametrize("case", CHECKOUTS)
def test_a_lane_leads_to_the_project_of_the_main_checkout(tmp_path: Path, case: str) -> None:
    below, name, branch, inside = CHECKOUTS[case]
    top = tmp_path / "repo"
    project = Project(top / below).begin()
    project.work_package("WP01", "code_change")
    Project(top).git("init", "--quiet", "--initial-branch=main")
    Project(top).git("add", "--all")
    project.commit("begin")
    tree = project.root / ".worktrees" / name
    project.git("worktree", "add", "--quiet", "-b", branch, str(tree))
    (tree / inside).mkdir(parents=True, exist_ok=True)
    assert find_root(tree / inside) == project.root
    if (tree / inside / "kitty-specs").is_dir():
        assert named_root(tree / inside) == project.root


def test_a_lane_leads_to_the_project_in_its_own_place_of_the_main_checkout(tmp_path: Path) -> None:
    first, other = (Project(tmp_path / name).begin() for name in ("one", "two"))
    (tmp_path / ".git").mkdir()
    copy = Project(first.root / ".worktrees/078-ships-lane-a/two").begin()
    assert find_root(copy.folder) == other.root
    nested = Project(tmp_path / "one/.worktrees/feature-x").begin()
    assert find_root(Project(nested.root / ".worktrees/078-ships-lane-b").begin().root) == nested.root


@pytest.mark.parametrize("has_missions", [False, True])
def test_another_checkout_below_worktrees_is_a_project_of_its_own(tmp_path: Path, has_missions: bool) -> None:
    if has_missions:
        Project(tmp_path).begin()
    own = Project(tmp_path / ".worktrees/feature-x", "001-search").begin()
    assert (find_root(own.folder), named_root(own.root)) == (own.root, own.root)


def test_findings_name_dependencies_and_lanes_without_a_file_and_circles(project: Project) -> None:
    project.work_package("WP01", "code_change", dependencies=["WP02"])
    project.work_package("WP02", "code_change", dependencies=["WP01", "WP09"])
    project.work_package("WP03", "code_change")
    assert "lane-missing" not in str(mission_findings(project.load(), NOW)), "lanes follow the work packages"
    project.lanes(lane_a=["WP01", "WP02", "WP08"])
    project.event("WP01", "planned", "claimed")
    log = project.folder / "status.events.jsonl"
    log.write_text(
        log.read_text(encoding="utf-8") + '{"wp_id": "WP02", "to_lane": "gone"}\n{}\nnonsense\n{"torn', encoding="utf-8"
    )
    found = mission_findings(project.load(), NOW)
    told = {path.removeprefix("kitty-specs/078-ships/"): [item.code for item in items] for path, items in found.items()}
    assert told == {
        "meta.json": [],
        "lanes.json": ["work-package-unknown"],
        "status.events.jsonl": ["event-invalid", "event-other", "event-invalid", "event-torn"],
        "tasks/WP01-part.md": ["work-package-cycle"],
        "tasks/WP02-part.md": ["work-package-unknown"],
        "tasks/WP03-part.md": ["lane-missing"],
    }


@pytest.mark.parametrize(
    ("minutes", "line"), [([0, 1], 0), ([0, 10], 0), ([0, 11], 4), ([11, 12], 3), ([10**7, 0], 3), ([-5, 10**7], 4)]
)
def test_a_time_in_the_future_is_found_with_its_line_and_hides_no_status(
    project: Project, minutes: list[int], line: int
) -> None:
    log = project.folder / "status.events.jsonl"
    log.write_text('{"kind": "annotation"}\n', encoding="utf-8")
    project.work_package("WP01", "planning_artifact")
    project.work_package("WP02", "planning_artifact")
    project.event("WP02", "planned", "claimed")
    for target, ahead in zip(("claimed", "in_progress"), minutes, strict=True):
        project.event("WP01", "planned", target, at=NOW + timedelta(minutes=ahead))
    (found,) = (items for path, items in mission_findings(project.load(), NOW).items() if path.endswith("jsonl"))
    future = [(one.severity.value, one.line) for one in found if one.code == "timestamp-future"]
    assert future == ([("warning", line)] if line else [])
    for target in ("for_review", "in_progress", "canceled"):
        project.move("WP01", target, feedback="x", is_forced=True, reason="x")
        assert (project.status("WP01"), project.status("WP02")) == (target, "claimed")


NAMED = "If it depends on them, name them in `dependencies` too; else write `dependencies: []`."
UNCLEAR = [
    "src/a.py (owned by o2)",
    "`src/b.py`",
    "src/c.py, src/d.py",
    "src/c.py,src/d.py",
    "src/a.py # main",
    "src/a.py:12",
    "src/{a,b}.py",
]
UNCLEAR += ["src\\a.py", "src/a.py - the parser", "src/a.py src/b.py", "../a.py", "src/..", "!src/a.py", "src/ (new)"]
UNCLEAR += ["a.py and b.py", "/etc/passwd", "../there.md", "kitty-specs/../.."]
CLEAR = [
    "docs/a (1)",
    "app/(group)/[slug]/+page.$x",
    "docs/a b.md",
    "./@a/b-c_d.py",
    "src/**/*.py",
    "a..b.md",
    "größe/",
    "",
]


def test_an_entry_of_owned_files_that_is_not_one_path_is_found(project: Project) -> None:
    project.work_package("WP01", "planning_artifact", owned_files=[*UNCLEAR, *CLEAR, "x,y: {z}"])
    for name in ("docs/a (1)", "x,y: {z}", "../there.md"):
        (project.root / name).mkdir(parents=True)
    found = mission_findings(project.load(), NOW)[f"kitty-specs/{SLUG}/tasks/WP01-part.md"]
    assert [(one.severity, one.code, one.path, one.line) for one in found] == [
        ("error" if "," in name and "{" not in name else "warning", "owned-file-unclear", f"/owned_files/{i}", 5 + i)
        for i, name in enumerate(UNCLEAR)
    ]


@pytest.mark.parametrize("name", ["WP1", "WP01 - first", "wp-01", "tasks/WP01-part.md", "WP001"])
def test_another_spelling_of_a_work_package_leads_to_it(project: Project, name: str) -> None:
    project.work_package("WP01", "planning_artifact")
    project.work_package("WP02", "planning_artifact", dependencies=[name])
    (found,) = mission_findings(mission := project.load(), NOW)[f"kitty-specs/{SLUG}/tasks/WP02-part.md"]
    assert (found.code, found.hint) == ("work-package-unknown", "Did you mean `WP01`? Known: WP01, WP02.")
    with pytest.raises(BrokenContract) as broken:
        mission.work_package(name)
    assert broken.value.findings[0].hint == found.hint


def test_the_known_work_packages_are_all_that_have_a_file(project: Project) -> None:
    for number in range(1, 15):
        project.work_package(f"WP{number:02}", "planning_artifact" if number < 14 else "unclear")
    with pytest.raises(BrokenContract) as broken:
        project.load().work_package("WP99")
    assert broken.value.hint.endswith("WP12, WP13, WP14.")


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("dependancies: [WP01]", "dependancies", "Did you mean `dependencies`?"),
        *(
            (
                f"{key.replace('~1', '/').replace('~0', '~')}: {names}",
                key,
                "If it depends on them, name them in `dependencies` too; else write `dependencies: []`.",
            )
            for key, names in (
                ("dependency", "WP01"),
                ("depends_on", "[WP01]"),
                ("blocked_by", '"WP01, WP09"'),
                ("requires", "[WP09]"),
                ("after~1on", "[WP01]"),
                ("after~0", "[WP01]"),
            )
        ),
        ("dependencies: []\nowned_file: [a.md]", "owned_file", "Did you mean `owned_files`?"),
        ("dependencies: []\nsubtask: [T001]", "subtask", "Did you mean `subtasks`?"),
        ("dependencies: []\nrelated: [WP01]", "", ""),
        ("related: [WP02]\ntags: []\nphase: 1\nrequirement_refs: [FR-1]\nassignee: ''", "", ""),
        ("after: [WP01, later]", "", ""),
    ],
)
def test_a_key_of_a_work_package_that_is_not_read_but_was_meant_is_found(
    project: Project, text: str, key: str, hint: str
) -> None:
    for wp_id in ("WP01", "WP03"):
        project.work_package(wp_id, "planning_artifact")
    project.write("tasks/WP02-a.md", f"---\nwork_package_id: WP02\nexecution_mode: planning_artifact\n{text}\n---\n")
    found = mission_findings(mission := project.load(), NOW)[f"kitty-specs/{SLUG}/tasks/WP02-a.md"]
    assert ("WP02" in mission_overview(mission)["ready"]) is ("`dependencies`" not in hint)
    line = 4 + text.count("\n")
    expected = [("warning", "key-misspelled", f"/{key}", line, hint)] if key else []
    assert [(one.severity, one.code, one.path, one.line, one.hint) for one in found] == expected


@pytest.mark.parametrize("lanes", ["{", '{"lanes": [{"lane_id": "a"}, {"lane_id": "b"}, {"lane_id": "a"}]}'])
def test_findings_of_the_lanes_belong_to_their_file(project: Project, lanes: str) -> None:
    project.work_package("WP01", body="src/a.py")
    project.write("lanes.json", lanes)
    mission = project.load()
    assert [path for path, found in mission_findings(mission, NOW).items() if found] == [
        "kitty-specs/078-ships/lanes.json"
    ]
    with pytest.raises(BrokenContract, match=r"^lanes\.json cannot be used"):
        mission.work_package("WP01")


@given(st.binary(max_size=200))
@example(b"? \n1: a")  # keys that are not texts
def test_no_bytes_crash_the_reader(raw: bytes) -> None:
    for text in (raw, b"---\n" + raw + b"\n---\n"):
        read = None
        with suppress(BrokenContract):
            read = read_work_package(text, "WP01")
        assert read is None or read[0].work_package_id == "WP01"


def found_in(project: Project) -> dict[str, list[tuple[str, str, int | None]]]:
    found = mission_findings(project.load(), NOW)
    return {path: [(item.code, item.path, item.line) for item in items] for path, items in found.items() if items}


def test_a_type_that_next_cannot_answer_for_does_not_pass_the_check(project: Project) -> None:
    project.begin(mission_type="software-dve")
    assert found_in(project) == {"kitty-specs/078-ships/meta.json": [("mission-type-unknown", "/mission_type", 3)]}
    project.begin(mission_type="")
    assert found_in(project) == {}
    project.begin(mission_type="research")
    template = project.root / ".kittify" / "missions" / "research" / "mission-runtime.yaml"
    template.parent.mkdir(parents=True)
    for text, told in (("steps: []", ("no-first-step", "", 1)), ("\nsteps: 5", ("run-invalid", "/steps", 2))):
        template.write_text(text, encoding="utf-8")
        assert found_in(project) == {".kittify/missions/research/mission-runtime.yaml": [told]}


def test_a_run_that_is_another_one_is_found_before_an_agent_is_sent_to_its_step(project: Project) -> None:
    project.run(run_id="run-2", issued_step_id="plan")
    state = ".kittify/runtime/runs/run-1/state.json"
    assert found_in(project) == {state: [("run-mismatch", "/run_id", 1)]}
    with pytest.raises(BrokenContract, match="belongs to the run `run-2`"):
        answer_query(project.load(), None, NOW)
    project.run(run_id="", issued_step_id="plan")  # as old versions wrote it
    assert found_in(project) == {}
    assert answer_query(project.load(), None, NOW).run_id == "run-1"


def test_documents_that_name_different_types_are_doubted_and_the_run_counts(project: Project) -> None:
    project.begin(mission_type="research")
    project.run(mission_key="documentation")
    assert {path: [code for code, _, _ in items] for path, items in found_in(project).items()} == {
        "kitty-specs/078-ships/meta.json": ["run-type-differs"],
        ".kittify/runtime/runs/run-1/state.json": ["run-type-differs"],
    }
    assert answer_query(project.load(), None, NOW).mission == "software-dev"


@pytest.mark.parametrize("folder", ["a\x00b", "loop", "/etc", "../.."])
def test_a_run_is_looked_for_nowhere_but_in_the_project(project: Project, folder: str) -> None:
    project.run()
    (project.root / "loop").symlink_to("loop")
    index = project.root / ".kittify" / "runtime" / "feature-runs.json"
    index.write_text(json.dumps({project.slug: {"run_id": "gone", "run_dir": folder}}), encoding="utf-8")
    assert found_in(project) == {".kittify/runtime/feature-runs.json": [("run-invalid", "/078-ships/run_id", 1)]}


def test_findings_of_a_mission_have_lines(project: Project) -> None:
    project.work_package("WP01", "code_change", dependencies=["WP09"])
    project.work_package("WP02", "both")
    project.lanes(lane_a=["WP01", "WP08"])
    found = found_in(project)
    for path, (_, place, line) in ((path, items[0]) for path, items in found.items()):
        text = (project.root / path).read_text(encoding="utf-8").splitlines()[(line or 0) - 1]
        assert {"/dependencies/0": "WP09", "/execution_mode": "both", "/lanes/0/wp_ids/1": "WP08"}[place] in text
    assert len(found) == 3


def log(*events: Any) -> Log:
    return read_log("".join(f"{json.dumps(each)}\n" for each in events).encode())


def status_in(found: Log, wp_id: str = "WP01") -> str:
    return current_status(found, wp_id, "")


EVENTS = st.builds(
    lambda number, wp_id, source, target, minute, ref: event(
        wp_id, source, target, NOW + timedelta(minutes=minute), event_id=f"E{number}", review_ref=ref
    ),
    st.integers(0, 15),
    st.sampled_from(["WP01", "WP02"]),
    st.sampled_from(STATUSES),
    st.sampled_from(STATUSES),
    st.integers(0, 3),
    st.sampled_from([None, "PR 1"]),
)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(EVENTS, max_size=12), st.randoms())
def test_the_order_of_the_lines_and_repeated_lines_change_nothing(events: list[Any], chance: Any) -> None:
    shuffled = [*events, *events[:3]]
    chance.shuffle(shuffled)
    assert log(*events).latest == log(*shuffled).latest


@pytest.mark.parametrize("ids", [("A", "B"), ("B", "A")])
@pytest.mark.parametrize(
    "forward", [("for_review", "approved"), ("in_review", "approved"), ("in_progress", "for_review")]
)
def test_a_rollback_beats_other_events_of_the_same_time(ids: Sequence[str], forward: tuple[str, str]) -> None:
    back = event("WP01", "for_review", "in_progress", event_id=ids[0], review_ref="PR 1")
    on = event("WP01", *forward, event_id=ids[1])
    goes_on = forward[0] == "in_progress" and ids == ("A", "B")
    assert status_in(log(on, back)) == ("for_review" if goes_on else "in_progress")


@pytest.mark.parametrize("ids", ["AB", "BA"])
def test_a_reviewer_that_sends_work_back_needs_no_reference_to_win(ids: str) -> None:
    back = event("WP01", "in_review", "in_progress", event_id=ids[0])
    assert status_in(log(event("WP01", "in_review", "approved", event_id=ids[1]), back)) == "in_progress"


def test_only_a_review_is_a_rollback_and_later_events_in_any_zone_beat_it() -> None:
    back = event("WP01", "for_review", "in_progress", event_id="A")
    assert status_in(log(back, event("WP01", "for_review", "approved", event_id="B"))) == "approved"
    later = {**event("WP01", "for_review", "approved", event_id="A"), "at": "2026-05-04T14:00:01+02:00"}
    assert status_in(log(later, {**back, "event_id": "Z", "review_ref": "PR 1"})) == "approved"


def test_one_id_counts_once_and_the_old_word_is_read() -> None:
    first = event("WP01", "planned", "doing", event_id="A", at=NOW)
    again = event("WP01", "planned", "approved", event_id="A", at=NOW + timedelta(hours=1))
    assert len(log(first, again).events) == 1
    assert status_in(log(first)) == "in_progress"


def test_without_an_event_the_status_of_the_file_counts() -> None:
    read = {"doing": "in_progress", "done": "done", "": "planned"}
    assert {written: current_status(log(), "WP01", written) for written in read} == read
    with pytest.raises(BrokenContract, match="unknown status `strange`"):
        current_status(log(), "WP01", "strange")


BAD_LINES = ['{"wp_id": "WP01",', json.dumps({**event("WP01", None, "done"), "to_lane": "merged"})]
BAD_LINES += [json.dumps({**event("WP01", None, "done"), "at": at}) for at in ("2026-05-04T12:00:00", 5, "soon")]


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_line_that_cannot_be_read_is_an_error_with_its_number(line: str) -> None:
    found = read_log(f"{json.dumps(event('WP01', None, 'planned'))}\n{line}\n".encode())
    with pytest.raises(BrokenContract, match="line 2") as broken:
        found.check_readable("WP01")
    assert [finding.code for finding in broken.value.findings] == ["event-invalid"]


@pytest.mark.parametrize("end", ["", ",", ",\n"])
def test_commas_between_events_are_found_with_their_lines(end: str) -> None:
    lines = [json.dumps(event("WP01", None, "planned")), json.dumps(event("WP01", "planned", "claimed"))]
    found = read_log((",\n".join(lines) + end).encode())
    assert [one.line for one in found.problems["WP01"]] == [1, *([2] if end else [])]
    assert {one.hint.partition(",")[0] for one in found.problems["WP01"]} == {"Write one object a line"}
    assert found.torn_at is None


def test_broken_lines_only_affect_their_work_package() -> None:
    bad = {**event("WP02", None, "done"), "to_lane": "merged"}
    found = log(event("WP01", None, "claimed"), bad, {"type": "MissionCreated"})
    found.check_readable("WP01")
    assert status_in(found) == "claimed"
    with pytest.raises(BrokenContract):
        found.check_readable("WP02")


AGENT = {"role": "implementer", "tool": "claude", "profile": None, "model": None}
OTHERS: dict[str, dict[str, Any]] = {
    "runtime state": {"kind": "annotation", "wp_id": "WP01", "delta": {"subtasks": {"T1": "done"}}, "actor": AGENT},
    "of the mission": {"event_type": "MissionCreated", "aggregate_id": "01KX", "payload": {"wp_id": "WP02"}},
    "named like a lane": {"event_type": "WPMoved", "wp_id": "WP01", "to_lane": "done", "from_lane": "planned"},
    "a retrospective": {"type": "RetrospectiveCaptured", "wp_id": None, "actor": {"id": "gen", "kind": "runtime"}},
    "an older retrospective": {"event_name": "retrospective.skipped", "payload": {}},
    "a retrospective with lanes": {"type": "RetrospectiveCaptured", "wp_id": "WP01", "to_lane": "approved"},
    "an annotation with lanes": {"kind": "annotation", "wp_id": "WP01", "to_lane": "done"},
    "a kind of tomorrow": {"kind": "heartbeat", "wp_id": "WP01", "lane": "x"},
    "without a kind": {"wp_id": "WP01", "note": "x"},
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_line_about_something_else_hides_no_status_and_is_noted_once_a_file(case: str) -> None:
    other = {"event_id": "X", "at": "2030-01-01T00:00:00Z", **OTHERS[case]}
    found = log(other, event("WP01", "genesis", "claimed"), other, event("WP02", "genesis", "done"), other)
    assert (status_in(found), status_in(found, "WP02"), found.problems) == ("claimed", "done", {})
    assert found.note.startswith("3 lines count for no status in status.events.jsonl: ")
    assert list(found.others.values()) == [[1, 3, 5]]


def test_an_actor_may_be_an_object_and_is_known_by_its_tool() -> None:
    actors = [AGENT, {"role": "reviewer", "tool": None}, {"id": "gen"}, {}, None, "ada"]
    read = [log(event("WP01", None, "claimed", actor=actor)).latest["WP01"].actor for actor in actors]
    assert read == ["claude", "reviewer", "gen", "", "", "ada"]


def test_an_event_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(BrokenContract, match="`proposal` is not a kind of event"):
        log(event("WP01", "claimed", "done", kind="proposal")).check_readable("WP01")


def test_a_damaged_line_only_hides_the_work_package_that_it_names() -> None:
    lines = [json.dumps(event(wp_id, None, "claimed")) for wp_id in ("WP01", "WP02")]
    found = read_log("\n".join([*lines, lines[0][:-9], lines[1]]).encode())
    assert (list(found.problems), status_in(found, "WP02")) == (["WP01"], "claimed")
    both = read_log("\n".join([*lines, lines[0][:-9] + lines[1], lines[1]]).encode())
    assert list(both.problems) == ["WP01", "WP02"]


@pytest.mark.parametrize("glue", ["{0}{1}", "{0} {1}", "{0}{1}{0}", "[{0},{1}]", "{0}, {1}", "{0}{1}x", "x{1}{0}"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_with_events_of_two_work_packages_hides_both_and_no_other(project: Project, glue: str, end: str) -> None:
    for wp_id in ("WP01", "WP02", "WP03"):
        project.work_package(wp_id, "planning_artifact")
        project.event(wp_id, "planned", "claimed")
    path = project.folder / "status.events.jsonl"
    first, second, third = path.read_text(encoding="utf-8").splitlines()
    path.write_text(f"{third}\n{glue.format(first, second)}{end}", encoding="utf-8")
    mission = project.load()
    assert (sorted(unreadable_statuses(mission)), mission.status_of("WP03")) == (["WP01", "WP02"], "claimed")
    assert not any(mission.lets_start(wp_id) or readiness(mission)[wp_id]["ready"] for wp_id in ("WP01", "WP02"))
    (found,) = mission_findings(mission, NOW)["kitty-specs/078-ships/status.events.jsonl"]
    assert (found.code, found.line) == ("event-invalid", 2)
    assert found.hint.startswith("Write one object a line" if "," in glue else "Put each event on its own line")


FOREIGN = ["# moved by hand", "<<<<<<< HEAD", "WP01: done", "null", '"planned"', '{"to_lane": "done"}', '{"wp_id": "W']


@pytest.mark.parametrize("line", FOREIGN)
def test_a_line_that_names_no_work_package_hides_only_itself_and_is_found_with_its_number(
    project: Project, line: str
) -> None:
    project.work_package("WP01", "planning_artifact")
    project.event("WP01", "planned", "claimed")
    path = project.folder / "status.events.jsonl"
    whole = path.read_text(encoding="utf-8")
    path.write_text(f"{line}\n{whole}{line}\n{whole.replace('WP01', 'WP02')}", encoding="utf-8")
    mission = project.load()
    assert (mission.status_of("WP01"), mission.status_of("WP02"), unreadable_statuses(mission)) == (
        "claimed",
        "claimed",
        {},
    )
    found = mission_findings(mission, NOW)["kitty-specs/078-ships/status.events.jsonl"]
    assert [(one.code, one.line) for one in found if one.code == "event-invalid"] == [
        ("event-invalid", 1),
        ("event-invalid", 3),
    ]


def test_two_lines_with_one_id_are_found_and_those_of_two_work_packages_both_count() -> None:
    first, other = event("WP01", None, "claimed", event_id="A"), event("WP02", None, "claimed", event_id="A")
    found = log(first, first, other, first)
    assert (status_in(found), status_in(found, "WP02")) == ("claimed", "claimed")
    assert [(one.code, one.line) for one in found.problems[""]] == [("event-id-repeated", 3)]
    found.check_readable("WP01")
    twice = log(first, other | {"event_id": "B"}, first | {"to_lane": "blocked"})
    twice.check_readable("WP02")
    with pytest.raises(BrokenContract, match="line 3: The line has the `event_id` of line 1"):
        twice.check_readable("WP01")
    assert log(first, dict(reversed(first.items()))).problems == {}, "the same event twice, as merges leave it"


def test_a_line_cut_off_by_a_crash_counts_for_nothing_and_one_without_its_break_counts() -> None:
    whole = json.dumps(event("WP01", None, "claimed"))
    for cut in range(1, len(whole)):
        found = read_log(f"{json.dumps(event('WP01', None, 'planned', NOW))}\n{whole[:cut]}".encode())
        assert (status_in(found), found.torn_at) == ("planned", 2)
        found.check_readable("WP01")
    found = read_log(whole.encode())
    assert (status_in(found), found.torn_at) == ("claimed", None)


def _forged(first: int, **more: Any) -> Any:
    return lambda lines: [*lines[:first], json.dumps(json.loads(lines[first]) | more), *lines[first + 1 :]]


def _added(source: str | None, target: str, **more: Any) -> Any:
    at = NOW + timedelta(hours=2 if source == "in_review" else 1)
    when = {"at": more.pop("at")} if "at" in more else {}
    made = event(more.pop("wp_id", "WP01"), source, target, at, **{"actor": "rev", **more}) | when
    return lambda lines: [*lines, json.dumps(made)]


def _reviewed(reviewer: str, verdict: str) -> Any:
    return {"review": {"reviewer": reviewer, "verdict": verdict, "reference": "PR 1"}}


def _all(*changes: Any) -> Any:
    return lambda lines: reduce(lambda made, change: change(made), changes, lines)


def _above(change: Any) -> Any:
    """Put the line of a change above the last one, as a merge of both sides may leave it."""
    return lambda lines: [*lines[:-1], change(lines)[-1], lines[-1]]


_IN_REVIEW = _added("for_review", "in_review")
LATER, LAST, FUTURE = ((NOW + timedelta(hours=hours)).isoformat() for hours in (9, 10, 72))
ALTERED, ILLEGAL = ["log-altered"], ["event-illegal"]
_OWN_CLAIM = _added("for_review", "in_review", actor="ada")
_BY_REV = _added("in_review", "approved")
_CLAIM = _added("planned", "claimed", wp_id="WP05", at=LATER)
_EARLY = _added("planned", "claimed", wp_id="WP05")
_CLAIMED = _added("planned", "claimed", wp_id="WP02")
_CONTINUED = _added("claimed", "in_progress", wp_id="WP02", at=LAST)
_by_ada = partial(_added, wp_id="WP02", event_id="E2", at=LATER, actor="ada")
_WORK = _all(_added("planned", "claimed", wp_id="WP02"), _added("claimed", "in_progress", wp_id="WP02", at=LATER))
CHANGES_OF_A_LOG = {
    "nothing": (lambda lines: lines, []),
    "a review": (_added("for_review", "in_review"), []),
    "forced with a reason": (_added("for_review", "approved", force=True, reason="now"), []),
    "another actor": (_forged(1, actor="rev"), ALTERED),
    "a dropped line": (lambda lines: lines[:-1], ALTERED),
    "two lines in another order": (lambda lines: [*lines[:-2], lines[-1], lines[-2]], ALTERED),
    "no log": (lambda lines: [], ALTERED),
    "line ends of another system": (lambda lines: [f"{line}\r" for line in lines], []),
    "a review above an old line": (_above(_IN_REVIEW), []),
    "a line that no move writes above old lines": (_above(_added("for_review", "done")), ILLEGAL),
    "no edge": (_added("for_review", "done"), ILLEGAL),
    "the status in the file before the log": (_added("for_review", "in_review", wp_id="WP04"), []),
    "work package without a file": (_added("planned", "claimed", wp_id="WP09"), ILLEGAL),
    "another mission": (_added("for_review", "in_review", mission_slug="099-other"), ILLEGAL),
    "another mission in the last line but one": (
        lambda lines: _added("claimed", "blocked", wp_id="WP02", at=LATER)(
            _added("planned", "claimed", wp_id="WP02", mission_slug="099-other")(lines)
        ),
        ILLEGAL,
    ),
    "the older name of the mission": (_added("planned", "claimed", wp_id="WP02", mission_slug="001-old"), []),
    "a start before its dependency": (_CLAIM, ILLEGAL),
    "a forced start": (_added("planned", "claimed", wp_id="WP05", force=True, reason="now"), []),
    "a start after its dependency": (_all(_IN_REVIEW, _BY_REV, _CLAIM), []),
    "a start above its dependency, as a merge by union leaves it": (_all(_IN_REVIEW, _CLAIM, _BY_REV), []),
    "a start after its dependency by another clock": (_all(_IN_REVIEW, _BY_REV, _EARLY), []),
    "a start before its dependency by time and line": (_all(_IN_REVIEW, _EARLY, _BY_REV), ILLEGAL),
    "a start after its dependency was sent back": (
        _all(
            _IN_REVIEW,
            _BY_REV,
            _added("approved", "planned", at=LATER, review_ref="PR 1"),
            _added("planned", "claimed", wp_id="WP05", at=LAST),
        ),
        ILLEGAL,
    ),
    "sent back with a reference": (_all(_IN_REVIEW, _added("in_review", "in_progress", review_ref="PR 1")), []),
    "sent back without a reason": (_all(_IN_REVIEW, _added("in_review", "in_progress")), ILLEGAL),
    "work given up": (_all(_WORK, _added("in_progress", "planned", wp_id="WP02", at=LAST, reason="late")), []),
    "a claim that another continues": (_all(_CLAIMED, _by_ada("claimed", "in_progress")), ILLEGAL),
    "a claim that another renews": (_all(_CLAIMED, _by_ada("claimed", "claimed")), ILLEGAL),
    "a claim that its actor continues": (_all(_CLAIMED, _by_ada("claimed", "in_progress", actor="REV")), []),
    "a claim taken over by force": (_all(_CLAIMED, _by_ada("claimed", "claimed", force=True, reason="gone")), []),
    "own claim of a review": (_OWN_CLAIM, ILLEGAL),
    "own claim of a review with a reason": (
        _added("for_review", "in_review", actor="ada", policy_metadata={"override_reason": "alone"}),
        [],
    ),
    "own claim of a review with a reference": (
        _added("for_review", "in_review", actor="ada", review_ref="PR 1"),
        ILLEGAL,
    ),
    "own claim of a tool that names itself for all": (
        _added("for_review", "in_review", actor="ada", review_result=None),
        [],
    ),
    "own claim, and own approval": (_all(_OWN_CLAIM, _added("in_review", "approved", actor="ada")), ILLEGAL * 2),
    "own work taken back half-way": (
        _added("for_review", "in_review", actor="ada", reason="on the way to planned"),
        [],
    ),
    **{
        f"an approval whose evidence is {evidence}": (
            _all(_IN_REVIEW, _added("in_review", "approved", evidence=evidence)),
            ILLEGAL,
        )
        for evidence in (
            None,
            _reviewed("rev", "changes_requested"),
            _reviewed("ada", "approved"),
            {"review": {"verdict": "approved"}},
        )
    },
    "a forced approval with another verdict": (
        _added("for_review", "approved", force=True, reason="now", evidence=_reviewed("rev", "changes_requested")),
        ILLEGAL,
    ),
    "an approval by its reviewer": (
        _all(_IN_REVIEW, _added("in_review", "approved", evidence=_reviewed("Rev", "approved"))),
        [],
    ),
    "an approval by its reviewer, whom another actor names": (
        _all(_IN_REVIEW, _added("in_review", "approved", evidence=_reviewed("eve", "approved"))),
        [],
    ),
    "own approval of a tool that names its reviewer": (
        _all(_IN_REVIEW, _added("in_review", "approved", actor="ada", evidence=_reviewed("eve", "approved"))),
        [],
    ),
    "a claim that a migration says again": (
        _all(_CLAIMED, _added("planned", "claimed", wp_id="WP02", actor="m", event_id="Z"), _CONTINUED),
        [],
    ),
    "a claim that another makes later": (
        _all(_CLAIMED, _added("planned", "claimed", wp_id="WP02", actor="m", at=LATER, event_id="Z"), _CONTINUED),
        ILLEGAL * 2,
    ),
    "a time in the future": (_added("for_review", "in_review", at=FUTURE), ["timestamp-future"]),
    "a move after a time in the future": (_added("claimed", "blocked", wp_id="WP03", at=FUTURE), []),
}


def error_codes(project: Project, base: str) -> list[str]:
    found = check_missions(project.root, [SLUG], base, None, NOW + timedelta(days=1)).files
    errors = [one for one in found[f"kitty-specs/{SLUG}/status.events.jsonl"] if one.severity == "error"]
    assert not any("`--" in one.text for one in errors), "a line of a log has no options"
    return [one.code for one in errors]


@pytest.mark.slow
def test_a_change_adds_only_lines_to_a_log_that_moves_write(project: Project) -> None:
    for wp_id in ("WP01", "WP02", "WP03"):
        project.work_package(wp_id, "planning_artifact")
    for i, step in enumerate((("planned", "claimed"), ("claimed", "in_progress"), ("in_progress", "for_review"))):
        project.event("WP01", *step, NOW + timedelta(minutes=i), mission_slug=SLUG if i else "001-old")
    project.event("WP03", "planned", "claimed", NOW + timedelta(days=2))
    project.work_package("WP04", "planning_artifact", lane="for_review")
    project.work_package("WP05", "planning_artifact", dependencies=["WP01"])
    project.repository()
    path, wrong = log_path(project.folder), {}
    whole = path.read_text(encoding="utf-8").splitlines()
    for name, (change, codes) in CHANGES_OF_A_LOG.items():
        path.unlink(missing_ok=True)
        if lines := change(whole):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        if (found := error_codes(project, "main")) != codes:
            wrong[name] = found
    assert wrong == {}
    project.folder.rename(project.folder.with_name("100-renamed"))
    renamed = check_missions(project.root, ["100-renamed"], "main", None, NOW + timedelta(days=9)).files
    assert [one.code for one in renamed["kitty-specs/100-renamed/status.events.jsonl"]] == []


def test_a_merge_that_keeps_the_lines_of_both_sides_passes_and_work_goes_on(project: Project) -> None:
    for wp_id in ("WP01", "WP02"):
        project.work_package(wp_id, "planning_artifact")
    project.move("WP01", "in_progress")
    project.repository()
    project.write("../../.git/info/attributes", "*.jsonl merge=union\n")
    project.git("switch", "--quiet", "--create", "feature")
    project.move("WP01", "for_review")
    project.git("commit", "--quiet", "--all", "--message", "ours")
    project.git("switch", "--quiet", "main")
    project.move("WP02", "in_progress")
    project.git("commit", "--quiet", "--all", "--message", "theirs")
    theirs = log_path(project.folder).read_bytes()
    project.git("switch", "--quiet", "feature")
    project.git("merge", "--quiet", "--no-edit", "main")
    assert not log_path(project.folder).read_bytes().startswith(theirs), "our line is above theirs"
    assert error_codes(project, "main") == []
    project.move("WP01", "approved", "rev")
    assert error_codes(project, "main") == []
    project.git("checkout", "--quiet", "main", "--", "kitty-specs")
    project.git("commit", "--quiet", "--message", "only theirs")
    assert (error_codes(project, "main"), error_codes(project, "HEAD~2")) == ([], ALTERED)


FLIPPED = "---\nwork_package_id: WP01\nexecution_mode: planning_artifact\n---\n"
MOVED = json.dumps({"lanes": [{"lane_id": "lane-a"}, {"lane_id": "lane-b", "wp_ids": ["WP01"]}]})
NO_LANE = json.dumps({"lanes": []})
CONTEXT = f".kittify/workspaces/{SLUG}-lane-b.json"
RELANED = json.dumps({"lane_id": "lane-b", "wp_id": "WP01"})


@pytest.mark.parametrize(
    ("changes", "path", "code"),
    [
        ({"tasks/WP01-part.md": FLIPPED, "lanes.json": NO_LANE}, "tasks/WP01-part.md", "mode-contradiction"),
        (
            {"tasks/WP01-part.md": "", "tasks/WP01-other.md": FLIPPED, "lanes.json": NO_LANE},
            "tasks/WP01-other.md",
            "mode-contradiction",
        ),
        ({"lanes.json": MOVED}, "lanes.json", "mode-contradiction"),
        ({"lanes.json": ""}, "lanes.json", "mode-contradiction"),
        ({f"../../{CONTEXT}": RELANED}, CONTEXT, "mode-contradiction"),
        ({"tasks/WP01-part.md": ""}, "status.events.jsonl", "work-package-unknown"),
    ],
)
def test_a_change_of_begun_work_that_drops_its_lane_or_its_file_is_an_error(
    project: Project, changes: dict[str, str], path: str, code: str
) -> None:
    def found(place: str) -> list[tuple[str, str]]:
        files = check_missions(project.root, [SLUG], "HEAD", None, NOW).files
        all_found = files.get(place if place == CONTEXT else f"kitty-specs/{SLUG}/{place}", ())
        return [(one.code, one.severity.value) for one in all_found]

    project.work_package("WP01", "code_change")
    project.lanes(lane_a=["WP01"])
    project.write(f"../../{CONTEXT}", {"lane_id": "lane-b"})
    recorded = {"policy_metadata": {"lane_branch": lane_branch(SLUG, "lane-a")}}
    project.event("WP01", "planned", "in_progress", NOW - timedelta(days=1), **recorded)
    project.repository()
    project.git("add", "--all")
    project.commit("contexts")
    assert found(path) == []
    for name, text in changes.items():
        project.write(name, text)
        if not text:
            (project.folder / name).unlink()
    assert found(path) == [(code, "error")]
    project.git("add", "--all")
    project.commit("change")
    assert found(path if path not in ("lanes.json", CONTEXT) else "tasks/WP01-part.md") == [(code, "warning")]


@pytest.mark.parametrize("here", ["neither", "the new one", "a renamed mission"])
def test_a_change_of_the_lane_of_begun_work_is_an_error_also_where_its_branches_are_not_fetched(
    project: Project, here: str
) -> None:
    def found() -> list[tuple[str, str]]:
        (slug,) = (folder.name for folder in project.folder.parent.iterdir())
        files = check_missions(project.root, [slug], "HEAD", None, NOW).files
        return [(one.code, one.severity.value) for one in files[f"kitty-specs/{slug}/lanes.json"]]

    project.work_package("WP01", "code_change")
    project.lanes(lane_a=["WP01"])
    recorded = {"policy_metadata": {"lane_branch": lane_branch(SLUG, "lane-a")}}
    project.event("WP01", "planned", "in_progress", NOW - timedelta(days=1), **recorded)
    project.repository()
    if here == "a renamed mission":
        project.folder.rename(project.folder.with_name(NEW))
    else:
        project.lanes(lane_b=["WP01"])
    if here == "the new one":
        project.git("branch", lane_branch(SLUG, "lane-b"))
    assert found() == ([("mode-contradiction", "error")] if here == "neither" else [])
    project.git("add", "--all")
    project.commit("change")
    assert found() == []


LOG, NEW, PATHS = "status.events.jsonl", "100-new", "kitty-specs/{}/status.events.jsonl"


@pytest.mark.parametrize(
    ("status", "folder", "changes", "found"),
    [
        ("claimed", NEW, {}, {}),
        ("claimed", NEW, {LOG: ""}, {PATHS.format(NEW): "log-altered"}),
        ("claimed", NEW, {LOG: "", "meta.json": {"mission_id": "ID1"}}, {PATHS.format(NEW): "log-altered"}),
        ("claimed", NEW, {"tasks/WP01-part.md": ""}, {PATHS.format(NEW): "work-package-unknown"}),
        ("claimed", NEW, {LOG: "", "meta.json": {"mission_id": "ID2"}}, {PATHS.format(SLUG): "log-altered"}),
        ("claimed", "", {}, {PATHS.format(SLUG): "log-altered"}),
        ("done", "", {}, {}),
        ("planned", "", {}, {}),
    ],
)
def test_a_change_that_renames_or_removes_a_mission_loses_no_work(
    project: Project, status: str, folder: str, changes: dict[str, Any], found: dict[str, str]
) -> None:
    project.begin(mission_id="ID1")
    project.work_package("WP01", "planning_artifact")
    project.event("WP01", "planned", "claimed", NOW - timedelta(days=1))
    project.event("WP01", "claimed", status)
    project.repository()
    for name, content in changes.items():
        project.write(name, content)
    for name in (name for name, content in changes.items() if name != LOG and not content):
        (project.folder / name).unlink()
    project.folder.rename(project.folder.with_name(folder) if folder else project.root / "elsewhere")
    files = check_missions(project.root, [], "HEAD", None, NOW).files
    assert {
        path: one.code for path, all_found in files.items() for one in all_found if one.severity == "error"
    } == found


def test_a_change_of_one_work_package_blames_no_other(project: Project) -> None:
    recorded = {"policy_metadata": {"lane_branch": lane_branch(SLUG, "lane-a")}}
    project.event("WP01", "planned", "in_progress", NOW - timedelta(days=1), **recorded)
    project.event("WP02", "planned", "in_progress", NOW - timedelta(days=1), **recorded)
    project.work_package("WP02", "planning_artifact")
    project.work_package("WP011", "planning_artifact")
    project.repository()
    project.work_package("WP011", "planning_artifact", "More")
    found = [one for each in check_missions(project.root, [SLUG], "HEAD", None, NOW).files.values() for one in each]
    codes = ("mode-contradiction", "work-package-unknown")
    assert sorted((one.code, one.severity.value) for one in found if one.code in codes) == [
        (code, "warning") for code in codes
    ]


@pytest.mark.parametrize("target", ["approved", "in_review", "in_progress", "planned"])
def test_a_move_of_own_work_writes_lines_that_pass_one_by_one(project: Project, target: str) -> None:
    project.work_package("WP01", "planning_artifact")
    for i, step in enumerate((("planned", "claimed"), ("claimed", "in_progress"), ("in_progress", "for_review"))):
        project.event("WP01", *step, NOW + timedelta(minutes=i))
    project.repository()
    path = log_path(project.folder)
    project.move("WP01", target, override_reason="No one else is here.", feedback="It lacks tests.")
    assert error_codes(project, "HEAD") == []
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    assert error_codes(project, "HEAD") == []


READY, OPEN = "- [x] T001 Write it\n", "- [ ] T001 Write it\n"
HANDED_IN, BY_REV = [("in_progress", "for_review", {})], {"actor": "rev", "reason": "It lacks tests."}


@pytest.mark.parametrize(
    ("before", "after", "steps", "codes"),
    [
        (OPEN, OPEN, HANDED_IN, ILLEGAL),
        (OPEN, OPEN, [*HANDED_IN, ("for_review", "in_review", BY_REV)], ILLEGAL),
        (OPEN, OPEN, [("in_progress", "for_review", {"reason": "See the branch."})], ILLEGAL),
        (OPEN, OPEN, [("in_progress", "for_review", {"force": True, "reason": "It is late."})], []),
        (OPEN, OPEN, [*HANDED_IN, ("for_review", "in_review", BY_REV), ("in_review", "in_progress", BY_REV)], []),
        (OPEN, OPEN, [("in_progress", "for_review", {"review_result": None})], []),  # another tool's
        (OPEN, READY, HANDED_IN, []),
        (READY, OPEN, HANDED_IN, []),
        ("", OPEN, HANDED_IN, []),
    ],
)
def test_work_is_handed_in_by_hand_only_with_its_subtasks(
    project: Project, before: str, after: str, steps: list[Any], codes: list[str]
) -> None:
    project.work_package("WP01", "planning_artifact", subtasks=["T001"])
    project.event("WP01", "planned", "in_progress", force=True, reason="It began.")
    project.write("tasks.md", before)
    project.repository()
    project.write("tasks.md", after)
    for i, (source, target, more) in enumerate(steps, start=1):
        project.event("WP01", source, target, NOW + timedelta(minutes=i), **more)
    assert error_codes(project, "HEAD") == codes


@pytest.mark.parametrize(
    ("target", "more"),
    [
        ("blocked", {}),
        ("for_review", {"reason": "See the branch."}),
        ("for_review", {"review_ref": "PR 1"}),
        ("planned", {"reason": "It was too early."}),
    ],
)
def test_a_check_of_a_change_asks_git_as_often_for_many_work_packages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, target: str, more: dict[str, Any]
) -> None:
    caplog.set_level(logging.DEBUG, "accord.git")
    counts = []
    for count in (2, 6):
        project = Project(tmp_path / str(count)).begin(target_branch="main")
        names = [f"WP{number:02}" for number in range(1, count + 1)]
        for name in names:
            project.work_package(name, "code_change", subtasks=["T001"])
            project.event(name, "planned", "in_progress", force=True, reason="It began.")
        project.lanes(**{f"lane_{name.lower()}": [name] for name in names})
        project.write("tasks.md", READY)
        project.repository()
        for name in names:
            project.git("branch", lane_branch(SLUG, f"lane-{name.lower()}"))
            project.event(name, "in_progress", target, NOW + timedelta(minutes=1), **more)
        caplog.clear()
        assert error_codes(project, "HEAD") == []
        counts.append(sum(record.name == "accord.git" for record in caplog.records))
    assert counts[0] == counts[1] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "reason", "codes"),
    [
        ("open", "", ILLEGAL),
        ("open", "shipped by hand", []),
        ("in another lane", "", ILLEGAL),
        ("without lanes", "", ILLEGAL),
        ("merged", "", []),
        ("merged and continued", "", []),
        ("merged and continued in the same second", "", []),
        ("merged and continued with an older branch", "", []),
        ("merged and continued, by a wrong clock", "", ["timestamp-future"]),
        ("deleted", "", []),
    ],
)
def test_a_line_that_says_done_is_illegal_while_the_branch_is_there_unmerged(
    project: Project, state: str, reason: str, codes: list[str]
) -> None:
    project.work_package("WP01", "code_change")
    project.lanes(lane_a=["WP01"])
    branch = lane_branch(SLUG, "lane-a")
    steps = ("planned", "claimed", "in_progress", "for_review", "in_review", "approved", "done")
    for i, step in enumerate(pairwise(steps[:5])):
        begun = {"policy_metadata": {"lane_branch": branch}} if step[1] == "in_progress" else {}
        project.event("WP01", *step, NOW + timedelta(minutes=i), **begun)
    project.repository()
    project.git("switch", "-q", "-c", branch)
    project.commit("work", at=NOW)
    project.git("switch", "-q", "main")
    if state.startswith(("merged", "deleted")):
        project.git("merge", "-q", "--no-ff", "-m", "Merge", branch)
    if state == "deleted":
        project.git("branch", "-q", "-D", branch)
    if state == "in another lane":
        project.lanes(lane_b=["WP01"])
        project.git("branch", lane_branch(SLUG, "lane-b"), "main")
    if state == "without lanes":
        (project.folder / "lanes.json").unlink()
    project.event("WP01", "in_review", "approved", NOW + timedelta(hours=1), actor="rev")
    more = {"policy_metadata": {"override_reason": reason}} if reason else {}
    hours = 72 if state.endswith("wrong clock") else 2
    project.event("WP01", "approved", "done", NOW + timedelta(hours=hours), actor="rev", **more)
    if state.startswith("merged and continued"):
        if state.endswith("older branch"):
            project.git("switch", "-q", "-c", "older")
            project.commit("work of before", at=NOW + timedelta(hours=1))
        project.git("switch", "-q", branch)
        hours = 2 if state.endswith("same second") else 3
        project.commit("work of the next one", at=NOW + timedelta(hours=hours))
        if state.endswith("older branch"):
            project.git("merge", "-q", "--no-ff", "--no-commit", "older")
            project.commit("Merge of an older branch", at=NOW + timedelta(hours=4))
        project.git("switch", "-q", "main")
    assert error_codes(project, "HEAD") == codes


@pytest.mark.parametrize(
    ("claimed_by", "reviewer", "codes"),
    [
        ("tool", "renata", []),
        ("codex", "unknown", []),
        ("tool", "tool", ["event-illegal"]),
        ("tool", "unknown", ["event-illegal"]),
        ("tool", "TOOL", ["event-illegal"]),
    ],
)
def test_an_old_approval_that_names_another_reviewer_counts_whatever_tool_wrote_it(
    project: Project, claimed_by: str, reviewer: str, codes: list[str]
) -> None:
    project.work_package("WP01", "planning_artifact")
    steps = [("planned", "claimed"), ("claimed", "in_progress"), ("in_progress", "for_review")]
    for i, step in enumerate(steps):
        project.event("WP01", *step, NOW + timedelta(minutes=i), actor="tool")
    project.event("WP01", "for_review", "in_review", NOW + timedelta(minutes=4), actor=claimed_by)
    review = {"review": {"reviewer": reviewer, "verdict": "approved", "reference": "r"}}
    project.event("WP01", "in_review", "approved", NOW + timedelta(minutes=5), actor="tool", evidence=review)
    for source in ("approved", "done"):  # the tool of old lines repeats its merge
        project.event("WP01", source, "done", NOW + timedelta(minutes=6), actor="tool", evidence=review)
    found = mission_findings(project.load(), NOW).get(f"kitty-specs/{SLUG}/status.events.jsonl", [])
    assert [one.code for one in found] == codes


def test_old_lines_that_no_move_writes_are_one_warning(project: Project) -> None:
    project.work_package("WP01", "planning_artifact")
    for i, step in enumerate(
        (("planned", "claimed"), ("planned", "claimed"), ("planned", "done"), ("done", "planned"))
    ):
        project.event("WP01", *step, NOW + timedelta(minutes=i))
    (one,) = mission_findings(project.load(), NOW)[f"kitty-specs/{SLUG}/status.events.jsonl"]
    said = "No move writes this line. It leaves planned, but WP01 was claimed. It is one of 2 such lines."
    assert (one.code, one.severity, one.line, one.message) == ("event-illegal", "warning", 3, said)
