"""Secrets leave no trace, and ordinary text stays as it is."""

from __future__ import annotations

import base64
import html
import itertools
import random
import re
import string
import urllib.parse
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rotation import some

from accord.text.redaction import Redactor, redact_json, redactor_for

ROOT = Path(__file__).parents[2]
REDACTOR = Redactor()
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
    "password of a connection string": "Server=db.test;User Id=sa;Password=Hunter2!x",
    "password of jdbc": "jdbc:sqlserver://db.test:1433;user=sa;password=Secret99",
    "password of curl": "curl -sSu 'ada:hunter22",
    "password of curl, by name": "curl --user ada:hunter22",
    "password of netrc": "machine git.test login ada password hunter2222",
    "password of netrc in JSON": "machine git.test\\n  login ada\\n  password hunter2222",
    "cookie": "Cookie: theme=dark; user_session=" + "aB3_" * 10,
    "cookie that is set": "Set-Cookie: JSESSIONID=" + "A1B2" * 8,
    "password of aws": "aws_secret_access_key = " + "aB3/" * 10,
    "private-key of pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOY\n-----END PGP PRIVATE KEY BLOCK-----",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    "private-key, cut": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA",
}

TOKENS = """
ghr_{A36} glpat-{w27}.01.{a9} glptt-{h40} glsoat-{w20} glrt-t1_{w27} glcbt-64_{w20} gldt-{w20} glft-{w20} glffct-{w20}
glimt-{w25} glagent-{w50} gloas-{h64} GR1348941{w20} _gitlab_session={h32} ABIA{U16} ACCA2{U15} ABSK{b110}=
bedrock-api-key-YmVkcm9j{b100} GOCSPX-{w28} 1//0{w60} {A3}8Q~{A34} {A76}AZDO{A4} {A52}JQQJ99BAA{A24} {b76}+ASt{b5}A==
sk-svcacct-{w74} sk-or-v1-{h64} sk-ant-oat01-{w95} xai-{A80} nvapi-{w64} pplx-{A48} r8_{A37} lsv2_pt_{h32}_{h10}
api_org_{A34} csk-{a48} tgp_v1_{w43} tvly-dev-{A32} jina_{A60} pcsk_{A6}_{A63} llx-{A48} e2b_{h40} crsr_{h64}
vcp_{A56} nfp_{A36} sbp_{h40} sb_secret_{w31} napi_{a64} pscale_tkn_{w43} pscale_pw_{w43} fo1_{w43} fm2_{b120}
rnd_{A32} HRKU-AA{w58} doo_v1_{h64} v1.0-{h24}-{h146} cfut_{A48} dapi{h32}-2 dp.pt.{A43} dp.st.prd.{A43} ops_eyJ{b250}
A3-{U6}-{U11}-{U5}-{U5}-{U5} hvb.{w140} {A14}.atlasv1.{w64} pul-{h40} glc_{b60} glsa_{A32}_{h8} sntrys_eyJ{b80}_{b43}
sntryu_{h64} NRAK-{U27} NRJS-{h19} dt0c01.{U24}.{U64} hcaik_01{a58} xoxp-{d12}-{d12}-{d12}-{h32} xoxd-{w60}
xoxe.xoxp-1-{U163} {d10}:AA{w33} SK{h32} xkeysib-{h64}-{A16} re_{A8}_{A24} rk_live_{A24} whsec_{b32} EAAAE{w59}
sq0atp-{w22} sq0csp-{w43} access_token$production${a16}${h32} access-production-{u} rzp_live_{A14} FLWSECK_TEST-{h32}-X
shpat_{h32} shpca_{h32} shppa_{h32} shpss_{h32} shippo_live_{h40} EZAK{A54} duffel_live_{w43} rubygems_{h48} cio{A32}
oy2{a43} CLOJARS_{a60} AKCp{A69} cmVmd{A59} ATATT3xFfGF0{w160}={U8} ATBB{A32} lin_api_{A40} lin_oauth_{h64}
ntn_{d11}{A35} secret_{A43} figd_{w40} pat{A14}.{h64} PMAK-{h24}-{h34} tfp_{w59} CFPAT-{w43} pat-na1-{u} pnu_{A36}
dbtc_{w40} bkua_{h40} CCIPAT_{A22}_{h40} sqp_{h40} sgp_{h16}_{h40} slk_{h64} tskey-auth-{A17}-{A32} sk.eyJ{w80}.{w22}
aio_{A28} p8e-{a32} LTAI{A20} AKID{A32} AQVN{w36} ico-{A32} API-{U26} pat.{w22}.{h24}.{A20} tk-us-{w48} rdme_{a70}
sha256~{w43} fio-u-{w64} {A6}_{A29}_mmk sm_pat_{A16} phx_{A43} RGAPI-{u} EAACEdEose0cBA{A120} ory_at_{w43}.{w43}
s-s4t2ud-{h64} eyJrIjoi{A80}= https://acme.webhook.office.com/webhookb2/{u}@{u}/IncomingWebhook/{h32}/{u}
xoxc-{d12}-{d12}-{d12}-{h64} AKIAEXAMPLE{U9}
redis://:{A12}@h.test amqp://:{A4}@{A8}@h.test <SecretAccessKey>{b40}</SecretAccessKey> npm_{h36} t1.{w60}==.{w86}
4b1d{A38} sc_{a12}.{a5}.acc_{a16}.{w64} sv=2024&sig={A43}%3D X-Amz-Signature={h64} SharedAccessKey={b43}=
"SecretAccessKey":"{b40}" \\"SecretAccessKey\\":\\"{b40}\\" "client_secret":"{A40}" "auth":"{A38}=="
_authToken={u} aws_session_token={b200} "SessionToken":"{b200}==" "refresh_token":"{w60}"
"""
"""Shapes of tokens: in braces, what kind of characters follows, and how many."""

HEADERS = [
    "AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46{A40}", "Authorization: Basic dTpw{b16}=", "authorization: token {h40}",
    "'Authorization': 'Bearer {A40}'", "Proxy-Authorization: Basic {A24}==", "X-Api-Key: {A32}",
    "PRIVATE-TOKEN: {w20}", "X-Vault-Token: s.{A24}",
]  # fmt: skip

ALPHABETS = {
    "A": string.ascii_letters + string.digits, "a": string.ascii_lowercase + string.digits, "h": "0123456789abcdef",
    "U": string.ascii_uppercase + string.digits, "d": string.digits,
    "w": string.ascii_letters + string.digits + "_-", "b": string.ascii_letters + string.digits + "+/",
}  # fmt: skip


def made_up(shape: str) -> str:
    """Return a value of a shape; in the source it would look like a secret to scanners."""
    dice = random.Random(shape)

    def part(hit: re.Match[str]) -> str:
        if hit[1] == "u":
            return str(uuid.UUID(int=dice.getrandbits(128)))
        return "".join(dice.choices(ALPHABETS[hit[1]], k=int(hit[2]) - 1)) + dice.choice(string.digits)

    return re.sub(r"\{(\w)(\d*)\}", part, shape)


def left_of(secret: str, before: str, after: str) -> str:
    """Return the rest of a secret between two texts, which stay."""
    text, count = REDACTOR.redact(f"{before}{secret}{after}")
    assert (count, text.startswith(before), text.endswith(after)) == (1, True, True), secret
    return text[len(before) : -len(after)]


def test_a_secret_of_every_shape_is_found() -> None:
    for shape in (*TOKENS.split(), *HEADERS):
        secret = made_up(shape)
        left = left_of(secret, "it says ", " there\n")
        assert not [word for word in re.findall(r"\w{9,}", secret) if word not in shape and word in left], shape


HELD = [word for word in TOKENS.split() if re.match(r"(?!.*(?:://|=|Key|SecretA|session_))[A-Za-z0-9{]", word)]
ENDS = ["\\n", "\\\\n", "\\t", "\\r", "\\u003d", "\\x3D", "\\075", "%3D", "%0a", "&#61;", "&quot;"]
"""Escapes as programs, addresses and HTML write them."""


def test_a_token_behind_an_escape_is_found() -> None:
    for shape, end in itertools.product(HELD, ENDS):
        assert left_of(made_up(shape), f"token:{end}", " there\n").startswith("[redacted"), end


def test_a_token_with_an_unmistakable_beginning_is_found_behind_a_letter() -> None:
    kinds = [kind for kind in SECRETS if re.match("github|anthropic|google-(?:key$|token)|json|slack-token$", kind)]
    shapes = ["glpat-{w20}", "dckr_pat_{w27}", "shpat_{h32}", "pypi-AgEIcHlwaS5vcmc{w80}", "lin_api_{A40}"]
    for secret in (*(SECRETS[kind] for kind in kinds), *map(made_up, shapes)):
        assert secret[-9:] not in left_of(secret, "TOKEN", " there")


@pytest.mark.parametrize("sign", ["%3D", "\\u003d", "&#61;", "%3a"])
def test_a_name_says_that_its_value_is_a_secret_however_the_sign_between_them_is_written(sign: str) -> None:
    if sign == "%3D":
        assert "[redacted: password]" in Redactor()(made_up("se%3D1%26sig%3D{b43}%3D"))
    for name, value in {"AccountKey": "{b86}==", "X-Amz-Signature": "{h64}", "aws_secret_access_key": "{b40}"}.items():
        assert Redactor()(f"{name}{sign}{made_up(value)}") == f"{name}{sign}[redacted: password]"


@pytest.mark.parametrize("around", ["{}", "key: {}", '"{}"', "({})\nmore"])
def test_a_secret_of_a_known_shape_never_leaves(around: str) -> None:
    for kind, secret in SECRETS.items():
        text, count = REDACTOR.redact(around.replace("{}", secret))
        assert (secret in text, secret[-12:] in text, count) == (False, False, 1), kind
        assert f"[redacted: {kind.split(',')[0].split(' ')[0]}]" in text, kind


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
    "image: ghcr.io/octo/tool:1.2@sha256:" + "0123456789abcdef" * 4,
    "golang.org/x/net v0.1.0 h1:" + "aB3/" * 10 + "xyz=",
    '"integrity": "sha512-' + "aB3+" * 21 + 'ab=="',
    "task-ant-farm-with-very-long-tunnels-and-1-queen, FAQ.how-do-I-find-the-longest-answer-in-here-42-times",
    "scipy/_highs_options.cpython-311-x86_64-linux-gnu.so,sha256=e6",
    "linuxapp-production-0123456789, Frisk-assessment-2026-11-of-the-whole-supply-chain, task_test_0123456789abcdef01",
    "primers ACCAGTGATTACAGGCTTAA; sk-toggleable__label-arrow-of-the-estimator; ico-" + "a1b2" * 8 + ".svg",
    "Authorization: Bearer $TOKEN, Authorization: Basic realm, `Authorization: Bearer YOUR_TOKEN_HERE`",
    "'X-Api-Key': process.env.API_KEY_1, x-api-key: apiKeyOf(user1234567890), sig=unsigned; access_token=os.environ",
    '{"auth": "workspace", "access_token": "string", "client_secret": "${{ secrets.CLIENT }}"}',
    "glpat-your-token-with-the-scope-api, sb_secret_name_of_the_variable, dp.st.name_of_a_long_attribute_of_it",
    "AKIAIOSFODNN7EXAMPLE ASIAI44QH8DHBEXAMPLE aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "http://localhost:3128/@scope/package and redis://:@h.test, mailto:a:b@c",
]


def test_ordinary_text_is_left_alone() -> None:
    assert [text for text in ORDINARY if REDACTOR.redact(text) != (text, 0)] == []


@pytest.mark.slow
def test_nothing_is_taken_out_of_real_logs_lock_files_and_ordinary_files_in_base64() -> None:
    logs = [path.read_bytes() for path in sorted((ROOT / "tests/data/agent-logs").rglob("*")) if path.is_file()]
    files = some([path.read_bytes() for path in sorted((ROOT / "docs/images").iterdir())], 4)
    texts = [*logs, (ROOT / "uv.lock").read_bytes(), *map(base64.b64encode, files), *map(base64.encodebytes, files)]
    assert [Redactor().redact(text.decode())[1] for text in texts] == [0] * len(texts)
    assert sum(text.count(b"\n") for text in texts) > 5000


def test_the_environment_tells_which_words_are_secret() -> None:
    names = ["db_password", "OPENAI_API_KEY", "CLAUDE_API_STRANSKE", "AWS_SECRET_ACCESS_KEY", "BASIC_AUTH", "A_TOKEN"]
    rows = [
        *((name, "correct-horse", True) for name in names), ("A_TOKEN", "correct-horse\n", True),
        ("A_TOKEN", "short", False), ("A_TOKEN", "       x       ", False), ("HOME", "correct-horse", False),
        ("SSH_AUTH_SOCK", "/run/user/1000/ssh", False), ("GIT_AUTHOR_NAME", "correct-horse", False),
    ]  # fmt: skip
    for name, value, is_secret in rows:
        said = f"he said {value.strip()}!"
        assert (redactor_for({name: value})(said) != said) is is_secret, (name, value)


def test_a_secret_that_holds_another_goes_whole() -> None:
    redactor = redactor_for({"A_TOKEN": "correct-horse", "B_TOKEN": "correct-horse-battery"})
    assert redactor.redact("correct-horse-battery") == ("[redacted: secret of the environment]", 1)


def test_names_in_a_document_say_that_their_values_are_secrets() -> None:
    secret = "aB3/" * 10
    document = {"SecretAccessKey": secret, "a": [{"authorization": f"Bearer {secret}", "X-Api-Key": "aB3_" * 8}]}
    assert "aB3" not in str(redact_json(document, Redactor()))
    ordinary = {"Path": secret, "author": "Jane", "token": 'a "quoted" one"', "authorization": "Bearer", "secret": ""}
    assert redact_json(ordinary, Redactor()) == ordinary


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
    "hexadecimal with colons": lambda secret: secret.hex(":"),
    "pairs of xxd": lambda secret: secret.hex(" ", -2),
    "pairs of xxd, upper case": lambda secret: secret.hex(" ", -2).upper(),
    "pairs of xxd after one byte": lambda secret: (b"\n" + secret + b"\n").hex(" ", -2),
    "base32": lambda secret: base64.b32encode(secret).decode(),
    "base32, lower case": lambda secret: base64.b32encode(secret).decode().lower(),
    "base32 after some characters": lambda secret: base64.b32encode(b"x-access:" + secret + b"\n").decode(),
    "base64 twice": lambda secret: base64.b64encode(base64.b64encode(secret)).decode(),
    "base64 twice, after a character each": lambda secret: base64.b64encode(
        b"=" + base64.b64encode(b":" + secret)
    ).decode(),
    "part of a URL": urllib.parse.quote,
    "parameter of a URL": urllib.parse.quote_plus,
    "part of a URL, lower case": lambda secret: _lower(urllib.parse.quote(secret, safe="")),
}


@pytest.mark.parametrize("secret", ["hunter2?", "a?b>c~d/e f+correct-horse", "ünï~cödé?>secret"])
def test_a_known_secret_is_found_however_it_is_encoded(secret: str) -> None:
    redactor = redactor_for({"MY_SECRET": secret})
    for encoding, wrap in itertools.product(ENCODINGS, ["", "\n", "\n> ", "\n> > "]):
        written = ENCODINGS[encoding](secret.encode())
        said, count = redactor.redact(f"it is {written[:7]}{wrap}{written[7:]} now")
        is_whole = said.startswith("it is ") and said.endswith(" now")
        assert (count, is_whole, written[-9:-3] in said) == (1, True, False), (encoding, wrap)


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


@pytest.mark.parametrize("secret", ["correct<'horse'>&\"staple\"", "ünï~cödé?>secret"])
def test_a_known_secret_is_found_however_it_is_escaped(secret: str) -> None:
    redactor = redactor_for({"MY_SECRET": secret})
    for form, around in itertools.product(ESCAPES, ["{}", "it is &amp; {}&amp; now", "\\x41 {}\n> b", "> {}"]):
        written = ESCAPES[form](secret)
        said, count = redactor.redact(around.replace("{}", written))
        before, after = around.split("{}")
        is_whole = said.startswith(f"{before}[redacted") and said.endswith(after)
        assert (count, is_whole, written[-9:-2] in said) == (1, True, False), (form, around)


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
