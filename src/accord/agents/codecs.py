"""The names of the formats in which agents print what they do; ``accord.runner.transcripts`` reads them."""

from __future__ import annotations

from typing import Literal, get_args

Codec = Literal["codex", "claude", "gemini", "plain"]

STRUCTURED: tuple[str, ...] = get_args(Codec)[:-1]
"""The formats with events; anything else is plain text."""
