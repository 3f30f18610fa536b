"""Modules that libraries import and accord rarely needs: loaded at their first use, to start faster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


class LazyFinder:
    """Finds these modules, and all below a name that ends with a dot, and loads each when it is first used.

    It is a meta path finder without that base class, whose module imports twenty others.
    """

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)
        self._packages = tuple(name for name in names if name.endswith("."))

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of one of these modules, None for any other."""
        if name not in self._names and not name.startswith(self._packages):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)
