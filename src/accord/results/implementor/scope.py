"""The scope of a work item: every path that a change touches, sorted by it.

Source: workflow contracts, "Scope Enforcement Rules".
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from accord.agents.registry import shipped_registry
from accord.files.patterns import path_patterns
from accord.git.steering import audit_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TEST_FOLDERS = ("", "__tests__", "tests", "test", "spec", "specs")


@dataclass(frozen=True)
class ScopeReport:
    """Each changed path in one of three groups; ``protected`` repeats those that only people may approve.

    ``dependencies`` repeats the manifests and lock files, ``records`` the files of sessions and missions.
    """

    in_scope: tuple[str, ...]
    tests: tuple[str, ...]
    outside: tuple[str, ...]
    protected: tuple[str, ...]
    dependencies: tuple[str, ...] = ()
    records: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the object of a receipt."""
        return {name: list(paths) for name, paths in asdict(self).items() if name not in ("dependencies", "records")}


def audit_scope(changed: Iterable[str], scope: Sequence[str], extra_protected: Sequence[str] = ()) -> ScopeReport:
    """Group changed paths by the scope of a work item: listed, a test beside a listed file, or outside."""
    listed = path_patterns(_pattern(path) for path in scope)
    paths = tuple(dict.fromkeys(changed))
    inside = {path for path in paths if listed.match_file(path)}
    tests = {path for path in paths if path not in inside and any(is_test_of(path, subject) for subject in scope)}
    groups = (inside, tests, {*paths} - inside - tests)
    in_scope, beside, outside = (tuple(path for path in paths if path in group) for group in groups)
    audit = audit_paths(paths, extra_protected, agent_files=shipped_registry().steering_patterns)
    protected = (*audit.steering, *audit.protected)
    return ScopeReport(in_scope, beside, outside, protected, audit.dependencies, audit.records)


def is_test_of(path: str, subject: str) -> bool:
    """Return whether a file is the co-located test of another by the conventions of the common languages."""
    folder, name = posixpath.split(subject)
    stem, extension = posixpath.splitext(name)
    if not stem or not extension:
        return False
    test_folder, test_name = posixpath.split(path)
    folders = {posixpath.normpath(posixpath.join(folder, name)) for name in _TEST_FOLDERS}
    folders.add(posixpath.normpath(re.sub(r"(^|/)src/main/", r"\1src/test/", folder + "/")))
    return posixpath.normpath(test_folder) in folders and test_name in _test_names(stem, extension)


def _test_names(stem: str, extension: str) -> set[str]:
    families = ((".ts", ".tsx", ".mts", ".cts"), (".js", ".jsx", ".mjs", ".cjs"), (".ts", ".js"), (".tsx", ".jsx"))
    alike = {extension}.union(*(family for family in families if extension in family))
    after = (".test", ".spec", "_test", "_spec", "-test", "Test", "Tests", "Spec", "IT")
    names = (f"test_{stem}", *(f"{stem}{word}" for word in after))
    return {f"{name}{ending}" for name in names for ending in alike}


def _pattern(path: str) -> str:
    """Return the .gitignore pattern for a file, a folder or a glob; brackets are part of a name."""
    escaped = r"([#!\[\]])" if re.search(r"[*?]", path) else r"([\\#!\[\]])"
    return "/" + re.sub(escaped, r"\\\1", path).lstrip("/")
