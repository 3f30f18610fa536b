"""Which GitHub a token is shown to, and whose files decide: one server for API and git, and the default branch."""

import json
from pathlib import Path

import pytest
from support.commands import Accord
from support.plans import plan, task
from support.trees import commit, git

from accord.cli.sources import addresses, read_trusted
from accord.core.errors import WrongUsage


@pytest.mark.parametrize(
    ("api", "server", "expected"),
    [
        ("", "", ("https://api.github.com", "https://github.com")),
        ("https://api.github.com", "", ("https://api.github.com", "https://github.com")),
        ("https://git.example/api/v3", "", ("https://git.example/api/v3", "https://git.example")),
        ("https://git.example/api/v3/", "", ("https://git.example/api/v3/", "https://git.example")),
        ("https://api.octo.ghe.com", "", ("https://api.octo.ghe.com", "https://octo.ghe.com")),
        ("http://127.0.0.1:8000", "", ("http://127.0.0.1:8000", "http://127.0.0.1:8000")),
        ("http://127.0.0.1:8000", "https://github.com", ("http://127.0.0.1:8000", "http://127.0.0.1:8000")),
        ("http://[::1]:80/api/v3", "http://127.0.0.1:80", ("http://[::1]:80/api/v3", "http://[::1]:80")),
        ("http://localhost:80", "https://git.example", ("http://localhost:80", "http://localhost:80")),
        ("", "https://git.example", ("https://git.example/api/v3", "https://git.example")),
        ("", "https://octo.ghe.com", ("https://api.octo.ghe.com", "https://octo.ghe.com")),
        ("https://api.github.com", "https://GitHub.com", ("https://api.github.com", "https://GitHub.com")),
    ],
)
def test_api_and_git_are_on_one_server_when_one_is_set(api: str, server: str, expected: tuple[str, str]) -> None:
    assert addresses(api, server) == expected


@pytest.mark.parametrize(
    ("api", "server", "named"),
    [
        ("https://git.example/api/v3", "https://github.com", "name two servers"),
        ("https://api.github.com", "https://git.example", "name two servers"),
        ("https://api.github.com.evil.example", "https://github.com", "name two servers"),
        ("https://api.a.ghe.com", "https://b.ghe.com", "name two servers"),
        ("https://git.example/api/v3", "http://git.example", "name two servers"),
        ("https://127.0.0.1.example", "https://github.com", "name two servers"),
        ("https://api.github.com", "http://127.0.0.1:8000", "name two servers"),
        ("nope", "https://github.com", "`GITHUB_API_URL` .* is not a URL"),
        ("http://[bad", "", "`GITHUB_API_URL` .* is not a URL"),
        ("", "nope", "`GITHUB_SERVER_URL` .* is not a URL"),
        ("https://api.github.com", "github.com", "`GITHUB_SERVER_URL` .* is not a URL"),
    ],
)
def test_a_token_is_not_shown_to_two_servers_or_none(api: str, server: str, named: str) -> None:
    with pytest.raises(WrongUsage, match=named) as refused:
        addresses(api, server)
    assert "to ://" not in refused.value.hint


def test_in_a_job_settings_of_plans_and_labels_are_those_of_the_default_branch(
    accord: Accord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that changes them on its branch must not decide where the next plan's items belong."""
    event = tmp_path / "event.json"
    event.write_text('{"repository": {"default_branch": "main"}}')
    git(tmp_path, "init", "-q", "-b", "main")
    settings = tmp_path / "plan.yml"
    settings.write_text("of main\n")
    commit(tmp_path)
    git(tmp_path, "switch", "-q", "-c", "accord/1")
    settings.write_text("of the agent\n")
    commit(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert read_trusted("plan.yml") == b"of the agent\n"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
    assert read_trusted("plan.yml") == b"of main\n"
    (tmp_path / "result.json").write_text(json.dumps(plan(task("a"))))
    refused = accord("apply", "result.json", "--plan-settings", "plan.yml", "--sandbox", "sandbox")
    assert (refused.code, "plan.yml" in refused.err + refused.out) == (1, True), refused
