from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = Path(__file__).parents[2] / "tools" / "generate.py"


@pytest.fixture(scope="session")
def generate() -> ModuleType:
    """The generator, which is a script and no part of a package."""
    spec = importlib.util.spec_from_file_location("generate", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module
    spec.loader.exec_module(module)
    return module
