"""The folder that an agent's run leaves behind: all that the second job, which may write, knows about it.

``record.json`` holds the facts below. Beside it lie ``stdout.log`` and ``stderr.log`` (what the agent printed),
``final-message.md`` (where the agent wrote one to a file), ``prompt.md`` (what it was asked), ``changes.patch``
(what it changed, as git's binary-safe patch against ``base_sha``) and, where one was asked for, ``schema.json`` (the
JSON Schema of its structured result). The record is written last: without it the run did not end.

Secrets are taken out of all of them while they are written; a patch with a secret of the job in it is not written.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

RECORD = "record.json"
STDOUT = "stdout.log"
STDERR = "stderr.log"
FINAL_MESSAGE = "final-message.md"
PROMPT = "prompt.md"
PATCH = "changes.patch"
SCHEMA = "schema.json"

OwnKind = Literal[
    "time-limit",
    "cancelled",
    "install-failed",
    "credential-missing",
    "prompt-invalid",
    "not-started",
    "record-missing",
    "changes-unreadable",
    "push-refused",
    "push-conflict",
    "push-unreachable",
    "disk-full",
]
"""What accord itself knows went wrong; the first evidence of all.

``record-missing`` is a job that ended before its agent's run did, such as by the loss of its machine.
``push-refused`` is a permission or protection, which a person must mend; ``push-conflict`` a branch that moved again
and again or a patch that no longer fits; ``push-unreachable`` a network or server.
"""


class Own(BaseModel):
    """What accord itself saw go wrong; ``detail`` is a sentence for people."""

    model_config = ConfigDict(frozen=True)

    kind: OwnKind
    detail: str


class RunRecord(BaseModel):
    """The facts of one run. Inputs stand as they were given; ``exit_code`` is None where no process ended.

    ``base_sha`` is the commit that the work tree stood on before the agent began, empty outside a repository.
    ``secret_names`` are the variables that its registry declares to be secrets; never their values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    agent: str
    codec: str
    mode: str = ""
    pr_number: str = ""
    pr_ref: str = ""
    base_ref: str = ""
    iteration: str = ""
    base_sha: str = ""
    is_skipped: bool = False
    exit_code: int | None = None
    own: Own | None = None
    secret_names: tuple[str, ...] = ()
    started_at: str = ""
    duration_seconds: float = 0
