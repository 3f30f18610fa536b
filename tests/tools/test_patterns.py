"""Regular expressions mean the same in every Python, and take time in proportion to their text.

For the second, each is pumped with what it repeats and what follows that, and every night with all units of text
that are written below.
"""

import re
from functools import cache

import pytest
from support.growth import grows_too_fast, seconds_for
from support.patterns import Use, misread, pumped, uses
from support.rotation import NIGHTLY

from accord.core.refusals import REFUSALS
from accord.runner.transcripts.error_rules import PRECEDENCE, words
from accord.text.secret_shapes import SHAPES
from accord.text.words import CLOSING_KEYWORDS
from accord_sandbox import calls, pages, repositories

LOCAL_NAMES = {
    "accord.github.pulls._closing_pattern": [{"CLOSING_KEYWORDS": CLOSING_KEYWORDS}],
    "accord.core.refusals.known_refusal": [{"known": known, "text": ""} for known in REFUSALS],
    "accord.results.bodies._owner_patterns": [
        {"known": "a b|a c", "word": "(?:(?:a b|a c)(?=[.]*(?:[ )]|\\Z))|[^ )]+)"}
    ],
    "accord.results.implementor.rules._pattern": [{"escaped": r"([#!\[\]])"}, {"escaped": r"([\\#!\[\]])"}],
    "accord.runner.transcripts.error_rules.words": [{"pattern": words(cause).pattern} for cause in PRECEDENCE],
    "accord.text.markdown.longer_run": [{"char": "`"}],
    "accord.text.redaction._known_spans": [{"value": "abab ab"}],
    "accord.text.redaction._secrets_by_shape": [
        {"pattern": pattern} for *_, patterns in SHAPES for pattern in patterns
    ],
    "accord.text.words.chosen_words": [{"found": [r"(?<![\w./=-])b(?=ors\s+r\+)"]}],
    "accord_sandbox.faults.__post_init__": [],
    "accord_sandbox.faults.matches": [],
    "accord.cli.attacks.ground.is_alive_in": [],
    "accord_sandbox.pages.respond": [{"pattern": pattern} for pattern, _ in pages._VIEWS],
    "accord_sandbox.repositories._rules_of": [
        {"pattern": f"^refs/heads/{repositories._expression('accord/**/x*', 'main')}$"}
    ],
    "accord_sandbox.calls.__call__": [
        {"pattern": pattern.pattern} for patterns in calls._PATTERNS.values() for pattern, _ in patterns
    ],
}
"""Values that expressions take from the function around them. A lazy one is where it is written; faults are tests'."""

SIGNS = r"""a A 0 é / /a \ \\n a. a- a_ a/ [ ] [a]( [^a] ( { ${{ < <!-- & &#1 ` ~ * _ @ @a :// a://b@ www. | :
:: = a= " ' -- $( , ; % +"""
UNITS = [
    *SIGNS.split(),
    *(" ", "\n", "\t", "\r\n", " \n", "a ", "a\n", "[a]: ", "<a ", "<a b='", "```\n", "#1 ", "fix ", "- ", "> "),
]
SIZE = 20_000
SUSPECT = 0.02
"""Seconds; a linear search takes a tenth of it."""

PART = 4
"""Part of the text that is tried first. A quadratic search takes ``PART`` squared times as long for the whole."""


INSTEAD = (
    "Drop the sign where the next character is not in the repeated class. Follow a run that must be whole by "
    r"`(?![class])`. Write `[^x\\]*(?:\\.[^x\\]*)*` for `(?:[^x\\]|\\.)*+`."
)


@cache
def all_uses() -> list[Use]:
    """Return every use of an expression, one of those that do the same."""
    return list({(use.pattern, use.method): use for use in uses(LOCAL_NAMES)}.values())


@pytest.mark.slow
def test_every_pattern_means_the_same_in_every_python() -> None:
    found = sorted({f"{use.file}: {name}" for use in all_uses() for name in misread(use.pattern)})
    assert found == [], f"Python before 3.11.5 misreads these. {INSTEAD}"


@pytest.mark.parametrize("repeated", ["a*+", "a++", "a?+", "a{2,}+", "(?:a|b)*+", "(?>a|b)", "(?>a*)"])
@pytest.mark.parametrize("around", ["{}", "x(y|{})?z", "(?=x{})", "(?<!c)(?:{}d)*?"])
def test_a_pattern_that_some_pythons_misread_is_found_at_any_depth(repeated: str, around: str) -> None:
    expression = around.replace("{}", repeated)
    assert misread(re.compile(expression)) == misread(re.compile(expression.encode()))
    assert misread(re.compile(expression)) == ["an atomic group" if "(?>" in repeated else "a possessive quantifier"]


def test_signs_that_only_look_possessive_are_not_refused() -> None:
    assert misread(re.compile(r"[*+]\++[?+]*\{1\}+(?=a)(?<=a)")) == []


def is_slow(use: Use, text: str) -> bool:
    """Return whether four times the text takes far more than four times as long."""
    if seconds_for(lambda size: use.run(text[:size] + "\0"), len(text) // PART) < SUSPECT / PART**2:
        return False
    return grows_too_fast(lambda size: use.run(text[:size] + "\0"), len(text), noticed=SUSPECT)


@pytest.mark.slow
def test_every_pattern_takes_time_in_proportion_to_its_text() -> None:
    slow = {}
    for use in all_uses():
        for text in pumped(use.pattern, UNITS if NIGHTLY else UNITS[::16], SIZE):
            if is_slow(use, text):
                slow[use.place, use.method] = text[:80]
                break
    assert slow == {}


@pytest.mark.slow
@pytest.mark.parametrize("expression", [r"\s*a", r"\[[^\[\]]*[./][^\[\]]*\]"])
def test_a_pattern_that_scans_its_text_again_and_again_is_slow(expression: str) -> None:
    use = Use("here", re.compile(expression), "search")
    assert any(is_slow(use, text) for text in pumped(use.pattern, UNITS, SIZE // PART))
