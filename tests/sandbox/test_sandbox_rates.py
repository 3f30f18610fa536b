"""The limits are those that GitHub documents."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
from support.clocks import ManualClock
from support.code_repository import INSTALLATION, Client

from accord_sandbox.server import RateLimits, SandboxSettings, serving

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_every_answer_has_the_remaining_budget(client: Client) -> None:
    first, second = client("GET", "issues"), client("GET", "issues/99")
    assert (first.headers["x-ratelimit-limit"], second.headers["x-ratelimit-used"]) == ("5000", "2")
    assert client("GET", "issues", token=INSTALLATION).headers["x-ratelimit-limit"] == "1000"
    assert client("GET", "issues", token=None).headers["x-ratelimit-limit"] == "60"
    found = client("GET", "/search/issues?q=is:issue")
    assert (found.headers["x-ratelimit-resource"], found.headers["x-ratelimit-remaining"]) == ("search", "29")
    assert client("GET", "issues").headers["x-ratelimit-used"] == "3", "searches do not count here"


@pytest.mark.parametrize(
    ("limits", "resource"), [(RateLimits(user_per_hour=2), "core"), (RateLimits(search_per_minute=2), "search")]
)
def test_a_used_up_budget_is_refused_until_its_reset(tmp_path: Path, limits: RateLimits, resource: str) -> None:
    clock = ManualClock(START)
    with serving(tmp_path, settings=SandboxSettings(clock=clock, rate_limits=limits)) as sandbox:
        path = "/search/issues?q=is:issue" if resource == "search" else f"/repos/{sandbox.repository}/issues"

        def ask() -> requests.Response:
            return requests.get(sandbox.url + path, headers={"authorization": f"token {sandbox.token}"}, timeout=600)

        assert [ask().status_code for _ in range(3)] == [200, 200, 403]
        refused = ask()
        assert refused.json()["message"].startswith("API rate limit exceeded for user ID")
        assert (refused.headers["x-ratelimit-remaining"], refused.headers["x-ratelimit-resource"]) == ("0", resource)
        assert "retry-after" not in refused.headers
        clock.sleep(int(refused.headers["x-ratelimit-reset"]) - clock.now().timestamp())
        assert ask().status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "allowed", "wait"),
    [(RateLimits(), 80, 60), (RateLimits(content_per_hour=20), 20, 3600), (RateLimits(points_per_minute=14), 2, 60)],
)
def test_writing_too_fast_is_a_secondary_limit(tmp_path: Path, limits: RateLimits, allowed: int, wait: int) -> None:
    clock = ManualClock(START)
    with (
        serving(tmp_path, settings=SandboxSettings(clock=clock, rate_limits=limits)) as sandbox,
        requests.Session() as session,
    ):
        session.headers["authorization"] = f"token {sandbox.token}"
        url = f"{sandbox.url}/repos/{sandbox.repository}/issues"
        assert {session.post(url, json={"title": "x"}).status_code for _ in range(allowed)} == {201}
        refused = session.post(url, json={"title": "x"})
        assert (refused.status_code, refused.headers["retry-after"]) == (403, str(wait))
        assert refused.json()["message"].startswith("You have exceeded a secondary rate limit")
        clock.sleep(wait)
        assert session.post(url, json={"title": "x"}).status_code == 201


def test_without_limits_the_headers_are_missing(tmp_path: Path) -> None:
    with serving(tmp_path, settings=SandboxSettings(rate_limits=None)) as sandbox:
        answer = requests.get(f"{sandbox.url}/repos/{sandbox.repository}", timeout=600)
        assert answer.status_code == 200
        assert "x-ratelimit-limit" not in answer.headers
