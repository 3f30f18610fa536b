"""Agents print what they like: no text keeps the search for secrets busy for longer than its length explains."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from accord.text.posting import PostingPolicy
from accord.text.redacted_stream import RedactedStream
from accord.text.redaction import redactor_for
from accord.text.sanitise import sanitise

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.unmeasured

REDACTOR = redactor_for({"MY_SECRET": "correct horse battery staple"})
POLICY = PostingPolicy()
BEGINNINGS = [
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----",
    '-----BEGIN PRIVATE KEY-----"\n',
    "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
    "-----BEGIN A PRIVATE KEY-----\\",
    "-----BEGIN A ",
    "-----END A ",
    "-----BEGIN PRIVATE KEY-----\n-----END A\n",
    "eyJ-",
    "eyJabcdefghij.",
    "eyJabcdefghij.\n",
    "eyJ-" * 100 + ".eyJ",
    "-eyJ.",
    "ghp_",
    "-ghp_" + "a" * 30,
    "github_pat_",
    "sk-",
    "sk-ant-",
    "sk-proj-\n",
    "AIza",
    "-AIza",
    "xoxb-",
    "xoxb-\n",
    "AKIA",
    "-AKIAAAAA",
    "[redacted: ",
]


def seconds_for(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def repeated(beginning: str, size: int) -> str:
    return beginning * (size // len(beginning))


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_repeated_beginnings_of_a_secret_are_searched_quickly(beginning: str) -> None:
    assert seconds_for(lambda: REDACTOR.find(repeated(beginning, 256 * 1024))) < 1


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_repeated_beginnings_of_a_secret_are_sanitised_quickly(beginning: str) -> None:
    assert seconds_for(lambda: sanitise(repeated(beginning, 128 * 1024), secrets=REDACTOR, policy=POLICY)) < 5


@pytest.mark.parametrize("size", [29, 4096, 64 * 1024])
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_program_cannot_hold_up_its_own_output(beginning: str, size: int) -> None:
    data = repeated(beginning, 256 * 1024).encode()

    def pass_through() -> None:
        stream = RedactedStream(REDACTOR)
        for i in range(0, len(data), size):
            stream.feed(data[i : i + size])
        stream.end()

    assert seconds_for(pass_through) < 3
