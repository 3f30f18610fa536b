"""Tests of frozen dataclasses: as ``@dataclass(frozen=True)`` makes them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace
from typing import Any, Generic, TypeVar

import pytest

from accord.core.frozen import Frozen, json_field

Kept = TypeVar("Kept")


class Point(Frozen):
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list, compare=False)
    key: str = field(default="", repr=False, kw_only=True)


@dataclass(frozen=True)
class Peer:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list, compare=False)
    key: str = field(default="", repr=False, kw_only=True)


class Named(Point):
    name: str = "a"


class Keyed(Frozen, kw_only=True):
    x: int = 0
    y: int


class Holder(Frozen, Generic[Kept]):
    kept: Kept


class Checked(Frozen):
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(self.x)


USES: dict[str, Callable[[Any], object]] = {
    "default": lambda cls: asdict(cls(1)),
    "positions": lambda cls: asdict(cls(1, 2, ["a"])),
    "names": lambda cls: asdict(cls(y=3, x=1, key="k")),
    "replaced": lambda cls: asdict(replace(cls(1, 2), y=5)),
    "repr": lambda cls: repr(cls(1, key="k")).split("(")[1],
    "equal": lambda cls: (cls(1) == cls(1, tags=["a"]), cls(1) == cls(2), cls(1) == 1, cls(1) == Keyed(y=1)),
    "in a set": lambda cls: len({cls(1), cls(1, 0), cls(1, key="k")}),
    "copied": lambda cls: [asdict(each) for each in (copy.copy(cls(1)), copy.deepcopy(cls(1, 2, ["a"])))],
    "pickled": lambda cls: asdict(pickle.loads(pickle.dumps(cls(1, 2)))),
    "own list": lambda cls: cls(1).tags is cls(1).tags,
    "matched": lambda cls: cls.__match_args__,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_frozen_class_does_what_a_frozen_dataclass_does(use: Callable[[Any], object]) -> None:
    assert use(Point) == use(Peer)


@pytest.mark.parametrize("cls", [Point, Peer])
@pytest.mark.parametrize(
    ("args", "values"), [((), {}), ((1, 2, [], "k"), {}), ((1,), {"x": 2}), ((1,), {"z": 2})], ids=str
)
def test_wrong_arguments_are_refused(cls: Callable[..., object], args: tuple[object], values: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        cls(*args, **values)


@pytest.mark.parametrize("point", [Point(1), Peer(1)], ids=str)
def test_an_instance_does_not_change(point: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        point.x = 2
    with pytest.raises(FrozenInstanceError):
        del point.x


def test_a_subclass_adds_fields_and_compares_as_itself() -> None:
    assert asdict(Named(1, name="b")) == {"x": 1, "y": 0, "tags": [], "key": "", "name": "b"}
    assert Named(1) != Point(1)
    assert asdict(Holder[int](1)) == {"kept": 1}
    assert asdict(Keyed(y=2)) == {"x": 0, "y": 2}


def test_an_instance_is_checked() -> None:
    with pytest.raises(ValueError, match="-1"):
        Checked(-1)


class Mirror(Frozen):
    number: int = json_field()
    url: str | None = json_field("html_url")
    branch: str = json_field("head.ref")
    author: str = json_field("user.login", empty="")
    blockers: int | None = json_field("summary.total", empty=None)
    labels: tuple[str, ...] = json_field(read=tuple, default=("none",))
    note: str = "not from JSON"


WHOLE = {"number": 1, "html_url": "u", "head": {"ref": "b"}}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, Mirror(1, "u", "b", "", None)),
        ({"user": None, "summary": {"total": None}, "labels": None}, Mirror(1, "u", "b", "", None)),
        ({"user": {"login": "ada"}, "summary": {"total": 0}}, Mirror(1, "u", "b", "ada", 0)),
        ({"labels": ["x"], "note": "unread", "html_url": None}, Mirror(1, None, "b", "", None, ("x",))),
    ],
)
def test_fields_are_read_from_json_by_their_paths(more: dict[str, Any], expected: Mirror) -> None:
    assert Mirror.from_json(WHOLE | more) == expected


@pytest.mark.parametrize(
    "odd", [{}, [], {**WHOLE, "head": None}, {**WHOLE, "head": {}}, {**WHOLE, "user": "ada"}, {**WHOLE, "labels": 3}]
)
def test_json_without_a_required_value_or_of_another_form_is_an_error_of_its_reader(odd: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        Mirror.from_json(odd)
