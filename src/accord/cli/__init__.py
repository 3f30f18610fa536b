"""The command line: one module per command group. Settings here apply before the commands import their packages."""

import atexit
import gc
import sys

from accord.core.lazy import LazyFinder

gc.set_threshold(500_000)
"""A thousand bodies make a million small objects and no garbage: the default of 700 costs a third of the time."""

atexit.register(gc.freeze)
"""Without it the interpreter looks through all objects once more when it ends, which takes as long as half a check."""

_RARE = ("importlib.metadata", "importlib.metadata._adapters", "csv", "zipfile", "secrets", "idna")
sys.meta_path.insert(0, LazyFinder(*_RARE))
"""Pydantic imports all but the last, most of them for plugins, which are off; requests imports idna for host names."""
