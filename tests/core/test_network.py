"""Which hosts are this machine, and what the variables about proxies become."""

import subprocess
import sys

import pytest
from requests.utils import should_bypass_proxies

from accord.core.network import direct_loopback, is_loopback, proxy_of

HERE = ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.8.9.10", "::1", "[::1]"]
ELSEWHERE = ["", "github.com", "localhost.example", "notlocalhost", "128.0.0.1", "::2", "127.0.0.1.example", "1"]


def test_this_machine_is_known_by_its_names_and_addresses() -> None:
    assert [host for host in HERE + ELSEWHERE if is_loopback(host)] == HERE


@pytest.mark.parametrize(
    "given",
    [
        {}, {"NO_PROXY": "a.example"}, {"no_proxy": "a.example"}, {"NO_PROXY": "b.example", "no_proxy": "a.example"},
        {"no_proxy": "", "NO_PROXY": "a.example, localhost"}, {"NO_PROXY": "*"}, {"no_proxy": "*"},
    ],
)  # fmt: skip
def test_programs_reach_this_machine_directly_and_what_the_user_left_out(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    made = direct_loopback(given)
    assert direct_loopback(made) == made
    for name in ("NO_PROXY", "no_proxy"):  # a program reads only one of them
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.setenv("no_proxy", made[name])
        for host in ("localhost", "a.localhost", "127.0.0.1", "127.0.0.2", "[::1]"):
            assert should_bypass_proxies(f"http://{host}:3000/x", None)
        own = given.get(name) or next(iter(filter(None, given.values())), "")  # as if it were the only one
        for host in ("a.example", "b.example"):
            assert should_bypass_proxies(f"http://{host}", None) == (host in own or own == "*")
        assert should_bypass_proxies("http://other.example", None) == (made[name] == "*")


@pytest.mark.parametrize(
    ("url", "environment", "variable", "address"),
    [
        ("https://a.example", {"HTTPS_PROXY": "http://u:p@proxy:3128"}, "HTTPS_PROXY", "http://proxy:3128"),
        ("https://a.example", {"HTTPS_PROXY": "http://a:1", "https_proxy": "b:2"}, "https_proxy", "http://b:2"),
        ("https://a.example", {"http_proxy": "http://a:1", "ALL_PROXY": "socks5h://u:p@c"}, "ALL_PROXY", "socks5h://c"),
        ("http://a.example", {"http_proxy": "http://u:p@a:x/"}, "http_proxy", "http://a:x"),
    ],
)
def test_a_proxy_is_named_by_its_variable_without_its_password(
    url: str, environment: dict[str, str], variable: str, address: str
) -> None:
    proxy = proxy_of(url, environment)
    assert (proxy.variable, proxy.address) == (variable, address)


def test_the_hint_keeps_the_hosts_that_are_left_out_already() -> None:
    environment = {"HTTPS_PROXY": "http://u:secret@proxy:3128", "no_proxy": "a.example", "NO_PROXY": "b.example"}
    proxy = proxy_of("https://ghes.example/x", environment)
    refused = proxy.refusal(407)
    assert refused
    assert "`http://proxy:3128` of `HTTPS_PROXY`" in refused.message
    assert "`export no_proxy=a.example,ghes.example`" in refused.hint
    assert "Put `USER:PASSWORD@` before the host in `HTTPS_PROXY`" in refused.hint
    assert "secret" not in str(refused)
    assert proxy.refusal(503) is None
    assert proxy_of("https://ghes.example", {}).trouble()[0] == "the proxy of the system does not answer"


@pytest.mark.slow
def test_nothing_of_tls_is_imported_for_a_server_of_this_machine() -> None:
    code = (
        "import sys; from accord.core.connections import session_for; session_for('http://127.0.0.1:9');"
        "assert 'truststore' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0
