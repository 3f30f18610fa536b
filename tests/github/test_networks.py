"""GitHub Enterprise Server behind a proxy and with a company's certificate, and servers of this machine."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clocks import ManualClock
from support.networks import DEAD, HOST, Authority, Tunnels, forget_network, serving_tls, serving_tunnels
from support.stage import START, Stage

from accord.core.errors import Refused, Stopped, WrongUsage
from accord.git.branches import Remote, remote_heads, scratch_repository, work_branches
from accord.git.program import Git, token_config
from accord.github.artifacts import StoredFile, read_end
from accord.github.client import GitHub
from accord.github.models import Access

URL = f"https://{HOST}"
NAME = "Example Corp Root"
Reader = Callable[..., Any]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), NAME).make()


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_network(monkeypatch)


def github(stage: Stage, url: str = URL) -> GitHub:
    return GitHub(Access(stage.repository, stage.server.token, url), ManualClock(START), lambda *_: None)


def read_refs(stage: Stage, url: str = URL) -> list[str]:
    at = Remote(f"{url}/{stage.repository}.git", url, stage.server.token, ManualClock(START))
    with scratch_repository(at, None) as git:
        return work_branches(remote_heads(git, at), 1)


def download(stage: Stage, url: str = URL) -> bytes:
    return read_end(StoredFile("The page", lambda: f"{url}/", url), 1000, ManualClock(START))


READERS = {"REST": lambda *place: github(*place).labels(), "git": read_refs, "a download": download}
every_reader = pytest.mark.parametrize("reader", READERS.values(), ids=READERS)


def each_with(*variables: str) -> pytest.MarkDecorator:
    """Give each reader one of these variables."""
    return pytest.mark.parametrize(("reader", "variable"), [*zip(READERS.values(), variables, strict=True)])


@pytest.fixture
def served(stage: Stage, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tunnels]:
    """GitHub Enterprise Server with a company's certificate, behind its proxy."""
    with (
        serving_tls(authority.issue(HOST), stage.server.url) as port,
        serving_tunnels({f"{HOST}:443": port}, user="ada:pass word") as tunnels,
    ):
        monkeypatch.setenv("HTTPS_PROXY", tunnels.url.replace("//", "//ada:pass%20word@"))
        yield tunnels


@pytest.mark.slow
@each_with("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
def test_a_company_s_certificate_is_trusted_through_its_proxy(
    stage: Stage, authority: Authority, served: Tunnels, monkeypatch: pytest.MonkeyPatch, variable: str, reader: Reader
) -> None:
    monkeypatch.setenv(variable, str(authority.file))
    assert reader(stage) is not None
    assert set(served.asked) == {f"{HOST}:443"}


@pytest.mark.slow
def test_git_trusts_the_file_that_is_named_for_git(
    stage: Stage, authority: Authority, served: Tunnels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_SSL_CAINFO", str(authority.file))
    assert read_refs(stage) == []


@pytest.mark.slow
@every_reader
def test_an_unknown_authority_is_named_at_once(stage: Stage, served: Tunnels, reader: Reader) -> None:
    with pytest.raises(Refused) as refused:
        reader(stage)
    assert refused.value.message == f"The certificate of {HOST} is not trusted: its issuer `{NAME}` is unknown."
    assert f"`SSL_CERT_FILE=/path/to/ca.pem` to a file with the certificate of `{NAME}`" in refused.value.hint
    assert len(served.asked) <= 4  # the request, git once more with the password, and two that ask for the certificate


@pytest.mark.parametrize(
    ("host", "days", "said", "hint"),
    [
        (HOST, -1, "certificate has expired.", "Renew it"),
        ("other.example", 2, f"not valid for '{HOST}'.", "Use the name"),
    ],
)
def test_an_expired_certificate_and_one_of_another_host_are_called_so(
    stage: Stage, authority: Authority, monkeypatch: pytest.MonkeyPatch, host: str, days: int, said: str, hint: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with (
        serving_tls(authority.issue(host, days=days), stage.server.url) as port,
        serving_tunnels({f"{HOST}:443": port}) as tunnels,
    ):
        monkeypatch.setenv("ALL_PROXY", tunnels.url)
        with pytest.raises(Refused) as refused:
            github(stage).labels()
    assert said in refused.value.message
    assert hint in refused.value.hint


@every_reader
def test_a_file_without_certificates_is_named(
    stage: Stage, served: Tunnels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reader: Reader
) -> None:
    for content in (None, "no certificate"):
        if content:
            (tmp_path / "ca.pem").write_text(content)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        with pytest.raises(WrongUsage, match=r"`SSL_CERT_FILE` names `.*ca.pem`, which cannot be used"):
            reader(stage)


@every_reader
def test_a_proxy_that_wants_a_password_is_named_without_it(
    stage: Stage, served: Tunnels, monkeypatch: pytest.MonkeyPatch, reader: Reader
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", served.url.replace("//", "//ada:wrong@"))
    with pytest.raises(Refused) as refused:
        reader(stage)
    assert refused.value.message == f"The proxy `{served.url}` of `HTTPS_PROXY` wants another user and password (407)."
    assert f"`export NO_PROXY={HOST}`" in refused.value.hint
    assert "wrong" not in str(refused.value)
    assert len(served.asked) <= 2  # git asks once more with the password


@pytest.mark.slow
@every_reader
def test_a_proxy_that_refuses_the_host_is_final_and_one_that_is_busy_is_not(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, reader: Reader
) -> None:
    for status, kind, said in ((403, Refused, "does not connect to ghes.example (403)"), (503, Stopped, "answers 503")):
        with serving_tunnels({}, status=status) as tunnels:
            monkeypatch.setenv("https_proxy", tunnels.url)
            with pytest.raises(kind) as ended:
                reader(stage)
            assert f"proxy `{tunnels.url}` of `https_proxy` {said}" in ended.value.message
            assert (len(tunnels.asked) > 1) == (kind is Stopped)


@each_with("HTTPS_PROXY", "https_proxy", "ALL_PROXY")
def test_a_dead_proxy_is_named_with_the_way_around_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, variable: str, reader: Reader
) -> None:
    monkeypatch.setenv(variable, DEAD.replace("//", "//ada:secret@"))
    with pytest.raises(Stopped) as stopped:
        reader(stage)
    assert f"the proxy `{DEAD}` of `{variable}` does not answer" in stopped.value.message
    assert stopped.value.hint == (f"Correct `{variable}`, or reach the host without a proxy: `export NO_PROXY={HOST}`.")
    assert "secret" not in str(stopped.value)


def test_a_proxy_of_another_kind_is_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:9")
    with pytest.raises(Refused, match=r"The proxy `socks5h://127\.0\.0\.1:9` of `ALL_PROXY` is not an HTTP proxy"):
        github(stage).labels()


@every_reader
@pytest.mark.parametrize(
    ("spelling", "proxy", "host"),
    [(str.upper, DEAD, "localhost"), (str.lower, "socks5h://127.0.0.1:9", "127.0.0.1")],
)
def test_a_server_of_this_machine_is_reached_without_any_proxy(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    reader: Reader,
    spelling: Callable[[str], str],
    proxy: str,
    host: str,
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(spelling(name), proxy)
    monkeypatch.setenv(spelling("no_proxy"), "other.example")
    assert reader(stage, stage.server.url.replace("127.0.0.1", host)) is not None


def test_git_of_a_repository_with_a_proxy_reaches_this_machine_directly(stage: Stage, tmp_path: Path) -> None:
    config = token_config(stage.server.url, stage.server.token)
    git = Git(tmp_path, config=config)
    git("init", "--quiet")
    address = f"{stage.server.url}/{stage.repository}.git"
    git("remote", "add", "here", address)
    for key in ("http.proxy", f"http.{stage.server.url}.proxy", "remote.here.proxy"):
        git("config", key, DEAD)
    assert git("ls-remote", "here") == git("ls-remote", address) == b""


@pytest.mark.slow
@every_reader
def test_certificates_are_verified_on_this_machine_too(
    stage: Stage, authority: Authority, monkeypatch: pytest.MonkeyPatch, reader: Reader
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", DEAD)
    with serving_tls(authority.issue("127.0.0.1"), stage.server.url) as port:
        with pytest.raises(Refused, match=f"its issuer `{NAME}` is unknown"):
            reader(stage, f"https://127.0.0.1:{port}")
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert reader(stage, f"https://127.0.0.1:{port}") is not None
