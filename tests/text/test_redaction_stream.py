"""Whatever pieces a secret comes in, it does not come out; everything else comes out byte for byte."""

from __future__ import annotations

import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.text.redacted_stream import RedactedStream
from accord.text.redaction import Redactor, redactor_for

TOKEN = "ghp_" + "aB3" * 12
KNOWN = "correct horse battery staple"
REDACTOR = redactor_for({"MY_SECRET": KNOWN})
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA7\n" * 20 + "-----END RSA PRIVATE KEY-----"


def through(pieces: list[bytes], redactor: Redactor = REDACTOR) -> bytes:
    stream = RedactedStream(redactor)
    return b"".join([*(stream.feed(piece) for piece in pieces), stream.end()])


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


@pytest.mark.parametrize("secret", [TOKEN, KNOWN, KEY])
@pytest.mark.parametrize("size", [1, 2, 7, 64, 1 << 20])
@pytest.mark.parametrize(
    "around", ["{}", "before {} after\n", "line\n{}\nline", r"a\n{}\n", "x" * 20_000 + " {} " + "y" * 20_000]
)
def test_a_secret_does_not_come_out_in_whatever_pieces_it_goes_in(secret: str, size: int, around: str) -> None:
    if size == 1 and len(around) > 1000:
        size = 3
    before, after = around.split("{}")
    came = through(cut((before + secret + after).encode(), size)).decode()
    assert came.startswith(before)
    assert came.endswith(after)
    assert "[redacted: " in came
    assert not any(line in came for line in secret.splitlines())


@pytest.mark.slow
@given(st.lists(st.binary(max_size=200), max_size=20))
def test_text_without_secrets_comes_out_byte_for_byte(pieces: list[bytes]) -> None:
    assert through(pieces) == b"".join(pieces)


@pytest.mark.slow
@given(st.lists(st.sampled_from([TOKEN, KNOWN, "a", "\n", " ", '"', "é", "-----BEGIN PRIVATE KEY-----"]), max_size=30))
def test_the_pieces_make_no_difference_to_the_output(parts: list[str]) -> None:
    data = "".join(parts).encode()
    assert through(cut(data, 5)) == through([data])


def test_a_line_comes_out_as_soon_as_it_is_whole() -> None:
    stream = RedactedStream(REDACTOR)
    assert stream.feed(b"first line\nsecond") == b"first line\n"
    assert stream.feed(b" line\n") == b"second line\n"


def test_the_memory_for_a_line_without_end_is_bounded() -> None:
    stream = RedactedStream(REDACTOR)
    given_bytes = came = 0
    for _ in range(20):
        came += len(stream.feed(b"x" * 65_536))
        given_bytes += 65_536
        assert given_bytes - came < 100_000


def test_a_transcript_that_mentions_a_key_stays_json() -> None:
    events = [{"text": "it begins with -----BEGIN PRIVATE KEY----- and"}, {"text": f"then {TOKEN}"}, {"text": KEY}]
    lines = "".join(json.dumps(event) + "\n" for event in events)
    came = [json.loads(line) for line in through(cut(lines.encode(), 11)).decode().splitlines()]
    assert len(came) == 3
    assert TOKEN not in str(came)
    assert "MIIE" not in str(came)


def test_the_texts_inside_a_secret_document_are_secrets_and_its_lines_are_not() -> None:
    document = json.dumps({"tokens": {"refresh_token": "rt_0123456789abcdef"}, "mode": "chatgpt"}, indent=2)
    redactor = redactor_for({"CODEX_AUTH_JSON": document})
    assert redactor("the token is rt_0123456789abcdef") == "the token is [redacted: secret of the environment]"
    assert redactor('  "tokens": {') == '  "tokens": {'


def test_a_secret_of_many_lines_stays_out_of_a_transcript_of_json_however_it_was_folded() -> None:
    secret = "dGhlIGZpcnN0IGxpbmU=\nb3RoZXIgbGluZXM=\nY29ycmVjdCBob3JzZSBiYXR0ZXJ5"
    redactor = redactor_for({"MY_SECRET": secret})
    for folded in (secret, secret.replace("\n", "\r\n  "), re.sub(r".{11}", r"\g<0>\n", secret)):
        for line in (json.dumps({"text": folded}), json.dumps({"text": json.dumps({"text": folded})})):
            stream = RedactedStream(redactor)
            kept = (stream.feed(f"{line}\n".encode()) + stream.end()).decode()
            assert set(json.loads(kept)) == {"text"}
            assert not any(part in kept for part in ("dGhl", "bmUs", "b3Ro", "Y29y", "ZXJ5"))


LONG = KNOWN + "".join(f", and {word} {number}" for number, word in enumerate(("horses", "staples", "batteries")))


def dump(data: bytes, group: int, middle: str, bar: str) -> str:
    """Write what xxd, hexdump -C (with a bar) or od (without characters) writes."""
    lines = []
    for i in range(0, len(data), 16):
        halves = (data[i : i + 8], data[i + 8 : i + 16])
        shown = middle.join(half.hex(" ", -group) for half in halves if half)
        chars = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data[i : i + 16])
        lines.append(f"{i:08x}{':' if group == 2 else ''} {shown:<49}" + (f" {bar}{chars}{bar}" if group else ""))
    return "\n".join(lines)


@pytest.mark.parametrize(("group", "middle", "bar"), [(2, " ", ""), (1, "  ", "|"), (1, " ", "")])
@pytest.mark.parametrize("before", ["", "a", "a whole line\nkey="])
@pytest.mark.parametrize("size", [1, 70, 1 << 20])
def test_a_secret_does_not_come_out_in_a_dump_of_several_lines(
    group: int, middle: str, bar: str, before: str, size: int
) -> None:
    redactor = redactor_for({"MY_SECRET": LONG})
    lines = dump(f"{before}{LONG}\nand more".encode(), group, middle, bar)
    for written in (lines, json.dumps({"text": lines}), json.dumps(json.dumps({"text": lines}))):
        came = through(cut(f"It is:\n{written}\nmore\n".encode(), size), redactor).decode()
        assert came.startswith("It is:\n")
        assert came.endswith("\nmore\n")
        assert "[redacted: secret of the environment]" in came
        assert not any(line in came for line in lines.splitlines()[2:-2])
        assert written == lines or json.loads(came.splitlines()[1])


def test_a_value_is_known_by_its_name_though_both_are_cut_apart() -> None:
    value = "aB3/" * 10
    data = f'{"x" * 20_000} {{"SecretAccessKey": "{value}"}} {"y" * 20_000}'.encode()
    for size in (4096, 8192, 16_411):
        assert value[:20] not in through(cut(data, size)).decode()


@pytest.mark.parametrize("wrap", ["\n", "\n> ", "\r\n", "\n\n  "])
@pytest.mark.parametrize("size", [3, 5, 11])
@pytest.mark.parametrize(
    "secret",
    [
        KNOWN,
        base64.b64encode(KNOWN.encode()).decode(),
        base64.b32encode(KNOWN.encode()).decode().rstrip("="),
        base64.b64encode(base64.b64encode(KNOWN.encode())).decode(),
    ],
)
def test_a_secret_does_not_come_out_line_by_line(wrap: str, size: int, secret: str) -> None:
    wrapped = wrap.join(secret[i : i + size] for i in range(0, len(secret), size))
    came = through(f"It is:\n{wrapped}\nand more\n".encode().splitlines(keepends=True)).decode()
    assert came.startswith("It is:\n[redacted: ")
    assert came.endswith("\nand more\n")
    assert secret[-11:-8] not in came  # the end of an encoding says nothing


def test_lines_come_out_at_once_unless_they_end_like_a_secret() -> None:
    stream = RedactedStream(REDACTOR)
    assert stream.feed(b"one\n") == b"one\n"
    assert stream.feed(b"two corr\n") == b""
    assert stream.feed(b"three\n") == b"two corr\nthree\n"
