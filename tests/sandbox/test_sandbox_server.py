"""Starting, stopping, sharing and resetting the sandbox."""

import base64
import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from support.openapi import violations
from support.stage import seed_file

from accord.cli.sandbox import sandbox as commands
from accord.core.errors import WrongUsage
from accord_sandbox.database import FILE_NAME
from accord_sandbox.seed import read_seed
from accord_sandbox.server import Exchange, SandboxSettings, serving
from accord_sandbox.show import document

ROOT = Path(__file__).parents[2]


def serve(*arguments: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    command = [sys.executable, "-P", "-m", "accord", "sandbox", "serve", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


def stop(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str]:
    process.send_signal(number)
    _, errors = process.communicate(timeout=600)
    return process.returncode, errors


def ask(method: str, ready: dict[str, str], path: str, body: Any = None) -> requests.Response:
    url = f"{ready['url']}/repos/{ready['repository']}/{path}"
    return requests.request(method, url, json=body, headers={"authorization": f"token {ready['token']}"}, timeout=600)


def test_it_starts_again_and_leaves_no_thread_behind(tmp_path: Path) -> None:
    threads = threading.active_count()
    for _ in range(2):
        with serving(tmp_path) as sandbox:
            assert requests.get(f"{sandbox.url}/user", timeout=600).status_code == 401
    assert threading.active_count() == threads
    with pytest.raises(requests.ConnectionError):
        requests.get(sandbox.url, timeout=600)


def test_a_server_that_fails_as_it_starts_says_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("no sockets")

    monkeypatch.setattr("accord_sandbox.server.ServerState", fail)
    with pytest.raises(RuntimeError) as caught, serving(tmp_path):
        pass
    assert str(caught.value.__cause__) == "no sockets"


def test_only_its_own_host_is_answered(tmp_path: Path) -> None:
    with serving(tmp_path) as sandbox:
        port = sandbox.url.rpartition(":")[2]
        hosts = (f"127.0.0.1:{port}", f"localhost:{port}", "evil.test", f"evil.test:{port}", "127.0.0.1", "localhost:1")
        for path, served in (("/user", 401), ("/", 200), ("/_sandbox/requests", 200)):
            answers = [
                requests.get(f"{sandbox.url}{path}", headers={"Host": host}, timeout=600).status_code for host in hosts
            ]
            assert answers == [served, served, 421, 421, 421, 421]


SERVED = [
    ("GET", "/user", 401), ("GET", "/", 200), ("POST", "/repos/accord/sandbox/issues", 401),
    ("DELETE", "/_sandbox/faults", 204), ("GET", "/accord/sandbox.git/info/refs?service=git-upload-pack", 200),
]  # fmt: skip


def test_pages_of_other_sites_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as sandbox:
        port = sandbox.url.rpartition(":")[2]
        ours = (None, *(f"http://{host}:{port}" for host in ("127.0.0.1", "localhost")))
        theirs = ("https://evil.test", "null", f"https://127.0.0.1:{port}", "http://127.0.0.1:1")
        for origin in (*ours, *theirs, f"http://127.0.0.1:{port}.evil.test"):
            for method, path, served in SERVED:
                answer = requests.request(method, sandbox.url + path, headers={"Origin": origin}, timeout=600)
                assert answer.status_code == (served if origin in ours else 403), (origin, method, path)


def test_only_the_owner_reads_what_is_in_a_sandbox(tmp_path: Path) -> None:
    for _ in range(2):
        with serving(tmp_path):
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
            assert sorted(modes.values()) == [0o600] * 3 + [0o700], modes
        (tmp_path / FILE_NAME).chmod(0o644)  # as an earlier version left it
        (tmp_path / "git").chmod(0o755)


def test_data_survives_a_restart(tmp_path: Path) -> None:
    for count in (1, 2):
        with serving(tmp_path, repository="me/mine") as sandbox:
            ready = {"url": sandbox.url, "token": sandbox.token, "repository": sandbox.repository}
            assert ask("POST", ready, "issues", {"title": "x"}).json()["number"] == count
    with serving(tmp_path, repository="me/other") as sandbox:
        ready = {"url": sandbox.url, "token": "accord-sandbox-installation-token", "repository": "me/other"}
        assert ask("POST", ready, "issues", {"title": "x"}).json()["number"] == 1


def test_a_connection_creates_no_second_repository(tmp_path: Path) -> None:
    for name in ("me/mine", "me/other"):
        with serving(tmp_path, repository=name, creates=False) as sandbox:
            ready = {"url": sandbox.url, "token": sandbox.token, "repository": name}
            assert ask("GET", ready, "issues").status_code == (200 if name == "me/mine" else 404)


def test_a_file_is_not_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(WrongUsage, match="/file` is a file"), serving(path):
            pass


def test_a_port_or_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with serving(tmp_path) as sandbox:
        port = int(sandbox.url.rpartition(":")[2])
        with pytest.raises(WrongUsage, match=f"Port {port} cannot be used"), serving(tmp_path / "other", port=port):
            pass
        with sandbox.database.writing() as connection:
            connection.execute("PRAGMA user_version = 99")
    with pytest.raises(WrongUsage, match="another version of accord"), serving(tmp_path):
        pass
    (tmp_path / "sandbox.sqlite3").write_bytes(b"no database at all, but long enough to look at" * 20)
    with pytest.raises(WrongUsage, match="cannot be opened"), serving(tmp_path):
        pass


@pytest.mark.slow
def test_two_processes_on_one_directory_lose_and_repeat_nothing(tmp_path: Path) -> None:
    first, ready = serve("--dir", str(tmp_path), "--no-rate-limits")
    try:
        with serving(tmp_path, settings=SandboxSettings(rate_limits=None)) as sandbox:
            here = {**ready, "url": sandbox.url}
            with ThreadPoolExecutor(8) as pool:
                work = [pool.submit(ask, "POST", (ready, here)[n % 2], "issues", {"title": str(n)}) for n in range(40)]
                made = [future.result().json() for future in work]
        assert sorted(issue["number"] for issue in made) == list(range(1, 41))
        assert len({issue["id"] for issue in made}) == 40
        assert len(document(tmp_path)["issues"]) == 40
    finally:
        assert stop(first) == (0, "")


@pytest.mark.slow
def test_the_command_serves_a_seed_until_a_signal(tmp_path: Path) -> None:
    issues = [
        {"title": "A", "labels": ["zeta", "bug"], "comments": [{"body": "hi", "author": "ann"}]},
        {"title": "B", "blocked_by": [1], "created_at": "2026-01-01T00:00:00Z", "state": "closed"},
        {"title": "C", "pull_request": True},
    ]
    labels = [{"name": "bug", "color": "123456", "description": "Mine"}]
    tokens = [{"token": "t", "login": "ann"}]
    repositories = [{"name": "o/r", "issues": issues, "labels": labels, "default_labels": False}]
    seed = seed_file(tmp_path, {"tokens": tokens, "repositories": repositories})
    home = str(tmp_path / "home")
    process, ready = serve("--dir", home, "--seed", str(seed))
    assert (ready["repository"], ready["token"]) == ("o/r", "accord-sandbox-token")
    assert ask("GET", {**ready, "token": "t"}, "issues/1").ok
    assert stop(process, signal.SIGINT) == (0, "")
    shown = json.loads(CliRunner().invoke(commands, ["show", "--dir", home]).stdout)
    assert shown["repository"] == "o/r"
    found = [(issue["number"], issue["labels"], issue["blocked_by"]) for issue in shown["issues"]]
    assert found == [(1, ["bug", "zeta"], []), (2, [], [1])]
    seen = (shown["issues"][1]["state_reason"], shown["issues"][1]["created_at"])
    assert seen == ("completed", "2026-01-01T00:00:00Z")
    assert shown["issues"][0]["comments"][0]["author"] == "ann"
    assert shown["labels"] == [
        {"name": "bug", "description": "Mine", "color": "123456"},
        {"name": "zeta", "description": None, "color": "ededed"},
    ]
    assert [pull["number"] for pull in shown["pulls"]] == [3]
    assert shown["reviews"] == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="This system has no device that is always full")
@pytest.mark.parametrize("words", [["sandbox", "serve", "--dir"], ["board", "--sandbox"]])
def test_a_server_whose_address_cannot_be_printed_ends(tmp_path: Path, words: list[str]) -> None:
    command = [sys.executable, "-P", "-m", "accord", *words, str(tmp_path / "home")]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert (ended.returncode, "No space left on device" in ended.stderr) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "--dir", "{here}/none"], "No sandbox found in"),
        (["show", "--dir", "{here}", "--repo", "no/such"], "has no repository `no/such`"),
        (["serve", "--dir", "{here}", "--seed", "{here}/seed.yml"], "so `--seed` would have no effect"),
    ],
)
def test_wrong_arguments_are_reported(tmp_path: Path, arguments: list[str], said: str) -> None:
    with serving(tmp_path):
        pass
    (tmp_path / "seed.yml").write_text("tokens: []")
    done = CliRunner().invoke(commands, [argument.format(here=tmp_path) for argument in arguments])
    assert isinstance(done.exception, WrongUsage)
    assert said in str(done.exception)


LABEL = {"name": "bug", "color": "ffffff"}


@pytest.mark.parametrize(
    ("seed", "places"),
    [
        ([], [""]),
        ({"repos": []}, ["/repos"]),
        ({"repositories": [{"name": "plain"}, {"name": "o/r", "private": "yes"}]}, ["/0/name", "/1/private"]),
        ({"repositories": [{"name": "o/r", "collaborators": {"a": "king"}}]}, ["/0/collaborators/a"]),
        ({"repositories": [{"name": "o/r", "labels": [{"name": "x", "color": "#ffffff"}]}]}, ["/labels/0/color"]),
        ({"repositories": [{"name": "o/r", "protected": {"main": {"lock": True}}}]}, ["/protected/main/lock"]),
        ({"repositories": [{"name": "o/r", "issues": [{"title": "x", "blocked_by": [2]}]}]}, ["`blocked_by` has 2"]),
        ({"repositories": [{"name": "o/r", "issues": [{"title": "x", "created_at": "now"}]}]}, ["/0/created_at"]),
        ({"repositories": [{"name": "o/r", "issues": [{"title": "x", "fork": "a/r"}]}]}, ["`fork` needs"]),
        ({"tokens": [{"token": "x"}, {"token": "x", "login": "a", "kind": "magic"}]}, ["/0/login", "/tokens/1/kind"]),
        (
            {"repositories": [{"name": "o/r"}, {"name": "o/q"}, {"name": "O/R"}]},
            ["/repositories: The name `o/r`"],
        ),
        ({"repositories": [{"name": "o/r", "labels": [LABEL, LABEL]}]}, ["/0/labels: The name `bug`"]),
        ({"repositories": [{"name": "o/r", "workflow_runs": [{"id": 7}, {"id": 7}]}]}, ["/workflow_runs: The id `7`"]),
        ({"tokens": [{"token": "x", "login": "a"}, {"token": "x", "login": "b"}]}, ["/tokens: The token `x`"]),
    ],
)
def test_a_wrong_seed_is_reported_with_every_place_and_its_line(tmp_path: Path, seed: Any, places: list[str]) -> None:
    path = seed_file(tmp_path, seed)
    with pytest.raises(WrongUsage) as caught:
        read_seed(path)
    assert [place for place in places if place not in str(caught.value)] == []
    assert f"{path}:1: " in str(caught.value)
    assert "accord sandbox schema" in caught.value.hint


def test_an_unreadable_seed_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "twice.yml").write_text("tokens: []\ntokens: []\n")
    for name, problem in (("twice.yml", "twice.yml:2: "), ("none.yml", "none.yml` cannot be read")):
        with pytest.raises(WrongUsage, match=problem):
            read_seed(tmp_path / name)


def test_the_schema_of_seeds_is_printed() -> None:
    printed = json.loads(CliRunner().invoke(commands, ["schema"]).stdout)
    assert printed == json.loads((ROOT / "schemas/sandbox-seed.schema.json").read_text())


def test_the_judge_notices_what_github_does_not_describe() -> None:
    good = {"name": "bug", "color": "ededed", "default": False, "description": None, "id": 1}
    good |= {"node_id": "x", "url": "http://x"}

    def judged(method: str, path: str, status: int, answer: Any, query: Any = None, body: Any = None) -> list[str]:
        exchange = Exchange("applied", method, path, query or {}, {}, body, status, {}, answer, True)
        return violations(exchange)

    labels = "/repos/o/r/labels"
    assert judged("GET", labels, 200, [good], {"per_page": "5"}) == []
    assert "id" in judged("GET", labels, 200, [{key: good[key] for key in good if key != "id"}])[0]
    assert judged("GET", labels, 200, [good], {"perpage": "5"}) == ["unknown query parameter perpage"]
    assert len(judged("GET", labels, 200, [good], {"page": "two"})) == 1
    assert len(judged("POST", labels, 201, good, body={"color": "ededed"})) == 1
    assert len(judged("POST", labels, 201, good)) == 1
    assert len(judged("GET", labels, 202, [])) == 1
    assert len(judged("DELETE", f"{labels}/a/b", 204, good)) == 1
    assert judged("GET", "/unheard/of", 200, {}) == ["the description has no such operation"]


def test_a_folder_is_the_first_commit_of_a_seeded_repository(tmp_path: Path) -> None:
    (tmp_path / "code" / "src").mkdir(parents=True)
    (tmp_path / "code" / "src" / "a.txt").write_bytes(b"one\r\ntwo\n")
    (tmp_path / "code" / ".git").write_text("gitdir: elsewhere")
    seed = seed_file(tmp_path, {"repositories": [{"name": "o/r", "folder": "code", "files": {"README.md": "x"}}]})
    with serving(tmp_path / "data", seed=seed) as sandbox:
        ready = {"url": sandbox.url, "token": sandbox.token, "repository": "o/r"}
        names = [entry["path"] for entry in ask("GET", ready, "git/trees/main?recursive=1").json()["tree"]]
        assert sorted(names) == ["README.md", "src", "src/a.txt"]
        content = ask("GET", ready, "contents/src/a.txt").json()["content"]
    assert base64.b64decode(content) == b"one\r\ntwo\n"


@pytest.mark.parametrize("unfit", ["missing", "binary", "link"])
def test_a_folder_that_no_seed_can_hold_is_named(tmp_path: Path, unfit: str) -> None:
    if unfit != "missing":
        (tmp_path / "code").mkdir()
    if unfit == "binary":
        (tmp_path / "code" / "a").write_bytes(b"\xff")
    if unfit == "link":
        (tmp_path / "code" / "a").symlink_to("/etc/hostname")
    seed = seed_file(tmp_path, {"repositories": [{"name": "o/r", "folder": "code"}]})
    with pytest.raises(WrongUsage, match="code" if unfit == "missing" else "code/a"):
        read_seed(seed)
