"""The connection to GitHub uses the proxy of the environment, which it reads once; ``test_networks.py`` connects."""

import subprocess
import sys

import pytest

from accord.github.models import Access
from accord.github.pygithub import connection_for


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "proxy"), [("https://api.github.com", "http://proxy:3128"), ("https://ghe.example.com/api/v3", None)]
)
def test_requests_go_through_the_proxy_of_the_job(monkeypatch: pytest.MonkeyPatch, url: str, proxy: str | None) -> None:
    job = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "ghe.example.com"}
    for name, value in job.items():
        monkeypatch.setenv(name, value)
        monkeypatch.delenv(name.lower(), raising=False)
    connection = connection_for(Access("o/r", "t" * 20, url))
    for name in job:
        monkeypatch.delenv(name)
    session = connection.session
    found = session.merge_environment_settings(f"{url}/repos/o/r", {}, None, connection.verify, None)
    assert found["proxies"].get("https") == proxy


WITHOUT_WEB_TOKENS = """
import sys
from importlib.util import find_spec
from accord.github import pygithub
pygithub.find_spec = lambda name: None if name == "jwt" else find_spec(name)
assert pygithub._import_pygithub()[0].__name__ == "Token"
assert not {"jwt", "cryptography", "nacl"} & sys.modules.keys()
"""


@pytest.mark.slow
def test_pygithub_works_without_the_packages_that_actions_leave_out() -> None:
    assert subprocess.run([sys.executable, "-P", "-c", WITHOUT_WEB_TOKENS], check=False).returncode == 0


AT_ONCE = """
from threading import Barrier, Thread
from accord.github.models import Access
from accord.github.pygithub import connection_for
ready, found = Barrier(8), []
def connect():
    ready.wait()
    found.append(connection_for(Access("o/r", "t" * 20, "https://api.github.com")))
threads = [Thread(target=connect) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
assert len(found) == 8
"""


@pytest.mark.slow
def test_threads_may_connect_at_once() -> None:
    assert subprocess.run([sys.executable, "-P", "-c", AT_ONCE], check=False).returncode == 0
