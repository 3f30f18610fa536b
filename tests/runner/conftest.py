from __future__ import annotations

from support.workshop import agent, runner_stage, workshop

__all__ = ["agent", "runner_stage", "workshop"]
