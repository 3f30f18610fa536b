"""Posted texts hold against GitHub's own renderer: nothing in them notifies, closes, hides, runs or misleads."""

from __future__ import annotations

import os
import random
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.hostile import KNOWN
from support.renderer import complaints, rendered, rendered_by_comrak
from support.rotation import NIGHTLY
from support.rubble import mutant, rubble, sentence, shortest

from accord.text.hidden import GUARD
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.sanitise import sanitise

if TYPE_CHECKING:
    from collections.abc import Callable

SECRETS = Redactor((KNOWN,))
POLICY = PostingPolicy()
SEED = os.environ.get("ACCORD_FUZZ_SEED", "accord")
TEXTS = int(os.environ.get("ACCORD_FUZZ_TEXTS", "100000" if NIGHTLY else "200"))
"""Random texts per run, and as many changed ones; a hundred thousand every night."""

LONGEST = 0.5
"""Seconds that any of them may take."""

RARE = 2000
"""Texts of which one may do something for comrak, which differs from GitHub on odd boxes of tasks and addresses."""

PARTS = 4 if TEXTS > 1000 else 1
"""Parts that the workers share."""


def posted(text: str) -> str:
    return sanitise(text, secrets=SECRETS, policy=POLICY).text


@pytest.mark.parametrize(
    ("text", "problem"),
    {
        "@octocat": "mention", "**(@**name** b)**": "mention", "[^a `@octocat`]": "mention",
        "<div>\n&#64octocat\n</div>": "mention", "Fixes #1": "closing", "**a **Fix**es #1**": "closing",
        "Fixes [a][1]\n\n[1]: https://github.com/o/r/issues/7": "closing", "a <!-- b -->": "comment",
        '[x]: /u\n"a\n/merge"': "command", "<p onclick=x>": "attribute", "<form>": "tag",
        "![a](https://x.test/a.png)": "image", "<img src='//x.test/a.png'>": "image",
        "[https://github.com](https://evil.test)": "link", "https://github.com\xa0login@evil.test": "address",
    }.items(),
)  # fmt: skip
def test_the_judge_finds_what_it_looks_for(text: str, problem: str) -> None:
    assert any(complaint.startswith(problem) for complaint in complaints(text))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("make", [rubble, mutant, sentence])
def test_random_texts_do_nothing_on_a_rendered_page(make: Callable[[random.Random], str], part: int) -> None:
    source = random.Random(f"{SEED} {part}")
    elsewhere: list[str] = []
    for _ in range(TEXTS // PARTS):
        text = make(source)
        started = time.process_time()
        result = posted(text)
        assert time.process_time() - started < LONGEST, text
        if complaints(result):
            text = shortest(text, lambda shorter: bool(complaints(posted(shorter))))
            pytest.fail(f"{text!r} is posted as {posted(text)!r}: {complaints(posted(text))}")
        if find_spec("comrak") and complaints(result, rendered_by_comrak):
            elsewhere.append(text)
    assert len(elsewhere) <= 1 + TEXTS // PARTS // RARE, elsewhere


DATA = Path(__file__).parents[1] / "data/legitimate.txt"
LEGITIMATE = {
    name: text.strip("\n")
    for name, _, text in (part.partition("\n") for part in DATA.read_text(encoding="utf-8").split("%%%% ")[1:])
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", LEGITIMATE.values(), ids=LEGITIMATE)
def test_a_legitimate_text_is_rendered_the_same(text: str, end: str) -> None:
    text = text.replace("\n", end)
    result = sanitise(text, secrets=SECRETS, policy=POLICY)
    assert rendered(result.text).replace(GUARD, "") == rendered(text)
    assert result.counts.keys() <= {"mentions", "closing-keywords", "commands"}
    assert complaints(result.text) == []
