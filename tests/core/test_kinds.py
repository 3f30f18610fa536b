"""The table of kinds names what exists, and checking one kind imports the code of no other."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from accord.core.kinds import KINDS, load_name

if TYPE_CHECKING:
    from accord.core.kinds import Kind


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_kind_names_a_model_and_rules_that_exist(kind: Kind) -> None:
    assert kind.model.model_json_schema()
    assert not kind.rules_name or callable(load_name(kind.rules_name))


CHECK = """
import sys
from accord.core.kinds import check_document
check_document(sys.argv[1].encode(), None)
print(*sys.modules)
"""
PLAN = {"role": "planner", "create": [], "close": [], "update": []}


def test_checking_a_plan_imports_no_other_contract_and_no_client() -> None:
    run = subprocess.run([sys.executable, "-c", CHECK, json.dumps(PLAN)], capture_output=True, text=True, check=True)
    modules = set(run.stdout.split())
    others = ("gha", "git", "runner", "workflows", "loops", "sessions", "missions", "handoffs", "kit", "github.client")
    unwanted = [
        "github",
        "requests",
        *(f"accord.{name}" for name in (*others, "results.implementor", "results.reviewer")),
    ]
    assert modules.isdisjoint(unwanted)
    assert "accord.results.planner.rules" in modules
