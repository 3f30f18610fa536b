"""Commands behind proxies and with certificates: what they reach, what they say, and how they end."""

import pytest
from support.commands import Accord
from support.networks import DEAD, VARIABLES, forget_network


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_network(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["other.example", pytest.param("", marks=pytest.mark.matrix)])
def test_a_sandbox_needs_no_proxy(accord: Accord, monkeypatch: pytest.MonkeyPatch, kept: str) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, kept if name.lower() == "no_proxy" else DEAD)
    ended = accord.process("items", "list", "--sandbox", accord.home / "sandbox")
    assert (ended.code, ended.err) == (0, "")
