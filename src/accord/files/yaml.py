"""Reading YAML that people write: safe types only, repeated keys refused, ``on:`` and ``12:30`` left as text.

YAML 1.1 reads ``on`` as true and ``12:30`` as 750. Files of GitHub and of the contracts mean the words.
"""

from __future__ import annotations

import copy
import json
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer
from accord.core.frozen import Frozen

if TYPE_CHECKING:
    import yaml


_MOST_NODES = 200_000
"""Aliases of aliases unfold without end; no file that people write comes near this."""

_MOST_LEVELS = 200
"""As deep as JSON may nest. libyaml composes by recursion in C, where too much of it would end the process."""

_MOST_BYTES = 1024 * 1024
"""Twice what GitHub takes for a workflow file (500 KB); PyYAML needs a second for it."""


class YamlDocument(Frozen):
    """A value and the line (from 1) of each of its JSON pointers."""

    value: Any
    lines: dict[str, int]
    is_alone: ClassVar[bool] = True
    """YAML is never found inside prose."""


@cache
def _loader(base: type[yaml.SafeLoader]) -> type[yaml.SafeLoader]:
    import yaml

    class Loader(base):  # type: ignore[misc, valid-type]
        """YAML 1.2's idea of booleans and integers on PyYAML's safe loader."""

    resolvers = {
        letter: [(tag, rule) for tag, rule in rules if not tag.endswith((":bool", ":int", ":timestamp"))]
        for letter, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.yaml_implicit_resolvers = resolvers
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
    )
    Loader.add_constructor("tag:yaml.org,2002:str", _text)
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:int", re.compile(r"\A[-+]?(?:0|[1-9][0-9]*)\Z"), list("-+0123456789")
    )
    return Loader


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    r"""Join the halves of a character that JSON escapes as two (``\ud83d\ude00``); a lone half is a ValueError."""
    text = str(loader.construct_scalar(node))
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16")


def _without_tabs(raw: bytes) -> bytes:
    """Replace the tabs that indent JSON, which YAML refuses; JSON's strings hold no tabs."""
    if b"\t" not in raw or not raw.lstrip().startswith((b"[", b"{")):
        return raw
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    return raw.replace(b"\t", b" ")


def read_yaml(raw: bytes) -> YamlDocument:
    """Read one YAML (or JSON) document. Raises BrokenContract: ``not-yaml``, ``duplicate-key`` or ``too-large``.

    The same bytes may give the same objects, so a caller that changes them changes a copy.
    """
    return _read(raw)[0]


@lru_cache(maxsize=2)
def _read(raw: bytes) -> tuple[YamlDocument, yaml.Node | None]:
    """Read one document; return also the node at its top, None for an empty one.

    A change of a document reads the same bytes twice, before and after it: its rules do, and ``with_scalars``.
    """
    import yaml

    try:
        loader = _loader_for(_without_tabs(raw))
        try:
            node = loader.get_single_node()
            lines: dict[str, int] = {}
            if node is not None:
                _visit(node, "", lines, set())
            value = loader.construct_document(node) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        line = mark.line + 1 if mark else None
        raise _broken_yaml("not-yaml", f"YAML cannot be read: {problem.problem}.", "Fix the line.", line) from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as problem:
        # the last three are how PyYAML fails on a tag that does not fit its text, such as "!!bool maybe"
        raise _broken_yaml("not-yaml", f"YAML cannot be read: {problem}", "Write valid YAML.") from None
    except RecursionError:
        raise _broken_yaml("too-large", "The YAML nests too deeply.", "Flatten it.") from None
    return YamlDocument(value, lines), node


def _loader_for(raw: bytes) -> yaml.SafeLoader:
    """Return the loader for a text: the fast libyaml, or for what that refuses the one whose errors say more."""
    import yaml

    swift: Any = getattr(yaml, "CSafeLoader", None)
    if swift is None:
        return _loader(yaml.SafeLoader)(raw)
    depth = 0
    try:
        for event in yaml.parse(raw, swift):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_LEVELS:
                raise RecursionError
    except yaml.YAMLError:
        return _loader(yaml.SafeLoader)(raw)
    return _loader(swift)(raw)


def read_mapping(raw: bytes) -> YamlDocument:
    """Read one YAML document that is a mapping. Raises BrokenContract as ``read_yaml`` does, and with ``schema``."""
    if len(raw) > _MOST_BYTES:
        raise _broken_yaml("too-large", f"The YAML is larger than {_MOST_BYTES // 1024} KiB.", "Split it.")
    document = read_yaml(raw)
    if not isinstance(document.value, dict):
        raise _broken_yaml("schema", "The document is not a mapping.", "Write keys and values.", 1)
    return document


def _broken_yaml(code: str, message: str, hint: str, line: int | None = None) -> BrokenContract:
    return BrokenContract.of(Finding(code, message, line=line, hint=hint))


def _visit(node: yaml.Node, path: str, lines: dict[str, int], above: set[int]) -> None:
    """Collect the line of each pointer; ``above`` are the nodes that contain this one."""
    from yaml.nodes import MappingNode, SequenceNode

    if id(node) in above:
        raise _broken_yaml(
            "not-yaml", "An alias refers to what contains it.", "Write it out.", node.start_mark.line + 1
        )
    if len(above) > _MOST_LEVELS:
        raise RecursionError
    if len(lines) > _MOST_NODES:
        raise _broken_yaml("too-large", f"The YAML unfolds to more than {_MOST_NODES} nodes.", "Split it.")
    lines.setdefault(path, node.start_mark.line + 1)
    above.add(id(node))
    if isinstance(node, SequenceNode):
        for i, child in enumerate(node.value):
            _visit(child, f"{path}/{i}", lines, above)
    elif isinstance(node, MappingNode):
        seen: set[str] = set()
        for key, child in node.value:
            name = str(key.value)
            line = key.start_mark.line + 1
            if name in seen:
                raise _broken_yaml("duplicate-key", f'The key "{name}" is written twice.', "Keep one.", line)
            seen.add(name)
            below = path + pointer(name)
            lines[below] = line
            _visit(child, below, lines, above)
    above.remove(id(node))


def with_scalars(raw: bytes, changes: Mapping[str, str]) -> bytes:
    """Change single values of a YAML text, by JSON pointer, and not one byte beside them.

    Raises BrokenContract ``not-yaml`` where that would change something else, as with a value that others refer to.
    """
    mark = BOM_UTF8 if raw.startswith(BOM_UTF8) else b""
    raw = raw.removeprefix(mark)
    before = read_yaml(raw)
    text = raw.decode("utf-8")
    places = places_in(text)
    for path in sorted(changes, key=lambda path: places[path].start if path in places else -1, reverse=True):
        place = places.get(path)
        if place is None or place.kind != "scalar" or place.is_shared or "\n" in text[place.start : place.end]:
            raise _not_plain(before, path)
        quote = text[place.start] if text[place.start] in "\"'" else ""
        text = text[: place.start] + quote + changes[path] + quote + text[place.end :]
    wanted = copy.deepcopy(before.value)
    for path, value in changes.items():
        *way, last = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
        parent = wanted
        for step in way:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        parent[int(last) if isinstance(parent, list) else last] = value
    try:
        after = read_yaml(text.encode("utf-8")).value
    except BrokenContract:
        after = None
    if wanted != after:
        raise _not_plain(before, min(changes))
    return mark + text.encode("utf-8")


def _not_plain(document: YamlDocument, path: str) -> BrokenContract:
    """Make the error for a value; what a merge key brings has no line of its own."""
    line = document.lines.get(path, document.lines.get(path.rpartition("/")[0]))
    message = "A value that is to be changed is shared by an anchor, or is written over lines."
    return _broken_yaml("not-yaml", message, "Write it out in its line.", line)


NodeKind = Literal["scalar", "sequence", "mapping"]


class Place(Frozen):
    """The place of a node in its text, in characters."""

    kind: NodeKind
    start: int
    end: int  # the first character after it
    key: int  # where its key begins
    is_flow: bool = False
    is_shared: bool = False
    """Whether an alias or a merge key leads to it, so that a change would change another node, too."""


def places_in(text: str) -> dict[str, Place]:
    """Map the JSON pointer of every node to its place. Raises BrokenContract as ``read_yaml`` does."""
    from yaml.nodes import MappingNode, SequenceNode

    found: dict[str, tuple[yaml.Node, int]] = {}

    def visit(node: yaml.Node, path: str, key: int) -> None:
        found[path] = node, key
        if isinstance(node, SequenceNode):
            for i, child in enumerate(node.value):
                visit(child, path + pointer(i), child.start_mark.index)
        elif isinstance(node, MappingNode):
            for name, child in node.value:
                visit(child, path + pointer(str(name.value)), name.start_mark.index)

    _, top = _read(text.encode("utf-8"))
    if top is not None:
        visit(top, "", 0)
    uses = Counter(id(node) for node, _ in found.values())
    kinds: dict[str, NodeKind] = {"ScalarNode": "scalar", "SequenceNode": "sequence", "MappingNode": "mapping"}
    return {
        path: Place(
            kinds[type(node).__name__], node.start_mark.index, node.end_mark.index, key,
            is_flow=bool(getattr(node, "flow_style", False)), is_shared=uses[id(node)] > 1,
        )
        for path, (node, key) in found.items()
    }  # fmt: skip
