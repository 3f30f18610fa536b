"""``accord check`` and ``accord schema``: a verdict with lines, one JSON document, and nothing heavy loaded."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support.commands import Accord
from support.plans import plan, task
from support.reviews import approve
from support.sessions import GATES, NAME, SPEC, agent_output, make_session

from accord.cli.reference import MACHINES
from accord.core.clock import SystemClock
from accord.files.store import Storage, folder_lock
from accord.git.program import Git

GOOD = plan(task("a"), task("b", "a"))
BAD = plan(task("a"), task("a", in_scope="- src/b.py"), task("c", "nobody"))


def test_findings_that_accord_can_correct_name_the_option(accord: Accord) -> None:
    flat = accord.file("flat.json", {"role": "reviewer", **approve()["review"]})
    assert f"`accord check --fix --dry-run {flat}` shows" in accord("check", flat).out
    assert f"--dry-run --kind reviewer-result {flat}` shows" in accord("check", flat, "--kind", "reviewer-result").out
    wrong = accord.file("wrong.json", {"role": "reviewer", "review": 3})
    assert "--fix" not in accord("check", wrong).out


def test_a_broken_result_exits_1_with_every_finding_on_its_line(accord: Accord) -> None:
    file, good = accord.file("plan.json", BAD), accord.file("good.json", GOOD)
    checked = accord.document("check", file, good, code=1)
    assert checked["ok"] is False
    document, other = checked["documents"]
    assert (document["path"], document["kind"], other["findings"]) == (str(file), "planner-result", [])
    assert {finding["code"] for finding in document["findings"]} == {"duplicate-temp-id", "unknown-reference"}
    lines = file.read_text().splitlines()
    for finding in document["findings"]:
        key = finding["path"].rpartition("/")[2]
        assert key.isdigit() or f'"{key}"' in lines[finding["line"] - 1]
        assert finding["severity"] == "error"
    line = next(number for number, text in enumerate(lines, 1) if "nobody" in text)
    assert f"plan.json:{line}: error unknown-reference" in accord("check", file).out


def test_a_warning_alone_is_printed_and_passes(accord: Accord) -> None:
    shared = plan(task("a", in_scope="- src/x.py"), task("b", in_scope="- src/x.py"))
    checked = accord.document("check", accord.file("plan.json", shared))
    assert checked["ok"] is True
    assert [finding["code"] for finding in checked["documents"][0]["findings"]] == ["shared-scope"]


def test_a_result_may_come_by_stdin(accord: Accord) -> None:
    content = f"Here is my plan:\n```json\n{json.dumps(GOOD)}\n```\n"
    accord.given(content)
    ended = accord("check", "-", "--format", "json")
    assert (ended.code, ended.document["documents"][0]["path"]) == (0, "-")


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "nowhere.json"],
        ["check", "."],
        ["check", "--kind", "nonsense", "x"],
        ["check", "--format", "xml", "x"],
        ["nonsense"],
        ["schema", "nonsense"],
        ["--nonsense"],
        ["machine", "show", "nonsense"],
        ["apply"],
        ["apply", "nowhere.json"],
        ["apply", "--max-wait", "-1", "x"],
        ["items", "move", "7"],
        ["labels", "sync", "--file", "nowhere.yml", "--repo", "o/r"],
    ],
)
def test_wrong_words_exit_2_and_leave_stdout_empty(accord: Accord, arguments: list[str]) -> None:
    ended = accord(*arguments)
    assert (ended.code, ended.out, ended.err != "") == (2, "", True)


HOSTILE = "\x1b[31mred\x07\r\n::add-mask::e\n##[stop-commands]x \u202etxt"


def assert_harmless(text: str) -> None:
    """No control character reaches a terminal, and no line reaches a runner as a command."""
    for line in text.split("\n"):
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        assert not {c for c in line if ord(c) < 32 or 127 <= ord(c) < 160 or 0x202A <= ord(c) <= 0x202E}


@pytest.mark.parametrize("output", ["text", "json"])
def test_hostile_text_is_shown_without_effect(accord: Accord, output: str) -> None:
    hostile = {**plan(task(HOSTILE), task(HOSTILE, HOSTILE + "2")), HOSTILE: 1, "close": [HOSTILE]}
    ended = accord("check", "--format", output, accord.file("plan.json", hostile))
    assert ended.code == 1
    if output == "json":
        assert any("##[stop-commands]x" in f["message"] for f in ended.document["documents"][0]["findings"])
        assert "##[" not in ended.out
    else:
        assert "red" in ended.out
        assert_harmless(ended.out)
    assert_harmless(ended.err)


def test_a_hostile_file_name_has_no_effect(accord: Accord) -> None:
    assert_harmless(accord("check", accord.file("::add-mask::e\x1b[31m.json", GOOD)).out)
    missing = accord("check", "::no\x1bfile")
    assert missing.code == 2
    assert_harmless(missing.err)


@pytest.mark.slow
def test_the_kinds_are_listed_and_each_has_its_schemas(accord: Accord) -> None:
    kinds = accord("schema").out.split()
    assert "planner-result" in kinds
    for kind in kinds:
        for strict in ([], ["--strict"]):
            schema: Any = accord("schema", kind, *strict).document
            jsonschema_rs.Draft202012Validator(schema)
    validator = jsonschema_rs.Draft202012Validator(accord("schema", "planner-result").document)
    assert validator.is_valid(GOOD)


def test_the_command_names_parts_that_a_strict_schema_leaves_out(accord: Accord) -> None:
    whole = [accord("schema", kind, "--strict").err for kind in ("planner-result", "reviewer-result", "verdict")]
    assert whole == [""] * 3
    assert (
        "leaves out `OutputArtifacts.review_comments` other than string"
        in accord("schema", "agent-output", "--strict").err
    )
    assert "`retry_counts` must be given" in accord("schema", "session-status", "--strict").err


def test_no_agent_is_held_to_a_schema_under_which_nothing_passes(accord: Accord) -> None:
    ended = accord("run", "--agent", "codex", "--schema", "session-status")
    assert (ended.code, ended.out) == (2, "")
    assert "enforced output has no form for `retry_counts`" in ended.err
    assert "accord check --kind session-status FILE" in ended.err


def test_every_machine_is_drawn(accord: Accord) -> None:
    for name in MACHINES:
        assert accord("machine", "show", name).out.startswith("stateDiagram-v2")
    assert "pending --> ready : all blockers closed" in accord("machine", "show", "work-item").out


HEAVY = {"github", "starlette", "uvicorn", "requests", "urllib3", "jinja2", "sqlite3", "asyncio", "accord.loops.run"}


@pytest.mark.slow
def test_quick_commands_load_nothing_slow(accord: Accord) -> None:
    accord.file("plan.json", GOOD)
    code = (
        "import sys\nfrom accord.cli.main import main\n"
        "for words in ('--version', '--help', 'check plan.json', 'keepalive run --help'):\n"
        "    try: main(words.split())\n    except SystemExit as end: assert not end.code\n"
        "print('MODULES', *sys.modules)"
    )
    measured = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")  # coverage loads modules of its own
    bare = {name: value for name, value in os.environ.items() if name not in measured}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, timeout=600, env=bare
    )
    loaded = set(done.stdout.partition("MODULES")[2].split())
    assert "accord.cli.main" in loaded
    assert not loaded & HEAVY


@pytest.mark.slow
def test_version_and_stdin_work_in_a_process_of_their_own(accord: Accord) -> None:
    assert accord.process("--version").out.startswith("accord, version ")
    ended = accord.process("check", "-", "--format", "json", given=json.dumps(BAD))
    assert (ended.code, ended.document["ok"], ended.err) == (1, False, "")


@pytest.mark.slow
def test_a_reader_that_goes_away_causes_no_traceback(accord: Accord) -> None:
    with accord.start("schema", "planner-result", stdout=subprocess.PIPE) as started:
        started.stdout.close()
        err = started.stderr.read()
        assert started.wait(30) == 0
    assert err == ""


def test_a_plan_in_any_script_is_handed_on_as_long_as_a_variable_can_hold_it(accord: Accord) -> None:
    step = accord.in_step(annotates=False)
    document = plan(task("一"))
    room = 128 * 1024 - 64 - len(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())
    document["create"][0]["body"] += "輸" * (room // 3)
    assert accord("check", accord.file("plan.json", document)).err == ""
    given = step.outputs["document"]
    assert json.loads(given) == document
    env = {**os.environ, "RESULT_JSON": given}
    done = subprocess.run(["sh", "-c", 'printf "%s" "$RESULT_JSON"'], env=env, capture_output=True, check=True)
    assert done.stdout.decode() == given


def test_a_plan_that_no_variable_can_hold_is_not_handed_on_and_the_step_says_what_to_do(accord: Accord) -> None:
    step = accord.in_step(annotates=False)
    document = plan(*(task(f"t{i}", in_scope=f"- src/{i}.py") for i in range(4)))
    for item in document["create"]:
        item["body"] += "x" * 40_000
    ended = accord("check", accord.file("plan.json", document))
    assert (ended.code, step.outputs["document"], "artifact" in ended.err) == (0, "", True)


def test_a_session_is_checked_as_a_folder_and_file_by_file(accord: Accord, tmp_path: Path) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES[:1], texts={"spec.md": SPEC[:20]})
    for arguments in ([], ["--kind", "session"]):
        documents = accord.document("check", *arguments, folder, code=1)["documents"]
        found = {document["path"]: document for document in documents}
        codes = {path: [finding["code"] for finding in document["findings"]] for path, document in found.items()}
        assert (found[str(folder)]["kind"], codes[str(folder)]) == ("session", ["gate-open"])
        assert codes[str(folder / "spec.md")] == ["section-missing", "section-missing"]
        assert found[str(folder / "status.json")]["kind"] == "session-status"


def test_a_secret_in_the_name_of_a_session_reaches_no_later_step(accord: Accord, tmp_path: Path) -> None:
    accord.monkeypatch.setenv("DEPLOY_PASSWORD", "correct-horse-battery")
    step = accord.in_step()
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES)
    accord("session", "check", folder.rename(folder.with_name("2026-01-01_correct-horse-battery")))
    assert '{"2026-01-01_[redacted: secret of the environment]":{' in step.outputs["sessions"]
    assert "correct-horse" not in step.output.read_text() + step.summary


def test_a_folder_of_no_kind_and_a_base_that_is_not_there_are_wrong_usage(accord: Accord, tmp_path: Path) -> None:
    assert accord("check", tmp_path).code == 2
    assert accord("check", "--kind", "session", tmp_path / "nothing").code == 2
    assert accord("check", "--kind", "session-status", tmp_path).code == 2
    make_session(tmp_path)
    Git(tmp_path)("init", "--quiet")
    for folders in ([], [f".agents-work/{NAME}"]):
        ended = accord("session", "check", *folders, "--base", "origin/none")
        assert (ended.code, "origin/none" in ended.err) == (2, True)


def test_the_role_of_an_output_may_be_given(accord: Accord) -> None:
    path = accord.file("output.json", agent_output(status="NEEDS_INFO"))
    assert accord("check", "--role", "Researcher", path).code == 0
    ended = accord("check", "--role", "Coder", path)
    assert (ended.code, "status-of-other-role" in ended.out) == (1, True)


def test_a_path_that_cannot_be_read_hides_no_finding_of_another(accord: Accord) -> None:
    bad = accord.file("bad.json", {"role": "planner"})
    ended = accord.document("check", bad, "absent.json", code=1)
    codes = [[finding["code"] for finding in document["findings"]] for document in ended["documents"]]
    assert codes[0]
    assert codes[1] == ["file-unreadable"]
    assert accord("check", "absent.json").code == 2


def test_small_faults_are_corrected_in_the_file_and_shown_before_that(accord: Accord, tmp_path: Path) -> None:
    item = {**task("a"), "blockedBy": [7]}
    item["tempId"] = item.pop("tempID")
    file, text = tmp_path / "plan.json", f"My plan:\n```json\n{json.dumps(plan(item))}\n```\n"
    file.write_text(text)
    good = accord.file("good.json", GOOD)
    before = good.read_text()
    (planned, _) = accord.document("check", "--fix", "--dry-run", file, good)["documents"]
    assert (len(planned["fixes"]), planned["findings"], file.read_text()) == (3, [], text)
    shown = accord("check", "--fix", file, good)
    assert (shown.code, shown.out.count("fixed: ")) == (0, 3)
    assert "plan.json: fixed: Renamed the key `tempId` to `tempID` at /create/0/tempID." in shown.out
    assert json.loads(file.read_text()) == plan(task("a", "7"))
    assert good.read_text() == before
    assert "fixes" not in accord.document("check", "--fix", file)["documents"][0]
    assert accord("check", "--fix", "-").code == 2


def test_a_file_that_another_process_writes_is_corrected_as_that_left_it(accord: Accord, tmp_path: Path) -> None:
    def release(*_: object) -> None:
        file.write_text(f"Theirs: {json.dumps(plan(task('b')))}")
        lock.close()

    file = accord.file("plan.json", f"Mine: {json.dumps(plan(task('a')))}")
    with ExitStack() as lock:
        lock.enter_context(folder_lock(tmp_path, Storage(SystemClock()), file.name))
        accord.monkeypatch.setattr(SystemClock, "sleep", release)
        assert accord("check", "--fix", file).out.count("fixed: ") == 1
    assert json.loads(file.read_text()) == plan(task("b"))


def test_equal_findings_are_one_and_a_count_ends_the_text(accord: Accord) -> None:
    items = [{**task(f"t{i}", in_scope=f"- src/{i}.py"), "labels": task("a")["labels"][:3]} for i in range(6)]
    file = accord.file("plan.json", plan(*items, task("x", "nothing")))
    text = accord("check", file).out
    assert text.count("error label-missing") == 1
    assert "/create/1/labels, /create/2/labels, /create/3/labels and 2 more places" in text
    assert text.splitlines()[-2] == "7 errors, 0 warnings in 1 document"
    short = accord("check", "--max", "1", file).out
    assert "unknown-reference" not in short
    assert short.splitlines()[-2] == "7 errors, 0 warnings in 1 document; 1 of 2 are not shown (--max)"
    assert len(accord.document("check", "--max", "1", file, code=1)["documents"][0]["findings"]) == 7
    assert "once the shape is right" in accord("check", accord.file("shape.json", {"role": "planner"})).out
