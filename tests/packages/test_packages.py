"""The packages that users install: two builds are equal, and each way to install them leads to a finished demo."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from reference.install import gh_package
from support.trees import commit, git

ROOT = Path(__file__).parents[2]
MAX_BYTES = 60_000_000
_PASSED = (
    *("PIP_CERT", "PIP_FIND_LINKS", "PIP_PASSED_URL", "PIP_CONFIG_FILE", "SSL_CERT_FILE", "UV_DEFAULT_PASSED"),
    "LD_LIBRARY_PATH",  # actions/setup-python sets it, and some builds of Python do not start without it
)
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
pytestmark = pytest.mark.slow


def run(*words: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def build(source: Path, target: Path) -> None:
    run(sys.executable, "-m", "hatchling", "build", "-d", target, cwd=source)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the files of this one, committed."""
    root = tmp_path_factory.mktemp("release") / "accord"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    git(root, "init", "-q")
    commit(root)
    return root


@pytest.fixture(scope="module")
def built(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    build(release, folder)
    return folder


@pytest.mark.matrix
def test_wheel_and_source_package_are_reproducible_and_one_comes_from_the_other(
    release: Path, built: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", str(release), "clone")
    for path in (tmp_path / "clone").rglob("*"):
        if ".git" not in path.parts:
            path.chmod(path.stat().st_mode & 0o700)
            os.utime(path, (1, 1), follow_symlinks=False)
    build(tmp_path / "clone", tmp_path / "again")
    assert digests(tmp_path / "again") == digests(built)
    (source,) = built.glob("*.tar.gz")
    subprocess.run(["tar", "-xf", source, "-C", tmp_path], check=True)  # Debian's Python 3.11.2 knows no filters
    build(tmp_path / source.name.removesuffix(".tar.gz"), tmp_path / "outside")
    assert digests(tmp_path / "outside") == digests(built)


def pip(wheel: Path, folder: Path, environment: dict[str, str]) -> list[str | Path]:
    run(sys.executable, "-I", "-m", "venv", folder / "env", cwd=folder, environment=environment)
    run(folder / "env/bin/pip", "install", "--quiet", f"{wheel}[web]", cwd=folder, environment=environment)
    return [folder / "env/bin/accord"]


def pipx(wheel: Path, folder: Path, environment: dict[str, str]) -> list[str | Path]:
    words = (Path(sys.executable).with_name("pipx"), "install", "--quiet", f"{wheel}[web]")
    run(*words, cwd=folder, environment=environment)
    return [folder / "bin/accord"]


def uvx(wheel: Path, folder: Path, environment: dict[str, str]) -> list[str | Path]:
    return [ROOT / ".uv/bin/uvx", "--quiet", "--python", sys.executable, "--from", f"{wheel}[web]", "accord"]


def bare(folder: Path) -> dict[str, str]:
    """An environment with an empty HOME, without git's settings and uv, and with the caches of this machine."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    certificates = {"SSL_CERT_FILE": str(_CERTIFICATES)} if _CERTIFICATES.exists() else {}
    return {
        **certificates,
        **{name: os.environ[name] for name in _PASSED if name in os.environ},
        "HOME": str(folder / "home"),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PIP_CACHE_DIR": str(caches / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_CACHE_DIR": str(caches / "uv"),
        "PIPX_HOME": str(folder / "pipx"),
        "PIPX_BIN_DIR": str(folder / "bin"),
        "PIPX_DEFAULT_PYTHON": sys.executable,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def size_of(folder: Path) -> int:
    """Count what belongs to the command: not the installers, and not the bytecode that pip makes of every module."""
    tools = {"pip", "setuptools", "pkg_resources", "_distutils_hack", "wheel"}
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.suffix != ".pyc" and not tools & set(path.parts))


@pytest.mark.parametrize("route", [uvx, *(pytest.param(route, marks=pytest.mark.matrix) for route in (pip, pipx))])
def test_the_wheel_alone_leads_to_a_finished_demo_outside_a_checkout(
    route: Callable[[Path, Path, dict[str, str]], list[str | Path]], built: Path, release: Path, tmp_path: Path
) -> None:
    (wheel,) = built.glob("*.whl")
    environment = bare(tmp_path)
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    command = route(wheel, tmp_path, environment)
    shown = run(*command, "demo", "--no-stay", cwd=tmp_path, environment=environment)
    assert "Pull request:" in shown
    assert size_of(tmp_path) < MAX_BYTES
    git(tmp_path / "project", "init", "-q")
    run(*command, "init", "--yes", cwd=tmp_path / "project", environment=environment)
    plan = (tmp_path / "project/.github/workflows/accord-plan.yml").read_text()
    assert f"@{git(release, 'rev-parse', 'HEAD')} # v" in plan


def test_gh_accord_runs_the_release_with_the_token_of_gh(tmp_path: Path) -> None:
    script, programs = ROOT / "gh-accord/gh-accord", tmp_path / "bin"
    programs.mkdir()

    def shown(*tools: str, **more: str) -> subprocess.CompletedProcess[str]:
        for path in programs.iterdir():
            path.unlink()
        for name in tools:
            says = 'echo "$* with $GITHUB_TOKEN"' if name != "gh" else '[ "$*" = "auth token" ] && echo gh-token'
            (programs / name).write_text(f"#!/bin/bash\n{says}\n")
            (programs / name).chmod(0o755)
        words = ["/bin/bash", script, "items", "show", "a b"]
        return subprocess.run(words, env={"PATH": str(programs), **more}, capture_output=True, text=True, check=False)

    package = gh_package(ROOT)
    assert shown("gh", "uvx", "pipx").stdout == f"--from {package} accord items show a b with gh-token\n"
    assert shown("gh", "pipx", GITHUB_TOKEN="mine").stdout == f"run --spec {package} accord items show a b with mine\n"
    assert shown("uvx").stdout == f"--from {package} accord items show a b with \n"
    missing = shown("gh")
    assert (missing.returncode, "pipx" in missing.stderr) == (2, True)


def test_the_hooks_of_pre_commit_run_commands_that_exist_on_the_files_that_they_are_for() -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert list(hooks) == ["accord-check", "accord-doctor", "accord-conform"]
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for hook in hooks.values():
        matching = [name for name in files if re.search(hook["files"], name.removeprefix("templates/consumer-repo/"))]
        assert matching
        words = [*hook["entry"].split()[1:], *(matching if hook.get("pass_filenames", True) else [])]
        run(sys.executable, "-m", "accord", *words, cwd=ROOT)
