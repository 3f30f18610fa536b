"""Whatever an agent wrote: one object comes out, or a finding that says what was there; the reader never breaks."""

import json
import os
import string
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rotation import NIGHTLY

from accord.core.documents import MAX_BYTES, MAX_DEPTH, Document, read_object
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer

SHARE = 1 if NIGHTLY else 16
MIB = 1024 * 1024 // SHARE
"""A mebibyte every night, so that files have fifty of them, and else a sixteenth of one."""


def findings_of(raw: bytes) -> tuple[Finding, ...]:
    with pytest.raises(BrokenContract) as caught:
        read_object(raw)
    assert caught.value.findings
    return caught.value.findings


def only_code(raw: bytes) -> str:
    (found,) = findings_of(raw)
    return found.code


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (' \r\n\t{"a": 1}\n\n', {"a": 1}),
        ('Here is the plan:\n\n```json\n{"a": {"b": [1, 2]}}\n```\nThat is all.', {"a": {"b": [1, 2]}}),
        ('I used {braces} and f(){ return } before. {"a": "}{"}', {"a": "}{"}),
        ('The shape is {"role": ...}, and this is mine: {"a": 1}', {"a": 1}),
        ('{"a": 1}\n\nThe run key is {here}.', {"a": 1}),
        ('\N{ZERO WIDTH NO-BREAK SPACE}{"a": 1}', {"a": 1}),
        ('Text \N{PILE OF POO} before {"a": "\\ud83d\\ude00"}', {"a": "\N{GRINNING FACE}"}),
        ('{"a": 1, "b": {"a": 2}}', {"a": 1, "b": {"a": 2}}),
        ('{"a": [{"a": 1}, {"a": 2}]}', {"a": [{"a": 1}, {"a": 2}]}),
    ],
)
def test_an_object_is_found_wherever_an_agent_put_it(text: str, value: dict[str, Any]) -> None:
    assert read_object(text.encode()).value == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"), (" \n\t ", "empty"), ("no object here", "No complete JSON object"), ("[1, 2]", "an array"),
        ('"text"', "a string"), ("17", "a number"), ("1.5", "a number"), ("true", "a boolean"), ("null", "null"),
        ("{'a': 1}", "string in single quotes"), ('{"a": 1,}', "a comma before a closing bracket"),
        ('{"a": [1, 2\n,\n]}', "a comma before a closing bracket"), ('{"a": 1, // one\n"b": 2}', "a comment"),
        ('{"a": /* one */ 1}', "a comment"), ('{"a": None}', "`None` is Python"), ('{"a": True}', "`True` is Python"),
        ('{"a": "b\nc"}', "a line break or tab in a string"), ('{"a": [1,', "ends before the object does"),
        ('{"a": "b', "ends before the object does"),
        ('[{"role": ""}]', "Remove `[` and `]`"), ('[{"role": ""}, {"role": ""}]', "in a file of its own"),
        *((text, "Write one object.") for text in ("[]", "[1]", '["a"]', "[{}, 1]", "[{}]", '[{"id": "AC-1"}]')),
        ('{"a": "\\d+"}', "column 8: a backslash that begins no escape of JSON"),
        ('{"a": "\\d+"}', "Write `\\\\` for a backslash."), ('{a: 1, b: 2}', "a key without quotes"),
        ('{a: "x", "b": [{"c": 2}]}', "a key without quotes"), ("{'a': 1, \"b\": {\"c\": 2}}", "in single quotes"),
        ('{"a": undefined}', "Expecting value"), ("// note\n{a: 1}", "No complete JSON object"),
    ],
)  # fmt: skip
def test_anything_but_an_object_is_named_for_what_it_is(text: str, said: str) -> None:
    (found,) = findings_of(text.encode())
    assert found.code == "not-json"
    assert said in found.text


@pytest.mark.parametrize("before", ["", "Here it is:\n"])
@pytest.mark.parametrize("items", [1, 2, 3])
def test_a_result_cut_short_is_not_mistaken_for_its_parts(before: str, items: int) -> None:
    whole = json.dumps({"role": "planner", "create": [{"tempID": str(i)} for i in range(items)]}, indent=1)
    found = findings_of((before + whole[:-5]).encode())
    assert [finding.code for finding in found] == ["not-json"]
    assert found[0].line is not None


def test_a_broken_result_is_not_mistaken_for_the_text_after_the_break() -> None:
    (found,) = findings_of(b'{"role": "planner",\n "create": [{"tempID": "a"},,\n {"tempID": "b"}]}')
    assert (found.code, found.line) == ("not-json", 2)


def test_several_objects_are_refused_with_the_lines_of_all() -> None:
    (found,) = findings_of(b'first\n{"a": 1}\nor rather\n{"a": 2}\n')
    assert (found.code, found.line) == ("several-objects", 4)
    assert "lines 2, 4" in found.message
    assert only_code(b'{"a": 1}{"a": 2}') == "several-objects"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('{"a": 1,\n"a": 2}', [("/a", 2)]),
        ('{"x": [{"a": 1,\n"b": 2,\n"a": 3,\n"a": 4}]}', [("/x/0/a", 3), ("/x/0/a", 4)]),
        ('prose\n{"a/b": 1,\n"a/b": 2}', [("/a~1b", 3)]),
        ('{"a": 1,\n"\\u0061": 2}', [("/a", 2)]),
        ('{"": 1, "": 2}', [("/", 1)]),
    ],
)
def test_a_key_written_twice_is_shown_where_it_is_repeated(text: str, places: list[tuple[str, int]]) -> None:
    found = findings_of(text.encode())
    assert {finding.code for finding in found} == {"duplicate-key"}
    assert [(finding.path, finding.line) for finding in found] == places


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'{"a": NaN}', "not-json"), (b'{"a": -Infinity}', "not-json"), (b'{"a": -1e400}', "not-json"),
        (b'prose {"a": NaN, "b": {"c": 1}}', "not-json"), (b'{"a": ' + b"9" * 5000 + b"}", "not-json"),
        (b'prose {"a": ' + b"9" * 5000 + b"}", "not-json"), (b'{"a": "\xff"}', "not-json"),
        ('{"a": 1}'.encode("utf-16"), "not-json"), (b'{"a": "\\ud83d"}', "not-json"), (b'{"\\ude00": 1}', "not-json"),
        (b'{"a": {"\\ud83dx": 1}}', "not-json"), (b"[" * 100_000, "too-large"), (b'{"a":' * 100_000, "too-large"),
        (b'prose {"a":' + b"[" * 100_000, "too-large"),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), "too-large"),
        (b" " * (MAX_BYTES + 1), "too-large"),
    ],
)  # fmt: skip
def test_values_beyond_json_or_the_reader_are_findings(raw: bytes, code: str) -> None:
    assert only_code(raw) == code


def test_bytes_that_are_not_utf_8_are_shown_with_their_line() -> None:
    (found,) = findings_of(b'{\n"a":\n"\xff"}')
    assert (found.line, "Byte 8" in found.message) == (3, True)


def test_depth_that_a_contract_may_have_is_read() -> None:
    text = '{"a":' * 150 + "1" + "}" * 150
    assert read_object(text.encode()).value


@pytest.mark.slow
@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(lambda: b"{" * (50 * MIB), id="braces"),
        pytest.param(lambda: b" " * (50 * MIB), id="blanks"),
        pytest.param(lambda: os.urandom(50 * MIB), id="random bytes"),
        pytest.param(lambda: b'{"a' * (16 * MIB), id="keys that never end"),
        pytest.param(lambda: b'{"a":x}' * (2 * MIB), id="broken objects"),
        pytest.param(lambda: b'x {"a":1,"' + b'\\"' * (20 * MIB), id="a text that never ends"),
        pytest.param(lambda: b'x {"a":x' + b"[" * (40 * MIB), id="brackets"),
        pytest.param(lambda: b'{"a":"' + b"x" * (50 * MIB) + b'"', id="one text, cut short"),
    ],
)
def test_a_huge_file_of_nonsense_costs_seconds_not_the_job(raw: Any) -> None:
    content = raw()
    start = time.process_time()
    assert only_code(content) in ("not-json", "too-large")
    assert time.process_time() - start < 30 / SHARE


@pytest.mark.slow
def test_a_huge_file_of_json_is_read() -> None:
    start = time.process_time()
    document = read_object(b'{"text": "' + b"x" * (25 * MIB) + b'", "list": [' + b"1, " * (8 * MIB) + b"1]}")
    assert len(document.value["list"]) == 8 * MIB + 1
    assert time.process_time() - start < 30 / SHARE


@pytest.mark.slow
@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_raise_anything_but_a_broken_contract(raw: bytes) -> None:
    with suppress(BrokenContract):
        assert isinstance(read_object(raw), Document)


@pytest.mark.slow
@given(st.text(alphabet='{}[]",:\\ \na1eu', max_size=60))
def test_no_rubble_of_json_raises_anything_but_a_broken_contract(text: str) -> None:
    try:
        document = read_object(text.encode())
    except BrokenContract:
        return
    assert document.lines[""] >= 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=4)


PROSE = st.text(alphabet=string.ascii_letters + " .\n`")


@pytest.mark.slow
@given(OBJECTS, st.sampled_from([None, 1, "\t"]), st.booleans(), PROSE, PROSE)
def test_every_json_object_comes_back_as_it_is_with_and_without_prose(
    value: dict[str, Any], indent: Any, ascii_only: bool, before: str, after: str
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert read_object((before + text + after).encode()).value == value


def write_slowly(value: Any, path: str, line: int, places: dict[str, int], gaps: Any) -> tuple[str, int]:
    """Write JSON one token a time, noting the line on which each key and element begins."""
    if not isinstance(value, (dict, list)):
        return json.dumps(value), line
    out = ["{" if isinstance(value, dict) else "["]
    for i, key in enumerate(value):
        gap = "\n" * gaps()
        line += len(gap)
        out.append("," * (i > 0) + gap)
        here = path + pointer(key if isinstance(value, dict) else i)
        places[here] = line
        if isinstance(value, dict):
            gap = "\n" * gaps()
            out.append(json.dumps(key) + gap + ":")
            line += len(gap)
            child, line = write_slowly(value[key], here, line, places, gaps)
        else:
            child, line = write_slowly(key, here, line, places, gaps)
        out.append(child)
    out.append("}" if isinstance(value, dict) else "]")
    return "".join(out), line


@pytest.mark.slow
@given(OBJECTS, st.data(), st.sampled_from(["", "prose\n", "\n\n```json\n"]))
def test_a_finding_points_at_the_line_that_an_editor_shows(value: dict[str, Any], data: Any, before: str) -> None:
    places = {"": before.count("\n") + 1}
    text, _ = write_slowly(value, "", places[""], places, lambda: data.draw(st.integers(0, 2)))
    assert read_object((before + text).encode()).lines == places
