"""The kinds of documents of this room."""

from __future__ import annotations

from accord.core.kinds import Kind
from accord.files.yaml import read_mapping
from accord.workflows.conform import is_reusable, runner_findings
from accord.workflows.files import Workflow

RUNNER_WORKFLOW = Kind("runner-workflow", Workflow, runner_findings, {"on": is_reusable}, read_mapping)
KINDS = (RUNNER_WORKFLOW,)
