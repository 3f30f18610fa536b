"""Many repositories: the list, shards and recorded results."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.errors import BrokenContract, Refused, Stopped, WrongUsage
from accord.kit.many import (
    MOST_SHARDS,
    ManyOutcome,
    ManyResult,
    counts,
    exit_code,
    read_repositories,
    read_results,
    run_shard,
    shard_of,
    shards,
)

NAMES = [f"octo/r{n}" for n in range(10)]


@pytest.mark.slow
@given(st.integers(1, 3_000), st.integers(1, 60))
def test_shards_hold_every_repository_once_and_fit_a_matrix(count: int, size: int) -> None:
    names = [f"octo/r{n}" for n in range(count)]
    named = shards(count, size)
    assert len(named) <= MOST_SHARDS
    parts = [shard_of(names, shard) for shard in (each["shard"] for each in named)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert max(map(len, parts)) <= max(size, -(-count // MOST_SHARDS))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'["octo/a", {"name": 3}]', 'Line 1: Entry 2 is not a repository: {"name": 3}.'),
        (b"- octo/a\n- true\n", "Line 2: Entry 2 is not a repository: true."),
        (b"- {1: !!binary aGk=}\n", 'Entry 1 is not a repository: {"1": "b\'hi\'"}.'),
    ],
)
def test_a_bad_entry_of_a_list_is_shown_with_its_number_as_json(raw: bytes, words: str) -> None:
    with pytest.raises(BrokenContract) as caught:
        read_repositories(raw)
    assert words in caught.value.message


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "3", "a/b", "1/0", "1/2/3"])
def test_a_shard_that_does_not_exist_is_wrong_usage(text: str) -> None:
    with pytest.raises(WrongUsage, match="not a shard"):
        shard_of(NAMES, text)


def test_results_survive_a_line_that_was_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    first = ManyResult("octo/a", ManyOutcome.APPLIED, "2 files")
    run_shard(["octo/a"], lambda _: first, lambda _: None, file)
    with file.open("ab") as broken:
        broken.write(b'{"repository": "octo/b", "outc')
    assert read_results(file) == {"octo/a": first}


@pytest.mark.parametrize("line", ["{}", '{"repository": "octo/web", "outcome": "applied", "reads": "many"}'])
def test_a_file_that_holds_no_results_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(f"{line}\n")
    with pytest.raises(WrongUsage, match="line 1 is not a result"):
        read_results(file)


def test_one_failure_does_not_end_the_others_but_three_stops_in_a_row_do() -> None:
    def task(name: str) -> ManyResult:
        if name == "octo/r1":
            raise Refused("No access.", hint="Ask for it.")
        if name >= "octo/r4":
            raise Stopped("The limit is reached.", hint="Run it again later.")
        return ManyResult(name, ManyOutcome.UNCHANGED)

    recorded: list[ManyResult] = []
    whole = run_shard(NAMES, task, recorded.append)
    assert whole[:7] == recorded
    assert whole[1].note == "No access. Ask for it."
    assert counts(whole) == {"stopped": 3, "refused": 1, "unchanged": 3, "pending": 3}
    assert exit_code(whole) == 3


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 0),
        (["unchanged", "applied", "declined", "planned"], 0),
        (["findings", "applied"], 1),
        (["refused", "findings"], 4),
        (["stopped", "refused"], 3),
        (["pending"], 3),
    ],
)
def test_the_exit_code_names_what_is_most_urgent(outcomes: list[str], code: int) -> None:
    assert exit_code([ManyResult("octo/a", ManyOutcome(outcome)) for outcome in outcomes]) == code
