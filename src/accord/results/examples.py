"""The example results that accord ships: the demo plays them, and agents learn from them."""

from __future__ import annotations

from pathlib import Path


def example_folder(name: str = "contacts") -> Path:
    """Return the folder of an example, in the installed package or the checkout."""
    package = Path(__file__).parents[1]
    installed = package / "examples"
    examples = installed if installed.exists() else package.parents[1] / "examples"
    return examples if name == "contacts" else examples / "repositories" / name
