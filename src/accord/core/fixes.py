"""Small faults of a JSON document that can be corrected without asking its author. Pure.

Only what has one possible meaning is corrected: text or an object around the document, commas before a closing
bracket, a misspelled key or role, a number in place of a string, and what a kind adds itself, such as the status label
of a new work item.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from accord.core.documents import OBJECT_BEGIN, Document, read_object, short_name, write_json
from accord.core.errors import BrokenContract
from accord.core.findings import pointer
from accord.core.frozen import Frozen
from accord.core.kinds import KINDS, Kind, kind_for, misspelled_role, role_names, wrapping_keys
from accord.core.shapes import Located, format_of, keys_at, sole_entry, value_at
from accord.core.suggest import correct_spelling

_ROUNDS = 10
"""A corrected key can show faults below it: one round for each level of the deepest contract, and more."""

_COMMA = re.compile(r'"[^"\\]*(?:"|.*?(?<!\\)(?:\\\\)*(?:"|\\?\Z))|,(?=\s*[\]}])', re.DOTALL)
"""A string, or a comma before a closing bracket."""

_WHOLE_NUMBER = re.compile(r"-?[1-9][0-9]{0,8}")


class Fix(Frozen):
    """One corrected fault: a sentence, and the JSON pointer of the corrected part."""

    message: str
    path: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the fix as JSON."""
        return {"message": self.message, "path": self.path}

    @property
    def text(self) -> str:
        """The sentence with its place."""
        return f"{self.message.removesuffix('.')} at {self.path}." if self.path else self.message


def fix_document(kind: Kind, document: Located) -> tuple[dict[str, Any], list[Fix]]:
    """Return a copy of a document without its small faults, and what was corrected, in order."""
    value = deepcopy(dict(document.value))
    fixes = [] if document.is_alone else [Fix("Removed the text around the JSON object.")]
    for _ in range(_ROUNDS):
        found = [*_fix_shape(kind.model, value)]
        fixes += found
        if not found:
            break
    more: list[Fix]
    value, more = kind.fix(value)
    return value, fixes + more


def fix_text(raw: bytes, name: str | None, path: str = "-") -> tuple[bytes, list[Fix]]:
    """Return the text of a JSON document without its small faults; ``raw`` itself if nothing was corrected.

    ``name`` is its kind, None if the document tells. YAML stays as it is: its comments would be lost.
    """
    form = KINDS[name].form if name else format_of(path)
    if form != "json":
        return raw, []
    try:
        document, fixes = read_corrected(raw, name)
        value, more = fix_document(kind_for(name, document.value, form), document)
    except BrokenContract:
        return raw, []
    fixes += more
    return (f"{write_json(value, indent=2)}\n".encode() if fixes else raw), fixes


def read_corrected(raw: bytes, name: str | None) -> tuple[Document, list[Fix]]:
    """Read a document with what hid its kind (None: the document tells) corrected. Raises BrokenContract."""
    document, commas = _read_without_commas(raw)
    kinds = () if name else (kind for kind in KINDS.values() if kind.form == "json")
    if "role" not in KINDS[name].marks if name else any(kind.matches(document.value) for kind in kinds):
        return document, commas
    document, fixes = _with_role(document)
    return document, [*commas, *fixes]


def _read_without_commas(raw: bytes) -> tuple[Document, list[Fix]]:
    """Read a document; if it cannot be read, then without commas before closing brackets. Raises BrokenContract."""
    try:
        return read_object(raw), []
    except BrokenContract as broken:
        text = raw.decode("utf-8-sig", "replace")
        begin = OBJECT_BEGIN.search(text)
        if begin is None or any(finding.code != "not-json" for finding in broken.findings):
            raise
        start = begin.start()
        corrected = text[:start] + _COMMA.sub(lambda at: "" if at[0] == "," else at[0], text[start:])
        document, removed = read_object(corrected.encode()), len(text) - len(corrected)
    commas = "the comma" if removed == 1 else f"{removed} commas"
    return document, [Fix(f"Removed {commas} before a closing bracket.")]


def _with_role(document: Document) -> tuple[Document, list[Fix]]:
    """Take a document out of an object around it, and write the key `role` and its value as the contracts do."""
    value, fixes = deepcopy(document.value), list[Fix]()
    for wrapping in wrapping_keys(value):
        value = sole_entry(value[wrapping])
        fixes.append(Fix(f"Removed the object around the document, with the key `{short_name(wrapping)}`."))
    if key := misspelled_role(value):
        value = {("role" if name == key else name): child for name, child in value.items()}
        fixes.append(Fix(f"Renamed the key `{key}` to `role`.", "/role"))
    role = value.get("role")
    if isinstance(role, str) and role not in role_names() and (name := role.strip().lower()) in role_names():
        value = {**value, "role": name}
        fixes.append(Fix(f"Wrote the role `{role}` as `{name}`.", "/role"))
    return replace(document, value=value), fixes


def _fix_shape(model: type[BaseModel], value: dict[str, Any]) -> Iterator[Fix]:
    """Correct keys and strings in place, as far as the model refuses them."""
    from pydantic import ValidationError

    try:
        model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
    else:
        return
    keys: dict[tuple[str | int, ...], set[str]] = {}
    for detail in details:
        steps, fault = detail["loc"], detail["type"]
        if fault == "string_type" and type(number := value_at(value, steps)) is int:
            value_at(value, steps[:-1])[steps[-1]] = str(number)
            yield Fix(f"Wrote the number {number} as a string.", pointer(*steps))
        elif fault == "int_type" and isinstance(text := value_at(value, steps), str) and _WHOLE_NUMBER.fullmatch(text):
            value_at(value, steps[:-1])[steps[-1]] = int(text)
            yield Fix(f"Wrote the string `{text}` as a number.", pointer(*steps))
        elif fault in ("missing", "extra_forbidden") and isinstance(value_at(value, steps[:-1]), dict):
            keys.setdefault(steps[:-1], set()).add(str(steps[-1]))
    for place, named in keys.items():
        yield from _rename_keys(value_at(value, place), keys_at(model, place), named, pointer(*place))


def _rename_keys(parent: dict[str, Any], known: Sequence[str], named: set[str], path: str) -> Iterator[Fix]:
    """Rename unknown keys that are near to exactly one absent key; ``named`` are the keys that are wrong."""
    unknown, absent = [key for key in parent if key not in known], [key for key in known if key not in parent]
    pairs = [(key, near) for key in unknown for near in absent if {key, near} & named and correct_spelling(key, [near])]
    for key, wanted in pairs:
        if sum(key == one or wanted == other for one, other in pairs) == 1:
            items = [(wanted if name == key else name, child) for name, child in parent.items()]
            parent.clear()
            parent.update(items)
            yield Fix(f"Renamed the key `{short_name(key)}` to `{wanted}`.", path + pointer(wanted))
