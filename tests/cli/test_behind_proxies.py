"""Commands behind proxies and with certificates: what they reach, what they say, and how they end."""

from pathlib import Path

import pytest
from support.commands import Accord
from support.networks import DEAD, HOST, VARIABLES, Authority, forget_network, serving_tls, serving_tunnels
from support.plans import plan, task
from support.stage import Stage


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


@pytest.mark.slow
def test_a_plan_is_applied_through_a_proxy_with_a_companys_certificate(
    accord: Accord, stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "Example Corp Root").make()
    file = accord.file("plan.json", plan(task("a")))
    with (
        serving_tls(authority.issue(HOST), stage.server.url) as port,
        serving_tunnels({f"{HOST}:443": port}, user="ada:pass") as tunnels,
    ):
        accord.on(stage, GITHUB_API_URL=f"https://{HOST}", HTTPS_PROXY=tunnels.url)
        ended = accord("apply", file)
        assert (ended.code, ended.err.count("again")) == (4, 0)
        assert f"The proxy `{tunnels.url}` of `HTTPS_PROXY` wants another user and password" in ended.err
        monkeypatch.setenv("HTTPS_PROXY", tunnels.url.replace("//", "//ada:pass@"))
        ended = accord("apply", file)
        assert (ended.code, ended.err.count("again")) == (4, 0)
        assert f"The certificate of {HOST} is not trusted: its issuer `Example Corp Root` is unknown." in ended.err
        assert not stage.issues()
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert accord("apply", file).code == 0
        assert len(stage.issues()) == 1
