"""Kinds of documents: how each is recognised, read and checked. ``accord.kinds`` fills the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from accord.core.documents import read_object, short_name
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, has_errors, pointer, with_lines
from accord.core.frozen import Frozen
from accord.core.shapes import DocumentFormat, Located, format_of, read_shape, sole_entry
from accord.core.suggest import correct_spelling, did_you_mean

if TYPE_CHECKING:
    from pydantic import BaseModel


READERS: dict[DocumentFormat, Callable[[bytes], Located]] = {"json": read_object}
"""The reader of each format. It raises BrokenContract where the bytes are not exactly one document."""


class Contents(NamedTuple):
    """The model of a kind, its rules (for the model, and a role if it has one), and its own correction of faults."""

    model: type[BaseModel]
    rules: Callable[..., list[Finding]] | None = None
    fix: Callable[[dict[str, Any]], tuple[dict[str, Any], list[Any]]] | None = None
    store_findings: Callable[[Mapping[str, Any]], list[Finding] | None] | None = None
    """The findings of an object that holds several documents of the kind; None for one document."""


TEXT_AROUND = Finding(
    "text-around", "Text or a code fence surrounds the JSON object.", hint="Write the object and nothing else."
)


class Contract(NamedTuple):
    """A public contract; one that does not count its versions has the date or the number of its decision, or none."""

    name: str
    version: str | None


class Kind(Frozen):
    """One kind of document. Its code is imported when it is first used."""

    name: str
    load: Callable[[], Contents]
    marks: Mapping[str, Any]
    """The keys by which it is recognised, each with its value or a test of its value."""

    has_any: bool = False
    """Whether one of the keys is enough."""

    form: DocumentFormat = "json"
    is_alone: bool = False
    """Whether JSON that text surrounds is refused."""

    has_role: bool = False
    own_keys: frozenset[str] = frozenset()
    """The keys that accord itself sets, whatever an agent writes there."""

    list_key: str = ""
    """The key where the entries of a bare array belong."""

    contract: Contract | None = None
    """The contract that defines it; None for a kind of accord's own."""

    @property
    def model(self) -> type[BaseModel]:
        """The model."""
        return self.load().model

    def matches(self, value: Mapping[str, Any]) -> bool:
        """Return whether a document says that it is of this kind."""
        found = ((value.get(key), mark) for key, mark in self.marks.items())
        judged = (mark(given) if callable(mark) else given == mark for given, mark in found)
        return any(judged) if self.has_any else all(judged)

    def read(self, raw: bytes) -> Located:
        """Read a document in the format of this kind. Raises BrokenContract."""
        try:
            return READERS[self.form](raw)
        except BrokenContract:
            with suppress(ValueError, RecursionError):
                if self.list_key and isinstance(json.loads(raw), list):
                    hint = f'Write it as `{{"{self.list_key}": […]}}`.'
                    found = Finding("bare-array", "The document is a bare array.", line=1, hint=hint)
                    raise BrokenContract.of(found) from None
            raise

    def findings(self, model: BaseModel, role: str = "") -> list[Finding]:
        """Hold a document that has the shape against the rules."""
        rules = self.load().rules
        return [] if rules is None else rules(model, role) if self.has_role else rules(model)

    def fix(self, value: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """Return a document without the small faults of this kind, and each ``Fix``."""
        fix = self.load().fix
        return fix(value) if fix else (value, [])

    def check(self, document: Located, role: str = "") -> list[Finding]:
        """Check shape, then rules; every finding with its line."""
        store_findings = self.load().store_findings
        found = store_findings(document.value) if store_findings else None
        if found is None:
            return self.read_model(document, role)[1]
        return with_lines([*self._text_findings(document), *found], document.lines)

    def _text_findings(self, document: Located) -> list[Finding]:
        return [] if document.is_alone or not self.is_alone else [TEXT_AROUND]

    def read_model(self, document: Located, role: str = "") -> tuple[Any, list[Finding]]:
        """Return the model, None where the shape is wrong, and the findings, each with its line."""
        model = None
        findings = self._text_findings(document)
        try:
            model = read_shape(self.model, document.value)
            findings += self.findings(model, role)
        except BrokenContract as broken:
            findings += broken.findings
            if unknown_keys := getattr(self.model, "unknown_key_findings", None):
                findings += unknown_keys(document.value)
        return model, with_lines(findings, document.lines) if findings else []

    def read_valid(self, raw: bytes, path: str) -> Any:
        """Return the model of a file. Raises BrokenContract, which names the file, for one with an error."""
        model, findings = self.read_model(self.read(raw))
        if has_errors(findings):
            texts = (f"{path}{f':{each.line}' if each.line else ''}: {each.text}" for each in findings)
            raise BrokenContract(" ".join(texts), findings=findings, hint="Correct the file, and run this again.")
        return model


_MOST_WRAPPINGS = 5

KINDS: dict[str, Kind] = {}
"""Every kind of document by its name, in the order in which a document is held against them."""


def contract_of(kind: str | None) -> dict[str, dict[str, str | None]]:
    """Return the part of a report that names the contract of a kind; nothing for another kind."""
    known = KINDS.get(kind or "")
    return {"contract": known.contract._asdict()} if known and known.contract else {}


class FolderKind(NamedTuple):
    """Tests whether a folder is of a kind, and checks its documents together."""

    matches: Callable[[Path], bool]
    check: Callable[[Path], list[tuple[Path, str, list[Finding]]]]


FOLDERS: dict[str, FolderKind] = {}
"""Every kind of folder by its name."""


def kind_for(name: str | None, value: Mapping[str, Any], form: DocumentFormat = "json") -> Kind:
    """Return the kind of this name, else the one that the document shows. Raises BrokenContract for another or none."""
    if name is None:
        return recognised_kind(value, form)
    kind = KINDS[name]
    if "role" in kind.marks:
        _check_alone(value)
    others = [] if kind.matches(value) else [other for other in KINDS.values() if other.matches(value)]
    for other in others:
        for key, mark in kind.marks.items():
            if not callable(mark) and other.marks.get(key, mark) != mark:
                message = f"The document's kind is {other.name}, not {name}."
                raise _kind_error(message, f"Pass `--kind {other.name}`, or no `--kind`.", pointer(key))
    return kind


def _check_alone(value: Mapping[str, Any]) -> None:
    if keys := wrapping_keys(value) or _keys_around_text(value):
        names = " and ".join(f"`{short_name(key)}`" for key in keys)
        message = f"The document is inside another object, under the key{'s' if keys[1:] else ''} {names}."
        raise _kind_error(message, "Write the inner object alone.", pointer(*keys))


def _keys_around_text(value: Mapping[str, Any]) -> list[str]:
    """Return the key whose string holds a document with a role, as in the JSON output of an agent's command."""
    texts = {key: text for key, text in value.items() if isinstance(text, str) and '"role"' in text}
    for key, text in texts.items() if "role" not in value else ():
        with suppress(BrokenContract):
            if read_object(text.encode()).value.get("role") in role_names():
                return [key]
    return []


def _kind_error(message: str, hint: str, path: str = "") -> BrokenContract:
    return BrokenContract.of(Finding("schema", message, path, hint=hint))


def recognised_kind(value: Mapping[str, Any], form: DocumentFormat) -> Kind:
    """Return the kind that a document of this format shows. Raises BrokenContract when it shows no known kind."""
    candidates = [kind for kind in KINDS.values() if kind.form == form]
    for kind in candidates:
        if kind.matches(value):
            return kind
    if form == "yaml":
        names = ", ".join(kind.name for kind in candidates)
        raise _kind_error("The document shows no known kind.", f"Pass `--kind` with one of: {names}.")
    role, roles = value.get("role"), role_names()
    if role is None and (key := misspelled_role(value)):
        message = f"The key `{key}` is not `role`, so the document's kind is unknown."
        raise _kind_error(message, f"Rename `{key}` to `role`.", pointer(key))
    _check_alone(value)
    if role is None:
        hint = f"Add it ({', '.join(roles)}), or pass `--kind`."
        raise _kind_error("The document has no `role`, so its kind is unknown.", hint, "/role")
    hint = did_you_mean(str(role), roles) or f"Use one of: {', '.join(roles)}."
    raise _kind_error(f"Unknown role `{short_name(str(role))}`.", hint, "/role")


def role_names() -> list[str]:
    """Return the roles by which a document shows its kind."""
    return [str(kind.marks["role"]) for kind in KINDS.values() if "role" in kind.marks]


def misspelled_role(value: Mapping[str, Any]) -> str | None:
    """Return the key that stands for `role`: near to it, with a known role as its value, in any case."""
    near = [key for key in value if correct_spelling(key.strip(), ["role"])]
    near = [key for key in near if str(value[key]).strip().lower() in role_names()]
    return near[0] if len(near) == 1 and "role" not in value else None


def wrapping_keys(value: Mapping[str, Any]) -> list[str]:
    """Return the keys of the objects around a document with a role, each the only one, from the outside; else none.

    An array with one entry counts as its entry.
    """
    keys: list[str] = []
    inner: Any = value
    while isinstance(inner, dict) and len(inner) == 1 and len(keys) < _MOST_WRAPPINGS:
        ((key, inner),) = inner.items()
        inner = sole_entry(inner)
        keys.append(key)
        if isinstance(inner, dict) and (inner.get("role") in role_names() or misspelled_role(inner)):
            return keys
    return []


def check_document(raw: bytes, kind: str | None, path: str = "-", role: str = "") -> tuple[str | None, list[Finding]]:
    """Check one document, read as its kind or file name says; return its kind (None: unknown) and the findings."""
    form = KINDS[kind].form if kind else format_of(path)
    try:
        document = KINDS[kind].read(raw) if kind else READERS[form](raw)
        try:
            found = kind_for(kind, document.value, form)
        except BrokenContract as broken:
            return kind, with_lines(broken.findings, document.lines)
    except BrokenContract as broken:
        return kind, list(broken.findings)
    return found.name, found.check(document, role)


def check_folder(folder: Path, kind: str | None) -> list[tuple[Path, str, list[Finding]]]:
    """Check the documents of a folder together. Raises WrongUsage if its kind is not given and unknown."""
    for name, folder_kind in FOLDERS.items():
        if kind == name or (kind is None and folder_kind.matches(folder)):
            return folder_kind.check(folder)
    raise WrongUsage(f"`{folder}` is not a folder of a known kind.", hint=f"Pass `--kind {' or '.join(FOLDERS)}`.")
