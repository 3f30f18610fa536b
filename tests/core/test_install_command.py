"""The command that adds an extra is the one for the way in which accord was installed."""

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
    assert install_command("", str(tmp_path / ".venv"), tmp_path / "src/accord").endswith("--inexact")
    assert " && .uv/bin/uv sync" in install_command("mcp", str(tmp_path / ".venv"), tmp_path / "src/accord")
