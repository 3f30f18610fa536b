"""Workflow commands: untrusted text cannot end one, begin one, or silently push the rest out of sight."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.findings import Finding, Severity
from accord.gha.step import ANNOTATIONS_PER_TYPE, annotate, command


@pytest.mark.parametrize(
    ("message", "written"),
    [
        ("plain", "::error::plain"),
        ("100%", "::error::100%25"),
        ("%0A", "::error::%250A"),
        ("a\nb\r\nc", "::error::a%0Ab%0D%0Ac"),
        ("a\n::add-mask::e", "::error::a%0A::add-mask::e"),
        ("\x1b[31mred\x07\x00", "::error::red  "),
    ],
)
def test_a_message_stays_a_message(message: str, written: str) -> None:
    assert command("error", message) == written


def test_a_file_name_cannot_add_properties() -> None:
    written = command("error", "m", file="a,line=9::x%\n.json", line=3, title=None)
    assert written == "::error file=a%2Cline=9%3A%3Ax%25%0A.json,line=3::m"


@given(st.text(), st.text())
def test_any_text_makes_one_line_and_can_be_read_back(message: str, title: str) -> None:
    written = command("notice", message, title=title)
    assert not {"\r", "\n", "\x1b", "\0"} & set(written)
    head, _, data = written[2:].partition("::")
    assert head.startswith("notice title=")
    assert data.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%").count("\n") == message.count("\n")


def findings(count: int, severity: Severity = Severity.ERROR) -> list[Finding]:
    return [Finding("code", f"finding {i}", line=i, severity=severity) for i in range(1, count + 1)]


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (1, 1), (9, 9), (10, 10), (11, 10), (500, 10)])
def test_no_more_annotations_than_github_shows_and_the_last_names_the_rest(count: int, shown: int) -> None:
    written = list(annotate(findings(count), "plan.json"))
    assert len(written) == shown
    if count > ANNOTATIONS_PER_TYPE:
        assert f"{count - 9} more findings" in written[-1]
    else:
        assert all("more findings" not in line for line in written)


def test_warnings_have_a_budget_of_their_own() -> None:
    written = list(annotate([*findings(12), *findings(12, Severity.WARNING)], "plan.json"))
    assert [line.split(" ")[0] for line in written] == ["::error"] * 10 + ["::warning"] * 10


def test_a_document_from_stdin_has_no_line_in_any_file() -> None:
    assert list(annotate(findings(1), None)) == ["::error title=code::finding 1"]
