"""Posted text of an agent has no effect: nothing notifies, closes, runs, hides or lies; people read the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import rubble
from support.hostile import HOSTILE, KNOWN, TOKEN, pairs
from support.innocent import INNOCENT
from support.renderer import complaints, rendered
from support.rotation import NIGHTLY, some

from accord.text.hidden import GUARD, as_seen, strip_hidden
from accord.text.posting import PostingPolicy, posting_policy
from accord.text.redaction import Redactor
from accord.text.sanitise import KINDS, Sanitised, cut, sanitise, sanitise_line, sanitise_plain

SECRETS = Redactor((KNOWN,))
POLICY = PostingPolicy()
SETTLED = settings(max_examples=400 if NIGHTLY else 60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def clean(text: str) -> Sanitised:
    return sanitise(text, secrets=SECRETS, policy=POLICY)


def line(text: str) -> Sanitised:
    return sanitise_line(text, secrets=SECRETS, policy=POLICY)


@pytest.mark.parametrize(("text", "posted"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_posted_as_this(text: str, posted: str) -> None:
    result = clean(text)
    assert result.text == posted.replace("·", GUARD)
    assert result.counts
    assert set(result.counts) <= set(KINDS)
    assert clean(result.text) == Sanitised(result.text, {})
    assert complaints(result.text) == []


@pytest.mark.parametrize("text", INNOCENT.values(), ids=INNOCENT)
def test_an_innocent_text_stays_as_it_is(text: str) -> None:
    assert clean(text) == Sanitised(text, {})


PIECES = [*rubble.PIECES, KNOWN[:9], "\u200d", "\U000e0061", "\x1b", "\ud800", "👩"]
RUBBLE = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=30).map("".join)


@pytest.mark.slow
@SETTLED
@given(RUBBLE)
def test_sanitised_text_is_not_changed_again(text: str) -> None:
    once = clean(text)
    assert clean(once.text) == Sanitised(once.text, {})


@pytest.mark.slow
@SETTLED
@given(RUBBLE)
def test_changes_are_counted_and_additions_are_bounded(text: str) -> None:
    result = clean(text)
    assert bool(result.counts) is (result.text != text)
    closed = 2 * len(text) + 16 if {"fences", "tags", "unreadable"} & set(result.counts) else 0
    added = (
        4 * sum(result.counts.values())
        + 32 * result.counts.get("secrets", 0)
        + 4 * result.counts.get("images", 0)
        + closed
    )
    assert len(result.text) <= len(text) + added
    assert SECRETS.find(result.text) == []


@pytest.mark.slow
@SETTLED
@given(RUBBLE)
def test_a_title_is_one_line_that_does_nothing_and_stays(text: str) -> None:
    result = line(text)
    assert line(result.text) == Sanitised(result.text, {})
    assert strip_hidden(result.text) == result.text
    assert len((result.text + "x").splitlines()) == 1
    assert SECRETS.find(result.text) == []


CODE_CHARS = st.text(
    st.one_of(
        st.sampled_from("@/<>!-#&[]()\\*_ \u200b\u202e"),
        st.characters(exclude_categories=("Cs",), exclude_characters="\x00"),
    )
)
CODE = st.one_of(CODE_CHARS, st.sampled_from(["@a fixes #1", "<!-- accord:item -->", "[x](javascript:y)", "<script>"]))
SMALL_TALK = st.lists(
    st.sampled_from(
        ["@a ", "fixes #1 ", "[x](javascript:y) ", "https://u@h.test ", "\u200b", "&#64;b ", "word ", "<i>x</i> "]
    ),
    max_size=6,
).map("".join)


@pytest.mark.slow
@SETTLED
@given(SMALL_TALK, CODE, SMALL_TALK, st.sampled_from(["```", "~~~~", "```suggestion", "> ```py"]))
def test_a_fence_stays_byte_for_byte_except_for_terminal_sequences(
    before: str, code: str, after: str, fence: str
) -> None:
    prefix = "> " if fence.startswith(">") else ""
    lines = code.replace("`", "").replace("~", "").replace("\r", "\n").split("\n")
    mark = fence.removeprefix("> ").rstrip("abcdefghijklmnopqrstuvwxyz")
    block = "\n".join([fence, *(prefix + code_line for code_line in lines), prefix + mark])
    assert f"\n\n{as_seen(block)}\n\n" in clean(f"x {before}\n\n{block}\n\nx {after}").text


@pytest.mark.slow
@SETTLED
@given(SMALL_TALK, CODE, SMALL_TALK)
def test_a_code_span_stays_byte_for_byte_except_for_terminal_sequences(before: str, code: str, after: str) -> None:
    code = re.sub(r"\](?=[\[(])", "", code)  # readers of Markdown differ on a link that begins in code
    span = "``" + "".join(code.replace("`", "").split()) + ".``"
    assert as_seen(span) in clean(f"x {before} {span} {after} y").text


def test_hidden_characters_in_code_stay_but_hide_no_secret() -> None:
    assert clean("`a\u202eb`").text == "`a\u202eb`"
    assert clean(f"`{KNOWN[:5]}\u200b{KNOWN[5:]}\u202e`").text == "`[redacted: secret of the environment]\u202e`"


OWN = {"GITHUB_SERVER_URL": "https://ghe.test", "ACCORD_ALLOWED_HOSTS": "A.test,*.b.test,media.githubusercontent.com"}
OWN_POLICY = posting_policy(OWN, hosts=["C.test"])
LOADING = """
https://github.com/o/r/raw/main/a.png  https://github.com/o/r/blob/main/docs/a.png?raw=true
https://github.com/o/r/assets/1/2  https://github.com/user-attachments/assets/1  https://GitHub.com:443/o/r/raw/m/a.png
https://raw.githubusercontent.com/o/r/main/a.png  https://user-images.githubusercontent.com/1/a.png
https://private-user-images.githubusercontent.com/1/a.png?jwt=x  https://avatars.githubusercontent.com/u/1?v=4
https://ghe.test/o/r/raw/main/a.png  https://media.ghe.test/user/1/a  https://raw.ghe.test/o/r/a%20b.png
https://a.test:8443/a.png  HTTPS://WWW.A.TEST/a.png  https://x.b.test/a.png  https://c.test/a.png
https://media.githubusercontent.com/media/o/r/a.png  //a.test/a.png  https://a.test?b  https://a.test
./docs/a.png  /o/r/a.png  a.png  ../a.png#b  docs/a:b.png  ?raw=true  docs/releases/a.png  café.png  100%25.png
"""
NOT_LOADING = """
https://camo.githubusercontent.com/0f/68  https://CAMO.githubusercontent.com.:443/0f  //camo.githubusercontent.com/0f
https://camo&#46;githubusercontent.com/0f  https://c%61mo.githubusercontent.com/0f
https:\\camo.githubusercontent.com/0f
https://camo。githubusercontent.com/0f  https://u@camo.githubusercontent.com/0f  https://raw.camo.githubusercontent.com/
https://github.com/o/r/releases/download/v1/a.png  https://github.com/o/r/releases/latest/download/a.png
https://github.com/o/r/raw/../releases/download/v1/a.png  https://github.com/o/r/raw/x/..%2f../releases/download/v1/a
https://github.com/o/r/raw/%2e%2e/a  https://github.com/o/r/raw/%25252e%25252e/a  https://github.com/o/r/raw/..&#47;a
/o/r/releases/download/v1/a.png  ../releases/download/v1/a  /o/r/Releases/%64ownload/a  /o/r/releases/./x/../download/a
../releases&#47;download/a  /o/r/releases//latest/download/a  https://ghe.test/o/r/releases/download/v1/a.png
https://github.com/a.png  https://github.com/o.png  https://github.com/o/r/raw  https://github.com/o/r/actions/a.svg
https://gist.github.com/o/raw/a  https://pages.ghe.test/a.png  https://x.githubusercontent.com/a  https://ghe.test/a.png
https://github.com@evil.test/o/r/raw/a  https://github.com\\@evil.test/o/r/raw/a  https://github.com.evil.test/o/r/raw/a
https://githubusercontent.com.evil.test/a.png  https://.githubusercontent.com/a.png  https://a.test.evil.test/a.png
https://b.test/a.png  https://xb.test/a.png  https://evil.test  //evil.test/a.png  https:/\\evil.test/a.png
\\\\evil.test
/\\evil.test/a.png  http:evil.test/a.png  https:evil.test/a  https:///evil.test/a  //evil.test
&#47;/evil.test/a.png  &sol;&sol;evil.test  /&Tab;/evil.test/a  &NewLine;//evil.test  data:image/png,x  ftp://a.test/a.png
x:a.png  //[::1]/a.png  //evil.test:80/a.png  //ev&#8203;il.test/a.png  /&#8203;/evil.test/a  https://raw\uff0egithubusercontent.com/a
"""


@pytest.mark.parametrize(
    ("address", "loads"),
    [(address, texts is LOADING) for texts in (LOADING, NOT_LOADING) for address in texts.split()],
)
def test_an_image_loads_only_where_it_cannot_be_aimed_or_counted(address: str, loads: bool) -> None:
    assert OWN_POLICY.may_load(address) is loads
    all_hosts = posting_policy({}, hosts=["*", "*.github.com", "*.githubusercontent.com", "camo.githubusercontent.com"])
    assert not (all_hosts.may_load(address) and re.search(r"camo|github\.com/.*releases/", address))
    places = {
        f"![a](<{address}>)": "<img src",
        f"| ![a][b] |\n|---|\n\n[b]: <{address}>": "<img src",
        f'<img src="{address}" alt="a">': "<img src",
        f'<picture>\n<source srcset="/x.png, {address} 2x">\n</picture>': "<source srcset",
        f"[![a](<{address}>)](/x)": "<img src",
    }
    for text, loaded in places.items():
        page = rendered(sanitise(text, secrets=SECRETS, policy=OWN_POLICY).text)
        assert (loaded in page) is loads, text
    joined = f'<picture>\n<source srcset="/x.png,{address} 2x">\n</picture>'
    assert "srcset" not in rendered(sanitise(joined, secrets=SECRETS, policy=OWN_POLICY).text)


def test_each_kind_is_counted() -> None:
    text = (
        f"@a fixes #1\n/merge\n<x> <!-- y --> \u200b[a](data:x) ![i](https://x.test) {TOKEN} <!-- accord:z --><b>\n```"
    )
    assert clean(text).counts == {kind: 1 for kind in KINDS if kind != "unreadable"}


COMMITS = {
    "backticks protect nothing": "`@·octocat f·ixes #3`",
    "fences protect nothing": "```\n@·a\n  /·merge\n```",
    "over lines": "C·loses\n#12",
    "indentation stays": "- a\n    - b < c  d",
    "a secret": (f"  {TOKEN}", "  [redacted: github-token]"),
    "no checks skipped": (
        "Done [skip ci] [CI Skip] [no\u200b ci] [skip\nactions]\n\nskip-checks: true\n",
        "Done (skip ci) (CI Skip) (no ci) (skip\nactions)\n\n(skip-checks) true\n",
    ),
    "no one credited": (
        "Done\n\nCo-authored-by: A <a@b.c>\nsigned-off-BY : B <b@c.d>\nWritten by: me\n",
        "Done\n\n(Co-authored-by) A <a@b.c>\n(signed-off-BY) B <b@c.d>\nWritten by: me\n",
    ),
    "no service skipped": (
        "[skip netlify] [Vercel Skip] [skip-cd] [CF-Pages-Skip] [travis ci skip] [skip: azp] [no deploy] ***NO_CI***",
        "(skip netlify) (Vercel Skip) (skip-cd) (CF-Pages-Skip) (travis ci skip) (skip: azp) (no deploy) (NO_CI)",
    ),
    "nothing that is only in brackets": (
        "[no-deprecated] [skip] [skipped tests] [x] [a skip b] ***bold*** [skip the rest of the list]"
    ),
    "no release set": (
        "Release-As: 9.0.0\nrelease-as #9.0.0\nSee Release-As: 1\nBEGIN_COMMIT_OVERRIDE\nfeat!: x\nend_NESTED_COMMIT",
        "(Release-As) 9.0.0\n(release-as)#9.0.0\nSee Release-As: 1\nBEGIN COMMIT_OVERRIDE\nfeat!: x\nend NESTED_COMMIT",
    ),
    "no bot called": ".·deploy prod\n!·deploy\n.·gitignore: x",
}


@pytest.mark.parametrize(("text", "posted"), pairs(COMMITS.values()), ids=COMMITS)
def test_a_commit_message_says_this(text: str, posted: str) -> None:
    assert sanitise_plain(text, secrets=SECRETS, policy=POLICY).text == posted.replace("·", GUARD)


@pytest.mark.slow
@SETTLED
@given(RUBBLE)
def test_a_commit_message_stays_as_it_was_made(text: str) -> None:
    once = sanitise_plain(text, secrets=SECRETS, policy=POLICY).text
    assert sanitise_plain(once, secrets=SECRETS, policy=POLICY) == Sanitised(once, {})


TITLES = {
    "a mention": "Ask @·octocat",
    "backticks protect nothing in a commit": "Fix `@·octocat`",
    "a keyword would close on merge": "F·ixes #3: x",
    "several lines": ("a\n\n  b\u2028c", "a b c"),
    "hidden characters": ("a\u200bb\u202e", "ab"),
    "a command": "/·merge it",
    "a marker": ("<!-- accord:item -->", "<! -- accord:item -->"),
    "a secret": (f"Rotate {TOKEN}", "Rotate [redacted: github-token]"),
    "HTML is text in a title": "Use <b> & &#64;a",
    "an address stays whole": "See https://medium.com/@octocat",
    "a squash merge would skip checks": ("[skip\nci] Fix [actions skip]", "(skip ci) Fix (actions skip)"),
    "nothing is left": ("\u200b\u2060", ""),
}


@pytest.mark.parametrize(("text", "posted"), pairs(TITLES.values()), ids=TITLES)
def test_a_title_is_posted_as_this(text: str, posted: str) -> None:
    assert line(text).text == posted.replace("·", GUARD)


def as_code(text: str) -> str:
    return f"```\n{text}\n```"


MANY = 1_000_000 if NIGHTLY else 300_000
ENORMOUS = ["[", "![", "<", "****", "@", "@a", "> ", "<!--", "&#", "\\", "[a](", "`a", "1. ", "fix #1 "]


@pytest.mark.slow
@pytest.mark.parametrize("piece", some(ENORMOUS, len(ENORMOUS)))
def test_an_enormous_text_made_to_confuse_is_shown_as_code(piece: str) -> None:
    text = piece * (MANY // len(piece))
    result = clean(text)
    assert result == Sanitised(as_code(text), {"unreadable": 1})
    assert clean(result.text) == Sanitised(result.text, {})


@pytest.mark.parametrize("piece", ["[", "[a", "![", "> ", "* a\n  "])
def test_a_text_nested_too_deep_is_shown_as_code(piece: str) -> None:
    text = piece * 200 + "@a"
    assert clean(text) in (
        Sanitised(as_code(text), {"unreadable": 1}),
        Sanitised(text.replace("@a", f"@{GUARD}a"), {"mentions": 1}),
    )


CHOSEN = posting_policy({"ACCORD_BREAK_WORDS": "bors r+, recheck,@claude\n/retest "})
BROKEN = {
    "in prose": "Please b·ors  r+ and R·eCheck.",
    "in code": "`@·claude go`\n\n```\nr·echeck\n```",
    "in a link": "[r·echeck](https://h.test/recheck)",
    "within a line": "Say /·retest and @·claude.",
    "in other words": "rechecks, src/retest, x-recheck",
}


@pytest.mark.parametrize(("text", "posted"), pairs(BROKEN.values()), ids=BROKEN)
def test_the_words_of_a_repository_s_bots_are_broken(text: str, posted: str) -> None:
    result = sanitise(text, secrets=SECRETS, policy=CHOSEN)
    assert result.text == posted.replace("·", GUARD)
    assert bool(result.counts) is (text != posted)
    assert sanitise(result.text, secrets=SECRETS, policy=CHOSEN) == Sanitised(result.text, {})


def test_the_words_of_a_repository_s_bots_are_broken_in_titles_and_commits() -> None:
    for clean in (sanitise_line, sanitise_plain):
        result = clean("bors r+ `recheck`", secrets=SECRETS, policy=CHOSEN)
        assert result == Sanitised(f"b{GUARD}ors r+ `r{GUARD}echeck`", {"commands": 2})
        assert clean(result.text, secrets=SECRETS, policy=CHOSEN) == Sanitised(result.text, {})


def test_a_text_with_broken_words_is_cut_between_lines() -> None:
    text = sanitise("recheck it\n\n" * 10, secrets=SECRETS, policy=CHOSEN).text
    head, tail = cut(text, 60)
    assert head + tail == text
    assert head.endswith("\n\n")
