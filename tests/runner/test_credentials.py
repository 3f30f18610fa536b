"""Credentials are checked before an agent starts: a login file is JSON, and its access token does not expire soon."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accord.agents.registry import shipped_registry
from accord.runner.models import AgentNotStarted
from accord.runner.registry import check_credentials, expiry_warnings

NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)
CODEX = shipped_registry().agent("codex")


def login(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return json.dumps({"OPENAI_API_KEY": None, "tokens": {"access_token": f"e30.{body}.sig", "refresh_token": "r"}})


@pytest.mark.parametrize("text", ["dummy", "[]", '"{}"', '{"tokens": ', "ZXhhbXBsZQ==", "auth.json"])
def test_a_login_file_that_is_not_json_is_refused_before_the_agent_starts(text: str) -> None:
    for job in ({"CODEX_AUTH_JSON": text}, {"CODEX_AUTH_JSON": text, "OPENAI_API_KEY": "sk-1"}):
        with pytest.raises(
            AgentNotStarted, match="CODEX_AUTH_JSON of the agent `codex` is not a JSON object"
        ) as refused:
            check_credentials("codex", CODEX, job)
        assert refused.value.error.kind == "credential-invalid"


def test_a_login_file_or_a_key_alone_is_enough() -> None:
    for job in ({"CODEX_AUTH_JSON": login()}, {"CODEX_AUTH_JSON": " \n", "OPENAI_API_KEY": "not json"}):
        check_credentials("codex", CODEX, job)


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (timedelta(days=-1), "expired at 2026-11-22T09:00:00"),
        (timedelta(hours=30), "expires at 2026-11-24T15:00:00"),
        (timedelta(days=9), ""),
    ],
)
def test_a_token_that_expires_soon_is_a_warning_that_says_what_to_do(left: timedelta, says: str) -> None:
    found = expiry_warnings(CODEX, {"CODEX_AUTH_JSON": login(exp=int((NOW + left).timestamp()))}, NOW)
    assert len(found) == bool(says)
    assert all(says in text and "CODEX_AUTH_JSON" in text and "Log in again" in text for text in found)


@pytest.mark.parametrize(
    "text",
    [
        login(), login(exp="soon"), login(exp=1e300), login(exp=None), "{}", '{"tokens": []}', "dummy",
        '{"tokens": {"access_token": "opaque"}}', '{"tokens": {"access_token": "a.%%.c"}}',
        '{"tokens": {"access_token": 7}}',
    ],
)  # fmt: skip
def test_a_token_without_a_readable_time_says_nothing(text: str) -> None:
    assert expiry_warnings(CODEX, {"CODEX_AUTH_JSON": text}, NOW) == []
