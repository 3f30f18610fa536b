"""Agents use the tools over the protocol: a broken result is refused with its reasons, a good one lands in its file."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.mcpserver.exceptions import ToolError
from support import trees
from support.commands import Accord
from support.plans import plan, task, task_body
from support.reviews import approve, comment

from accord.core.errors import AccordError, WrongUsage
from accord.core.findings import has_errors
from accord.core.kinds import check_document
from accord.git.program import Git
from accord.mcp import tools
from accord.mcp.server import server_for
from accord.mcp.tools import EXAMPLES, SESSION, TOOLS, Blocker, Option, ResultRole, Workspace
from accord.results.implementor.rules import BLOCKERS
from accord.runner.models import RunRequest
from accord.runner.tool_server import prepare_folder
from accord.text.blocks import read_blocks
from accord.text.redaction import Redactor

PAGE = Path(__file__).parents[2] / "docs/mcp.md"
SECRET = "ghp_" + "a1B2" * 9
CYCLE = plan(task("one", "two"), task("two", "one"))


def call(arguments: Sequence[str], *calls: tuple[str, dict[str, Any]]) -> list[tuple[bool, str]]:
    """Start a server, call tools; return of each whether it succeeded, and its text."""

    async def talk() -> list[tuple[bool, str]]:
        command = ["-P", "-m", "accord", "mcp", *arguments]
        parameters = StdioServerParameters(command=sys.executable, args=command, env={**os.environ, "A_TOKEN": SECRET})
        async with Client(stdio_client(parameters)) as client:
            listed = await client.list_tools()
            assert {tool.name for tool in listed.tools} == {tool.__name__ for tool in TOOLS} - {"report_blocked"}
            answers = [await client.call_tool(name, inputs) for name, inputs in calls]
        return [
            (not answer.is_error, "".join(getattr(part, "text", "") for part in answer.content)) for answer in answers
        ]

    return asyncio.run(talk())


def called(workspace: Workspace, *calls: tuple[str, dict[str, Any]]) -> list[tuple[bool, str]]:
    """Call tools of a server in this process; return the same."""
    server, answers = server_for(workspace), []
    for name, inputs in calls:
        try:
            answers.append((True, asyncio.run(server.call_tool(name, inputs)).content[0].text))
        except ToolError as error:
            answers.append((False, str(error)))
    return answers


def repository(folder: Path) -> str:
    """Make a repository with a change on a branch; return the commit before it."""
    trees.repository(folder, {"a.txt": "".join(f"{n}\n" for n in range(1, 31)), "old.txt": "gone\n"})
    base = trees.git(folder, "rev-parse", "HEAD")
    (folder / "old.txt").unlink()
    trees.write(
        folder, {"a.txt": "".join(f"{n}\n" for n in range(1, 31) if n != 20), "ünï:x.txt": "new\n", "t\tb.txt": "1\n"}
    )
    trees.commit(folder)
    return base


def with_items(folder: Path, *items: dict[str, Any]) -> Workspace:
    (folder / "work-items.json").write_text(json.dumps({"items": items}))
    return Workspace(folder, folder, "implementor")


@pytest.mark.slow
def test_a_broken_plan_is_refused_corrected_and_submitted_in_one_run(tmp_path: Path) -> None:
    good = plan(task("one"), task("two", "one"))
    shown, broken, checked, sent = call(
        ["--run-dir", str(tmp_path), "--role", "planner"],
        ("contract", {}),
        ("submit_result", {"result": CYCLE}),
        ("check_result", {"result": good}),
        ("submit_result", {"result": good}),
    )
    assert (shown[0], json.loads(shown[1])["kind"]) == (True, "planner-result")
    assert not broken[0]
    assert "Nothing was written" in broken[1]
    assert "dependency-cycle" in broken[1]
    assert json.loads(checked[1]) == {"ok": True, "findings": [], "remarks": []}
    assert sent[0]
    assert json.loads((tmp_path / "result.json").read_text()) == good


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "contract": ({"role": "planer"}, "at /role: `role` must be 'planner', 'implementor' or 'reviewer'; found 'planer'"),
    "check_result": ({"result": "x"}, "at /result: `result` must be an object; found 'x'."),
    "submit_result": (
        {"resutl": {}},
        "at /resutl: The key `resutl` is not part of the contract. Did you mean `result`?",
    ),
    "list_work_items": ({"status": 1}, "at /status: `status` must be a string; found 1."),
    "read_work_item": ({"number": [1]}, "at /number: `number` is not the number of a work item; found an array."),
    "scope_of": ({"number": 1}, "at /path: The required key `path` is missing."),
    "diff_lines": ({"path": 1}, "at /path: `path` must be a string; found 1."),
    "report_blocked": ({"blocker": {"type": "spec"}}, "at /blocker/type: `type` must be 'spec-ambiguity'"),
    "ask_user": ({"question": "?", "category": "safety"}, "at /category: `category` must be '' or 'security'; found"),
}


def test_an_answer_to_wrong_inputs_names_their_place_and_inputs_that_the_tool_takes(tmp_path: Path) -> None:
    wrong = [(name, inputs) for name, (inputs, _) in WRONG.items()]
    corrected = [(name, EXAMPLES[name]) for name in (*WRONG, "next_step")]
    answers = called(Workspace(tmp_path, tmp_path, "implementor"), *wrong, *corrected)
    assert "inputs are wrong" not in "".join(text for _, text in answers[len(wrong) :])
    for (name, (_, words)), (is_done, text) in zip(WRONG.items(), answers, strict=False):
        assert (is_done, words in text, "pydantic" in text) == (False, True, False), text
        assert json.loads(text.partition("Example: ")[2].partition(" The result")[0]) == EXAMPLES[name]


@pytest.mark.parametrize("words", [(), ("--no-session",), ("--run-dir", "not/there")])
def test_the_tools_of_a_session_can_be_left_out(accord: Accord, words: tuple[str, ...]) -> None:
    served: list[set[str]] = []

    def run(server: Any, _transport: str) -> None:
        served.append({tool.name for tool in asyncio.run(server.list_tools())})

    accord.monkeypatch.setattr("accord.mcp.server.MCPServer.run", run)
    assert accord("mcp", *words).code == 0
    assert served == [{tool.__name__ for tool in TOOLS if "--no-session" not in words or tool not in SESSION}]


@pytest.mark.parametrize("role", get_args(ResultRole))
def test_a_role_gets_only_tools_whose_results_are_its_own(tmp_path: Path, role: ResultRole) -> None:
    workspace = Workspace(tmp_path, tmp_path, role)
    server, is_offered = server_for(workspace), role == "implementor"
    assert ("report_blocked" in {tool.name for tool in asyncio.run(server.list_tools())}) is is_offered
    assert ("report_blocked" in str(server.instructions)) is is_offered
    ((_, said),) = called(workspace, ("check_result", {"result": {"role": "verifier"}}))
    assert (f'Write `\\"role\\": \\"{role}\\"`' in said, "--kind" in said) == (True, False)
    others = [each for each in get_args(ResultRole) if each != role]
    for _, said in called(workspace, *(("check_result", {"result": {"role": each}}) for each in others)):
        assert (f'Write `\\"role\\": \\"{role}\\"`' in said, "--kind" in said) == (True, False)


TOOL = '{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"check_result","arguments":{}}},"id":"a-1"}}'
UNREADABLE = [
    TOOL.format(r'{"result":{"id":7,"summary":"Done \ud83d"}}'),
    TOOL.format(r'{"\ud83d":{"id":7}}'),
    TOOL.format('{"result":{"id":' + "[" * 3000 + "]" * 3000 + "}}"),
    TOOL.format('{"result":{"id":' + "9" * 5000 + "}}"),
    '{"jsonrpc":"2.0","method":"\\"id\\": 3","params":[{"id":7}],"id":"a-1"}',
    '{"method":"ping","id":"a-1"}',
    '{"jsonrpc":"2.0","id":"a-1","method":',
]


@pytest.mark.slow
def test_each_request_with_an_id_gets_an_answer(tmp_path: Path) -> None:
    ping = '{"jsonrpc":"2.0","id":"b","method":"ping"}'
    silent = ['{"id":"\\ud83d"}', '[{"id":9}]', "{", '{"a":1}']
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    first = json.dumps({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": begin})
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "accord", "mcp"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", cwd=tmp_path,
    ) as server:  # fmt: skip
        assert server.stdin
        assert server.stdout
        server.stdin.write("\n".join([first, *silent, *UNREADABLE, ping, ""]))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline())]
        while answers[-1]["id"] != "b":
            answers.append(json.loads(server.stdout.readline()))
        server.stdin.close()
    refused = [one for one in answers if "error" in one]
    assert [one["id"] for one in refused] == ["a-1"] * len(UNREADABLE)
    assert {one["id"] for one in answers if "result" in one} == {"a", "b"}
    assert all(one["error"]["message"].startswith("The request cannot be read. ") for one in refused)


def test_no_tool_takes_an_unknown_key(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, tmp_path, "implementor")
    said = called(workspace, *((name, {**inputs, "categorie": "security"}) for name, inputs in EXAMPLES.items()))
    refusal = "at /categorie: The key `categorie` is not part of the contract"
    assert [name for name, (is_done, text) in zip(EXAMPLES, said, strict=True) if is_done or refusal not in text] == []
    listed = asyncio.run(server_for(workspace).list_tools())
    assert [tool.name for tool in listed if tool.input_schema["additionalProperties"] is not False] == []
    assert not (tmp_path / "result.json").exists()


def test_no_tool_tells_a_secret_or_reads_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", SECRET)
    outside = tmp_path / "outside.txt"
    outside.write_text(SECRET)
    root = tmp_path / "tree"
    base = repository(root)
    (root / "work-items.json").symlink_to(outside)
    inputs: dict[str, list[dict[str, Any]]] = {
        "contract": [{}, {"role": "../planner"}], "check_result": [{"result": {"role": str(outside)}}],
        "submit_result": [{"result": {}}], "list_work_items": [{}, {"status": "$A_TOKEN"}],
        "read_work_item": [{"number": "../outside.txt"}], "scope_of": [{"number": "1", "path": str(outside)}],
        "diff_lines": [{}, {"path": "../outside.txt"}, {"path": str(outside)}, {"path": "--output=x"}],
        "report_blocked": [{"blocker": {}}], "ask_user": [{"question": "?"}], "next_step": [{}],
    }  # fmt: skip
    assert inputs.keys() == {function.__name__ for function in TOOLS}
    calls = [(name, each) for name, several in inputs.items() for each in several]
    answers = called(Workspace(root, root, "reviewer", base), *calls)
    assert SECRET not in "".join(text for _, text in answers)
    assert not (root / "result.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside.txt", "tree"]


def test_answers_and_errors_of_tools_have_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", SECRET)
    server = server_for(Workspace(tmp_path, tmp_path, "planner"))
    (tmp_path / "work-items.json").write_text(json.dumps([{"number": 1, "title": f"Rotate {SECRET}", "labels": []}]))
    answer = asyncio.run(server.call_tool("check_result", {"result": {"role": SECRET}}))
    assert "[redacted: " in answer.content[0].text
    assert SECRET not in str(answer)
    for name, inputs in (("scope_of", {"path": SECRET, "x": SECRET}), (SECRET, {}), ("contract", {"role": SECRET})):
        with pytest.raises(ToolError) as refused:
            asyncio.run(server.call_tool(name, inputs))
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize("role", get_args(ResultRole))
def test_the_example_of_each_contract_can_be_submitted(tmp_path: Path, role: ResultRole) -> None:
    workspace = Workspace(tmp_path, tmp_path, role)
    example = tools.contract(workspace)["example"]
    assert tools.submit_result(workspace, example)["written"] == "result.json"
    by_hand = check_document((tmp_path / "result.json").read_bytes(), f"{role}-result")
    assert not has_errors(by_hand[1])
    assert json.loads((tmp_path / "result.json").read_bytes()) == example


def blocker_of(kind: str, **parts: str) -> Blocker:
    said = {
        "description": "The spec names two formats for the same field.",
        "recommendation": "Option 1, since people read these files.",
        "impact": "The export stays without dates.",
        "spec": "docs/spec.md",
        "section": "Dates",
        "quote": "Dates are short and readable.",
        **parts,
    }
    first = Option(choice=said.pop("choice", "Use ISO 8601."), trade_off=said.pop("trade_off", "longer, but sorts"))
    return Blocker(type=kind, options=[first, Option(choice="Use Unix time.", trade_off="short")], **said)


BLOCKS = {
    "a fence": "```\npip install it\n```\n\nIt cannot be imported.",
    "a fence that nothing closes": "It cannot be imported:\n\n~~~~\nImportError",
    "a list": "- It cannot be imported.\n- It cannot be built.",
    "a quote": "> It cannot be imported.\n\nThe log says so.",
    "a heading": "It cannot be imported\n---\n\nThe log says so.",
    "a table": "| Part | Fails |\n| --- | --- |\n| import | always |",
}


@pytest.mark.parametrize("part", ["description", "choice", "trade_off", "recommendation", "impact", "quote"])
@pytest.mark.parametrize("text", BLOCKS)
def test_the_markdown_of_a_part_of_a_blocker_stays_its_own(text: str, part: str) -> None:
    summary = blocker_of("spec-gap", **{part: BLOCKS[text]}).summary()
    names = ("Type", "Description", "Spec", "Section", "Quote", "Options", "Recommendation", "Impact")
    shown = [block.lines[0] for block in read_blocks(summary).leaves if (block.kind, block.level) == ("paragraph", 1)]
    assert [label for line in shown if (label := line.partition(":")[0]) in names] == [*names]
    kinds = [block.kind for block in read_blocks(BLOCKS[text]).leaves]
    assert {*kinds} <= {block.kind for block in read_blocks(summary).leaves}
    result = {"role": "implementor", "outcome": "blocked", "patch": None, "summary": summary}
    assert check_document(json.dumps(result).encode(), "implementor-result")[1] == []


@pytest.mark.parametrize("kind", BLOCKERS)
def test_a_report_of_any_blocker_holds(tmp_path: Path, kind: str) -> None:
    blocker = blocker_of(kind)
    tools.report_blocked(Workspace(tmp_path, tmp_path, "implementor"), blocker)
    _, findings = check_document((tmp_path / "result.json").read_bytes(), "implementor-result")
    assert findings == []


def test_a_completed_change_gets_its_patch_from_the_work_tree(tmp_path: Path) -> None:
    root, run_dir = tmp_path / "tree", tmp_path / "run"
    run_dir.mkdir()
    workspace = Workspace(run_dir, root, "implementor", repository(root))
    (root / "more.txt").write_text("uncommitted\n")
    (root / "out").symlink_to("/")
    (root / "new.log").touch()
    result = {"role": "implementor", "outcome": "completed", "patch": None, "summary": "Did it, and tested it."}
    assert tools.check_result(workspace, result)["ok"]
    said = tools.submit_result(workspace, result)["remarks"]
    assert said[0].endswith("left out: new.log.")
    assert said[1].startswith("link-outside: `out` is a link to `/`")
    patch = json.loads((run_dir / "result.json").read_text())["patch"]
    assert all(name in patch for name in ("a.txt", "old.txt", "more.txt"))


def test_a_completed_result_without_a_change_is_written_as_a_failure_with_a_warning(tmp_path: Path) -> None:
    trees.repository(tmp_path, {"a.txt": "1\n"})
    workspace = Workspace(tmp_path / "run", tmp_path, "implementor", "HEAD")
    result = {"role": "implementor", "outcome": "completed", "patch": None, "summary": "Did it, and tested it."}
    checked, sent = tools.check_result(workspace, result), tools.submit_result(workspace, result)
    assert (checked["ok"], [one["code"] for one in sent["warnings"]]) == (True, ["patch-missing"])
    assert sent["warnings"] == checked["findings"]
    assert "no change since HEAD: the result is a validation-failure" in sent["warnings"][0]["message"]
    assert json.loads(workspace.result.read_text())["outcome"] == "validation-failure"


def test_the_page_of_the_tools_takes_the_snapshot_with_the_command_of_their_hint(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage) as refused:
        tools.list_work_items(Workspace(tmp_path, tmp_path, "planner"))
    command = refused.value.hint.split("`")[1].partition(">")[0]
    assert re.findall(r"^(accord items list .*)>", PAGE.read_text(), re.MULTILINE) == [command]


def test_only_lines_of_the_diff_can_carry_a_comment(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, tmp_path, "reviewer", repository(tmp_path))
    trees.git(tmp_path, "config", "diff.noprefix", "true")
    assert tools.diff_lines(workspace) == {"files": ["a.txt", "old.txt", "t\tb.txt", "ünï:x.txt"]}
    assert tools.diff_lines(workspace, "a.txt")["lines"] == ["17-22"]
    assert tools.diff_lines(workspace, "old.txt")["lines"] == ["1"]
    assert tools.diff_lines(workspace, "ünï:x.txt")["lines"] == ["1"]
    review = approve(comment("a.txt", 20))
    assert not tools.check_result(workspace, review)["ok"]
    with pytest.raises(WrongUsage, match="no file"):
        tools.diff_lines(workspace, "b.txt")


@pytest.mark.slow
def test_the_lines_of_a_diff_are_those_of_its_branch(tmp_path: Path) -> None:
    root, folder = tmp_path / "tree", tmp_path / "run"
    folder.mkdir()
    base = repository(root)
    (root / "logo.png").write_bytes(bytes(range(256)))
    (root / "old name.txt").write_text("moved\n-- a/x\n++ b/y\n")
    (root / "empty").touch()
    (root / "long.txt").write_text("".join(f"{n}\n" for n in range(1, 31)))
    git = Git(root, environment={"GIT_AUTHOR_NAME": "o", "GIT_AUTHOR_EMAIL": "o@example.invalid",
                                 "GIT_COMMITTER_NAME": "o", "GIT_COMMITTER_EMAIL": "o@example.invalid"})  # fmt: skip
    for words in (["add", "-A"], ["commit", "-qm", "More"], ["mv", "old name.txt", "név.txt"], ["commit", "-qm", "Mv"]):
        git(*words)
    git("rm", "-q", "név.txt")
    git("mv", "logo.png", "new logo.png")
    git("mv", "long.txt", "hosszú név.txt")
    with (root / "hosszú név.txt").open("a") as file:
        file.write("31\n")
    (root / "a.txt").write_text("first\n" + (root / "a.txt").read_text().rstrip("\n"))
    git("commit", "-qam", "Last")
    for before in (base, "HEAD~2", "HEAD~1"):
        diff = tmp_path / "change.diff"
        diff.write_bytes(git("diff", "--no-ext-diff", f"{before}...HEAD"))
        request = RunRequest("mine", folder, root, data=[diff])
        prepare_folder(folder / before, request, Redactor())
        given = Workspace(folder / before, tmp_path, "reviewer")
        by_hand = Workspace(folder, root, "reviewer", before)
        files = tools.diff_lines(by_hand)["files"]
        assert sorted(tools.diff_lines(given)["files"]) == sorted(files)
        for path in files:
            assert tools.diff_lines(given, path) == tools.diff_lines(by_hand, path)
    assert tools.diff_lines(given, "név.txt")["lines"] == ["1-3"]
    assert tools.diff_lines(by_hand, "hosszú név.txt")["lines"] == ["28-31"]


def test_items_are_those_of_the_snapshot(tmp_path: Path) -> None:
    body = task_body(in_scope="- src/", out_of_scope="- src/b.py")
    item = {"id": "7", "title": "One", "state": "open", "status": "ready", "body": body}
    workspace = with_items(tmp_path, item, {"id": "8", "title": "Two", "status": "pending"})
    assert [each["id"] for each in tools.list_work_items(workspace)] == ["7", "8"]
    assert [each["id"] for each in tools.list_work_items(workspace, "ready")] == ["7"]
    assert tools.list_work_items(workspace, "blocked") == []
    for status, hint in {"raedy": "mean `ready`", "Ready": "mean `ready`", "new": "of: pending, ready"}.items():
        with pytest.raises(WrongUsage, match="Unknown status") as refused:
            tools.list_work_items(workspace, status)
        assert hint in refused.value.hint
    read = tools.read_work_item(workspace, "#7")
    assert read["body"] == body
    assert (read["in_scope"], read["out_of_scope"]) == (["src"], ["src/b.py"])
    path = "src/a.py"
    assert tools.scope_of(workspace, "7", path) == {"path": path, "group": "in_scope", "protected": False}
    assert tools.scope_of(workspace, "7", "src/b.py")["group"] == "outside"
    for spelled in ("./src/b.py", "src//b.py", "src/deep/../b.py", str(workspace.root / "src/b.py")):
        assert tools.scope_of(workspace, "7", spelled)["group"] == "outside"
    assert tools.scope_of(workspace, "7", str(workspace.root / path))["group"] == "in_scope"
    assert tools.scope_of(workspace, "7", "src/../.github/workflows/x.yml")["protected"]
    with pytest.raises(WrongUsage, match="no work item `9`"):
        tools.read_work_item(workspace, "9")


def test_a_question_of_the_session_is_recorded_before_it_is_shown(accord: Accord, tmp_path: Path) -> None:
    assert accord("session", "new", "export", "--lean", "--root", tmp_path).code == 0
    (folder,) = (tmp_path / ".agents-work").iterdir()
    workspace = Workspace(tmp_path, tmp_path, "planner", session=folder)
    before = tools.next_step(workspace)
    assert before["next_moves"]
    asked = tools.ask_user(workspace, "Which format comes first?", ["CSV", "vCard"])
    assert [decision["question"] for decision in asked["pending"]]
    assert tools.next_step(workspace)["next"] == "ask"
    assert accord.document("session", "resume", folder)["pending"] == asked["pending"]
    asked = tools.ask_user(workspace, "May the key be stored?", category="security", id="UD-2")
    assert [(one["decision_id"], one.get("category")) for one in asked["pending"]] == [
        ("UD-1", None),
        ("UD-2", "security"),
    ]
    accord("session", "answer", folder, "UD-1=CSV", "--final")
    assert [one["decision_id"] for one in tools.next_step(workspace)["pending"]] == ["UD-2"]
    with pytest.raises(AccordError):
        tools.ask_user(workspace, "Is the design approved?", id="UD-APPROVE-DESIGN")
