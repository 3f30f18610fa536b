"""``accord plan from`` and ``accord items export`` against the sandbox: apply, apply again, write back, and back."""

from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord
from support.plan_sources import CHECKLIST, PLAN, SESSION, TASKS, mission
from support.stage import Stage


@pytest.fixture
def github(accord: Accord, stage: Stage) -> Stage:
    accord.on(stage)
    return stage


def spec_kit_folder(root: Path) -> Path:
    folder = root / "specs" / "001-export"
    folder.mkdir(parents=True)
    (folder / "tasks.md").write_text(TASKS)
    (folder / "plan.md").write_text(PLAN)
    return folder


def session_folder(root: Path) -> Path:
    folder = root / ".agents-work" / "2026-11-02_export"
    folder.mkdir(parents=True)
    (folder / "tasks.yaml").write_text(SESSION)
    return folder


def checklist(root: Path) -> Path:
    path = root / "TODO.md"
    path.write_text(CHECKLIST.replace(" (#12)", ""))
    return path


SOURCES = {"Spec Kit": spec_kit_folder, "a mission": mission, "a session": session_folder, "a checklist": checklist}


def apply(accord: Accord, source: object) -> Any:
    printed = accord("plan", "from", source)
    assert printed.code == 0, printed.err
    Path("plan.json").write_text(printed.out)
    assert accord("check", "plan.json").code == 0
    return accord.document("apply", "plan.json")


@pytest.mark.slow
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_a_source_is_applied_once_and_knows_its_issues(
    accord: Accord, github: Stage, tmp_path: Path, make: Any
) -> None:
    source = make(tmp_path)
    first = apply(accord, source)
    assert first["outcome"] == "applied"
    assert apply(accord, source)["outcome"] == "unchanged"

    before = {path: path.read_text().splitlines() for path in tmp_path.rglob("*") if path.suffix in (".md", ".yaml")}
    shown = accord("plan", "from", source, "--write-back", "--dry-run")
    assert all(path.read_text().splitlines() == lines for path, lines in before.items())
    left = {path: path.with_name(f".{path.name}.0123456789abcdef") for path in before}  # by a writer that was killed
    for path in left.values():
        path.touch()
    written = accord("plan", "from", source, "--write-back")
    assert not any(left[path].exists() for path, lines in before.items() if path.read_text().splitlines() != lines)
    assert f"{len(first['items'])} lines" in shown.err or "1 line " in shown.err
    numbers = {f"{name}#{item['id']}" for name, item in first["items"].items()}
    assert {item["tempID"] for item in written.document["create"]} == numbers
    changed = [line for path, lines in before.items() for line in path.read_text().splitlines() if line not in lines]
    assert len(changed) == len(numbers)

    after = {path: path.read_bytes() for path in before}
    assert apply(accord, source)["outcome"] == "unchanged"
    assert "0 lines changed" in accord("plan", "from", source, "--write-back").err
    assert {path: path.read_bytes() for path in before} == after


@pytest.mark.slow
def test_a_number_is_the_identity_of_a_task_whose_id_title_and_file_changed(
    accord: Accord, github: Stage, tmp_path: Path
) -> None:
    folder = spec_kit_folder(tmp_path)
    receipt = tmp_path / "receipt.json"
    Path("plan.json").write_text(accord("plan", "from", folder).out)
    accord("apply", "plan.json", "--receipt", receipt)
    accord("plan", "from", folder, "--write-back", "--receipt", receipt)
    tasks = folder / "tasks.md"
    tasks.write_text(tasks.read_text().replace("T008 [US2] Print in src/print.py", "T010 [US2] Show it in src/show.py"))

    changed = apply(accord, folder)

    assert len(github.issues()) == 9
    assert {entry["key"] for entry in changed["operations"] if entry["status"] == "done"} == {"T010#8"}
    assert github.issues()[7]["title"] == "Show it in src/show.py"


def test_a_number_of_another_issue_is_refused(accord: Accord, github: Stage, tmp_path: Path) -> None:
    github.send("POST", f"/repos/{github.repository}/issues", title="Crash on start")
    path = tmp_path / "TODO.md"
    path.write_text("- [ ] Write src/a.py (#1)\n- [ ] Write src/b.py (#99)\n")
    Path("plan.json").write_text(accord("plan", "from", path).out)

    report = accord.document("apply", "plan.json", code=1)

    assert {"item-identity", "unknown-reference"} < {finding["code"] for finding in report["findings"]}
    assert len(github.issues()) == 1


@pytest.mark.slow
def test_a_plan_of_an_issue_is_scoped_to_that_issue(accord: Accord, github: Stage) -> None:
    body = "Do:\r\n\r\n- [ ] Write src/a.py\r\n- [ ] Write src/b.py  \r\n  - Depends on: Write src/a.py\r\n\r\nThanks! "
    github.send("POST", f"/repos/{github.repository}/issues", title="Two files", body=body)
    printed = accord("plan", "from", "--issue", "1")
    Path("plan.json").write_text(printed.out)

    assert accord.document("apply", "plan.json")["run_key"] == "issue-1"
    address = f"https://github.com/{github.repository}/issues/1"
    Path("plan.json").write_text(accord("plan", "from", address).out)
    assert accord.document("apply", "plan.json")["run_key"] == "issue-1"

    assert "2 lines would change" in accord("plan", "from", address, "--write-back", "--dry-run").err
    assert github.issues()[0]["body"] == body
    written = accord("plan", "from", address, "--write-back")
    assert f"{github.repository}#1: - [ ] Write src/a.py (#2)" in written.err
    first, second = "Write src/a.py\r\n- ", "Write src/b.py  \r\n"
    numbered = body.replace(first, "Write src/a.py (#2)\r\n- ").replace(second, "Write src/b.py (#3)  \r\n")
    assert github.issues()[0]["body"] == numbered
    Path("plan.json").write_text(written.out)
    assert accord.document("apply", "plan.json")["outcome"] == "unchanged"
    writes = [one for one in github.server.requests if one[0] != "GET"]
    assert "0 lines changed" in accord("plan", "from", address, "--write-back").err
    assert [one for one in github.server.requests if one[0] != "GET"] == writes


def test_a_source_that_lacks_something_prints_no_plan(accord: Accord, tmp_path: Path) -> None:
    path = tmp_path / "TODO.md"
    path.write_text("# Todo\n\n- [ ] Be faster\n")
    ended = accord("plan", "from", path)

    assert (ended.code, ended.out) == (1, "")
    assert "TODO.md:3: error scope-empty" in ended.err
    report = accord.document("plan", "from", path, code=1)
    assert report["findings"][0]["line"] == 3
    assert accord("plan", "from").code == 2
    assert accord("plan", "from", tmp_path / "missing.md").code == 2


@pytest.mark.slow
def test_exported_items_are_read_again(accord: Accord, github: Stage, tmp_path: Path) -> None:
    apply(accord, spec_kit_folder(tmp_path))
    apply(accord, mission(tmp_path))
    for form in ("checklist", "tasks", "json"):
        exported = accord("items", "export", "--format", form).out
        path = accord.file("items.json" if form == "json" else "items.md", exported)
        assert apply(accord, path)["outcome"] == "unchanged"
    path.write_text(exported.replace("Model contacts in src/model.py", "Model people in src/model.py"))
    done = [entry for entry in apply(accord, path)["operations"] if entry["status"] == "done"]
    assert [(entry["op"], entry["target"], entry["parts"]) for entry in done] == [
        ("update-work-item", "4", ["title", "body"])
    ]


@pytest.mark.slow
def test_the_documents_that_name_a_work_item_name_each_other_with_their_statuses(
    accord: Accord, github: Stage, tmp_path: Path
) -> None:
    session, kitty = session_folder(tmp_path), mission(tmp_path)
    for source in (session, kitty):
        apply(accord, source)
        accord("plan", "from", source, "--write-back")

    def linked(number: int, *options: object) -> set[tuple[str, str, str]]:
        documents = accord.document("items", "show", number, *options)["documents"]
        return {(each["kind"], each["id"], each["status"]) for each in documents}

    task, package = ("session-task", "T-002", "not-started"), ("work-package", "WP02", "planned")
    assert (linked(1), linked(3)) == ({task}, {package})
    assert linked(1, "--repo", github.repository) == set()
    assert linked(1, "--repo", github.repository, "--root", tmp_path) == {task}
    assert "Work items: T-002 #1" in accord("session", "show", session).out
    assert "work item #3" in accord("mission", "status", "001-sort").out
    (file,) = [path for path in kitty.rglob("*.md") if "work_item: 3" in path.read_text()]
    file.write_text(file.read_text().replace("work_item: 3", "work_item: 1"))
    packages = {each["wp_id"]: each for each in accord.document("mission", "status", "001-sort")["work_packages"]}
    tasks = {each["id"]: each for each in accord.document("session", "show", session, code=1)["tasks"]}
    assert [(packages["WP02"]["work_item"], tasks[name]["work_item"]) for name in tasks] == [("1", None), ("1", "1")]
    assert [each["id"] for each in packages["WP02"]["documents"]] == ["T-002"]
    assert [each["id"] for each in tasks["T-002"]["documents"]] == ["WP02"]
    (session / "tasks.yaml").write_text((session / "tasks.yaml").read_text().replace("not-started", "in-progress"))
    of_task, of_package = (
        "session-task T-002 of 2026-11-02_export: in-progress",
        "work-package WP02 of 001-sort: planned",
    )
    assert of_package in accord("session", "show", session).out
    assert of_task in accord("mission", "status", "001-sort").out
    github.send("PUT", f"/repos/{github.repository}/contents/README.md", message="Begin", content="QQ==")
    patch = accord.file("patch.json", {"status": "planning"})
    for words in (("move", "--to", "planning"), ("patch", patch)):
        ended = accord("handoff", *words, "--work-item", 1, "--role", "architect")
        assert (of_task in ended.out, of_package in ended.out) == (True, True), (words, ended)
    assert linked(1) == {("session-task", "T-002", "in-progress"), package, ("handoff", "#1", "planning")}
    assert accord.document("handoff", "check", "--work-item", 1, "--repo", github.repository)["documents"] == []
    assert accord.document("items", "show", 1)["status"] == "pending", "no status follows from another"


def test_a_plan_of_more_items_than_apply_takes_names_the_command_that_takes_them(
    accord: Accord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("cli.plan", "plans.build"):
        monkeypatch.setattr(f"accord.{module}.MOST_ITEMS", 1)
    printed = accord("plan", "from", accord.file("TODO.md", "- [ ] Write src/a.py\n- [ ] Write src/b.py\n"))
    assert "The plan has 2 items (creates 2); the limit is 1." in printed.err
    assert printed.err.rstrip().endswith("| accord apply - --max-items 2")
