"""Artifacts of workflow runs in the local GitHub: who may list and download them, and for how long."""

from typing import Any

from support.archives import zipped
from support.code_repository import INSTALLATION, Client

ARCHIVE = zipped({"result.json": "{}"})


def upload(client: Client, name: str = "result", run: int = 7, content: bytes = ARCHIVE, **params: str) -> Any:
    url = f"{client.sandbox.url}/_sandbox/artifacts/octo/home/{run}/{name}"
    return client.session.put(url, data=content, params=params, timeout=600)


def listed(client: Client, run: int = 7, **params: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client("GET", f"actions/runs/{run}/artifacts", params=params).json()["artifacts"]
    return found


def download(client: Client, identifier: int, token: str | None = INSTALLATION) -> Any:
    return client("GET", f"actions/artifacts/{identifier}/zip", token=token, allow_redirects=False)


def test_a_name_is_taken_once_a_run_unless_it_is_to_be_overwritten(client: Client) -> None:
    first, second = zipped({"a": "1"}), zipped({"a": "2"})
    assert [upload(client, content=first).status_code, upload(client, content=second).status_code] == [201, 409]
    assert upload(client, content=second, overwrite="true").status_code == 201
    (artifact,) = listed(client)
    assert client.session.get(download(client, artifact["id"]).headers["location"], timeout=600).content == second


def test_a_name_that_the_upload_would_refuse_is_refused(client: Client) -> None:
    assert upload(client, "a:b").status_code == 422


def test_a_download_needs_a_token_that_may_read_actions_in_a_public_repository_too(client: Client) -> None:
    upload(client)
    (artifact,) = client("GET", "actions/runs/7/artifacts", token=None).json()["artifacts"]
    statuses = [download(client, artifact["id"], token).status_code for token in (None, "pulls-only", "triage")]
    assert statuses == [401, 403, 302]


def test_the_storage_takes_no_token(client: Client) -> None:
    upload(client)
    place = download(client, listed(client)[0]["id"]).headers["location"]
    assert client.session.get(place, headers={"authorization": "Bearer x"}, timeout=600).status_code == 403
