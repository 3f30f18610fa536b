"""The place where accord runs, read from the environment."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from accord.core.errors import WrongUsage


def is_in_actions(environment: Mapping[str, str]) -> bool:
    """Return whether a step of a GitHub Actions job runs this."""
    return environment.get("GITHUB_ACTIONS") == "true"


def wants_color(environment: Mapping[str, str]) -> bool | None:
    """Return whether to print colors (no-color.org, force-color.org); None leaves it to whether a terminal reads."""
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return True if environment.get("FORCE_COLOR", "0") not in ("", "0", "false") else None


@contextmanager
def needs_extra(extra: str, subject: str) -> Iterator[None]:
    """Import packages of an extra. Raises WrongUsage for one that is missing, with the command that adds it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "accord").partition(".")[0]
        if package.startswith("accord"):
            raise
        message = f"{subject} needs the package `{package}` of the extra `{extra}`."
        raise WrongUsage(message, hint=f"Type `{install_command(extra)}`.") from None


def install_command(
    extra: str, prefix: str = sys.prefix, package: Path = Path(__file__).parents[1], origin: str | None = None
) -> str:
    """Return the command that adds the packages of an extra to this accord.

    ``prefix`` is the folder of the Python environment, and ``package`` that of accord in it, or in a clone. ``origin``
    is the address that accord was installed from, empty for the package index; by default it is looked up.
    """
    clone = package.parents[1]
    places = Path(prefix).as_posix()
    if package.parent.name == "src" and (clone / "uv.lock").is_file():
        uv = ".uv/bin/uv" if (clone / ".uv/bin/uv").exists() else "uv"
        return f"cd {shlex.quote(str(clone))} && {uv} sync --frozen --inexact --extra {extra}"
    address = installation_source() if origin is None else origin
    wanted = shlex.quote(f"accord[{extra}] @ {address}" if address else f"accord[{extra}]")
    if "/pipx/" in places:
        return f"pipx install --force {wanted}"
    if "/uv/tools/" in places:
        return f"uv tool install {wanted}"
    if "/archive-v" in places or "/environments-v" in places:  # the cache of uv
        return f"uvx --from {wanted} accord …"
    return f"{shlex.quote(str(Path(prefix, 'bin', 'python')))} -m pip install {wanted}"


def installation_source() -> str:
    """Return the address that accord was installed from, such as ``git+https://…@COMMIT``; empty for the index.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        recorded = json.loads(distribution("accord").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    url, origin = recorded.get("url", ""), recorded.get("vcs_info")
    return f"{origin['vcs']}+{url}@{origin['commit_id']}" if origin else url
