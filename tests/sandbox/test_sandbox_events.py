"""Events that start workflows: judged as GitHub does, and taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import requests
from support.stage import Stage, staged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = """
tokens:
  - {token: reading, login: rita, kind: fine-grained, permissions: {contents: read}}
repositories: [{name: octo/code, files: {a.txt: "One"}, collaborators: {rita: write}}]
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("sandbox")
    (folder / "seed.yml").write_text(SEED)
    with staged(folder / "home", seed=folder / "seed.yml") as stage:
        yield stage


@pytest.mark.parametrize(
    ("body", "token", "status"),
    [
        ({"event_type": "go", "client_payload": {"id": 1}}, "", 204),
        ({"event_type": "go"}, "", 204),
        ({"client_payload": {}}, "", 422),
        ({"event_type": "x" * 101}, "", 422),
        ({"event_type": "go", "client_payload": {str(n): n for n in range(11)}}, "", 422),
        ({"event_type": "go"}, "reading", 403),
    ],
)
def test_an_event_is_taken_or_refused_as_on_github(stage: Stage, body: dict[str, Any], token: str, status: int) -> None:
    headers = {"Authorization": f"Bearer {token or stage.server.token}"}
    answer = requests.post(f"{stage.server.url}/repos/octo/code/dispatches", json=body, headers=headers, timeout=10)
    assert answer.status_code == status, answer.text
