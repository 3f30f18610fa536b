"""The steps after an install: only those that the installed workflows need, with names and addresses that exist."""

import re

import pytest
import yaml

from accord.git.origin import RemoteRepository
from accord.kit.install import FIRST_COMMANDS, SetupStep, next_steps
from accord.kit.templates import Pin, shipped_kit

PIN = Pin("a" * 40, "0.1.0", "octo/accord")
ORIGIN = RemoteRepository("https://ghe.example.com", "octo/web")
NEED = SetupStep("Add a secret.", url="https://ghe.example.com/octo/web/settings/secrets/actions")
PAGE = "https://ghe.example.com/octo/web"


def steps(*workflows: str, origin: RemoteRepository | None = ORIGIN) -> list[SetupStep]:
    return next_steps([NEED], workflows, origin, PIN)


def urls(found: list[SetupStep]) -> list[str]:
    return [step.url for step in found if step.url and step is not NEED]


ACCOUNTS = f"https://ghe.example.com/octo/accord/blob/{'a' * 40}/docs/consumer-kit.md#two-accounts"


@pytest.mark.parametrize(
    ("workflows", "pages"),
    [
        (("plan",), [f"{PAGE}/actions"]),
        (("implement",), [ACCOUNTS, f"{PAGE}/actions"]),
        (("keepalive", "labels"), [ACCOUNTS, f"{PAGE}/actions"]),
        (("verifier",), [f"{PAGE}/actions"]),
        (("labels",), [f"{PAGE}/actions"]),
        ((), []),
    ],
)
def test_the_steps_are_those_that_the_installed_workflows_need(workflows: tuple[str, ...], pages: list[str]) -> None:
    assert steps(*workflows)[0] is NEED
    assert urls(steps(*workflows)) == pages


def test_labels_are_synced_by_their_workflow_or_by_hand() -> None:
    commands = [command for step in steps("plan") for command in step.commands]
    assert "accord labels sync --repo octo/web" in commands
    commands = [command for step in steps("plan", "labels") for command in step.commands]
    assert not [command for command in commands if "labels sync" in command]


def test_without_an_origin_commands_have_placeholders_and_no_page_is_guessed() -> None:
    found = steps(*FIRST_COMMANDS, origin=None)
    assert [url for url in urls(found) if "octo/web" in url] == []
    assert "accord labels sync --repo OWNER/NAME" in steps("plan", origin=None)[-2].commands


def test_every_workflow_has_a_first_command_with_inputs_that_exist() -> None:
    kit = shipped_kit()
    for name in kit.workflows:
        assert name in FIRST_COMMANDS, "add the command that starts this workflow"
        workflow = yaml.safe_load(kit.files[f".github/workflows/accord-{name}.yml"])
        command = next_steps([], (name,), ORIGIN, PIN)[-1].commands[0]
        if file := re.search(r"workflow run accord-([\w-]+)\.yml", command):
            inputs = (workflow[True]["workflow_dispatch"] or {}).get("inputs", {})
            given = re.findall(r"-f ([\w-]+)=", command)
            assert (file[1], {*given} <= inputs.keys()) == (name, True)
            required = {key for key, value in inputs.items() if value.get("required")}
            assert required <= {*given}, name
        else:
            label = re.findall(r"--add-label (\S+)", command)
            assert label, name


def test_the_first_command_starts_a_workflow_that_is_installed() -> None:
    found = steps("start", "review", origin=None)
    assert found[-1].commands == (FIRST_COMMANDS["review"],)
