"""YAML that people write: what they meant is what is read, and nothing they were sent runs or unfolds."""

import json
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from accord.core.errors import BrokenContract
from accord.files.yaml import read_yaml, with_scalars

PIECES = ["a", "b: ", "- ", "\n", "  ", ", ", ": ", "&x ", "*x", "? ", *"{}[]'\"#|>1é\t"]
DEEP_ALIASES = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 400))
LAUGHS = "a0: &a0 [x]\n" + "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on: push", {"on": "push"}), ("on:\n  push:", {"on": {"push": None}}), ("yes: no", {"yes": "no"}),
        ("time: 12:30", {"time": "12:30"}), ("day: 2026-01-02", {"day": "2026-01-02"}),
        ("color: 000000", {"color": "000000"}), ("mode: 0755", {"mode": "0755"}), ("hex: 0x10", {"hex": "0x10"}),
        ("big: 1_000", {"big": "1_000"}), ("color: 1e1000", {"color": "1e1000"}), ("n: 123456", {"n": 123456}),
        ("n: -7", {"n": -7}), ("b: true", {"b": True}), ("truly: truest", {"truly": "truest"}), ("", None),
        ("# only a comment", None), ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}), ("\ufeffa: 1", {"a": 1}),
        ("a: caf\u00e9 \U0001f600", {"a": "caf\u00e9 \U0001f600"}),
        ('{"a":\r\n\t["b",\t1]}', {"a": ["b", 1]}),
        (json.dumps({"a": "\U0001f600 \\ \t / é"}), {"a": "\U0001f600 \\ \t / é"}),
    ],
)  # fmt: skip
def test_a_file_means_what_its_author_wrote(text: str, value: Any) -> None:
    assert read_yaml(text.encode()).value == value


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: 1\nb: 2\na: 3", "duplicate-key", 3), ("x:\n  - {a: 1, a: 2}", "duplicate-key", 2),
        ("a: [1\nb: 2", "not-yaml", 2), ("a: 1\n\tb: 2", "not-yaml", 2), ("a: &x [*x]", "not-yaml", 1),
        ("a: &x {b: *x}", "not-yaml", 1), (LAUGHS, "too-large", None),
        ("a: !!python/object/apply:os.system [id]", "not-yaml", 1),
        ("a: !!python/name:os.system", "not-yaml", 1), ("a: !secret x", "not-yaml", 1),
        ("a: *nothing", "not-yaml", 1), ("a: 1\n---\nb: 2", "not-yaml", 2), ("!!timestamp noon", "not-yaml", None),
        ("!!bool maybe", "not-yaml", None), ('!!int ""', "not-yaml", None), ("a: " + "9" * 5000, "not-yaml", None),
        ("a: \x00", "not-yaml", None), (r'a: "\ud83d"', "not-yaml", None), ("[" * 5000, "too-large", None),
        (DEEP_ALIASES, "too-large", None),
    ],
)  # fmt: skip
def test_values_that_would_be_lost_run_or_unfold_are_findings(text: str, code: str, line: int | None) -> None:
    with pytest.raises(BrokenContract) as caught:
        read_yaml(text.encode())
    (found,) = caught.value.findings
    assert (found.code, found.line) == (code, line)


def test_a_finding_can_point_at_the_line_of_any_entry() -> None:
    lines = read_yaml(b"labels:\n  - name: a\n    color:\n      - 1\n  - name: b\n").lines
    assert lines == {
        "": 1, "/labels": 1, "/labels/0": 2, "/labels/0/name": 2, "/labels/0/color": 3, "/labels/0/color/0": 4,
        "/labels/1": 5, "/labels/1/name": 5,
    }  # fmt: skip


@pytest.mark.slow
@given(st.binary(max_size=80) | st.text(alphabet="a1:-[]{}&*!|>'\"#\n ?,<=~%@`.", max_size=60).map(str.encode))
def test_no_bytes_raise_anything_but_a_broken_contract(raw: bytes) -> None:
    with suppress(BrokenContract):
        assert read_yaml(raw).lines is not None


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=10,
    ),
    st.sampled_from([None, 2, "\t"]),
)
def test_json_is_read_as_json(value: Any, indent: Any) -> None:
    assert read_yaml(json.dumps([value], indent=indent).encode()).value == [value]


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("a: x # y\nb: 'z'\n", {"/a": "p", "/b": "q"}, "a: p # y\nb: 'q'\n"),
        ("\ufeffé: [😀, x]\r\n", {"/é/1": "y"}, "\ufeffé: [😀, y]\r\n"),
        ('{\n\t"a": "x"\n}', {"/a": "y"}, '{\n\t"a": "y"\n}'),
        ("a/b: {c~d: x}\n", {"/a~1b/c~0d": "y"}, "a/b: {c~d: y}\n"),
        ("a: x\n", {}, "a: x\n"),
        ('a:\tx\t# y\nb:\t"\tz"\n', {"/a": "p"}, 'a:\tp\t# y\nb:\t"\tz"\n'),
    ],
)
def test_single_values_change_and_no_byte_beside_them(text: str, changes: dict[str, str], expected: str) -> None:
    assert with_scalars(text.encode(), changes).decode() == expected


@pytest.mark.parametrize(
    ("text", "path"),
    [
        *((text, "/a") for text in ("a: &x y\nb: *x\n", "a: x\n  y\n", "a: |\n  x\n", "c: &t {a: x}\na: *t\n")),
        ("c: &t {a: x}\n<<: *t\n", "/a"),
        ("tasks: [&t {a: x}, *t]\n", "/tasks/0/a"),
    ],
)
def test_a_value_that_cannot_change_alone_is_refused(text: str, path: str) -> None:
    with pytest.raises(BrokenContract, match="Write it out in its line"):
        with_scalars(text.encode(), {path: "z"})


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "- " * 50_000 + "a", "? " * 50_000, "{a: " * 50_000, "[" * 300 + "]" * 300]
)
def test_a_text_that_nests_too_deeply_is_a_finding_and_no_end_of_the_process(text: str) -> None:
    with pytest.raises(BrokenContract) as broken:
        read_yaml(text.encode())
    assert [finding.code for finding in broken.value.findings] == ["too-large"]


def read_both_ways(raw: bytes) -> list[Any]:
    """The results with libyaml and without it: value and lines, or the findings."""
    answers: list[Any] = []
    for name in ("CSafeLoader", "none"):
        with pytest.MonkeyPatch.context() as patch:
            if name == "none":
                patch.delattr(yaml, "CSafeLoader")
            try:
                document = read_yaml(raw)
                answers.append((document.value, document.lines))
            except BrokenContract as broken:
                answers.append([(finding.code, finding.line) for finding in broken.findings])
    return answers


@pytest.mark.slow
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
@example("a: |\n  text\n\n  more\nb: >-\n  folded\n  text\n")
@example("---\na: 1\n...\n")
@example("%YAML 1.1\n---\na: !!str 1\n")
def test_both_parsers_read_a_text_alike(text: str) -> None:
    swift, plain = read_both_ways(text.encode())  # a tab at the end of a line is YAML, which only libyaml knows
    assert swift == plain or isinstance(plain, list)
