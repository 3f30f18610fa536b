"""Imported once, by the server that processes of tests fork from: modules of accord, models, and patterns."""

import gc
import os
import re
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
from accord.agents.registry import shipped_registry
from accord.git.steering import audit_paths
from accord.runner.transcripts.error_rules import PRECEDENCE, words
from accord.sessions.models import AgentOutput
from accord.sessions.outputs import apply_output
from accord.sessions.run import move_task
from accord.text.secret_shapes import SHAPES

for package in (accord.cli, accord.records, accord.runner):
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            import_module(module.name)

with tempfile.TemporaryDirectory() as _root:
    _folder = make_session(Path(_root), "IMPLEMENT_LOOP", user_decisions=GATES)
    apply_output(writer(_folder), "T-001", "Coder", AgentOutput.model_validate(agent_output()))
    move_task(writer(_folder), "T-001", "blocked", role="QA")
audit_paths([".a"], agent_files=shipped_registry().steering_patterns)
for _cause in PRECEDENCE:
    words(_cause)
for _, _, _patterns in SHAPES:
    for _pattern in _patterns:
        re.compile(_pattern)
gc.freeze()
