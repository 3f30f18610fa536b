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
for words in sys.argv[1:]:
    sys.argv = ["accord", *words.split()]
    try:
        main()
    except SystemExit as ended:
        print(f"{words}: {ended.code}", file=sys.stderr)
"""
WITH_SERVER = ("demo", "sandbox serve", "board --repo octo/web", "board --static x", "items list --sandbox")
OTHERS = ("sandbox show", "items list", "board issue")


@pytest.mark.slow
def test_commands_without_their_packages_name_the_command_that_adds_them(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", WITHOUT_WEB, *WITH_SERVER, *OTHERS]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found, _, others = ended.stderr.partition(f"{WITH_SERVER[-1]}: 2\n")
    lines = found.splitlines()
    assert [line.partition(": ")[0] for line in lines[2::3]] == [*WITH_SERVER[:-1]], ended.stderr
    assert all("of the extra `web`." in line for line in lines[::3])
    assert {*lines[1::3]} == {f"  Type `{install_command('web')}`."}, lines
    assert all(f"{words}: " in others for words in OTHERS)
    assert "needs the package" not in others
