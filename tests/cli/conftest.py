import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import RUNNER, Accord


@pytest.fixture
def accord(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Accord]:
    for name in os.environ:
        if name.startswith(RUNNER):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYDANTIC_DISABLE_PLUGINS", "__all__")
    monkeypatch.chdir(tmp_path)
    accord = Accord(capsys, monkeypatch, tmp_path)
    yield accord
    accord.end()
