"""Reading a result of any kind, and the patch that a step puts into an implementor's result."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.plans import plan, task

from accord.core.errors import BrokenContract, WrongUsage
from accord.engine.operations import ApplyOptions
from accord.results.run import apply_result, read_result, with_patch

TWICE = plan(task("a"), task("a", in_scope="- src/b.py"))
PATCH = b"diff --git a/a b/a\nnew file mode 100644\nindex 0000000..e69de29\n"


@pytest.mark.parametrize(
    ("raw", "only", "kind", "codes", "line"),
    [
        (b"{", None, "unknown", ["not-json"], 1),
        (json.dumps(plan(), indent=1).encode(), None, "planner-result", [], None),
        (json.dumps(TWICE, indent=1).encode(), None, "planner-result", ["duplicate-temp-id"], 17),
        (json.dumps(plan()).encode(), "reviewer-result", "reviewer-result", ["schema"], 1),
    ],
)
def test_a_result_is_read_with_its_kind_and_its_findings_on_their_lines(
    raw: bytes, only: str | None, kind: str, codes: list[str], line: int | None
) -> None:
    result = read_result(raw, only)
    assert result.kind == kind
    assert {finding.code for finding in result.findings} == {*codes}
    assert (result.findings[0].line if result.findings else None) == line


def test_a_document_that_is_not_a_result_cannot_be_applied() -> None:
    result = SimpleNamespace(kind="agent-input")
    with pytest.raises(WrongUsage, match="agent-input"):
        apply_result(cast("Any", None), cast("Any", result), cast("ApplyOptions", None))


@pytest.mark.parametrize(
    ("outcome", "patch", "expected"),
    [
        ("completed", PATCH, ("completed", PATCH.decode(), "Done.")),
        ("blocked", PATCH, ("blocked", None, "Done.")),
        ("completed", b" \n", ("validation-failure", None, "Done.")),
    ],
)
def test_a_patch_is_put_into_a_completed_result_alone(
    outcome: str, patch: bytes, expected: tuple[str, str | None, str]
) -> None:
    for own in ({}, {"patch": None}, {"patch": "a patch of the agent's own"}):
        document = {"role": "implementor", "outcome": outcome, "summary": "Done.", **own}
        result = with_patch(json.dumps(document).encode(), patch, "result.json")
        assert (result["outcome"], result["patch"]) == expected[:2]
        assert expected[2] in str(result["summary"])


@pytest.mark.parametrize(
    "summary",
    [
        "Done.",
        "Validation: pytest passes. Scope: all files.",
        "## Step\n\n## Tried\n\nnone",
        "| Step | Tried | Outside |\n|-|-|-|\n| a | | |",
        "```\nStep:",
        "<!-- Tried:",
        "## What was done\n\n- Step 1: TBD\n- Check:",
    ],
)
def test_a_result_without_a_change_is_a_valid_failure_whatever_its_summary_says(summary: str) -> None:
    document = {"role": "implementor", "outcome": "completed", "summary": summary}
    result = read_result(json.dumps(with_patch(json.dumps(document).encode(), b"", "result.json")).encode())
    assert result.findings == []


@pytest.mark.parametrize("raw", [b"[]", b"{}", b"Sorry."])
def test_a_patch_for_another_document_is_refused_with_the_name_of_its_file(raw: bytes) -> None:
    with pytest.raises(BrokenContract, match=r"result\.json is not an implementor result"):
        with_patch(raw, PATCH, "result.json")
