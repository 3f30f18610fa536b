"""Agents print what they like: no text keeps the search for secrets busy for longer than its length explains."""

from __future__ import annotations

import pytest
from support.growth import grows_too_fast
from support.rotation import some

from accord.text.posting import PostingPolicy
from accord.text.redacted_stream import RedactedStream
from accord.text.redaction import redactor_for
from accord.text.sanitise import sanitise

pytestmark = pytest.mark.slow

REDACTOR = redactor_for({"MY_SECRET": "correct horse battery staple"})
POLICY = PostingPolicy()
BEGINNINGS = [
    "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----", '-----BEGIN PRIVATE KEY-----"\n',
    "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n", "-----BEGIN A PRIVATE KEY-----\\", "-----BEGIN A ",
    "-----END A ", "-----BEGIN PRIVATE KEY-----\n-----END A\n", "eyJ-", "eyJabcdefghij.", "eyJabcdefghij.\n",
    "eyJ-" * 100 + ".eyJ", "-eyJ.", "ghp_", "-ghp_" + "a" * 30, "github_pat_", "sk-", "sk-ant-", "sk-proj-\n", "AIza",
    "-AIza", "xoxb-", "xoxb-\n", "AKIA", "-AKIAAAAA", "[redacted: ", "Authorization: Bearer a", "://a:", "&sig=a%3",
    '"auth":"a', "0000: 61 61 ", "0000: 61\n", "EAAB-", "A~Q~.", "aAzFu", "session_token=", "x-api-key: a1", "hf_",
]  # fmt: skip


def repeated(beginning: str, size: int) -> str:
    return beginning * (size // len(beginning))


@pytest.mark.parametrize("beginning", some(BEGINNINGS, 4))
def test_repeated_beginnings_of_a_secret_are_sanitised_quickly(beginning: str) -> None:
    def sanitised(size: int) -> str:
        return sanitise(repeated(beginning, size), secrets=REDACTOR, policy=POLICY)

    assert not grows_too_fast(sanitised, 128 * 1024)


SIZES = (29, 4096, 64 * 1024)


@pytest.mark.parametrize(
    ("beginning", "size"),
    [
        pytest.param(beginning, size, marks=() if size == SIZES[n % 3] else pytest.mark.matrix)
        for n, beginning in enumerate(some(BEGINNINGS, 4))
        for size in SIZES
    ],
)
def test_a_program_cannot_hold_up_its_own_output(beginning: str, size: int) -> None:
    def pass_through(length: int) -> None:
        data = repeated(beginning, length).encode()
        stream = RedactedStream(REDACTOR)
        for i in range(0, len(data), size):
            stream.feed(data[i : i + size])
        stream.end()

    assert not grows_too_fast(pass_through, 512 * 1024)  # far more than a stream holds back
