"""Frozen dataclasses that start fast: Python compiles six methods for each ``@dataclass(frozen=True)``.

For the classes that a quick command imports, that takes an eighth of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, ClassVar, Self, dataclass_transform


def json_field(
    path: str = "", read: Callable[[Any], Any] = lambda value: value, *, empty: Any = MISSING, **options: Any
) -> Any:
    """Declare a field of an object whose JSON has the value at a path such as ``user.login``, by default its own name.

    Where the JSON has no value, or an empty text, the value is ``empty``, or else the default of the field; without
    both, the JSON must have one. ``options`` are those of ``field``.
    """
    return field(metadata={"path": path.split(".") if path else (), "read": read, "empty": empty}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(field, json_field))
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

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON of an object by its fields. Raises KeyError, TypeError, ValueError or AttributeError."""
        values = dict[str, Any]()
        for each in (one for one in fields(cls) if one.metadata):
            *above, last = each.metadata["path"] or (each.name,)
            empty, holder = each.metadata["empty"], data
            if empty is MISSING and each.name in cls._required:
                for step in above:
                    holder = holder[step]
                values[each.name] = each.metadata["read"](holder[last])
                continue
            for step in above:
                holder = holder.get(step) or {}
            if (value := holder.get(last)) not in (None, ""):
                values[each.name] = each.metadata["read"](value)
            elif empty is not MISSING:
                values[each.name] = empty
        return cls(**values)

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
