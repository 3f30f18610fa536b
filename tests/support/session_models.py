"""Imported once, by the server that processes of sessions are forked from: it builds the models for all of them."""

import tempfile
from pathlib import Path

import support.disks
from support.sessions import GATES, agent_output, make_session, writer

from accord.sessions.models import AgentOutput
from accord.sessions.outputs import apply_output
from accord.sessions.run import move_task

LATER_NEEDED = (support.disks,)

with tempfile.TemporaryDirectory() as _root:
    _folder = make_session(Path(_root), "IMPLEMENT_LOOP", user_decisions=GATES)
    apply_output(writer(_folder), "T-001", "Coder", AgentOutput.model_validate(agent_output()))
    move_task(writer(_folder), "T-001", "blocked", role="QA")
