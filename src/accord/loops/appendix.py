"""What a prompt is extended by: words of ours around text of others, which stands there as data."""

from __future__ import annotations

from accord.runner.data import DATA, fenced

__all__ = ["APPENDIX_CHARACTERS", "DATA", "fenced", "joined"]

APPENDIX_CHARACTERS = 30_000
"""Below 128 KiB in any script: one environment value or argument holds no more (Linux, MAX_ARG_STRLEN)."""


def joined(parts: list[str], left: str) -> str:
    """Join as many parts as fit; ``left`` with ``{n}`` says how many did not."""
    shown: list[str] = []
    size = 0
    for part in parts:
        size += len(part) + 2
        if size > APPENDIX_CHARACTERS:
            break
        shown.append(part)
    missing = len(parts) - len(shown)
    return "\n\n".join([*shown, left.format(n=missing)] if missing else shown)
