"""Names of branches: which belong to a work item, and which keep another one from being made."""

import pytest

from accord.core.errors import BrokenContract
from accord.git.configuration import (
    CONFIG_PATHS,
    ConfigFile,
    branch_in_the_way,
    find_config,
    item_of_branch,
    prefix_in,
    way_refusal,
    work_branch,
)


@pytest.mark.parametrize(
    ("branch", "names", "other"),
    [
        ("accord/1", ["accord"], "accord"),
        ("accord/1", ["accord/1/x"], "accord/1/x"),
        ("bots/accord/1", ["bots/accord", "main"], "bots/accord"),
        ("bots/accord/1", ["bots"], "bots"),
        ("fix", ["fix/a/b", "main"], "fix/a/b"),
        ("fix/a", ["fix"], "fix"),
        ("accord/1", ["accord-notes", "accord/10/x", "accord/2", "Accord", "accord/1-2/x"], ""),
        ("accord/1", ["accord/1"], ""),
    ],
)
def test_a_branch_is_in_the_way_as_its_folder_or_below_it(branch: str, names: list[str], other: str) -> None:
    assert branch_in_the_way(branch, names) == other


def test_the_hint_about_a_branch_in_the_way_names_every_place_of_the_configuration() -> None:
    assert all(path in way_refusal("accord/1", "accord").hint for path in CONFIG_PATHS)


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        (work_branch(7), True),
        (work_branch(7, 3), True),
        (work_branch(7, 2, "bots/accord"), True),
        ("accord/7-conflict-0123abcd", False),
        ("accord/77", False),
        ("accord/7-0", False),
        ("7", True),
        ("accord/07", False),
    ],
)
def test_the_branches_of_a_work_item_have_its_number(name: str, is_own: bool) -> None:
    assert (item_of_branch(name) == 7) is is_own


@pytest.mark.parametrize(
    ("files", "prefix"),
    [
        ((None, None), "accord"),
        ((None, b"branch_prefix: bots\n"), "bots"),
        ((b"version: 1\n", b"branch_prefix: bots\n"), "accord"),
        ((b"branch_prefix: bots/accord-2\n", b"branch_prefix: other\n"), "bots/accord-2"),
        ((b"# nothing yet\n", b""), "accord"),
    ],
)
def test_the_configuration_names_the_prefix_of_branches(files: tuple[bytes | None, ...], prefix: str) -> None:
    assert prefix_in(find_config(dict(zip(CONFIG_PATHS, files, strict=True)).get)) == prefix


@pytest.mark.parametrize("value", ["a/", "/a", "refs/heads/a", "a..b", "a b", "-a", "[a]", "a.lock", "''"])
def test_a_prefix_that_begins_no_branch_is_refused_with_its_file(value: str) -> None:
    with pytest.raises(BrokenContract, match=r"accord/config.yml: `branch_prefix`"):
        prefix_in(ConfigFile(raw=f"branch_prefix: {value}\n".encode()))
