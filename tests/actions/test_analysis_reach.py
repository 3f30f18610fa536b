"""Keys, addresses and models reach task analysis from a repository's secrets and variables."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from support.act import ROOT, TEMPLATES, read_yaml

from accord.agents.providers import PROVIDERS
from accord.runner.analysis.providers import endpoint_of

FOLDER = ROOT / ".github/workflows"
KIT = [path for path in sorted(TEMPLATES.glob("*.yml")) if "reusable-keepalive" in path.read_text(encoding="utf-8")]
THIN = [FOLDER / f"reusable-{agent}-run.yml" for agent in ("codex", "claude", "gemini")]
PROVIDER = {provider.name: provider for provider in PROVIDERS}
SECRETS = [
    ("OPENAI_API_KEY", "openai"),
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("CLAUDE_API_STRANSKE", "anthropic"),
    ("GITHUB_TOKEN", "github-models"),
]


def value_of(text: str, known: Mapping[str, str]) -> str:
    """Return the value of an expression of alternatives: the first that is known."""
    names = text.removeprefix("${{").removesuffix("}}").split("||")
    return next((known[name.strip()] for name in names if known.get(name.strip())), "")


def publishing(document: dict[str, Any], secrets: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a workflow, or one that it calls, analyses tasks."""
    known = {f"secrets.{name}": value for name, value in secrets.items()} | {"github.token": "job-token"}
    for job in document["jobs"].values():
        if called := re.fullmatch(r"(?:\$|accord-ci/accord)/(\.github/workflows/[\w-]+\.yml).*", job.get("uses", "")):
            passed = {name: value_of(text, known) for name, text in job["secrets"].items()}
            return publishing(read_yaml(ROOT / called[1]), passed, variables)
    (step,) = [
        step
        for job in document["jobs"].values()
        for step in job["steps"]
        if step.get("uses") == "$/actions/publish-run"
    ]
    known |= {f"vars.{name}": value for name, value in variables.items()}
    given = {f"inputs.{name}": value_of(text, known) for name, text in step["with"].items()}
    around = {name: value_of(text, known) for name, text in step["env"].items()}
    given |= {f"env.{name}": value for name, value in around.items()}
    action = read_yaml(ROOT / "actions/publish-run/action.yml")["runs"]["steps"][-1]["env"]
    return around | {name: value_of(text, given) for name, text in action.items()}


@pytest.mark.parametrize(("secret", "provider"), SECRETS)
@pytest.mark.parametrize("path", [*KIT, *THIN, FOLDER / "reusable-agent-run.yml"], ids=lambda path: path.name)
def test_each_key_reaches_its_provider(path: Any, secret: str, provider: str) -> None:
    secrets = {} if secret == "GITHUB_TOKEN" else {secret: f"key-of-{secret}"}
    named = f"ACCORD_{provider.replace('-', '_').upper()}_MODEL"
    variables = {PROVIDER[provider].url_variable: "http://127.0.0.1:9/v1", named: "some-model"}
    found = endpoint_of(PROVIDER[provider], publishing(read_yaml(path), secrets, variables))
    assert (found.url, found.model) == ("http://127.0.0.1:9/v1", "some-model")
    assert found.key == secrets.get(secret, "job-token")


def test_the_kit_has_a_workflow_that_analyses_tasks() -> None:
    assert [path.name for path in KIT] == ["accord-keepalive.yml"]
