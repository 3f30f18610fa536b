"""The kinds of documents of this room."""

from __future__ import annotations

from accord.kernel.kinds import Kind
from accord.kernel.yaml_files import read_mapping
from accord.runner.workflows.conform import is_reusable, runner_findings
from accord.runner.workflows.files import Workflow

RUNNER_WORKFLOW = Kind("runner-workflow", Workflow, runner_findings, {"on": is_reusable}, read_mapping)
KINDS = (RUNNER_WORKFLOW,)
