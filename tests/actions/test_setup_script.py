"""setup.sh with a stand-in for uv that only records its calls: what it does once, and what it never does."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.act import ROOT
from support.model_server import serving_models
from support.networks import CERTIFICATES, Authority, serving_tls

UV_SH = """
mkdir -p "$1"
cat > "$1/uv" <<'EOF'
#!/usr/bin/env bash
echo "uv $*" >> "$CALLS"
env > "$CALLS.env"
pwd > "$CALLS.cwd"
[ "$1" != "${FAIL:-}" ] || exit 7
if [ "$1" = venv ]; then
    sleep 0.2
    mkdir -p "${!#}/bin"
    printf '#!/usr/bin/env bash\\necho "python $*"; env\\n' > "${!#}/bin/python"
    chmod +x "${!#}/bin/python"
fi
EOF
chmod +x "$1/uv"
echo "$1/uv"
"""


class Site:
    """A checkout of accord whose uv is a stand-in, and a job on a runner."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "action"
        shutil.copytree(ROOT / "actions", self.root / "actions")
        (self.root / "src").mkdir()
        for name in ("uv.lock", "pyproject.toml"):
            shutil.copy(ROOT / name, self.root / name)
        (self.root / "actions/setup/uv.sh").write_text(UV_SH)
        self.temp, self.workspace, self.calls = directory / "temp", directory / "workspace", directory / "calls"
        self.workspace.mkdir()
        self.files = {name: directory / name for name in ("GITHUB_ENV", "GITHUB_PATH")}
        for path in self.files.values():
            path.touch()

    def start(self, script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "ACCORD_"))}
        own |= {"RUNNER_TEMP": str(self.temp), "CALLS": str(self.calls), "GITHUB_WORKSPACE": str(self.workspace)}
        own |= {name: str(path) for name, path in self.files.items()}
        command, pipe = ["bash", self.root / "actions/setup" / script, *arguments], subprocess.PIPE
        return subprocess.Popen(command, cwd=self.workspace, env=own | environment, stdout=pipe, stderr=pipe, text=True)

    def run(self, script: str, *arguments: str, **environment: str) -> tuple[int, str, str]:
        with self.start(script, *arguments, **environment) as process:
            out, err = process.communicate(timeout=600)
        return process.returncode, out, err

    def asked_of_uv(self) -> list[str]:
        return [line.split()[1] for line in self.calls.read_text().splitlines()] if self.calls.exists() else []


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_second_set_up_in_a_job_does_nothing(site: Site) -> None:
    assert (site.run("setup.sh")[0], site.asked_of_uv()) == (0, ["export", "venv", "pip"])
    assert site.run("setup.sh") == (0, "", "")
    assert site.asked_of_uv() == ["export", "venv", "pip"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["apply", "a.json", "--sandbox"], {}), (["apply"], {"ACCORD_APPLY_SANDBOX": "x"}),
        *(
            pytest.param(words, {}, marks=pytest.mark.matrix)
            for words in (["labels", "--sandbox=x"], ["demo"], ["sandbox", "serve"], ["board", "--static", "x"])
        ),
    ],
)  # fmt: skip
def test_the_packages_of_the_sandbox_and_the_pages_are_installed_once_when_they_are_used(
    site: Site, words: list[str], variables: dict[str, str]
) -> None:
    site.run("setup.sh")
    for more in ({}, {"ACCORD_APPLY_SANDBOX": ""}, {"ACCORD_RUN_SANDBOX_MODE": "read-only"}):
        assert site.run("accord.sh", "apply", "sandbox.json", **more)[0] == 0
        assert site.run("accord.sh", "board", "issue", **more)[0] == 0
    assert site.asked_of_uv() == ["export", "venv", "pip"]
    for _ in range(2):
        code, out, _err = site.run("accord.sh", *words, **variables)
        assert (code, out.splitlines()[0]) == (0, f"python -P -m accord {' '.join(words)}")
    assert site.asked_of_uv() == ["export", "venv", "pip", "export", "pip"]
    first, second = (line for line in site.calls.read_text().splitlines() if line.startswith("uv export"))
    assert ("--extra" in first, "--no-dev --extra web" in second) == (False, True)


@pytest.mark.parametrize(
    ("extra", "other", "commands"),
    [
        ("mcp", ["check", "run"], (["run", "--no-publish"], ["run"])),
        ("doctor", ["repos", "run", "sync", "doctor"], (["doctor", "--offline"], ["repos", "run", "doctor"])),
    ],
)
def test_packages_that_few_commands_need_are_installed_once_for_those(
    site: Site, extra: str, other: list[str], commands: tuple[list[str], ...]
) -> None:
    site.run("setup.sh")
    assert site.run("accord.sh", *other)[0] == 0
    assert site.asked_of_uv() == ["export", "venv", "pip"]
    for words in commands:
        assert site.run("accord.sh", *words)[0] == 0
    assert site.asked_of_uv() == ["export", "venv", "pip", "export", "pip"]
    assert f"--no-dev --extra {extra}" in site.calls.read_text()


@pytest.mark.slow
def test_tools_from_a_cache_whose_python_is_gone_are_installed_again(site: Site) -> None:
    site.run("setup.sh")
    (home,) = site.temp.iterdir()
    (home / "env/bin/python").unlink()
    (home / "env/bin/python").symlink_to(site.temp / "python3.99")
    assert (site.run("setup.sh")[0], site.run("accord.sh", "--version")[0]) == (0, 0)
    assert site.asked_of_uv() == ["export", "venv", "pip"] * 2


def test_concurrent_set_ups_install_once(site: Site) -> None:
    with site.start("setup.sh") as one, site.start("setup.sh") as two:
        assert (one.wait(60), two.wait(60)) == (0, 0)
    assert site.asked_of_uv() == ["export", "venv", "pip"]


def test_a_killed_set_up_does_not_delay_the_next(site: Site) -> None:
    with site.start("setup.sh") as killed:
        while "venv" not in site.asked_of_uv():
            assert killed.poll() is None
        killed.kill()
    assert site.run("setup.sh")[0] == 0
    assert site.asked_of_uv() == ["export", "venv", "export", "venv", "pip"]


@pytest.mark.parametrize(
    ("end", "why"), [("kill -ALRM $$", "has not ended for 5 minutes"), ("exit 1", "lock cannot be locked")]
)
def test_a_set_up_without_its_lock_says_why(site: Site, tmp_path: Path, end: str, why: str) -> None:
    program = tmp_path / "bin/python3"
    program.parent.mkdir()
    program.write_text(f"#!/usr/bin/env bash\n{end}\n")
    program.chmod(0o755)
    code, _, err = site.run("setup.sh", PATH=f"{program.parent}:{os.environ['PATH']}")
    assert (code, why in err, site.asked_of_uv()) == (1, True, [])


@pytest.mark.slow
@pytest.mark.parametrize("step", ["export", "venv", "pip"])
def test_a_failed_set_up_explains_itself_and_can_be_repeated(step: str, site: Site) -> None:
    code, _, err = site.run("setup.sh", FAIL=step)
    assert code == 7
    assert err.startswith("::error::accord could not be set up.")
    assert (site.run("accord.sh", "--version")[0], site.run("setup.sh")[0]) == (2, 0)
    assert site.run("accord.sh", "--version")[0] == 0


@pytest.mark.slow
def test_another_version_of_accord_in_the_same_job_has_its_own_tools(site: Site) -> None:
    site.run("setup.sh")
    with (site.root / "uv.lock").open("a") as lock:
        lock.write("# another version\n")
    assert site.run("accord.sh", "--version")[0] == 2
    site.run("setup.sh")
    assert len(list(site.temp.iterdir())) == 2


def test_the_callers_variables_do_not_affect_uv_or_python(site: Site) -> None:
    redirecting = {
        "UV_PROJECT_ENVIRONMENT": "/nowhere", "UV_PYTHON": "2.7", "UV_CONFIG_FILE": "/nowhere",
        "UV_NO_VERIFY_HASHES": "1", "PIP_TARGET": "/nowhere", "PIP_REQUIRE_VIRTUALENV": "1", "PYTHONPATH": "/nowhere",
        "PYTHONHOME": "/nowhere", "VIRTUAL_ENV": "/nowhere",
    }  # fmt: skip
    assert site.run("setup.sh", **redirecting)[0] == 0
    lines = (site.calls.parent / "calls.env").read_text().splitlines()
    assert not {line for line in lines if line.endswith("/nowhere")}
    code, out, _ = site.run("accord.sh", "check", "a b", **redirecting)
    assert code == 0
    first, *environment = out.splitlines()
    assert first == "python -P -m accord check a b"
    assert {line for line in environment if line.startswith("PYTHON")} == {f"PYTHONPATH={site.root}/src"}


def test_a_checkout_of_accord_in_the_workspace_stays_clean(site: Site) -> None:
    site.run("setup.sh")
    _, out, _ = site.run("accord.sh", "check", GITHUB_WORKSPACE=str(site.root))
    (home,) = site.temp.iterdir()
    assert f"PYTHONPYCACHEPREFIX={home}/bytecode" in out.splitlines()


def test_settings_for_a_companys_package_index_are_kept(site: Site) -> None:
    way = {
        "UV_INDEX_COMPANY_PASSWORD": "open sesame", "UV_SYSTEM_CERTS": "1",
        "PIP_INDEX_URL": "https://mirror.invalid/simple", "PIP_CERT": "/etc/company.pem",
        "SSL_CERT_FILE": "/etc/company.pem", "HTTPS_PROXY": "http://proxy.invalid",
    }  # fmt: skip
    site.run("setup.sh", **way)
    environment = (site.calls.parent / "calls.env").read_text().splitlines()
    assert {f"{name}={value}" for name, value in way.items()} <= set(environment)
    assert "UV_DEFAULT_INDEX=https://mirror.invalid/simple" in environment


@pytest.mark.parametrize("choice", ["", "0"])
def test_uv_trusts_the_certificates_of_the_system_unless_the_caller_says_no(site: Site, choice: str) -> None:
    site.run("setup.sh", **{"UV_SYSTEM_CERTS": choice} if choice else {})
    assert f"UV_SYSTEM_CERTS={choice or 1}" in (site.calls.parent / "calls.env").read_text().splitlines()


@pytest.mark.matrix
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT"])
def test_uv_is_installed_from_an_index_with_a_companys_certificate(tmp_path: Path, variable: str) -> None:
    authority = Authority(tmp_path, "Example Corp Root").make()
    with serving_models() as index, serving_tls(authority.issue("localhost"), index.url) as port:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", *CERTIFICATES))}
        own |= {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", "PIP_INDEX_URL": f"https://localhost:{port}/simple"}
        command = ["bash", ROOT / "actions/setup/uv.sh", tmp_path / "uv"]
        done = subprocess.run(command, env=own | {variable: str(authority.file)}, capture_output=True, check=False)
        assert done.returncode  # the index has nothing
        assert [seen.path for seen in index.seen] == ["/simple/uv/"]


def test_nothing_changes_for_the_later_steps_of_the_job(site: Site) -> None:
    before = sorted(site.root.rglob("*"))
    site.run("setup.sh")
    site.run("accord.sh", "--version")
    assert ({path.read_text() for path in site.files.values()}, list(site.workspace.iterdir())) == ({""}, [])
    assert sorted(site.root.rglob("*")) == before


def test_set_up_works_where_the_actions_folder_is_read_only(site: Site) -> None:
    for path in [site.root, *site.root.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        assert (site.run("setup.sh")[0], site.run("accord.sh", "--version")[0]) == (0, 0)
    finally:
        for path in [site.root, *site.root.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)


def test_a_self_hosted_runner_can_keep_the_tools_between_jobs(site: Site, tmp_path: Path) -> None:
    site.run("setup.sh", ACCORD_HOME=str(tmp_path / "kept"))
    assert site.run("accord.sh", "--version", ACCORD_HOME=str(tmp_path / "kept"))[0] == 0
    assert not site.temp.exists()
