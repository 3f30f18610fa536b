"""Payloads become events; of a comment nothing but the word of a command is kept."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.errors import BrokenContract, WrongUsage
from accord.starts.events import check_repository, read_command, read_event
from accord.starts.models import StartEvent, Trigger

AT = "2026-11-02T09:00:00Z"
ISSUE: dict[str, Any] = {"number": 7, "updated_at": AT}
PULL = {"number": 8, "updated_at": AT, "draft": False, "head": {"sha": "a" * 40, "repo": {"full_name": "octo/code"}}}
AROUND = {
    "repository": {"full_name": "octo/code", "default_branch": "main", "pushed_at": 1_793_610_000},
    "sender": {"login": "wanda", "type": "User"},
}


def comment(body: str, **more: Any) -> dict[str, Any]:
    return {"action": "created", "comment": {"id": 5, "body": body, "created_at": AT}, "issue": ISSUE, **AROUND, **more}


def push(**more: Any) -> dict[str, Any]:
    return {"ref": "refs/heads/main", "before": "a" * 40, "after": "b" * 40, **AROUND, **more}


@pytest.mark.parametrize(
    ("body", "word", "named", "has_more"),
    [
        ("/accord plan", "plan", 0, False),
        ("/accord\tReview\r\nthe rest", "review", 0, False),
        ("/accord", "", 0, False),
        ("/accord plan.", "plan", 0, False),
        ("/accord plan, please", "plan", 0, False),
        ("/accord\u00a0plan\u00a0please", "plan", 0, True),
        ("/accord\u200b stop!\n", "stop", 0, False),
        ("/accord plan.yml", "", 0, False),
        ("/ACCORD Review", "review", 0, False),
        ("/accord, plan", None, 0, False),
        ("/accord\nplan", "", 0, False),
        ("/accordion plan", None, 0, False),
        (" /accord plan", None, 0, False),
        ("Please /accord plan", None, 0, False),
        ("> /accord plan", None, 0, False),
        ("/accord " + "a" * 21, "", 0, False),
        ("", None, 0, False),
        ("/accord implement codex", "implement", 0, True),
        ("/accord implement \ncodex", "implement", 0, False),
        ("/accord implement \N{ROCKET}", "implement", 0, False),
        ("/accord implement #12", "implement", 12, False),
        ("/accord implement #12 codex", "implement", 12, True),
        ("/accord implement #12, please", "implement", 12, False),
        ("/accord implement codex #12", "implement", 0, True),
        ("/accord implement #12a", "implement", 0, False),
        ("/accord implement #0", "implement", 0, False),
        ("/accord #12", "", 0, False),
        ("/accord implement\n#12", "implement", 0, False),
    ],
)
def test_a_command_is_found_at_the_beginning_with_the_item_after_its_word_and_more_words_on_its_line(
    body: str, word: str | None, named: int, has_more: bool
) -> None:
    wanted = (
        {"word": word, "named": named, "has_more_words": has_more} if word else word if word is None else {"word": ""}
    )
    assert read_command(body) == wanted


@pytest.mark.slow
@given(st.text(), st.sampled_from(["", "/accord", "/accord ", "/accord plan", "/accord plan "]))
def test_no_text_of_a_comment_reaches_anything_but_the_word(text: str, before: str) -> None:
    event = read_event("issue_comment", comment(before + text))
    if event is None:
        return
    assert event.word == "" or (event.word.isascii() and event.word.isalpha() and len(event.word) <= 20)
    plain = read_event("issue_comment", comment(f"/accord {event.word}"))
    assert replace(event, has_more_words=False) == plain


@pytest.mark.parametrize(
    ("name", "payload", "trigger"),
    [
        ("issue_comment", comment("/accord plan"), Trigger.COMMENT),
        ("issue_comment", comment("/accord plan", action="edited"), None),
        ("issue_comment", comment("/accord plan", action="deleted"), None),
        ("issues", {"action": "labeled", "label": {"name": "agents:plan"}, "issue": ISSUE, **AROUND}, Trigger.LABEL),
        ("issues", {"action": "unlabeled", "label": {"name": "agents:plan"}, "issue": ISSUE, **AROUND}, None),
        ("issues", {"action": "closed", "issue": ISSUE, **AROUND}, Trigger.CLOSED),
        ("push", push(), Trigger.SPECS),
        ("push", push(ref="refs/heads/other"), None),
        ("push", push(ref="refs/tags/main"), None),
        ("push", push(before="0" * 40), None),
        ("push", push(after="0" * 40), None),
        ("pull_request", {"action": "opened", "pull_request": PULL, **AROUND}, Trigger.PULL),
        ("pull_request", {"action": "ready_for_review", "pull_request": PULL, **AROUND}, Trigger.PULL),
        ("pull_request", {"action": "review_requested", "pull_request": PULL, **AROUND}, Trigger.REVIEW_REQUEST),
        ("pull_request", {"action": "synchronize", "pull_request": PULL, **AROUND}, None),
        ("pull_request_target", {"action": "opened", "pull_request": PULL, **AROUND}, None),
        ("schedule", {}, None),
    ],
)
def test_every_event_has_its_trigger(name: str, payload: dict[str, Any], trigger: Trigger | None) -> None:
    event = read_event(name, payload)
    assert (event and event.trigger) == trigger


def labelled(at: str) -> StartEvent | None:
    payload = {"action": "labeled", "label": {"name": "agents:plan"}, "issue": {**ISSUE, "updated_at": at}, **AROUND}
    return read_event("issues", payload)


def test_a_second_delivery_has_the_key_of_the_first() -> None:
    first, again, other = (labelled(f"2026-11-20T10:00:0{second}Z") for second in (1, 1, 2))
    assert first
    assert again
    assert other
    assert (first.key == again.key, first.key == other.key) == (True, False)


@pytest.mark.parametrize(
    "sender", [{"login": "x[bot]", "type": "Bot"}, {"login": "x", "type": "Bot"}, {"login": "X[Bot]"}]
)
def test_bots_are_recognised(sender: dict[str, str]) -> None:
    event = read_event("issue_comment", comment("/accord plan", sender=sender))
    assert event
    assert event.is_bot


@pytest.mark.parametrize(
    "head", [{"sha": "a" * 40, "repo": None}, {"sha": "a" * 40, "repo": {"full_name": "eve/code"}}]
)
def test_forks_are_recognised_even_when_they_are_deleted(head: dict[str, Any]) -> None:
    event = read_event("pull_request", {"action": "opened", "pull_request": {**PULL, "head": head}, **AROUND})
    assert event
    assert event.is_fork


def commented(**values: Any) -> dict[str, Any]:
    return comment("", comment={"id": 5, "body": "/accord plan", "created_at": AT, **values})


@pytest.mark.parametrize(
    ("name", "payload", "place"),
    [
        ("issues", {"action": "closed"}, "/issue/number"),
        ("issue_comment", comment("/accord plan", issue={"number": float("inf")}), "/issue/number"),
        ("issue_comment", comment("/accord plan", issue={"number": 1.9}), "/issue/number"),
        ("issue_comment", comment("/accord plan", issue={"number": True}), "/issue/number"),
        ("issue_comment", comment("/accord plan", issue={"number": "1"}), "/issue/number"),
        ("issue_comment", comment("/accord plan", issue={"number": 0}), "/issue/number"),
        ("issue_comment", comment("/accord plan", sender={"login": None}), "/sender/login"),
        ("issue_comment", commented(body=7), "/comment/body"),
        ("issue_comment", commented(id="5"), "/comment/id"),
        ("issue_comment", commented(created_at="9999-12-31T23:59:59-23:59"), "/comment/created_at"),
        ("issue_comment", commented(created_at="0001-01-01T00:00:00Z"), "/comment/created_at"),
        ("push", push(repository={**AROUND["repository"], "pushed_at": 10**30}), "/repository/pushed_at"),
    ],
)
def test_a_payload_that_github_does_not_send_is_refused_with_its_place(
    name: str, payload: dict[str, Any], place: str
) -> None:
    with pytest.raises(BrokenContract, match=f"not as GitHub documents it at `{place}`") as broken:
        read_event(name, payload)
    assert [finding.path for finding in broken.value.findings] == [place]


@pytest.mark.parametrize("repository", [{"full_name": "mallory/code"}, {}, None, "octo/code"])
def test_an_event_of_another_repository_is_refused(repository: Any) -> None:
    with pytest.raises(WrongUsage, match=r"not octo/code\."):
        check_repository(comment("/accord plan", repository=repository), "octo/code")
    check_repository(comment("/accord plan"), "Octo/Code")
