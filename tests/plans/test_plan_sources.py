"""Sources of a plan: the order, scope and criteria that they state, and the places where they lack one."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from support.growth import grows_too_fast
from support.plan_sources import CHECKLIST, PLAN, SESSION, SPEC, TASKS, mission

from accord.core.clock import SystemClock
from accord.core.errors import BrokenContract
from accord.engine.operations import OperationLog
from accord.plans.build import build_plan
from accord.plans.entries import read_checklist
from accord.plans.models import Source, paths_in
from accord.plans.read import issue_in, read_source
from accord.plans.spec_kit import read_spec_kit
from accord.plans.waits import references_in
from accord.plans.write_back import PlanFile
from accord.results.bodies import read_body
from accord.results.models import PlannedWorkItem

FILE = "specs/001-export/tasks.md"


def spec_kit(text: str = TASKS, **beside: str) -> Source:
    return read_spec_kit(text, FILE, {f"{name}.md": content for name, content in beside.items()})


def todo(text: str) -> Source:
    return read_checklist(text, "TODO.md")


def items(source: Source) -> dict[str, PlannedWorkItem]:
    result, found = build_plan(source)
    assert [finding.code for _, finding in found if finding.severity == "error"] == []
    return {item.temp_id: item for item in result.create}


def blockers(source: Source) -> dict[str, list[str]]:
    return {name: item.blocked_by for name, item in items(source).items()}


def errors(source: Source) -> list[tuple[str, int | None]]:
    return [(finding.code, finding.line) for _, finding in build_plan(source)[1]]


def test_phases_and_parallel_tasks_give_the_order() -> None:
    assert blockers(spec_kit(spec=SPEC, plan=PLAN)) == {
        "T001": [],
        "T002": ["T001"],
        "T003": ["T001"],
        "T004": ["T002", "T003"],
        "T005": ["T004"],
        "T006": ["T004"],
        "T007": ["T005", "T006"],
        "T008": ["T004"],
        "T009": ["T007", "T008"],
    }


STATED = {
    "a story that depends on another": ("- **User Story 2 (P3)**: Depends on User Story 1", "T008", ["T004", "T007"]),
    "a story that does not": ("- **User Story 2 (P3)**: No dependencies - may use US1 after all", "T008", ["T004"]),
    "a chain": ("T001 → T002 → T003", "T003", ["T001", "T002"]),
    "a task that blocks": ("- T002 blocks T003", "T003", ["T001", "T002"]),
    "a range": ("- T008 depends on T005-T007", "T008", ["T004", "T005", "T006", "T007"]),
    "a phase": ("- **Phase 4**: starts after Phase 3 completion", "T008", ["T004", "T007"]),
}


@pytest.mark.parametrize(("line", "task", "expected"), STATED.values(), ids=STATED)
def test_the_dependencies_section_adds_to_the_order(line: str, task: str, expected: list[str]) -> None:
    text = f"{TASKS}\n## Dependencies & Execution Order\n\n### All\n\n{line}\n"

    assert sorted(blockers(spec_kit(text, plan=PLAN))[task]) == expected


def test_an_order_that_many_lines_state_is_kept_once() -> None:
    tasks = [f"- [ ] T{i:04} [P] in src/a.py\n" for i in range(300)]
    lines = "".join(f"- Phase 2{', Phase 1' * (i % 3)}: depends on Phase 1 ({i})\n" for i in range(150))
    phases = "".join(f"\n## Phase {i + 1}: A\n\n{''.join(tasks[i::2])}" for i in range(2))
    tracemalloc.start()
    found = spec_kit(f"{phases}\n## Dependencies\n\n{lines}").tasks
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(task.blockers) for task in found] == [149] * 150 + [150] * 150
    assert peak < 10_000_000


def test_a_task_says_what_it_waits_for() -> None:
    text = TASKS.replace("Print in src/print.py", "Print in src/print.py (depends on T005, T006)")
    item = items(spec_kit(text, plan=PLAN))["T008"]

    assert item.title == "Print in src/print.py"
    assert item.blocked_by == ["T004", "T005", "T006"]


def test_done_tasks_are_left_out_and_pass_on_what_blocked_them() -> None:
    text = TASKS.replace("[ ] T002", "[X] T002").replace(
        "[ ] T004 Model contacts in src/model.py", "[x] T004 Model (#7)"
    )
    found = blockers(spec_kit(text, plan=PLAN))

    assert not {"T002", "T004", "T004#7"} & found.keys()
    assert found["T005"] == ["#7"]
    text = TASKS.replace("[ ] T004", "[x] T004")
    assert blockers(spec_kit(text, plan=PLAN))["T005"] == ["T002", "T003"]


def test_a_long_chain_of_done_tasks_passes_on_its_start() -> None:
    done = "".join(f"- [x] T{i:04} in src/a.py (after T{i + 1:04})\n" for i in range(1, 1200))
    text = f"- [ ] T0000 in src/a.py (after T0001)\n{done}- [ ] T1200 in src/a.py\n"
    assert blockers(todo(text)) == {"T0000": ["T1200"], "T1200": []}


def test_the_last_task_of_a_story_carries_its_tests() -> None:
    found = items(spec_kit(spec=SPEC, plan=PLAN))
    body = found["T007"].body

    assert "- [ ] Independent test: Export and open the file" in body
    assert "- [ ] **Given** three contacts, **When** I export them, **Then** the file has three lines" in body
    assert "- [ ] Checkpoint: Foundation ready" in found["T004"].body
    assert "Independent test" not in found["T006"].body
    assert "- Spec: `specs/001-export/spec.md`" in body
    assert "priority:high" in found["T005"].labels
    assert "priority:low" in found["T008"].labels
    assert read_body(found["T001"].body).in_scope == ("src", "tests")


def test_a_missing_part_of_a_task_list_has_a_line() -> None:
    text = TASKS.replace(" in src/print.py", "").replace("T009 Document", "Document")

    assert errors(spec_kit(text, plan=PLAN)) == [("task-id-missing", 35), ("scope-empty", 31)]
    assert ("scope-empty", 9) in errors(spec_kit())
    assert errors(spec_kit(TASKS.replace("T009 Document", "T008 Document"), plan=PLAN))[0] == ("duplicate-temp-id", 35)
    assert errors(spec_kit(TASKS.replace("T009 Document", "T00X Document"), plan=PLAN))[0] == ("task-id-missing", 35)
    notes = f"{TASKS}\n## Notes\n\n- [ ] Ask the team\n"
    assert errors(spec_kit(notes, plan=PLAN)) == errors(spec_kit(TASKS, plan=PLAN)) == []
    numbered = errors(spec_kit(notes.replace("## Notes", "## Phase 9: Notes"), plan=PLAN))
    assert [code for code, _ in numbered] == ["task-id-missing"]
    text = TASKS.replace("docs/export.md", "docs/export.md (depends on T099)")
    assert errors(spec_kit(text, plan=PLAN))[0] == ("unknown-reference", 35)


def test_boxes_in_code_and_comments_are_not_tasks() -> None:
    text = f"{TASKS}\n```\n- [ ] T100 Code in src/x.py\n```\n\n<!--\n- [ ] T101 Comment in src/x.py\n-->\n"

    assert not {"T100", "T101"} & items(spec_kit(text, plan=PLAN)).keys()


PATHS = {
    "Write src/a.py, then tests/test_a.py.": ("src/a.py", "tests/test_a.py"),
    "authentication/authorization and/or CI/CD": (),
    "in `lib/core` and `Makefile`": ("lib/core", "Makefile"),
    "Node.js and e.g. https://example.com/a.js": (),
    "~~Old src/a.py~~ src/b.py": ("src/b.py",),
    "docs/ and .github/workflows/ci.yml:12": ("docs", ".github/workflows/ci.yml"),
    "app/[id]/page.tsx and **src/b.ts**": ("app/[id]/page.tsx", "src/b.ts"),
    "`run()`, `name` and `a b/c` and /etc/passwd and ../x.py": (),
    "Run `bin/rails test spec/a.rb`, `./dev test a.py`, `scripts/a.sh b.md`, `bin/x -m a.py` or `git add b.md`": (),
}


@pytest.mark.parametrize(("text", "expected"), PATHS.items())
def test_words_with_slashes_are_not_paths(text: str, expected: tuple[str, ...]) -> None:
    assert paths_in(text) == expected


def test_references_are_ids_issues_and_ranges() -> None:
    assert references_in(["T001-T003, WP02 and #7", "T9-T2"]) == ("T001", "T002", "T003", "WP02", "#7", "T9", "T2")
    assert len(references_in(["T1-T999999"])) == 2


def test_a_checklist_states_criteria_and_dependencies_below_its_entries() -> None:
    found = items(read_checklist(CHECKLIST, "TODO.md"))
    name = "refactor-the-base-class-in-src"

    assert list(found) == ["write-src-a-py#12", name]
    assert found["write-src-a-py#12"].blocked_by == [name]
    assert "- [ ] A works\n- [ ] Verify: Run it" in found["write-src-a-py#12"].body
    assert "- [ ] Write" not in found["write-src-a-py#12"].body
    assert "priority:high" in found["write-src-a-py#12"].labels
    assert "- Spec: `docs/specs/export.md`" in found[name].body


def test_a_reference_to_the_first_words_is_of_the_entry_that_begins_so() -> None:
    text = (
        "- [ ] None of it in src/a.py\n- [ ] Correct b in src/b.py\n- [ ] b in src/c.py\n  Depends on: none\n"
        "- [ ] d in src/d.py\n  Depends on: b in\n- [ ] e in src/e.py, depends on b in\n"
    )
    found = {name: item.blocked_by for name, item in items(read_checklist(text, "TODO.md")).items()}
    assert [*found.values()] == [[], [], [], ["b-in-src-c-py"], ["b-in-src-c-py"]]


REPEATED = {
    "equal": (["Fix tests"] * 3, ["fix-tests", "fix-tests-2", "fix-tests-3"]),
    "a number that is another's": (
        ["Fix tests 3", *["Fix tests"] * 3],
        [f"fix-tests{n}" for n in ("-3", "", "-2", "-4")],
    ),
    "a number that is another's later": (
        ["Fix tests"] * 2 + ["Fix tests 2"],
        [f"fix-tests{n}" for n in ("", "-2", "-2-2")],
    ),
    "an id": (["T1 Fix tests", "Fix tests", "Fix tests"], ["T1", "fix-tests", "fix-tests-2"]),
}


@pytest.mark.parametrize(("texts", "ids"), REPEATED.values(), ids=REPEATED)
def test_entries_that_begin_alike_have_different_ids(texts: list[str], ids: list[str]) -> None:
    assert [task.id for task in todo("".join(f"- [ ] {text}\n" for text in texts)).tasks] == ids


def test_many_equal_entries_are_read_in_linear_time() -> None:
    assert not grows_too_fast(lambda size: todo("- [ ] a\n" * size), 8000)


def test_many_tags_before_struck_text_are_read_in_linear_time() -> None:
    assert not grows_too_fast(lambda size: todo(f"- [ ] {'[T1] ' * size}x ~~y~~\n"), 88)


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_numbers_go_to_the_lines_of_their_tasks(tmp_path: Path, end: str) -> None:
    path = tmp_path / "TODO.md"
    path.write_bytes(f"One{end}two{end}{end}- [ ] T1 in src/a.py{end}- [ ] T2 in src/b.py\n\nEnd\n".encode())
    PlanFile(path, tmp_path).write({"T1": 7, "T2": 8}, SystemClock(), OperationLog(is_dry_run=False))
    text = f"One{end}two{end}{end}- [ ] T1 in src/a.py (#7){end}- [ ] T2 in src/b.py (#8)\n\nEnd\n"
    assert path.read_bytes() == text.encode()


def test_an_entry_without_a_path_cannot_be_an_item() -> None:
    assert errors(read_checklist("- [ ] Be faster\n", "TODO.md")) == [("scope-empty", 1)]
    assert errors(read_checklist("Nothing to do\n", "TODO.md")) == [("no-tasks", None)]


def test_an_issue_is_named_in_three_ways() -> None:
    assert issue_in("o/n#12") == issue_in("https://github.com/o/n/issues/12") == ("o/n", 12)
    assert issue_in("specs/tasks.md") is None


def test_a_session_states_everything(tmp_path: Path) -> None:
    folder = tmp_path / ".agents-work" / "2026-11-02_export"
    folder.mkdir(parents=True)
    (folder / "tasks.yaml").write_text(SESSION)
    (item,) = items(read_source(folder)).values()

    assert (item.temp_id, item.title, item.blocked_by) == ("T-002", "vCard", [])
    assert "- [ ] cmd: pytest tests/test_vcard.py" in item.body
    assert "- Not a goal: Pictures" in item.body
    assert "- Spec: `.agents-work/2026-11-02_export/tasks.yaml`" in item.body
    (folder / "tasks.yaml").write_text(SESSION.replace("    files_expected: [src/vcard.py]\n", ""))
    assert errors(read_source(folder)) == [("scope-empty", 6)]


def test_a_mission_states_packages_with_files_and_dependencies(tmp_path: Path) -> None:
    found = items(read_source(mission(tmp_path)))

    assert {name: item.blocked_by for name, item in found.items()} == {"WP01": [], "WP02": ["WP01"]}
    body = read_body(found["WP01"].body)
    assert body.in_scope == ("src/WP01.py",)
    assert "- [ ] Commands are sorted\n- [ ] Independent test: Run it." in found["WP01"].body
    assert "Show commands in order." in found["WP01"].body
    assert "priority:high" in found["WP01"].labels


def test_a_mission_without_files_says_where_to_add_them(tmp_path: Path) -> None:
    folder = mission(tmp_path)
    package = folder / "tasks" / "WP02-sort.md"
    package.write_text(package.read_text().replace("owned_files:\n- src/WP02.py\n", ""))

    assert errors(read_source(folder)) == [("scope-empty", 2)]


@pytest.mark.parametrize(
    "written",
    [
        "- [ ] Two in src/b.py\n  Depends on: One\n  Priority: high",
        "- [ ] Two in src/b.py. Depends on: One. Priority: high",
        "- [ ] Two in src/b.py; Priority: high\n\n  Depends on: One",
        "- [ ] Two in src/b.py\n  - Depends on: One\n  - Priority: high",
        "- [ ] Two in src/b.py (blocked by One, priority: high)",
        "- [ ] Two in src/b.py (Priority: high; depends on: One)",
        "- [ ] Two in src/b.py (after One) (priority: high)",
        "- [ ] Two in src/b.py(after One) (priority: high)",
        "- [ ] Two in src/b.py [after One; priority: high]",
        "- [ ] Two in src/b.py\n  - blockedBy: [One]\n  - Priority: high",
        "- [ ] Two in src/b.py\n  - Deps: One. Priority: high",
        "- [ ] Two in src/b.py\n  - Depends on: One, Priority: high",
        "- [ ] Two in src/b.py\n  - Depends on:\n    - One\n  - **Priority**:\n    - high",
        "- [ ] Two in src/b.py\n  Priority: high\n  **Depends on:**\n  - One",
        "- [ ] Two in src/b.py\n\n  Blocked by:\n\n  - [x] One\n\n  Labels:\n\n  - priority:high",
        "- [ ] Two in src/b.py\n\n  Depends on: One\n\n  - Priority: high",
    ],
)
def test_a_field_counts_wherever_an_entry_states_it(written: str) -> None:
    """Below the entry, behind its sentence, in brackets or beside others: no dependency is lost, no title has it."""
    found = items(read_checklist(f"- [ ] One in src/a.py\n{written}\n", "TODO.md"))
    two = found["two-in-src-b-py"]
    assert (two.title, two.blocked_by) == ("Two in src/b.py", ["one-in-src-a-py"])
    assert "priority:high" in two.labels
    assert "priority:medium" in items(todo("- [ ] A in src/a.py\n  - Priority: p2"))["a-in-src-a-py"].labels


BELOW = {
    "a label": ("  - Scope:\n    - src/a.py\n    - b/c.py\n  - d/e.py", ["src/a.py", "b/c.py"], "d/e.py"),
    "a bold label": ("  - **Files**:\n    1. src/a.py\n    2. `b/c d.py`", ["src/a.py", "b/c d.py"], ""),
    "a paragraph": ("\n  **Files:**\n\n  - src/a.py\n\n  **Notes:**\n\n  - b/c.py", ["src/a.py"], "**Notes:**, b/c.py"),
    "a line": ("  Files:\n  - [ ] src/a.py\n  - [x] b/c.py", ["src/a.py", "b/c.py"], ""),
    "a text": ("  - Files:\n\n    src/a.py\n  - More", ["src/a.py"], "More"),
    "labels of a label": ("  - Scope:\n    - In scope:\n      - src/a.py\n    - Out of scope: b.py", ["src/a.py"], ""),
    "what it does with a file": ("  - Files:\n    - Create: src/a.py\n    - Test: b/c.py", ["src/a.py", "b/c.py"], ""),
    "titles": (
        "  - Files:\n    - **Back:**\n      - src/a.py\n        - See b/c.py",
        ["src/a.py"],
        "**Back:**, See b/c.py",
    ),
    "words": ("  - Files:\n    - src/a.py\n    - its tests", ["src/a.py"], "its tests"),
}


@pytest.mark.parametrize(("nested", "scope", "notes"), BELOW.values(), ids=BELOW)
@pytest.mark.parametrize("read", [todo, spec_kit])
def test_the_entries_below_a_label_are_its_value(
    read: Callable[[str], Source], nested: str, scope: list[str], notes: str
) -> None:
    (task,) = read(f"- [ ] T001 Add it\n{nested}\n").tasks
    assert (task.title.removeprefix("T001 "), [*task.scope], ", ".join(task.context)) == ("Add it", scope, notes)


def test_criteria_below_their_label_are_read_whole() -> None:
    nested = "  - Acceptance criteria:\n    - It works, scope: all of it\n      - by hand\n    - [ ] It is fast\n"
    (task,) = todo(f"- [ ] Fix src/a.py\n{nested}").tasks
    assert (task.criteria, task.context) == (("It works, scope: all of it", "It is fast"), ("by hand",))


SPACED = {
    "in backticks": (" in b/c.py\n  - Files: `My Docs/a.md`, `b d.py`", ["My Docs/a.md", "b d.py"]),
    "in the title": (" in `src/my export.py` and b/c.py", ["src/my export.py"]),
    "beside prose": (" in b/c.py\n  - Files: the parser in src/p.py and its tests, `a b.md`", ["src/p.py", "a b.md"]),
    "beside a list": (" in b/c.py\n  - Files: src/cli and README.md, `a b.md`", ["src/cli", "README.md", "a b.md"]),
    "beside a remark": (" in b/c.py\n  - Files: `a b.md`, src/lib (see d.md)", ["a b.md", "src/lib", "d.md"]),
    "beside an order": (" in b/c.py, `src/a b.py`, from src/lib to a.py", ["src/a b.py", "src/lib", "a.py"]),
    "beside a command": (" in b/c.py, `src/a b.py`. Run `bin/rspec a.rb`", ["src/a b.py"]),
    "beside a done task": (" in b/c.py, `src/a b.py`\n- [x] T002 Do src/my export.py", ["src/a b.py"]),
    "a path": (" in b/c.py\n  - Scope: src/my export.py", "src/my export.py"),
    "a path with two": (" in b/c.py\n  - Scope: src/my export script.py", "src/my export script.py"),
    "a folder": (" in b/c.py\n  - Scope: a.py, docs/user guide/", "docs/user guide/"),
    "a path of a list": (" in b/c.py\n  - Files:\n    - crates/my docs/a.py", "crates/my docs/a.py"),
    "a folder that is not known": (" in b/c.py\n  - Out of scope: a.py, crates/foo", "crates/foo"),
    "a path in the title": (" in b/c.py and src/my export.py", "src/my export.py"),
}


@pytest.mark.parametrize(("written", "expected"), SPACED.values(), ids=SPACED)
@pytest.mark.parametrize("read", [todo, spec_kit])
def test_a_path_with_a_blank_is_read_in_backticks_and_else_refused(
    read: Callable[[str], Source], written: str, expected: list[str] | str
) -> None:
    source = read(f"- [ ] T001 A{written}\n")
    found = [(each.code, each.line, each.message) for _, each in source.findings]
    if isinstance(expected, str):
        assert found == [("path-unclear", 1, f"`{expected}` is not clearly one path.")]
    else:
        assert {*source.tasks[0].scope} - {"b/c.py"} == {*expected}
        assert found == []


WAITING = {
    "a sentence": ". Depends on T001.",
    "behind a comma": ", depends on T001",
    "a label in a sentence": " depends on: T001",
    "a line": "\n  Depends on T001",
    "a nested entry": "\n  - depends on **T001**",
    "a reason": "\n  - This depends on T001, as it reads the rows.",
    "a paragraph": "\n\n  Blocked by T001.\n\n  More.",
    "two sentences": "\n  - It is not urgent. After `T001`",
    "an issue": "\n  - Blocked by #7 and T001",
    "what it needs in brackets": " (needs T001)",
}


@pytest.mark.parametrize("stated", WAITING.values(), ids=WAITING)
@pytest.mark.parametrize("read", [todo, spec_kit])
def test_a_sentence_about_a_task_names_what_it_waits_for(read: Callable[[str], Source], stated: str) -> None:
    found = blockers(read(f"- [ ] T001 [P] A in src/a.py\n- [ ] T002 [P] B in src/b.py{stated}\n"))
    assert found["T002"] == [*(["#7"] if "#7" in stated else []), "T001"]


@pytest.mark.parametrize(
    "stated",
    [
        *(" after the release", "\n  - Requires Python3 and the weather", "\n  - Not blocked by T001"),
        *("\n  - T003 depends on T001", "\n  - After T002, the rows are sorted", " after #7"),
        *("\n  - It used to depend on T001.", "\n  - Nothing depends on T001.", "\n  - Does T002 depend on T001?"),
        *(". Check that nothing depends on T001", ". Remove the code that requires T001", ". Shown after T001"),
        *(". Drop what requires T001 in src/c.py", "\n  - After T001 is planned, revisit", ". After T001's end, stop"),
    ],
)
def test_other_sentences_make_no_task_wait(stated: str) -> None:
    assert blockers(todo(f"- [ ] T001 A in src/a.py\n- [ ] T002 B in src/b.py{stated}\n"))["T002"] == []


def test_a_sentence_names_a_range_of_tasks() -> None:
    tasks = "- [ ] T001 A in src/a.py\n- [ ] T002 B in src/b.py\n"
    found = blockers(todo(f"{tasks}- [ ] T003 C in src/c.py. Depends on T001 to T002.\n"))
    assert found["T003"] == ["T001", "T002"]


@pytest.mark.parametrize(
    "written",
    [
        "Fix src/a.py. Why: it fails. Scope: src/b.py. Then stop",
        "Fix `f (path: str)` and g(path: str) in src/a.py (why: it fails)",
        "Fix src/a.py (id: user_id)",
        "Fix in src/a.py (id: int, name: str)",
    ],
)
def test_a_sentence_with_a_colon_stays_in_the_entry(written: str) -> None:
    (item,) = items(read_checklist(f"- [ ] {written}\n", "TODO.md")).values()
    assert item.title == written


def test_a_list_of_labels_and_a_criterion_are_read_whole() -> None:
    labels = "`free`, `priority:high`, complexity:low"
    text = f"- [ ] Fix src/a.py\n  - Labels: {labels}\n  - Test: run it, scope: all of it\n"
    (item,) = items(read_checklist(text, "TODO.md")).values()
    assert item.labels[-3:] == ["free", "priority:high", "complexity:low"]
    assert "- [ ] Test: run it, scope: all of it" in item.body


@pytest.mark.parametrize("read", [todo, spec_kit])
def test_an_entry_states_its_priority_and_complexity(read: Callable[[str], Source]) -> None:
    first = "- [ ] T001 A in src/a.py\n  - Priority: low\n  - Complexity: high\n"
    text = f"{first}- [ ] T002 B in src/b.py (complexity: Trivial)\n"
    labels = {name: item.labels[2:] for name, item in items(read(text)).items()}
    assert labels["T001"] == ["priority:low", "complexity:high"]
    assert labels["T002"] == ["priority:medium", "complexity:trivial"]
    assert items(read(text.replace(": low", ": TBD")))["T001"].labels[2:] == ["priority:medium", "complexity:high"]


@pytest.mark.parametrize(
    "stated",
    [
        ". **Priority: P1**",
        ". **Priority:** P1",
        " **Priority: P1**",
        ", **Priority: P1**.",
        " \u2014 **Priority: P1**",
    ],
)
@pytest.mark.parametrize("read", [todo, spec_kit])
def test_bold_words_at_the_end_of_an_entry_are_fields(read: Callable[[str], Source], stated: str) -> None:
    item = items(read(f"- [ ] T001 A in src/a.py{stated}\n"))["T001"]
    assert (item.title.removeprefix("T001 "), item.labels[-1]) == ("A in src/a.py", "priority:high")


@pytest.mark.parametrize(
    "title",
    [
        "Add **Priority** in src/a.py to **Note: all**",
        "Change the caption in src/a.py to **Depends on: T009**",
        "Show in src/a.py the badge **Id: T009**",
        "Name the tabs in src/a.py, **Labels: web, ui**",
    ],
)
def test_bold_words_at_the_end_of_a_title_are_its_own(title: str) -> None:
    (kept,) = todo(f"- [ ] {title}\n").tasks
    assert (kept.labels, kept.title, kept.criteria) == ((), title, (title,))
    assert kept.id != "T009"


@pytest.mark.parametrize("text", ["A in src/a.py. {}", "A in src/a.py. {}.", "A in src/a.py\n  - {}"])
def test_a_field_that_is_bold_as_a_whole_has_its_value_without_stars(text: str) -> None:
    (labels,) = todo(f"- [ ] {text.format('**Labels: web, ui**')}\n").tasks
    (named,) = todo(f"- [ ] {text.format('**Id: T009**')}\n").tasks
    (files,) = todo(f"- [ ] {text.format('**Scope: src/**/b.py**')}\n").tasks
    (tested,) = todo(f"- [ ] {text.format('**Test: It works**')}\n").tasks
    end = "." if text.endswith(".") else ""
    assert (labels.labels, named.id) == (("web", f"ui{end}"), f"T009{end}")
    assert (files.scope, tested.criteria) == (("src/a.py", "src/**/b.py"), (f"Test: It works{end}",))


@pytest.mark.parametrize(
    ("stated", "label"),
    [("Priority: High", "priority:high"), ("Priority: P4", ""), ("P4", ""), ("Priority: Critical", "")],
)
def test_a_priority_of_a_story_is_a_level_or_refused(tmp_path: Path, stated: str, label: str) -> None:
    source = spec_kit(f"## Phase 3: User Story 1 - Export ({stated})\n\n- [ ] T001 [US1] A in src/a.py\n")
    package = mission(tmp_path)
    overview = package / "tasks.md"
    overview.write_text(overview.read_text().replace("Priority: P1", stated))
    for one in (source, read_source(package)):
        assert [code for code, _ in errors(one)] == ([] if label else ["label-unknown"])
        assert not label or label in build_plan(one)[0].create[0].labels
    own = spec_kit(f"## Phase 3: User Story 1 - Export ({stated})\n\n- [ ] T001 A in src/a.py\n  - Priority: low\n")
    assert items(own)["T001"].labels[-1] == "priority:low"


@pytest.mark.parametrize(
    "title",
    [
        "Keep latency under 200 ms (P95)",
        "Sort the list by priority: urgent ones first",
        "Sort the list (by priority: urgent)",
        "Sort the list (priority: urgent ones first)",
    ],
)
def test_other_words_of_a_title_do_not_state_a_priority(tmp_path: Path, title: str) -> None:
    package = mission(tmp_path)
    overview = package / "tasks.md"
    overview.write_text(overview.read_text().replace("Priority: P1", title))
    story = spec_kit(f"## Phase 3: User Story 1 - {title}\n\n- [ ] T001 [US1] A in src/a.py\n")
    for one in (story, read_source(package)):
        assert errors(one) == []
        assert "priority:medium" in build_plan(one)[0].create[0].labels


REFUSED = {
    "a priority that is not a level": ("\n  - Priority: critical", "label-unknown"),
    "one in brackets": (" (priority: urgent)", "label-unknown"),
    "a number that is not one": ("\n  - Priority: P4", "label-unknown"),
    "a complexity that is not a level": ("\n  - Complexity: `XL`", "label-unknown"),
    "a second priority": ("\n  - Priority: low\n  - Priority: P1", "label-repeated"),
    "a task that waits for itself": ("\n  - Depends on: T002", "self-reference"),
    "a sentence of one": ("\n  - Depends on `T002`.", "self-reference"),
    "brackets of one": (" (after T002)", "self-reference"),
    "a label and another priority": ("\n  - Labels: priority:low\n  - Priority: high", "label-repeated"),
}


@pytest.mark.parametrize(("stated", "code"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("read", [todo, spec_kit])
def test_an_entry_is_refused_for_a_field_without_a_meaning(
    read: Callable[[str], Source], stated: str, code: str
) -> None:
    assert errors(read(f"- [ ] T001 A in src/a.py\n- [ ] T002 B in src/b.py{stated}\n")) == [(code, 2)]


BRACKETS = {
    "(needs #12)": "#12",
    "(needs: T001)": "T001",
    "(needs the parser of T001)": "T001",
    "(needs output of T001)": "T001",
    "(needs both T001 and T002)": "T001, T002",
    "(same file as T002, after T001)": "T001",
    "(extends T002, depends on T001)": "T001",
    "(parallel with T002 after T001)": "T001",
    "(T002 must fail first, after T001)": "T001",
    "(if T002 fails, depends on T001)": "T001",
    "(does not depend on T001)": "",
    "(needs GH-12)": "",
    "(after T001 is merged)": "T001",
    "(after T001 and T002 are done)": "T001, T002",
}


@pytest.mark.parametrize(("brackets", "expected"), BRACKETS.items())
def test_brackets_of_a_spec_kit_task_name_what_it_waits_for(brackets: str, expected: str) -> None:
    tasks = "- [ ] T001 [P] A in src/a.py\n- [ ] T002 [P] B in src/b.py\n- [ ] T003 [P] C in src/c.py"
    item = items(spec_kit(f"{tasks} {brackets}\n"))["T003"]
    assert (", ".join(item.blocked_by), brackets in item.title) == (expected, not expected)


NOTES = [
    *("Before: returns 1. After: returns 2.", "Before: 500 error; After: 404", "Show the total (after filtering)"),
    *("Show the total [after filtering]", "Show the total (requires Node 20)", "Emit [after save, before close]"),
    *("Prerequisites: Node 20 and an API key", "Prerequisites: `npm ci`", "Deps: requests, pyyaml"),
    *("Run tests. Requires: docker", "Emit rows (needs GH-12)", "Requires: Python 3.11", "Dependencies: requests>=2"),
    *("The route is public (path: api/users)", "Reads the limits (file: config/limits.yml)"),
    *("Route for users. Path: api/users", "Keep the total. Out of scope: rounding"),
    *("Complexity: O(n log n)", "Priority: see #12", "Handle errors [priority: first wins]"),
    *("Test: pytest -q. Files: tests/test_total.py", "Done when: sum is right. Scope: all rows"),
]


@pytest.mark.parametrize("note", NOTES)
@pytest.mark.parametrize("read", [todo, spec_kit])
def test_a_note_that_is_not_a_field_stays_whole(read: Callable[[str], Source], note: str) -> None:
    source = read(f"- [ ] T001 [P] A in src/a.py\n- [ ] T002 [P] B in src/b.py\n  - {note}\n")
    task = source.tasks[1]
    assert (task.scope, task.out_of_scope, task.blockers, errors(source)) == (("src/b.py",), (), (), [])
    assert note.removeprefix("Done when: ") in (*task.context, *task.criteria)


@pytest.mark.parametrize("title", ["Sort (after filtering)", "Sort [requires Node 20]", "Sort. Requires: docker"])
def test_a_title_keeps_what_is_not_a_task_of_the_list(title: str) -> None:
    (task,) = todo(f"- [ ] {title}\n").tasks
    assert (task.title, task.blockers) == (title, ())


@pytest.mark.parametrize(
    ("nested", "expected"),
    [
        ("  - Prerequisites: T001, Node 20\n", "Prerequisites: T001, Node 20"),
        ("  - Prerequisites:\n    - T001\n    - Node 20\n", "Prerequisites: Node 20"),
        ("  - Dependencies: none\n  - Needs: T001\n", ""),
        ("  - Needs: T001. Priority: high\n", ""),
    ],
)
@pytest.mark.parametrize("read", [todo, spec_kit])
def test_known_tasks_of_a_label_count_and_its_other_words_stay(
    read: Callable[[str], Source], nested: str, expected: str
) -> None:
    task = read(f"- [ ] T001 [P] A in src/a.py\n- [ ] T002 [P] B in src/b.py\n{nested}").tasks[1]
    assert ([*task.blockers], ", ".join(task.context)) == (["T001"], expected)


@pytest.mark.parametrize("read", [todo, spec_kit])
@pytest.mark.parametrize(
    "needs", ["\n  - Dependencies: T404", " (after T404)", "\n  - Depends on T001\n  - Deps: T404"]
)
def test_an_id_like_those_of_the_list_that_it_lacks_is_refused(read: Callable[[str], Source], needs: str) -> None:
    source = read(f"- [ ] T001 A in src/a.py\n- [ ] T002 B in src/b.py{needs}\n")
    assert [code for code, _ in errors(source)] == ["unknown-reference"]


@pytest.mark.parametrize(
    "written", ["- [] B in src/b.py", "- [ ]B in src/b.py", "1. [x]B in src/b.py", "  - [] B works\n  - [ ] C"]
)
@pytest.mark.parametrize("read", [todo, spec_kit])
def test_brackets_that_are_not_a_box_have_a_line(read: Callable[[str], Source], written: str) -> None:
    links = "- [x](a.md)\n- [x][y]\n- [](a.md)\n- [ ]* 2.1 An optional task of Kiro\n\n[y]: a.md\n"
    assert errors(read(f"- [ ] T001 A in src/a.py\n{written}\n{links}")) == [("box-malformed", 2)]


@pytest.mark.parametrize("notes", ["  - [] is an empty list", "\n## Notes\n\n- [] means none"])
@pytest.mark.parametrize("read", [todo, spec_kit])
def test_empty_brackets_in_a_list_without_boxes_may_be_a_text(read: Callable[[str], Source], notes: str) -> None:
    _, found = build_plan(read(f"- [ ] T001 A in src/a.py\n{notes}\n"))
    assert [(finding.code, finding.severity.value) for _, finding in found] == [("box-malformed", "warning")]
    assert errors(todo("- [] A in src/a.py\n")) == [("box-malformed", 1), ("no-tasks", None)]


def test_the_hint_at_a_box_keeps_it_and_the_whole_entry() -> None:
    entry = f"T002 Write `lexer` {'and so on ' * 9}in src/b.py"
    _, found = build_plan(todo(f"- [ ] T001 A in src/a.py\n- [x]{entry}\n  Priority: high\n"))
    assert [finding.hint for _, finding in found] == [f"Write ``- [x] {entry}``."]


def test_a_title_has_no_bold_words() -> None:
    (item,) = items(todo("- [ ] **Write** `**kw**` in **src/a.py**, lib/**/b.py and lib/**\n")).values()
    assert item.title == "Write `**kw**` in src/a.py, lib/**/b.py and lib/**"
    assert "**Write**" in item.body


@pytest.mark.parametrize("struck", ["~~T002 Old in src/b.py~~", "T002 ~~Old in src/b.py~~ (after T001)"])
@pytest.mark.parametrize("read", [todo, spec_kit])
def test_struck_text_counts_as_removed_and_a_struck_entry_as_done(read: Callable[[str], Source], struck: str) -> None:
    third = "- [ ] T003 C in ~~src/b.py~~ src/c.py `~~d~~` (after T002)\n  - [ ] ~~D~~\n"
    found = items(read(f"- [ ] T001 A in src/a.py\n- [ ] {struck}\n{third}"))
    assert list(found) == ["T001", "T003"]
    assert found["T003"].title.endswith("C in src/c.py `~~d~~`")
    assert (read_body(found["T003"].body).in_scope, "- [ ] ~~" in found["T003"].body) == (("src/c.py",), False)
    assert found["T003"].blocked_by == (["T001"] if "after" in struck or read is spec_kit else [])


def test_no_task_beside_others_is_left_out_because_its_id_is_odd() -> None:
    text = "- [ ] T99 First in src/a.py\n- [ ] T100 Second in src/b.py\n- [ ] Third in src/c.py\n"
    for headed in (text, f"# Todo\n\n{text}"):
        assert {code for code, _ in errors(spec_kit(headed))} == {"task-id-missing"}
        assert len(errors(spec_kit(headed))) == 2


UTF_16 = "- [ ] Write `src/ä.py`\n"
ENCODINGS = {
    "Latin-1": (b"# Work\n\n- [ ] \xfcben in `src/a.py`\n", "Line 3 of `tasks.md`: Byte 14 is not UTF-8"),
    "UTF-16 with a mark": (UTF_16.encode("utf-16"), "Line 1 of `tasks.md`: The text is not UTF-8, but perhaps UTF-16"),
    "UTF-16 without one": ("- [ ] `src/a.py`\n".encode("utf-16-le"), "Line 1 of `tasks.md`: .* perhaps UTF-16"),
    "cut off": ("# W\n- [ ] ä".encode()[:-1], "Line 2 of `tasks.md`: Byte 10 is not UTF-8"),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_text_in_another_encoding_is_refused_with_its_place(tmp_path: Path, encoding: str) -> None:
    raw, said = ENCODINGS[encoding]
    (tmp_path / "tasks.md").write_bytes(raw)
    with pytest.raises(BrokenContract, match=said) as refused:
        read_source(tmp_path / "tasks.md", tmp_path)
    assert refused.value.findings[0].code == "not-text"


def test_a_work_package_in_another_encoding_is_refused_with_its_place(tmp_path: Path) -> None:
    folder = mission(tmp_path)
    (path, *_) = sorted((folder / "tasks").iterdir())
    path.write_bytes(path.read_bytes() + b"\n\xfcber\n")
    lines = path.read_bytes().count(b"\n")
    with pytest.raises(BrokenContract, match=f"Line {lines} of `{path.name}`: Byte [0-9]+ is not UTF-8"):
        read_source(folder, tmp_path)


@pytest.mark.parametrize("text", ["\ufeff- [ ] One `src/a.py`\n", "- [ ] Ünder 漢字 `src/a.py`\n"])
def test_a_text_in_utf_8_is_read_with_and_without_its_mark(tmp_path: Path, text: str) -> None:
    (tmp_path / "tasks.md").write_text(text, encoding="utf-8")
    assert len(read_source(tmp_path / "tasks.md", tmp_path).tasks) == 1
