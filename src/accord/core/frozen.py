"""Frozen dataclasses that start fast: Python compiles six methods for each ``@dataclass(frozen=True)``.

For the classes that a quick command imports, that takes an eighth of its time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen:
    """A base class whose subclasses are frozen dataclasses, for ``replace``, ``asdict`` and ``fields`` too.

    Where a command makes thousands of instances, take ``@dataclass(frozen=True, slots=True)``.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _factories: ClassVar[dict[str, Callable[[], object]]]
    _required: ClassVar[frozenset[str]]
    _compared: ClassVar[attrgetter[Any]]

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        super().__init_subclass__()
        cls.__doc__ = cls.__doc__ or cls.__name__
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        found = fields(cls)
        cls._factories = {each.name: each.default_factory for each in found if each.default_factory is not MISSING}
        needed = (each.name for each in found if each.default is MISSING)
        cls._required = frozenset(needed).difference(cls._factories)
        cls._compared = attrgetter("__class__", *(each.name for each in found if each.compare))

    def __init__(self, *args: object, **values: object) -> None:
        given = self.__dict__
        given.update(zip(self.__match_args__, args, strict=False), **values)
        is_sound = len(given) == len(args) + len(values) and self._required.issubset(given)
        if not is_sound or not self.__dataclass_fields__.keys() >= values.keys():
            raise TypeError(f"{type(self).__name__} has other fields than these arguments: {args}, {values}.")
        for name in self._factories:
            if name not in given:
                given[name] = self._factories[name]()
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check or complete a new instance."""

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(name)

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(name)

    def __eq__(self, other: object) -> bool:
        return self._compared(self) == self._compared(other) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._compared(self))

    def __repr__(self) -> str:
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"
