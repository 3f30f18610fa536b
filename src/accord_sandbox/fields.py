"""The body of a request, read field by field, refusing with GitHub's words what does not fit the schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from accord_sandbox.answers import Refusal, schema_violation

if TYPE_CHECKING:
    from collections.abc import Callable


class Fields:
    """A JSON object with typed access. A getter returns None for an absent field; ``in`` tells the two apart."""

    def __init__(self, document: Any) -> None:
        if document is None:
            document = {}
        if not isinstance(document, dict):
            raise Refusal(400, "Body should be a JSON object")
        self._document: dict[str, Any] = document

    def __contains__(self, name: str) -> bool:
        return name in self._document

    def string(self, name: str, *, null: bool = False) -> str | None:
        """Return a text; ``null`` says whether the schema lets the field be null."""
        value = self._get(name, null)
        if value is not None and not isinstance(value, str):
            raise _unfit(name, value, "a string")
        return value

    def title(self, *, null: bool = False) -> str | None:
        """Return the title, which GitHub also takes as a number."""
        value = self._get("title", null)
        if isinstance(value, bool) or not isinstance(value, str | int | None):
            raise _unfit("title", value, "a string")
        return None if value is None else str(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return true or false."""
        value = self._get(name, False)
        if value is not None and not isinstance(value, bool):
            raise _unfit(name, value, "a boolean")
        return default if value is None else value

    def integer(self, name: str) -> int:
        """Return a required number."""
        self.require(name)
        value = self._get(name, False)
        if isinstance(value, bool) or not isinstance(value, int):
            raise _unfit(name, value, "an integer")
        return value

    def names(self, name: str, key: str) -> list[str] | None:
        """Return a list of texts, each given plainly or as an object that has it under ``key``."""
        value = self._get(name, False)
        if value is None:
            return None
        return texts(name, value, key)

    def require(self, name: str) -> None:
        """Refuse a body that lacks the field."""
        if name not in self._document:
            raise schema_violation(f'"{name}" wasn\'t supplied.')

    def choice(self, name: str, allowed: tuple[str, ...], *, null: bool = False) -> str | None:
        """Return a text out of a fixed set."""
        value = self.string(name, null=null)
        if value is not None and value not in allowed:
            listing = ", ".join(allowed)
            raise schema_violation(f"For 'properties/{name}', {_ruby(value)} is not a member of [{listing}].")
        return value

    def _get(self, name: str, null: bool) -> Any:
        value = self._document.get(name)
        if value is None and name in self._document and not null:
            raise schema_violation(f"For 'properties/{name}', nil is not allowed.")
        return value


def texts(name: str, value: Any, key: str) -> list[str]:
    """Return the texts in a JSON array, each plain or in an object under ``key``; without doubles, order kept."""
    if not isinstance(value, list):
        raise _unfit(name, value, "an array")
    plain: Callable[[Any], Any] = lambda entry: entry.get(key) if isinstance(entry, dict) else entry  # noqa: E731
    entries = [plain(entry) for entry in value]
    for index, entry in enumerate(entries):
        if not isinstance(entry, str):
            raise _unfit(f"{name}/items/{index}", entry, "a string")
    return list(dict.fromkeys(entries))


def _unfit(name: str, value: Any, wanted: str) -> Refusal:
    return schema_violation(f"For 'properties/{name}', {_ruby(value)} is not {wanted}.")


def _ruby(value: Any) -> str:
    return "nil" if value is None else json.dumps(value, ensure_ascii=False)
