"""Names in addresses: each is one segment, and none leaves the place that it is below."""

from pathlib import Path

import pytest
from support.stage import Stage

import accord
from accord.github.models import Forbidden, NotThere
from accord.github.rest import segment, segments
from accord_sandbox.planting import STRANGER_TOKEN


@pytest.mark.parametrize("name", ["", ".", "..", "a\nb", "\x00", "a\x7f"])
def test_a_name_that_no_address_can_carry_is_refused(name: str) -> None:
    with pytest.raises(NotThere, match="cannot be part of an address"):
        segment(name)
    with pytest.raises(NotThere):
        segments(f"heads/{name}/x")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("a/b", "a%2Fb"),
        ("why?", "why%3F"),
        ("50%", "50%25"),
        ("c#", "c%23"),
        ("...", "..."),
        ("a..b", "a..b"),
        ("ß", "%C3%9F"),
    ],
)
def test_any_other_name_is_quoted_as_one_segment(name: str, address: str) -> None:
    assert segment(name) == address
    assert segments(f"heads/{name}") == f"heads/{name if '/' in name else address}"


def test_every_name_in_an_address_is_quoted_at_one_place() -> None:
    folder = Path(accord.__file__).parent / "github"
    assert [path.name for path in folder.glob("*.py") if "quote(" in path.read_text()] == ["rest.py"]


def test_a_name_that_is_refused_sends_no_request(stage: Stage) -> None:
    github = stage.adapter()
    for send in (
        lambda: github.delete_label(".."),
        lambda: github.remove_label(1, "."),
        lambda: github.may_write(".."),
    ):
        with pytest.raises(NotThere):
            send()
    assert github.find_file("docs/../x") is None
    assert (github.requests.read, github.requests.write) == (0, 0)


def test_a_delete_of_what_is_still_listed_is_not_done(stage: Stage) -> None:
    stage.adapter().delete_label("never there")
    weak = stage.adapter(token=STRANGER_TOKEN)
    with pytest.raises(Forbidden):
        weak.delete_label("bug")
    assert stage.adapter().label("bug") is not None
