"""The reads of an expression, and those that can be its value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.workflows.expressions import embedded_expressions, parse


def names(references: frozenset[tuple[str, ...]]) -> set[str]:
    return {".".join(reference) for reference in references}


@pytest.mark.parametrize(
    ("expression", "reads", "yields"),
    [
        ("inputs.appendix", {"inputs.appendix"}, {"inputs.appendix"}),
        ("INPUTS.Appendix", {"inputs.appendix"}, {"inputs.appendix"}),
        ("github['event'].issue['title']", {"github.event.issue.title"}, {"github.event.issue.title"}),
        ("github.event.commits.*.message", {"github.event.commits.*.message"}, {"github.event.commits.*.message"}),
        ("github.event.commits[*].id", {"github.event.commits.*.id"}, {"github.event.commits.*.id"}),
        ("steps[inputs.step].outputs.x", {"steps.*.outputs.x", "inputs.step"}, {"steps.*.outputs.x"}),
        ("steps.run.outputs.exit-code", {"steps.run.outputs.exit-code"}, {"steps.run.outputs.exit-code"}),
        ("inputs.a == 'x'", {"inputs.a"}, set()), ("inputs.n >= 0x1f", {"inputs.n"}, set()),
        ("!inputs.a", {"inputs.a"}, set()),
        ("inputs.skip && 'a' || 'it''s b'", {"inputs.skip"}, set()),
        ("inputs.skip && inputs.a || inputs.b", {"inputs.skip", "inputs.a", "inputs.b"}, {"inputs.a", "inputs.b"}),
        ("inputs.a || inputs.b && 'c'", {"inputs.a", "inputs.b"}, {"inputs.a"}),
        ("(inputs.a || inputs.b) == null", {"inputs.a", "inputs.b"}, set()),
        (
            "contains(github.event.issue.labels.*.name, inputs.a)",
            {"github.event.issue.labels.*.name", "inputs.a"},
            set(),
        ),
        ("format('{0}-{1}', inputs.a, 1)", {"inputs.a"}, {"inputs.a"}),
        ("fromJSON(inputs.a).b[0]", {"inputs.a"}, {"inputs.a"}), ("toJSON(inputs)", {"inputs"}, {"inputs.*"}),
        ("always()", set(), set()), ("'}}'", set(), set()), ("-1.5e3", set(), set()), ("true", set(), set()),
    ],
)  # fmt: skip
def test_an_operand_that_is_only_compared_is_not_a_value(expression: str, reads: set[str], yields: set[str]) -> None:
    found = parse(expression)
    assert found is not None
    assert (names(found.reads), names(found.yields)) == (reads, yields)


@pytest.mark.parametrize(
    "text", ["", "inputs.", "a b", "(a", "f(a", "a &&", "a == ", "1.2.3", "a..b", "'open", "a[", "#"]
)
def test_other_text_is_not_an_expression(text: str) -> None:
    assert parse(text) is None


@given(st.text(alphabet="ab.'()[]!&|=<>* ,10", max_size=60))
def test_every_text_is_read_and_every_value_has_a_source(text: str) -> None:
    found = parse(text)
    assert found is None or found.yields <= found.reads


DEEP = ["(" * 100_000 + "a" + ")" * 100_000, "!" * 400 + "a", "a" + " == a" * 400]


@pytest.mark.parametrize("text", DEEP, ids=["parentheses", "negations", "comparisons"])
def test_deep_nesting_is_not_an_expression_instead_of_a_crash(text: str) -> None:
    assert parse(text) is None


def test_calls_as_deep_as_github_allows_are_an_expression() -> None:
    found = parse("not(" * 50 + "inputs.a" + ")" * 50)
    assert found
    assert names(found.reads) == {"inputs.a"}


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        ("echo ${{ a }} and ${{b}}", ["a", "b"]), ("${{ format('}}{0}', a) }}", ["format('}}{0}', a)"]),
        ("$ {{ a }} ${a} {{ b }}", []), ("${{ a }", []), ("${{\n  a\n}}", ["a"]),
        ("${{ 'it''s }}' }}", ["'it''s }}'"]), ("${{ it's ${{ a }}", ["a"]),
    ],
)  # fmt: skip
def test_expressions_are_found_where_github_finds_them(text: str, expressions: list[str]) -> None:
    assert list(embedded_expressions(text)) == expressions
