"""Secrets leave no trace, and ordinary text stays as it is."""

from __future__ import annotations

import base64
import html
import re
import string
import urllib.parse
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import grows_too_fast

from accord.text.redaction import Redactor, redactor_for

GITHUB = "ghp_" + "aB3" * 12
SECRETS = {
    "github-token": GITHUB,
    "github-token of an app": "ghs_" + "aB3" * 12,
    "github-token, fine-grained": "github_pat_" + "A1" * 11 + "_" + "b2C" * 19 + "xy",
    "anthropic-key": "sk-ant-api03-" + "Ab1_" * 20,
    "openai-key": "sk-proj-" + "Ab1_" * 20,
    "openai-key, old": "sk-" + "aB3d" * 12,
    "google-key": "AIza" + "Sy1_-" * 7,
    "slack-token": "xoxb-123456789012-abcdefABCDEF",
    "aws-key": "AKIA" + "ABCD2345" * 2,
    "json-web-token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "github-token of an app, stateless": "ghs_123456_eyJhbGciOiJSUzI1NiJ9." + "eyJpc3MiOiIxIn0." + "aB3_-" * 80,
    "google-key, new": "AQ." + "Ab1_-" * 10,
    "google-token": "ya29." + "Ab1_-" * 10,
    "slack-token of an app": "xapp-1-A012345-" + "ab12" * 8,
    "webhook": "https://hooks.slack.com/services/T0123456/B0123456/" + "aB3d" * 6,
    "webhook of discord": "https://discord.com/api/webhooks/123456789012345678/" + "aB3_-" * 12,
    "service-token of npm": "npm_" + "aB3" * 12,
    "service-token of pypi": "pypi-AgEIcHlwaS5vcmc" + "aB3_-" * 20,
    "service-token of gitlab": "glpat-" + "aB3_-" * 4,
    "service-token of hugging face": "hf_" + "aB3" * 12,
    "service-token of stripe": "sk_live_" + "aB3" * 12,
    "service-token of sendgrid": "SG." + "aB3_-" * 4 + "ab." + "aB3_-" * 8 + "abc",
    "service-token of docker": "dckr_pat_" + "aB3_-" * 5,
    "service-token of vault": "hvs." + "aB3_-" * 6,
    "service-token of digitalocean": "dop_v1_" + "a1b2" * 16,
    "service-token of groq": "gsk_" + "aB3d" * 12,
    "service-token of age": "AGE-SECRET-KEY-1" + "QP2Z" * 14,
    "password of a database": "postgres://user:hunter22@db.test/x",
    "password of azure": "AccountKey=" + "aB3/" * 21 + "==",
    "password of aws": "aws_secret_access_key = " + "aB3/" * 10,
    "private-key of pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOY\n-----END PGP PRIVATE KEY BLOCK-----",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    "private-key, cut": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA",
}


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("around", ["{}", "key: {}", '"{}"', "({})\nmore"])
def test_a_secret_of_a_known_shape_never_leaves(kind: str, around: str) -> None:
    text, count = Redactor().redact(around.replace("{}", SECRETS[kind]))
    assert SECRETS[kind] not in text
    assert SECRETS[kind][-12:] not in text
    assert f"[redacted: {kind.split(',')[0].split(' ')[0]}]" in text
    assert count == 1


def test_a_token_in_the_userinfo_of_a_url_never_leaves() -> None:
    assert Redactor()(f"https://x:{GITHUB}@github.com/o/r") == "https://[redacted: password]@github.com/o/r"


ORDINARY = [
    "http://localhost:8000/a@b, git@github.com:o/r and https://${USER}:${PASS}@h.test",
    "hf_hub, npm_config, SG. 1, gsk_ and discord.com/api",
    "The task-force asked for a risk-assessment-of-the-whole-supply-chain-and-its-tokens.",
    "5f2b6c1d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b",
    "sha256:" + "0123456789abcdef" * 4,
    str(uuid.UUID(int=2**127 + 12345)),
    "ghp_ is how a token begins; github_pat_ is the other way.",
    "sk-learn and sk-SK are not keys, nor are AKIA and eyJ.",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 20).decode(),
    "src/a_very_long_module_name_with_underscores_and_1234567890_digits/test_tokens.py",
    "https://github.com/octo/tools/blob/5f2b6c1d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b/README.md#L1-L20",
    "Author: Alexandra <alexandra@example.org>",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Redactor().redact(text) == (text, 0)


@pytest.mark.slow
@given(st.binary(min_size=200, max_size=600))
def test_a_picture_in_base64_is_left_alone(picture: bytes) -> None:
    text = base64.b64encode(picture).decode()
    assert Redactor().redact(text) == (text, 0)


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("DEPLOY_TOKEN", "correct-horse", True), ("db_password", "correct-horse", True),
        ("OPENAI_API_KEY", "correct-horse", True), ("CLAUDE_API_STRANSKE", "correct-horse", True),
        ("AWS_SECRET_ACCESS_KEY", "correct-horse", True), ("BASIC_AUTH", "correct-horse", True),
        ("DEPLOY_TOKEN", "correct-horse\n", True), ("DEPLOY_TOKEN", "short", False),
        ("DEPLOY_TOKEN", "       x       ", False), ("SSH_AUTH_SOCK", "/run/user/1000/ssh", False),
        ("GIT_AUTHOR_NAME", "correct-horse", False), ("HOME", "correct-horse", False),
    ],
)  # fmt: skip
def test_the_environment_tells_which_words_are_secret(name: str, value: str, is_secret: bool) -> None:
    redactor = redactor_for({name: value})
    said = f"he said {value.strip()}!"
    assert (redactor(said) != said) is is_secret


def test_a_secret_that_holds_another_goes_whole() -> None:
    redactor = redactor_for({"A_TOKEN": "correct-horse", "B_TOKEN": "correct-horse-battery"})
    assert redactor.redact("correct-horse-battery") == ("[redacted: secret of the environment]", 1)


def test_the_redactor_itself_tells_nothing() -> None:
    assert "correct-horse" not in repr(redactor_for({"A_TOKEN": "correct-horse"}))


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(list(SECRETS.values())) | st.text(max_size=8)).map(" ".join),
    st.lists(st.text(alphabet=string.digits + "#%&", min_size=8, max_size=10), max_size=3),
)
def test_redacted_text_stays_unchanged(text: str, values: list[str]) -> None:
    redactor = redactor_for({f"A{i}_TOKEN": value for i, value in enumerate(values)})
    once = redactor(f"{text} {chr(10).join(values)}")
    assert redactor.redact(once) == (once, 0)
    assert not any(secret in once for secret in [*values, *SECRETS.values()])


@pytest.mark.parametrize("wrap", ["\n", "\r\n", "\n    ", "  \n\n\t", r"\n", r"\r\n", r"\n\n \t ", r"\\n"])
def test_a_known_secret_is_found_however_it_is_wrapped(wrap: str) -> None:
    secret = "correct-horse-battery-staple"
    redact = Redactor((secret,))
    for cut in range(1, len(secret)):
        text = f"before {secret[:cut]}{wrap}{secret[cut:]} after"
        assert redact(text) == "before [redacted: secret of the environment] after"
    assert redact(f"{secret[:9]}{wrap}{secret[9:18]}{wrap}{secret[18:]}") == "[redacted: secret of the environment]"


@pytest.mark.slow
def test_a_megabyte_of_blanks_and_breaks_is_searched_in_no_time() -> None:
    redact = Redactor(("correct-horse-battery-staple",))
    for text in (" " * 500_000 + "\n", "\n" * 500_000, "c\n" * 250_000, "correct\n" * 60_000):
        assert redact(text) == text
    for text in (
        "\\" * 500_000 + "n",
        r"c\n" * 200_000,
        "\\" * 500_000 + "\n",
        "\n" + "\\" * 500_000,
        r"\x\n" * 100_000,
    ):
        assert redact(text) == text


@pytest.mark.parametrize("before", ["", "-", "bearer-", "eyJ-", "x."])
def test_a_json_web_token_is_found_whatever_it_hangs_on(before: str) -> None:
    token = "eyJ" + "hbGciOi" * 20 + ".eyJ" + "zdWIiOi" * 2000 + "." + "c2lnbmF0" * 40
    assert redactor_for({})(f"{before}{token} ends").endswith("[redacted: json-web-token] ends")


def test_a_private_key_behind_another_secret_goes_too() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\n-----END PRIVATE KEY-----"
    assert "MIIE" not in redactor_for({})("sk-ant-" + "a" * 40 + key)


@pytest.mark.parametrize("value", ["correct-horse", "/9j4correct-horse"])
def test_a_certain_secret_counts_whatever_its_name_or_value_looks_like(value: str) -> None:
    assert value in redactor_for({"QWEN_PAT": value})(value)
    assert value not in redactor_for({"QWEN_PAT": value}, certain=["QWEN_PAT", "ABSENT"])(value)


def _lower(quoted: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda hit: hit.group().lower(), quoted)


ENCODINGS: dict[str, Callable[[bytes], str]] = {
    "base64": lambda secret: base64.b64encode(secret).decode(),
    "base64 after one character": lambda secret: base64.b64encode(b":" + secret + b"\n").decode(),
    "base64 after two characters": lambda secret: base64.b64encode(b"x:" + secret).decode(),
    "base64 of basic authentication": lambda secret: base64.b64encode(b"x-access-token:" + secret).decode(),
    "base64 for URLs": lambda secret: base64.urlsafe_b64encode(secret).decode().rstrip("="),
    "hexadecimal": bytes.hex,
    "hexadecimal, upper case": lambda secret: secret.hex().upper(),
    "hexadecimal with blanks": lambda secret: secret.hex(" "),
    "hexadecimal with blanks, upper case": lambda secret: secret.hex(" ").upper(),
    "part of a URL": urllib.parse.quote,
    "parameter of a URL": urllib.parse.quote_plus,
    "part of a URL, lower case": lambda secret: _lower(urllib.parse.quote(secret, safe="")),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("secret", ["hunter2?", "a?b>c~d/e f+correct-horse", "ünï~cödé?>secret"])
@pytest.mark.parametrize("wrap", ["", "\n", "\n> ", "\n> > "])
def test_a_known_secret_is_found_however_it_is_encoded(encoding: str, secret: str, wrap: str) -> None:
    written = ENCODINGS[encoding](secret.encode())
    written = f"{written[:7]}{wrap}{written[7:]}"
    said, count = redactor_for({"MY_SECRET": secret}).redact(f"it is {written} now")
    assert count == 1
    assert written[-9:-3] not in said
    assert said.startswith("it is ")
    assert said.endswith(" now")


ESCAPES: dict[str, Callable[[str], str]] = {
    "bytes": lambda secret: "".join(f"\\x{byte:02x}" for byte in secret.encode()),
    "bytes in JSON, upper case": lambda secret: "".join(f"\\\\x{byte:02X}" for byte in secret.encode()),
    "characters": lambda secret: "".join(f"\\u{ord(char):04x}" for char in secret),
    "characters in braces": lambda secret: "".join(f"\\u{{{ord(char):x}}}" for char in secret),
    "bytes in octal digits": lambda secret: "".join(f"\\{byte:03o}" for byte in secret.encode()),
    "an address, all characters": lambda secret: "".join(f"%{byte:02X}" for byte in secret.encode()),
    "one byte": lambda secret: secret.replace("c", "\\x63", 1),
    "decimal entities": lambda secret: "".join(f"&#{ord(char)};" for char in secret),
    "hexadecimal entities": lambda secret: "".join(f"&#x{ord(char):X};" for char in secret),
    "HTML": html.escape,
    "HTML, other entities": lambda secret: html.escape(secret).replace("&#x27;", "&apos;").replace("&quot;", "&#34;"),
}


@pytest.mark.parametrize("form", ESCAPES)
@pytest.mark.parametrize("secret", ["correct<'horse'>&\"staple\"", "ünï~cödé?>secret"])
@pytest.mark.parametrize("around", ["{}", "it is &amp; {}&amp; now", "\\x41 {}\n> b", "> {}"])
def test_a_known_secret_is_found_however_it_is_escaped(form: str, secret: str, around: str) -> None:
    written = ESCAPES[form](secret)
    said, count = redactor_for({"MY_SECRET": secret}).redact(around.replace("{}", written))
    assert count == 1
    before, after = around.split("{}")
    assert said.startswith(f"{before}[redacted")
    assert said.endswith(after)
    assert written[-9:-2] not in said


TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize("secret", ["correct<'horse'>staple", TOKEN])
@pytest.mark.parametrize("escape", ["\x1b", "\\u001b", "\\\\x1B", "\\033", "\\e"])
def test_a_secret_is_found_though_a_terminal_colours_part_of_it(secret: str, escape: str) -> None:
    redactor = redactor_for({"MY_SECRET": "correct<'horse'>staple"})
    written = f"{secret[:4]}{escape}[01;31m{escape}[K{secret[4:9]}{escape}[m{escape}[K{secret[9:]}"
    said, count = redactor.redact(f"it is {escape}[1m{written}{escape}[m now")
    assert count == 1
    assert secret[4:9] not in said
    assert secret[9:] not in said
    assert said.startswith(f"it is {escape}[1m[redacted")
    assert said.endswith(f"{escape}[m now")


def test_a_secret_of_several_words_is_found_over_quoted_lines() -> None:
    redact = redactor_for({"MY_SECRET": "correct horse battery staple"})
    said = redact("> it is correct horse\n> battery\n> staple")
    assert said == "> it is [redacted: secret of the environment]"


def test_text_with_escapes_and_no_secret_stays() -> None:
    text = r"\x41\u0042 &amp; &#67; \xff\xfe \ud83d \u{110000} &nosuch; > a" + "\n> b"
    assert redactor_for({"MY_SECRET": "correct horse"}).redact(text) == (text, 0)


@given(st.binary(max_size=7), st.binary(max_size=7))
def test_no_more_than_its_edges_is_left_of_a_secret_in_base64(before: bytes, after: bytes) -> None:
    secret = b"correct-horse-battery-staple"
    redact = redactor_for({"MY_SECRET": secret.decode()})
    said = redact(base64.b64encode(before + secret + after).decode())
    start, _, end = said.partition("[redacted: secret of the environment]")
    assert len(start) <= -(-len(before) * 8 // 6)
    assert len(end) <= -(-len(after) // 3) * 4 + 4


@pytest.mark.slow
def test_two_megabytes_are_searched_for_many_secrets_in_time() -> None:
    redact = redactor_for({f"A{i}_TOKEN": f"{i}-correct-horse-battery-{i * 7919}" for i in range(20)})
    text = "".join(f"{i}: The quick brown fox jumps over the lazy dog, correct-horse {i * i}.\n" for i in range(27_000))
    assert redact(text) == text
    assert not grows_too_fast(lambda size: redact(text[:size]), len(text))
