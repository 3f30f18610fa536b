"""Imported once, by the server that processes of sessions are forked from: it builds the models for all of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import support.disks
from support.sessions import GATES, agent_output, clock, make_session

import accord.sessions.interview
from accord.sessions.models import AgentOutput
from accord.sessions.moves import move_task
from accord.sessions.outputs import apply_output

LATER_NEEDED = (support.disks, accord.sessions.interview)

with tempfile.TemporaryDirectory() as _root:
    _folder = make_session(Path(_root), "IMPLEMENT_LOOP", user_decisions=GATES)
    apply_output(_folder, "T-001", "Coder", AgentOutput.model_validate(agent_output()), clock=clock())
    move_task(_folder, "T-001", "blocked", role="QA", clock=clock())
