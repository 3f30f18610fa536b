"""A pull request's settings: read leniently, bounded strictly, and only from a comment that is one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.loops.models import Budgets
from accord.loops.settings import read_settings

INVALID, UNKNOWN, UNREADABLE = "setting-invalid", "setting-unknown", "settings-unreadable"


def config(text: str) -> str:
    return f"Words\n\n<!-- keepalive-config: {text} -->\n\n- [ ] A task\n"


@pytest.mark.parametrize(
    ("text", "iterations", "failures", "codes"),
    [
        ('{"max_iterations": 8, "failure_threshold": 2}', 8, 2, []),
        ('{"maxIterations": "8"}', 8, 3, []),
        ("{iterations: 8, failures: 2,}", 8, 2, []),
        ("max-iterations: 8", 8, 3, []),
        ('{"max_iterations": 8000}', 100, 3, [INVALID]),
        ('{"failures": 0}', 5, 1, [INVALID]),
        ('{"max_iterations": true, "failures": "many"}', 5, 3, [INVALID, INVALID]),
        ('{"max_iterations": 1e9}', 5, 3, [INVALID]),
        ('{"max_iteration": 8}', 5, 3, [UNKNOWN]),
        ("[8]", 5, 3, [UNREADABLE]),
        ('{"max_iterations": ', 5, 3, [UNREADABLE]),
        ("", 5, 3, [UNREADABLE]),
        ('{"note": "-->", "max_iterations": 8}', 5, 3, [UNREADABLE]),
    ],
)
def test_invalid_values_keep_defaults_and_warn(text: str, iterations: int, failures: int, codes: list[str]) -> None:
    found = read_settings(config(text), Budgets())
    assert (found.budgets.iterations, found.budgets.failures) == (iterations, failures)
    assert [finding.code for finding in found.findings] == codes


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("8", 'Write them as {"max_iterations": 8}.'),
        ("{max_iterations: 5, max_iterations: 6}", 'The key "max_iterations" is written twice. Keep one.'),
    ],
)
def test_the_hint_for_unreadable_settings_is_the_one_for_their_own_problem(text: str, hint: str) -> None:
    (finding,) = read_settings(config(text), Budgets()).findings
    assert finding.hint == hint


def test_settings_count_behind_a_comment_that_only_names_them() -> None:
    body = "<!-- keepalive-config see the docs -->\n<!-- keepalive-config: {autofix: false} -->\n"
    assert read_settings(body, Budgets()).autofix is False


@pytest.mark.parametrize(
    ("comment", "keepalive", "codes"),
    [
        ('keepalive-config {"keepalive_enabled": false}', False, []),
        ("Keepalive-Config: {keepalive: off}", False, []),
        ("KEEPALIVE-CONFIG{keepalive: off}", False, []),
        ("keepalive-config off", None, [UNREADABLE]),
        ("Keepalive-config", None, [UNREADABLE]),
        ("keepalive-config = {keepalive: off}", None, [UNKNOWN]),
        ("keepalive-configuration: {keepalive: off}", None, []),
        ("keepal\u0131ve-config: {keepalive: off}", None, []),
    ],
)
def test_the_name_may_be_in_any_case_and_without_its_colon(
    comment: str, keepalive: bool | None, codes: list[str]
) -> None:
    found = read_settings(f"<!-- {comment} -->\n- [ ] A task\n", Budgets())
    assert (found.keepalive, [finding.code for finding in found.findings]) == (keepalive, codes)


@pytest.mark.parametrize(
    "body",
    [
        "```\n<!-- keepalive-config: {iterations: 8} -->\n```",
        "Write `<!-- keepalive-config: {iterations: 8} -->` for more.",
        "<!-- so: <!-- keepalive-config: {iterations: 8} -->",
        "<!-- keepalive-config: {iterations: 8}",
    ],
)
def test_settings_in_code_or_in_another_comment_do_not_count(body: str) -> None:
    assert read_settings(body, Budgets()).budgets == Budgets()


def test_the_first_of_several_settings_counts_with_a_warning() -> None:
    found = read_settings(config("{iterations: 6}") + config("{iterations: 7}"), Budgets())
    assert (found.budgets.iterations, [finding.code for finding in found.findings]) == (6, ["settings-repeated"])


def test_a_strangers_settings_raise_no_budget_and_may_turn_a_loop_off() -> None:
    words = config("{max_iterations: 90, wait_seconds: 0, keepalive: true, autofix: false}")
    found = read_settings(words, Budgets(), is_trusted=False)
    assert (found.budgets, found.keepalive, found.autofix) == (Budgets(), None, False)
    assert [finding.code for finding in found.findings] == ["settings-untrusted"]


def test_switches_are_read_in_many_words() -> None:
    found = read_settings(config('{"keepalive_enabled": "no", "autofix": true}'), Budgets())
    assert (found.keepalive, found.autofix, found.bot_comments) == (False, True, None)


@pytest.mark.slow
@given(st.text(max_size=400))
def test_no_text_breaks_the_reading(text: str) -> None:
    budgets = read_settings(config(text), Budgets()).budgets
    assert Budgets.model_validate(budgets.model_dump()) == budgets


def test_comments_without_an_end_do_not_count_as_settings() -> None:
    found = read_settings("keepalive-config " + "<!-- " * 13_000, Budgets())
    assert (found.budgets, found.keepalive) == (Budgets(), None)
