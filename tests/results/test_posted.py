"""Texts of agents are sanitised before they are posted, and the receipt counts the changes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.hostile import KNOWN
from support.innocent import INNOCENT
from support.plans import plan, task, task_body, update
from support.renderer import complaints
from support.reviews import PULL, approve, comment, needs_changes, post, review_stage, reviews, snapshot, warn
from support.rotation import NIGHTLY
from support.stage import Stage, codes, staged

from accord.engine.receipts import Outcome
from accord.github.limits import BODY_CHARS, TITLE_CHARS
from accord.results.bodies import read_body
from accord.results.implementor.rules import audit_scope
from accord.results.texts import posted_body
from accord.text.hidden import GUARD
from accord.text.markers import defuse, find_markers, take_markers
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

SECRETS = Redactor((KNOWN,))
HOSTILE_TEXT = "Ask @octocat, fixes #1.\n\n/merge\n\nx <!-- obey --> `@a`\n\n[x](javascript:y) a\u200bb"
HARMLESS_TEXT = f"Ask @{GUARD}octocat, f{GUARD}ixes #1.\n\n/{GUARD}merge\n\nx  `@a`\n\n\\[x](javascript:y) ab"
COUNTS = {"mentions": 1, "closing-keywords": 1, "commands": 1, "comments": 1, "hidden": 1, "links": 1}


def body_of(stage: Stage, number: int) -> str:
    return str(stage.get(f"/repos/{stage.repository}/issues/{number}")["body"])


MARKUP = ("`", "```\n", "<!--", "-->", " accord:item ", "[accord:x]: #", "@a", "<b>", "</b>", "x", "- ")
PIECES = st.sampled_from([*MARKUP, "\n", "\n\n", "\r\n"])


@pytest.mark.slow
@settings(max_examples=300 if NIGHTLY else 75, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=25).map("".join))
def test_a_posted_text_is_stable_and_contains_no_marker(text: str) -> None:
    made = posted_body(text, SECRETS, PostingPolicy())
    assert posted_body(made.text, SECRETS, PostingPolicy()).text == made.text
    assert defuse(made.text)[1] == 0
    assert made.text == made.text.rstrip()


def test_a_marker_in_code_is_void_to_programs_too() -> None:
    made = posted_body(
        '`<!-- accord:item run=r id=t -->`\n\n```\n[accord:item]: # "run=r"\n```', SECRETS, PostingPolicy()
    )
    assert find_markers(made.text, "item") == []
    assert take_markers(made.text)[1] == []
    assert made.counts == {"markers": 2}


@pytest.mark.parametrize("text", INNOCENT.values(), ids=INNOCENT)
def test_innocent_texts_are_posted_as_they_are(text: str) -> None:
    assert posted_body(text, SECRETS, PostingPolicy()).text == text.replace("\r\n", "\n").rstrip()


# Planner


def test_a_plan_is_posted_without_acting_and_the_receipt_counts_what_was_changed(stage: Stage) -> None:
    result = plan(task("a", title="Fixes #3 for @octocat\u202e", context=HOSTILE_TEXT))
    rehearsal = stage.apply(result, is_dry_run=True)
    receipt = stage.apply(result)
    issue = stage.snapshot()[0]
    assert issue["title"] == f"F{GUARD}ixes #3 for @{GUARD}octocat"
    assert HARMLESS_TEXT in issue["body"]
    assert complaints(take_markers(issue["body"])[0]) == []
    wanted = COUNTS | {"mentions": 2, "closing-keywords": 2, "hidden": 2}
    assert receipt.as_json()["sanitised"] == rehearsal.as_json()["sanitised"] == wanted
    again = stage.apply(result)
    assert (again.outcome, again.writes, again.sanitised) == (Outcome.UNCHANGED, 0, wanted)


def test_an_update_is_compared_after_sanitising(stage: Stage) -> None:
    stage.apply(plan(task("a")))
    result = plan(update=[update(1, body=task_body(context=HOSTILE_TEXT))])
    receipt = stage.apply(result)
    assert (receipt.outcome, receipt.sanitised) == (Outcome.APPLIED, COUNTS)
    assert HARMLESS_TEXT in body_of(stage, 1)
    assert find_markers(body_of(stage, 1), "item"), "the item stays ours"
    again = stage.apply(result, run_key="another-run")
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)


def test_an_agent_that_sends_back_what_it_read_changes_nothing(stage: Stage) -> None:
    stage.apply(plan(task("a", context=HOSTILE_TEXT)))
    content = take_markers(body_of(stage, 1))[0].rstrip()
    receipt = stage.apply(plan(update=[update(1, body=content)]))
    assert (receipt.outcome, receipt.sanitised) == (Outcome.UNCHANGED, {})


def test_our_own_marker_and_lists_stand_below_what_an_agent_leaves_open(tmp_path: Path) -> None:
    body = task_body(constraints="<details><summary>x</summary>\n\n```\nopen")
    result = plan(task("a"), task("b", "a", body=body))
    with staged(tmp_path, native_dependencies=False) as stage:
        receipt = stage.apply(result)
        posted = body_of(stage, 2)
        assert "open\n```\n\n</details>\n\n<!-- accord:" in posted
        assert posted.index("</details>") < posted.index("Blocked by #1")
        assert receipt.sanitised == {"fences": 1, "tags": 1}
        assert stage.apply(result).writes == 0


def test_owners_and_paths_with_an_at_sign_are_read_in_texts_that_were_changed(stage: Stage) -> None:
    scope = {
        "in_scope": "- packages/@scope/a.ts\n- `src/@types/b.ts`",
        "out_of_scope": "- src/@types/c.ts (owned by #@c)",
    }
    stage.apply(plan(task("a", **scope), task("@c")))
    assert f"src/@{GUARD}types/c.ts (owned by #2)" in body_of(stage, 1)
    in_scope = read_body(body_of(stage, 1)).in_scope
    assert in_scope == ("packages/@scope/a.ts", "src/@types/b.ts")
    assert audit_scope(["packages/@scope/a.ts"], (in_scope, ())).outside == ()


TOO_LONG = {
    "a title that grows": ({"title": "@a " * (TITLE_CHARS // 3)}, "title-too-long", "/create/0/title"),
    "a title of which nothing is left": ({"title": "\u200b\u2060"}, "title-empty", "/create/0/title"),
    "a body that grows": ({"context": "<x> " * 3_000 + "word " * 9_800}, "body-too-long", "/create/0/body"),
}


@pytest.mark.parametrize(("parts", "code", "path"), TOO_LONG.values(), ids=TOO_LONG)
def test_a_text_that_cannot_be_posted_is_found_before_any_request(
    stage: Stage, parts: dict[str, str], code: str, path: str
) -> None:
    receipt = stage.apply(plan(task("a", **parts), task("b")))
    assert (receipt.outcome, receipt.reads, receipt.writes) == (Outcome.REJECTED, 0, 0)
    assert [(found.code, found.path) for found in receipt.findings if found.severity.value == "error"] == [(code, path)]
    assert receipt.findings[-1].message.startswith("As posted: ")


@pytest.mark.slow
def test_a_body_that_only_numbers_of_owners_make_too_long_is_found_before_the_first_write(stage: Stage) -> None:
    owned = "\n".join(f"- src/z{n}.py (owned by #b)" for n in range(2_100))
    receipt = stage.apply(plan(task("b"), task("a", out_of_scope=owned)))
    assert (receipt.outcome, receipt.writes, codes(receipt)) == (
        Outcome.REJECTED,
        0,
        {"label-not-there", "body-too-long"},
    )


def test_an_update_that_does_not_fit_beside_the_items_own_lists_is_found_before_the_first_write(stage: Stage) -> None:
    kept = "<!-- accord:x y=z -->\n" * 1_000
    body = task_body()
    stage.send("POST", f"/repos/{stage.repository}/issues", title="Old", body=f"{body}\n{kept}")
    long = task_body(context="x" * (BODY_CHARS - 10_000))
    receipt = stage.apply(plan(task("a"), update=[update(1, body=long)]))
    assert (receipt.outcome, receipt.writes) == (Outcome.REJECTED, 0)
    assert "body-too-long" in codes(receipt)


def test_a_secret_that_only_markup_hides_is_warned_of(stage: Stage) -> None:
    token = "ghp_" + "a1B2" * 9
    receipt = stage.apply(plan(task("a", context=f"{token[:9]}**{token[9:]}**")))
    assert token[9:] not in body_of(stage, 1)
    assert "secret-redacted" in codes(receipt)
    assert receipt.sanitised == {"secrets": 1}


# Reviewer


@pytest.fixture(scope="module")
def shared_review_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with review_stage(tmp_path_factory.mktemp("review")) as stage:
        yield stage


@pytest.fixture
def reviewed(shared_review_stage: Stage) -> Stage:
    shared_review_stage.reset()
    return shared_review_stage


def finding(text: str) -> str:
    return f"What: {text}\n\nWhy: b\n\nFix: c"


@pytest.mark.slow
def test_a_review_is_posted_without_acting_in_all_its_places(reviewed: Stage) -> None:
    result = needs_changes(
        comment("added.txt", 1, finding(HOSTILE_TEXT)),
        comment("src/long.txt", None, finding(HOSTILE_TEXT)),
        comment("absent.txt", 1, finding(HOSTILE_TEXT)),
        summary=HOSTILE_TEXT,
    )
    rehearsal = post(reviewed, result, is_dry_run=True)
    receipt = post(reviewed, result)
    bodies = [reviews(reviewed)[0]["body"], *(c["body"] for c in reviewed.listed(f"/pulls/{PULL}/comments"))]
    assert [body.count(HARMLESS_TEXT) for body in bodies] == [2, 1, 1]
    for body in bodies:
        assert complaints(take_markers(body)[0]) == []
    assert receipt.sanitised == rehearsal.sanitised == dict.fromkeys(COUNTS, 4)
    before = snapshot(reviewed)
    assert post(reviewed, result).writes == 0
    assert snapshot(reviewed) == before


def test_a_suggestion_is_posted_byte_for_byte(reviewed: Stage) -> None:
    text = finding("a") + "\n\n```suggestion\n    @property  # fixes #1 <b>\n\u200b/merge\n```"
    post(reviewed, needs_changes(comment("added.txt", 1, text)))
    assert reviewed.listed(f"/pulls/{PULL}/comments")[0]["body"] == text


def test_a_comment_of_which_nothing_is_left_stops_the_review(reviewed: Stage) -> None:
    result = needs_changes(comment("added.txt", 1), warn("added.txt", 2, "<!-- invisible -->"))
    receipt = post(reviewed, result)
    assert (receipt.outcome, receipt.reads, codes(receipt)) == (Outcome.REJECTED, 0, {"comment-empty"})


def test_a_path_hides_nothing_and_is_still_looked_up(reviewed: Stage) -> None:
    token = "ghp_" + "a1B2" * 9
    receipt = post(reviewed, approve(warn(f"a\u202eb {token}", 1)))
    assert "### `ab [redacted: github-token]`" in reviews(reviewed)[0]["body"]
    assert receipt.sanitised == {"hidden": 1, "secrets": 1}
    assert receipt.as_json()["review"]["comments"][0]["path"] == "ab [redacted: github-token]"
