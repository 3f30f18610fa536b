"""Imported once, by the server that processes of tests fork from: modules of accord, and models of sessions."""

import gc
import os
import tempfile
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"

import support.disks  # noqa: F401 (processes of sessions need it)
from support.sessions import GATES, agent_output, make_session, writer

import accord.cli
import accord.records
import accord.runner
from accord.sessions.models import AgentOutput
from accord.sessions.outputs import apply_output
from accord.sessions.run import move_task

for package in (accord.cli, accord.records, accord.runner):
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            import_module(module.name)

with tempfile.TemporaryDirectory() as _root:
    _folder = make_session(Path(_root), "IMPLEMENT_LOOP", user_decisions=GATES)
    apply_output(writer(_folder), "T-001", "Coder", AgentOutput.model_validate(agent_output()))
    move_task(writer(_folder), "T-001", "blocked", role="QA")
gc.freeze()
