"""What a patch touches, held against the scope of its work item, and against the paths that only people change.

Source: workflow contracts, "Scope Enforcement Rules". A path outside of the scope is reported, never refused.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.git.paths import path_patterns, protected_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TEST_FOLDERS = ("", "__tests__", "tests", "test", "spec", "specs")


@dataclass(frozen=True)
class ScopeReport:
    """Every touched path in one of three groups; ``protected`` names those that are protected as well."""

    in_scope: tuple[str, ...]
    tests: tuple[str, ...]
    outside: tuple[str, ...]
    protected: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the object of a receipt."""
        return {
            "in_scope": list(self.in_scope),
            "tests": list(self.tests),
            "outside": list(self.outside),
            "protected": list(self.protected),
        }


def audit_scope(touched: Iterable[str], scope: Sequence[str], extra_protected: Sequence[str] = ()) -> ScopeReport:
    """Sort touched paths by the scope of a work item: listed, a test beside something listed, or outside."""
    listed = path_patterns(_pattern(path) for path in scope)
    groups: dict[str, list[str]] = {"in": [], "tests": [], "outside": []}
    paths = list(dict.fromkeys(touched))
    for path in paths:
        if listed.match_file(path):
            groups["in"].append(path)
        elif any(is_test_of(path, subject) for subject in scope):
            groups["tests"].append(path)
        else:
            groups["outside"].append(path)
    guarded = protected_paths(paths, extra_protected)
    return ScopeReport(tuple(groups["in"]), tuple(groups["tests"]), tuple(groups["outside"]), guarded)


def is_test_of(path: str, subject: str) -> bool:
    """Tell whether a file is the co-located test of another by the conventions of the common languages.

    Beside it, or in a folder for tests beside it; for Java and Kotlin also under ``src/test`` for ``src/main``.
    """
    folder, name = posixpath.split(subject)
    stem, extension = posixpath.splitext(name)
    if not stem or not extension:
        return False
    test_folder, test_name = posixpath.split(path)
    places = {posixpath.normpath(posixpath.join(folder, place)) for place in _TEST_FOLDERS}
    places.add(posixpath.normpath(re.sub(r"(^|/)src/main/", r"\1src/test/", folder + "/")))
    return posixpath.normpath(test_folder) in places and test_name in _test_names(stem, extension)


def _test_names(stem: str, extension: str) -> set[str]:
    code = re.escape(extension)
    alike = {extension}
    for family in ((".ts", ".tsx", ".mts", ".cts"), (".js", ".jsx", ".mjs", ".cjs"), (".ts", ".js"), (".tsx", ".jsx")):
        if re.fullmatch("|".join(map(re.escape, family)), extension) or code in family:
            alike.update(family)
    names = set()
    for ending in alike:
        names |= {
            f"{stem}.test{ending}",
            f"{stem}.spec{ending}",
            f"test_{stem}{ending}",
            f"{stem}_test{ending}",
            f"{stem}_spec{ending}",
            f"{stem}-test{ending}",
            f"{stem}Test{ending}",
            f"{stem}Tests{ending}",
            f"{stem}Spec{ending}",
            f"{stem}IT{ending}",
        }
    return names


def _pattern(path: str) -> str:
    """Anchor a path of a work item at the root, and keep what it means: a file, a folder, or a glob.

    Only stars and question marks make a glob: brackets belong to the names of files, as in ``app/[slug]/page.tsx``.
    """
    taken_as_they_are = r"([#!\[\]])" if re.search(r"[*?]", path) else r"([\\#!\[\]])"
    return "/" + re.sub(taken_as_they_are, r"\\\1", path).lstrip("/")
