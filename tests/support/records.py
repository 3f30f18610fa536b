"""Valid records, of which a test states only the difference."""

from datetime import timedelta
from typing import Any

from support.stage import START

from accord.records.models import PublicRecord, record_id

REPOSITORY = "octo/code"


def record(number: int = 1, *, hours: float = 0, **more: Any) -> PublicRecord:
    """A successful run of an implementor; ``hours`` after the stage begins."""
    result = {"disposition": "success", "outcome": "done"} | more.pop("result", {})
    fields: dict[str, Any] = {
        "id": record_id(REPOSITORY, number),
        "kind": "implement",
        "repository": REPOSITORY,
        "trigger": {"cause": "comment", "by": "octo", "event": "workflow_dispatch"},
        "agent": "codex",
        "model": "gpt-5",
        "tokens_input": 1000,
        "tokens_output": 100,
        "cost_usd": 0.5,
        "started_at": START + timedelta(hours=hours, minutes=-10),
        "ended_at": START + timedelta(hours=hours),
        "seconds": 300,
        "result": result,
        "links": {"issue": number},
    }
    return PublicRecord.model_validate(fields | more)
