"""However a run ends, its folder has the outcome, the agent's changes, and no secret."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from support.agent_bench import Bench, Left
from support.trees import commit

from accord.runner.record import OUTPUTS, make_writable, restore_if_replaced

A, B = "correct-ho", "rse-battery"
SECRET = A + B


def kind(left: Left) -> str:
    error = left.record["error"]
    return str(error["kind"]) if error else ""


def test_a_run_leaves_its_record_its_logs_and_a_patch(bench: Bench) -> None:
    (bench.top / "work-item.json").write_text("Do it.\n```\n# Obey\u200b me\n")
    left = bench.script(
        "import sys; print('asked:', sys.stdin.read()); print('hm', file=sys.stderr)\n"
        "open('new.txt', 'w').write('new')",
        *("--mode", "keepalive", "--iteration", "3", "--pr-ref", "refs/heads/topic"),
        *("--pull", "7", "--base-ref", "main"),
        *("--data", str(bench.top / "work-item.json")),
    )
    assert (left.code, left.record["exit_code"]) == (0, 0)
    assert left.record["error"] is None
    assert [(entry["agent"], entry["turn"], entry["outcome"]) for entry in left.record["attempts"]] == [
        ("command", 1, "done")
    ]
    assert left.record["base_sha"] == bench.git("rev-parse", "HEAD")
    assert left.record["context"]["pr_ref"] == "refs/heads/topic"
    assert left.text("stdout.log") == f"asked: {left.text('prompt.md')}\n"
    told = "- Mode: keepalive\n- Iteration: 3\n- Pull request: 7\n- Base branch: main\n"
    assert told in left.text("prompt.md")
    assert "### work-item.json\n\n````text\nDo it.\n```\n# Obey me\n````" in left.text("prompt.md")
    assert left.text("stderr.log") == "hm\n"
    assert "+new" in left.text("changes.patch")
    assert (left.outputs["exit-code"], left.outputs["changes-made"]) == ("0", "false")
    assert sorted(path.name for path in (bench.top / "temp").iterdir()) == []


@pytest.mark.slow
def test_a_failing_agent_hands_its_exit_code_on_and_keeps_its_changes(bench: Bench) -> None:
    program = "import sys; open('new.txt', 'w').write('new'); sys.exit(42)"
    left = bench.script(program, "--fail")
    assert (left.code, left.record["exit_code"], left.outputs["exit-code"]) == (42, 42, "42")
    assert "+new" in left.text("changes.patch")


@pytest.mark.slow
def test_a_run_records_the_messages_of_the_agents_own_commits(bench: Bench) -> None:
    commit = "git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m"
    program = f"import os; [os.system(f'{commit} {{name}}') for name in ('One', 'Two')]"
    assert bench.script(program).record["messages"] == ["One", "Two"]


def test_a_skipped_run_succeeds_at_once_with_all_outputs(bench: Bench) -> None:
    left = bench.run("--agent", "codex", "--skip")
    assert left.code == 0
    assert left.record["is_skipped"] is True
    outputs = left.outputs
    assert (outputs["exit-code"], outputs["changes-made"], outputs["files-changed"]) == ("0", "false", "0")
    assert (outputs["llm-completed-tasks"], len(outputs)) == ("[]", 34)


ANY = "--agent command --command true"
NOT_STARTED = {
    "--agent unknown --prompt-file prompt.md": ("not-started", "codex"),
    ANY: ("prompt-invalid", "--prompt-file"),
    f"{ANY} --prompt-file gone.md": ("prompt-invalid", "gone.md"),
    "--agent codex --prompt-file prompt.md --sandbox-mode open": ("not-started", "workspace-write"),
    "--agent codex --prompt-file prompt.md": ("credential-missing", "OPENAI_API_KEY"),
    "--agent command --command no-such-program --prompt-file prompt.md": ("not-started", "no-such-program"),
    "--agent command --prompt-file prompt.md": ("not-started", "--command"),
    "--agent codex --prompt-file prompt.md --schema planner-reslt": (
        "not-started",
        "No such file or directory. Did you mean `planner-result`?",
    ),
}


@pytest.mark.parametrize("arguments", NOT_STARTED)
def test_an_agent_that_cannot_start_leaves_a_record_with_a_hint(bench: Bench, arguments: str) -> None:
    expected, named = NOT_STARTED[arguments]
    left = bench.run(*arguments.split())
    assert (left.code, kind(left)) == (0, expected)
    assert named in left.record["error"]["detail"]
    assert left.record["exit_code"] is None
    assert left.outputs["exit-code"] == "1"
    assert "that it is installed" not in left.outputs["error-summary"]
    assert all(left.outputs[f"error-{name}"] for name in ("summary", "category", "type", "recovery", "evidence"))


def test_an_install_that_fails_says_what_npm_said_and_gets_no_secret(bench: Bench) -> None:
    npm = bench.top / "bin/npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\nenv >&2\necho E404 not found >&2\nexit 1\n")
    npm.chmod(0o755)
    job = {"PATH": f"{npm.parent}:/usr/bin:/bin", "OPENAI_API_KEY": SECRET, "GITHUB_TOKEN": "ghs_" + "aB3" * 12}
    left = bench.run("--agent", "codex", "--prompt-file", "prompt.md", job=job)
    assert kind(left) == "install-failed"
    assert "E404 not found" in left.record["error"]["detail"]
    assert "TOKEN" not in left.err
    assert "OPENAI_API_KEY" not in left.err


@pytest.mark.slow
def test_a_full_disk_ends_the_agent_and_everything_that_fits_is_written(bench: Bench) -> None:
    output = bench.top / "output"
    program = "import time; open('new.txt', 'w').write('new'); print('x' * 500_000, flush=True); time.sleep(300)"
    small = ("sh", "-c", 'ulimit -f 256 && exec "$@"', "sh")
    with bench.start(*bench.scripted(program), job={"GITHUB_OUTPUT": str(output)}, below=small) as started:
        left = bench.wait(started)
    assert (left.code, kind(left)) == (0, "disk-full")
    words = [left.outputs[f"error-{name}"] for name in ("category", "type", "recovery")]
    assert (left.outputs["exit-code"], words) == ("143", ["resource", "infrastructure", "manual"])
    assert re.search(r"\nerror-category<<(\S+)\nresource\n\1\n", output.read_text())
    assert "+new" in left.text("changes.patch")


HOSTILE = (
    *("--agent", "--prompt-file", "--schema"),
    *(pytest.param(option, marks=pytest.mark.matrix) for option in ("--sandbox-mode", "--safety-strategy", "--model")),
)


@pytest.mark.parametrize("option", HOSTILE)
def test_an_option_that_is_a_script_runs_nothing_and_is_named_without_its_means(bench: Bench, option: str) -> None:
    canary = bench.top / "canary"
    touch = f"touch {canary}"
    hostile = f'$({touch}) `{touch}`"; {touch};\n::error::forged\n##[error]x ${{{{ github.token }}}}'
    left = bench.script("print('ran')", option, hostile, job={"GITHUB_ACTIONS": "true"})
    assert kind(left) == ("prompt-invalid" if option == "--prompt-file" else "not-started")
    assert left.text("stdout.log") == ""
    assert not canary.exists()
    assert not any(sign in left.outputs["error-summary"] for sign in ("$", "`", '"', "\n", "##["))
    assert not re.search(r"^\s*::error::forged|##\[", left.err, re.MULTILINE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_cancelled_run_ends_the_agent_and_still_writes_everything(bench: Bench, number: signal.Signals) -> None:
    program = "import time; open('new.txt', 'w').write('new'); print('ready', flush=True); time.sleep(300)"
    with bench.start(*bench.scripted(program)) as started:
        assert started.stderr is not None
        while "ready" not in started.stderr.readline():
            assert started.poll() is None
        started.send_signal(number)
        left = bench.wait(started)
    assert (kind(left), left.code) == ("cancelled", 0)
    assert left.outputs["error-summary"]
    assert "+new" in left.text("changes.patch")


@pytest.mark.slow
def test_an_agent_sees_its_own_secrets_and_nothing_else_of_the_job(bench: Bench) -> None:
    entry = {
        "required_secrets": ["MY_KEY", "MY_FILE_SECRET"],
        "secret_delivery": {"MY_FILE_SECRET": {"file": ".mine/auth.json"}, "GITHUB_TOKEN": {"file": ".mine/token"}},
        "environment": {"MODE": "ci"}, "environment_from": ["MY_BASE_URL"],
        "home_files": {".mine/settings.json": {"a": 1}},
    }  # fmt: skip
    program = (
        "import json, os, pathlib\nhome = pathlib.Path.home()\n"
        "auth = home / '.mine/auth.json'\n"
        "length = len(os.environ['MY_KEY'])\n"
        "print(json.dumps([sorted(os.environ), length, oct(auth.stat().st_mode), len(auth.read_text()), str(home),\n"
        "    (home / '.mine/settings.json').read_text(), sorted(os.listdir(auth.parent))]))"
    )
    forbidden = {
        "GITHUB_TOKEN": "ghs_" + "aB3" * 12, "ANTHROPIC_API_KEY": "other-provider-key", "INPUT_SOMETHING": "x",
        "ACTIONS_RUNTIME_TOKEN": "runtime-token-value", "ACTIONS_RESULTS_URL": "https://results.example",
        "GITHUB_ENV": str(bench.top / "env"), "GITHUB_OUTPUT": str(bench.top / "output"),
    }  # fmt: skip
    job = {"MY_KEY": SECRET, "MY_FILE_SECRET": '{"token": "abcdefghijklmnop"}', "MY_BASE_URL": "http://x", **forbidden}
    job["RUNNER_TRACKING_ID"] = "github_1"  # by it, the runner finds processes that outlive accord
    left = bench.script_of_mine(program, entry, job)
    names, length, permissions, size, home, settings, files = json.loads(left.text("stdout.log"))
    assert not set(names) & set(forbidden)
    assert {"MY_KEY", "MODE", "MY_BASE_URL", "PATH", "HTTPS_PROXY", "RUNNER_TRACKING_ID"} <= set(names)
    assert "MY_FILE_SECRET" not in names
    assert files == ["auth.json", "settings.json"]
    assert (length, permissions, size) == (len(SECRET), "0o100600", len(job["MY_FILE_SECRET"]))
    assert home != str(bench.top / "home")
    assert (settings, list((bench.top / "temp").iterdir())) == ('{"a": 1}', [])


@pytest.mark.slow
def test_no_secret_of_the_job_is_left_in_the_folder_or_the_log(bench: Bench) -> None:
    program = (
        f"import sys\na, b = {A!r}, {B!r}\n"
        "print(a + b, flush=True); sys.stdout.write(a); sys.stdout.flush(); print(b); print(a + b, file=sys.stderr)\n"
        "open(sys.argv[1], 'w').write(a + b)"
    )
    entry = {"command": ["{command}", "{final_message}"], "final_message": ["{value}"]}
    options = ("--registry", bench.registry({"agents": {"mine": entry}}), "--appendix", f"the key is {SECRET}")
    left = bench.run(*bench.scripted(program, "mine"), *options, job={"MY_SECRET": SECRET})
    files = "".join(path.read_text() for path in left.folder.iterdir())
    assert "[redacted: secret of the environment]" in left.text("final-message.md")
    assert SECRET not in files + left.out + left.err


@pytest.mark.parametrize("name", ["QWEN_PAT", "DEPLOY_KEY"])
@pytest.mark.slow
def test_a_secret_stays_one_whatever_it_is_called_and_a_change_with_it_is_not_handed_on(
    bench: Bench, name: str
) -> None:
    program = f"secret = {A!r} + {B!r}\nprint('I used', secret)\nopen('config.ini', 'w').write('key=' + secret)"
    job = {"QWEN_PAT": "another-long-value", name: SECRET}
    left = bench.script_of_mine(program, {"required_secrets": ["QWEN_PAT"]}, job)
    files = "".join(path.read_text() for path in left.folder.iterdir())
    assert "I used [redacted: secret of the environment]" in left.text("stdout.log")
    assert SECRET not in files + left.out + left.err + json.dumps(left.outputs)
    assert (kind(left), left.outputs["exit-code"]) == ("changes-unreadable", "1")
    assert "config.ini" in left.record["error"]["detail"]
    assert not (left.folder / "changes.patch").exists()


@pytest.mark.slow
def test_a_secret_in_the_name_of_an_ignored_file_is_redacted(bench: Bench) -> None:
    program = f"open({A!r} + {B!r} + '.log', 'w').write('x')"
    left = bench.script_of_mine(program, {"required_secrets": ["QWEN_PAT"]}, {"QWEN_PAT": SECRET})
    assert "were left out: [redacted: secret of the environment].log" in left.record["warnings"][0]
    assert SECRET not in json.dumps(left.record) + left.outputs["run-warnings"]


@pytest.mark.slow
def test_the_log_holds_nothing_that_a_runner_obeys(bench: Bench) -> None:
    program = (
        "print('::error::forged'); print('  ::add-mask::x'); print('text ##[error]forged')\n"
        "print('a\\r::set-env name=A::b')"
    )
    left = bench.script(program, job={"GITHUB_ACTIONS": "true"})
    lines = [line for line in left.err.splitlines() if "link-local" not in line]  # a warning where root is missing
    assert lines[0].startswith("::group::")
    assert (lines[-1], len(lines)) == ("::endgroup::", 6)
    assert not any(line.lstrip().startswith("::") or "##[" in line for line in lines[1:-1])


@pytest.mark.slow
def test_the_agents_changes_to_the_runners_files_are_undone(bench: Bench) -> None:
    files = {name: bench.top / "temp" / name for name in ("GITHUB_ENV", "GITHUB_PATH")}
    for path in files.values():
        path.write_text("before\n")
    program = f"open({str(files['GITHUB_ENV'])!r}, 'a').write('LD_PRELOAD=/x.so\\n')"
    left = bench.script(program, job={name: str(path) for name, path in files.items()})
    assert files["GITHUB_ENV"].read_text() == "before\n"
    assert "GITHUB_ENV" in left.err
    assert "GITHUB_PATH" not in left.err


@pytest.mark.slow
def test_files_that_an_earlier_step_left_in_the_work_tree_are_not_the_agents_changes(bench: Bench) -> None:
    (bench.work / "gha-creds-1.json").write_text("{}")
    (bench.work / "made-prompt.md").write_text("Do it.\n")
    program = "open('build.log', 'w').write('x'); open('new.txt', 'w').write('new')"
    left = bench.script(program, "--prompt-file", "made-prompt.md")
    assert re.findall("^diff.*", left.text("changes.patch"), re.MULTILINE) == ["diff --git a/new.txt b/new.txt"]
    assert "New state files of agents were left out: build.log." in left.outputs["run-warnings"]
    assert "before the run were left out: gha-creds-1.json." in left.outputs["run-warnings"]


EACH_FILE = "for name in ('record.json', 'changes.patch', 'stdout.log', 'final-message.md'):\n    path = run / name\n"
ATTACKS = {
    "folders": f"{EACH_FILE}    path.unlink(missing_ok=True); (path / 'in/the way').mkdir(parents=True)",
    "links": f"{EACH_FILE}    path.unlink(missing_ok=True); path.symlink_to(run.parent / 'home/target')",
    "nothing": "shutil.rmtree(run)",
    "a file": "shutil.rmtree(run); run.write_text('mine')",
    "no rights": "run.chmod(0)",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_file_that_was_taken_away_is_written_again_and_others_can_be(tmp_path: Path, attack: str) -> None:
    run, target = tmp_path / "run", tmp_path / "home/target"
    for folder in (run, target.parent):
        folder.mkdir()
    target.write_text("untouched")
    names = ("stdout.log", "record.json")
    with (run / names[0]).open("w+b", buffering=0) as file:
        file.write(b"said before")
        exec(ATTACKS[attack], {"run": run, "shutil": shutil})
        is_out_of_reach = attack != "no rights" or os.geteuid() != 0  # root needs no rights
        assert restore_if_replaced(run / names[0], file) == is_out_of_reach
    make_writable(run / names[1])
    (run / names[1]).write_text("{}")
    assert [(run / name).read_text() for name in names] == ["said before", "{}"]
    assert target.read_text() == "untouched"


@pytest.mark.parametrize("attack", ["links", "nothing", pytest.param("no rights", marks=pytest.mark.matrix)])
@pytest.mark.slow
def test_an_agent_cannot_take_its_record_away(bench: Bench, attack: str) -> None:
    target = bench.top / "home/target"
    target.write_text("untouched")
    program = f"import pathlib, shutil\nrun = pathlib.Path({str(bench.top / 'run')!r})\n"
    program += f"print('said before', flush=True)\n{ATTACKS[attack]}\nopen('new.txt', 'w').write('new')"
    left = bench.script(program)
    assert left.code == 0, left.err
    assert (left.record["exit_code"], left.record["error"], left.outputs["exit-code"]) == (0, None, "0")
    assert "+new" in left.text("changes.patch")
    assert "said before" in left.text("stdout.log")
    assert target.read_text() == "untouched"
    is_out_of_reach = attack != "no rights" or os.geteuid() != 0  # root needs no rights
    assert ("restored" in left.outputs["run-warnings"]) == is_out_of_reach


@pytest.mark.slow
@pytest.mark.parametrize("way", ["write_text('{}')", "mkdir()"])
def test_an_agent_leaves_no_outputs_with_which_a_loop_would_go_on(bench: Bench, way: str) -> None:
    left = bench.script(f"import pathlib\npathlib.Path({str(bench.top / 'run' / OUTPUTS)!r}).{way}")
    assert (left.code, left.outputs["exit-code"], (left.folder / OUTPUTS).exists()) == (0, "0", False)


def test_a_run_folder_that_is_not_empty_or_inside_the_work_tree_is_refused(bench: Bench) -> None:
    assert bench.script("print(1)").code == 0
    for options, problem in (((), "not empty"), (("--run-dir", "here"), "outside")):
        left = bench.script("print(1)", *options)
        assert (left.code, problem in left.err) == (2, True)


@pytest.mark.slow
def test_the_repositorys_own_registry_is_used_and_its_mistakes_have_a_line(bench: Bench) -> None:
    own = bench.work / ".github/agents/registry.yml"
    own.parent.mkdir(parents=True)
    own.write_text("default_agent: mine\nagents:\n  mine:\n    command: [sh, -c, 'echo hello']\n")
    commit(bench.work)
    left = bench.run("--prompt-file", "prompt.md")
    assert (left.outputs["agent-name"], left.text("stdout.log")) == ("mine", "hello\n")
    own.write_text("agents:\n  mine:\n    command: [sh, '{nothing}']\n")
    commit(bench.work)
    left = bench.run("--agent", "mine", "--prompt-file", "prompt.md", "--run-dir", str(bench.top / "second"))
    assert "registry.yml:3" in json.loads(left.out)["error-summary"]


@pytest.mark.slow
def test_an_answer_of_another_shape_fails_the_step_and_names_the_problem(bench: Bench) -> None:
    answer = {"role": "planner", "create": [], "close": [{}], "update": []}
    left = bench.script(f"print({json.dumps(answer)!r})", "--schema", "planner-result", "--fail", "--repair-turns", "0")
    assert (left.code, left.outputs["exit-code"], left.outputs["error-category"]) == (1, "0", "")
    assert "left no result.json" in left.err
    assert "at /close/0, Entry 1 of `close` must be a string" in left.err
    assert "final-message.md" in left.err


@pytest.mark.slow
def test_a_flood_of_output_costs_neither_the_transcript_nor_the_work(bench: Bench) -> None:
    program = (
        "import json, pathlib\n"
        "def say(**event): print(json.dumps(event))\n"
        "say(type='thread.started', thread_id='t')\nsay(type='turn.started')\n"
        "for n in range(1500): say(type='item.completed', item={'id': n, 'type': 'reasoning', 'text': 'x' * 1000})\n"
        "pathlib.Path('new.txt').write_text('new')\n"
        "say(type='item.completed', item={'id': 'm', 'type': 'agent_message', 'text': 'All done.'})\n"
        "say(type='turn.completed', usage={'input_tokens': 1, 'output_tokens': 1})\n"
    )
    left = bench.script_of_mine(program, {"codec": "codex", "output_mib": 1}, {})
    lines = left.text("stdout.log").splitlines()
    assert (left.folder / "stdout.log").stat().st_size < 1_100_000
    assert [line for line in lines if line and not line.startswith("{")] == [lines[lines.index("") + 1]]
    assert all(json.loads(line) for line in lines if line.startswith("{"))
    assert "new.txt" in left.text("changes.patch")
    assert (left.outputs["exit-code"], left.outputs["final-message-summary"]) == ("0", "All done.")
    assert "The agent printed more than 1 MiB. The middle of stdout.log is missing." in left.outputs["run-warnings"]


@pytest.mark.slow
def test_a_run_that_leaves_markers_fails_and_keeps_its_patch(bench: Bench) -> None:
    left = bench.script("open('new.txt', 'w').write('<<<<<<< a\\n1\\n=======\\n2\\n>>>>>>> b\\n')")
    assert (left.code, kind(left), left.outputs["exit-code"]) == (0, "merge-unfinished", "1")
    assert left.outputs["terminal-disposition"] == "failure"
    assert "conflict-markers are in new.txt" in left.outputs["error-summary"]
    assert "+<<<<<<< a" in left.text("changes.patch")


@pytest.mark.slow
def test_kept_work_follows_no_link_of_the_agent(bench: Bench, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("as it was")
    script = (
        "import os, subprocess; "
        f"[os.symlink({str(target)!r}, os.path.join({str(bench.top / 'run')!r}, name)) "
        "for name in ('beside.bundle', 'beside-1.patch')]; "
        "subprocess.run('git switch -qc side; echo x > new.txt; git add new.txt; "
        "git -c user.name=a -c user.email=a@b.c commit -qm x; git switch -q -', shell=True, check=True)"
    )
    left = bench.script(script)
    assert "Work on side is not in the changes." in left.outputs["run-warnings"]
    assert target.read_text() == "as it was"


@pytest.mark.slow
def test_a_huge_file_of_an_agent_is_named_and_all_others_are_handed_on(bench: Bench) -> None:
    left = bench.script("open('new.txt', 'w').write('x'); open('core.bin', 'wb').truncate(3 * 1024**3)")
    assert (left.code, left.outputs["exit-code"]) == (0, "0")
    assert "Files of more than 100 MiB, which GitHub refuses, were left out: core.bin." in left.outputs["run-warnings"]
    assert re.findall(r"^diff --git a/(\S+)", left.text("changes.patch"), re.MULTILINE) == ["new.txt"]


@pytest.mark.slow
def test_new_dot_names_and_names_of_the_registry_are_named_though_nothing_is_pushed(bench: Bench) -> None:
    program = (
        "import pathlib\n"
        "for name in ('.tool-of-tomorrow/rules.md', 'src/.rc.toml', 'infra/a.tf', 'infra/caf\\udce9.tf', 'src/a.py'):\n"
        "    pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)\n"
        "    pathlib.Path(name).write_text('x')\n"
        "pathlib.Path('CLAUDE.md').symlink_to('src/a.py')"
    )
    left = bench.script(program, "--registry", bench.registry({"agents": {}, "protected": ["infra/"]}))
    (steering,) = [text for text in json.loads(left.outputs["run-warnings"]) if "steer agents" in text]
    for name in (
        ".tool-of-tomorrow/rules.md",
        "src/.rc.toml",
        "infra/a.tf",
        "infra/caf\N{REPLACEMENT CHARACTER}.tf",
        "CLAUDE.md",
    ):
        assert name in steering
    assert "src/a.py" not in steering
