"""Settings on GitHub are compared with what workflows need; what could not be read is skipped, never ok."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from accord.agents.registry import shipped_registry
from accord.core.findings import DoctorCheck
from accord.core.shapes import read_shape
from accord.doctor.settings import NAMES, LiveFacts, preflight_findings, setting_checks
from accord.files.yaml import read_mapping
from accord.workflows.models import Workflow
from accord.workflows.requirements import required_settings

KIT = Path(__file__).parents[2] / "templates/consumer-repo/.github/workflows"
URL = "https://github.example/octo/tools"
READ = LiveFacts(
    URL, default_branch="main", login="maintainer", is_person=True, may_create_pulls=True, workflow_permissions="read",
    secrets=frozenset({"OPENAI_API_KEY"}), environment_secrets=frozenset(), variables=frozenset(), rules={},
    protected=(),
)  # fmt: skip
UNREAD = LiveFacts(URL, unread={"may_create_pulls": "the token lacks administration: read"})


@cache
def kit(name: str) -> Workflow:
    return read_shape(Workflow, read_mapping((KIT / f"accord-{name}.yml").read_bytes()).value)


def checks(facts: LiveFacts | str, names: str = "implement review keepalive") -> dict[str, DoctorCheck]:
    workflows = {name: kit(name) for name in names.split()}
    needed = required_settings(workflows, {"codex": shipped_registry().agents["codex"]}, approves=True)
    return {check.name: check for check in setting_checks(facts, needed, workflows)}


def test_a_repository_that_has_everything_passes() -> None:
    assert {check.status for check in checks(READ).values()} == {"ok"}


def test_without_access_every_check_is_skipped_with_the_reason() -> None:
    found = checks("no GITHUB_TOKEN")
    assert list(found) == list(NAMES)
    assert {(check.status, check.note) for check in found.values()} == {("skipped", "no GITHUB_TOKEN")}


def test_settings_that_could_not_be_read_are_skipped_and_name_the_page() -> None:
    found = checks(UNREAD)
    assert {check.status for check in found.values()} == {"skipped"}
    note = f"the token lacks administration: read; look under Settings → Actions → General ({URL}/settings/actions)"
    assert found["pull requests"].note == note
    assert f"{URL}/settings/secrets/actions" in found["agent secrets"].note


IN_ENVIRONMENT = {"secrets": frozenset(), "environment_secrets": frozenset({"CODEX_AUTH_JSON"})}
WITH_TOKEN = {"secrets": frozenset({"ACCORD_TOKEN"})}
LOGIN = {"variables": frozenset({"ACCORD_LOGIN"})}
RULES = [
    ("pull requests", "error", "pulls-not-allowed", {"may_create_pulls": False}),
    ("pull requests", "warning", "pulls-not-allowed", {"may_create_pulls": False, "secrets": None}),
    ("pull requests", "warning", "pulls-not-allowed", {"may_create_pulls": False}, "review"),
    ("pull requests", "ok", "", {"may_create_pulls": False}, "plan"),
    ("pull requests", "ok", "", {"may_create_pulls": False, **WITH_TOKEN}),
    ("pull requests", "ok", "", {"may_create_pulls": None, **WITH_TOKEN}),
    ("pull requests", "skipped", "", {"may_create_pulls": None}),
    ("agent secrets", "error", "agent-secret-missing", {"secrets": frozenset({"OTHER"})}),
    ("agent secrets", "warning", "agent-secret-missing", {"secrets": frozenset(), "environment_secrets": None}),
    ("agent secrets", "warning", "agent-secret-out-of-reach", IN_ENVIRONMENT),
    ("agent secrets", "ok", "", IN_ENVIRONMENT, "plan implement"),
    ("agent secrets", "skipped", "", {"secrets": None}),
    ("logins", "error", "login-without-token", LOGIN),
    ("logins", "ok", "", LOGIN | WITH_TOKEN),
    ("logins", "skipped", "", {"variables": None}),
    ("branch rules", "warning", "branch-rule", {"rules": {"accord/1": ["creation", "deletion"]}}),
    ("branch rules", "warning", "branch-rule", {"rules": {"main": ["pull_request", "required_signatures"]}}),
    ("branch rules", "ok", "", {"rules": {"main": ["pull_request", "deletion"]}}),
    ("branch rules", "warning", "branch-protected", {"protected": ["main", "accord/7"]}),
    ("branch rules", "skipped", "", {"rules": None}),
]


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_finds_its_case(rule: tuple[Any, ...]) -> None:
    check, status, code, change, *names = rule
    found = checks(replace(READ, **change), *names)[check]
    assert ([finding.code for _, finding in found.findings], found.status) == ([code] * bool(code), status)
    assert all(finding.hint for _, finding in found.findings)


@pytest.mark.parametrize("prefix", ["accord", "bots/accord", "agents"])
def test_a_rule_of_branches_is_named_with_the_prefix_of_the_repository(prefix: str) -> None:
    for given in ({"rules": {f"{prefix}/1": ["creation"]}}, {"rules": {}, "protected": [f"{prefix}/7"]}):
        facts = replace(READ, prefix=prefix, **given)
        ((_, finding),) = checks(facts)["branch rules"].findings
        assert f"Exclude `{prefix}/**` under" in finding.hint
        assert all(f"`{prefix}/**`" in one.hint for one in preflight_findings(facts) if one.code == "branch-rule")


def test_a_finding_names_the_setting_and_its_page() -> None:
    ((path, finding),) = checks(replace(READ, may_create_pulls=False))["pull requests"].findings
    assert path == "implement"
    assert f"Settings → Actions → General ({URL}/settings/actions)" in finding.hint
    assert "ACCORD_TOKEN" in finding.hint
