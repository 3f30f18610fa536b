"""Extras: which command adds one to this installation, and which commands of accord ask for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from accord.core.environment import install_command

ENVIRONMENTS = {
    "/home/o/.local/share/pipx/venvs/accord": "pipx install --force 'accord[mcp]'",
    "/home/o/.local/share/uv/tools/accord": "uv tool install 'accord[mcp]'",
    "/home/o/.cache/uv/archive-v0/9x": "uvx --from 'accord[mcp]' accord …",
    "/home/o/my app/.venv": "'/home/o/my app/.venv/bin/python' -m pip install 'accord[mcp]'",
}


@pytest.mark.parametrize(("prefix", "command"), ENVIRONMENTS.items())
def test_each_installation_has_its_command(prefix: str, command: str) -> None:
    package = Path(prefix, "lib/python3.12/site-packages/accord")
    assert install_command("mcp", prefix, package, "") == command
    address = "git+https://github.com/accord-ci/accord@c0ffee"
    assert install_command("mcp", prefix, package, address) == command.replace("[mcp]", f"[mcp] @ {address}")


def test_a_clone_gets_the_extra_into_its_own_environment(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").touch()
    command = install_command("mcp", str(tmp_path / ".venv"), tmp_path / "src/accord")
    assert command == f"cd {tmp_path} && uv sync --frozen --inexact --extra mcp"
    (tmp_path / ".uv/bin").mkdir(parents=True)
    (tmp_path / ".uv/bin/uv").touch()
    assert " && .uv/bin/uv sync" in install_command("mcp", str(tmp_path / ".venv"), tmp_path / "src/accord")


WITHOUT_WEB = """
import sys
sys.modules.update(dict.fromkeys(["graphql", "jinja2", "starlette", "uvicorn"]))
from accord.__main__ import main
main()
"""


def without_web(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command where the packages of the extra are missing."""
    return subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT_WEB, *words], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["demo", "sandbox serve", "board --repo octo/web", "board --static x", "items list --sandbox"]
)
def test_a_command_without_its_packages_names_the_command_that_adds_them(words: str, tmp_path: Path) -> None:
    ended = without_web(*words.split(), cwd=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 2)
    assert "of the extra `web`." in ended.stderr
    assert f"Type `{install_command('web')}`." in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", ["sandbox show", "items list", "board issue"])
def test_other_commands_do_without(words: str, tmp_path: Path) -> None:
    assert "needs the package" not in without_web(*words.split(), cwd=tmp_path).stderr
