"""Which GitHub a token is shown to: the API and git are the same server, or nothing is asked."""

import pytest

from accord.cli.sources import addresses
from accord.core.errors import WrongUsage


@pytest.mark.parametrize(
    ("api", "server", "expected"),
    [
        ("", "", ("https://api.github.com", "https://github.com")),
        ("https://api.github.com", "", ("https://api.github.com", "https://github.com")),
        ("https://git.example/api/v3", "", ("https://git.example/api/v3", "https://git.example")),
        ("https://git.example/api/v3/", "", ("https://git.example/api/v3/", "https://git.example")),
        ("https://api.octo.ghe.com", "", ("https://api.octo.ghe.com", "https://octo.ghe.com")),
        ("http://127.0.0.1:8000", "", ("http://127.0.0.1:8000", "http://127.0.0.1:8000")),
        ("", "https://git.example", ("https://git.example/api/v3", "https://git.example")),
        ("", "https://octo.ghe.com", ("https://api.octo.ghe.com", "https://octo.ghe.com")),
        ("https://api.github.com", "https://GitHub.com", ("https://api.github.com", "https://GitHub.com")),
    ],
)
def test_api_and_git_are_on_one_server_when_one_is_set(api: str, server: str, expected: tuple[str, str]) -> None:
    assert addresses(api, server) == expected


@pytest.mark.parametrize(
    ("api", "server"),
    [
        ("https://git.example/api/v3", "https://github.com"),
        ("https://api.github.com", "https://git.example"),
        ("https://api.github.com.evil.example", "https://github.com"),
        ("https://api.a.ghe.com", "https://b.ghe.com"),
        ("https://git.example/api/v3", "http://git.example"),
    ],
)
def test_a_token_is_not_shown_to_two_servers(api: str, server: str) -> None:
    with pytest.raises(WrongUsage, match="name two servers"):
        addresses(api, server)
