"""Corrected workflows keep every other character, and GitHub's schema and zizmor accept them."""

import difflib
import subprocess
import sys
from pathlib import Path

import pytest

from accord.files.yaml import read_yaml
from accord.workflows.agents import shipped_agents
from accord.workflows.fixes import PINS, TWO_JOBS, Fixed, fix_workflow

ROOT = Path(__file__).parents[2]
CHECKOUT = PINS["actions/checkout"][1]
PYTHON = PINS["actions/setup-python"][1]
OTHER = "a" * 40


def fixed(text: str) -> Fixed:
    """Correct a workflow; some/action is known to have the tag v1."""
    return fix_workflow(text, known, shipped_agents())


def known(repository: str, ref: str) -> str | None:
    return OTHER if (repository, ref) == ("some/action", "v1") else None


def diff(old: str, new: str) -> list[str]:
    """The lines that differ, with - and +."""
    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return [f"{line[0]} {line[2:].strip()}" for line in lines if line[0] in "-+"]


def steps(*lines: str, head: str = "    permissions: {}\n") -> str:
    body = "".join(f"      - {line}\n" for line in lines)
    return f"name: A # kept\non: push\n\njobs:\n  a:\n    runs-on: ubuntu-latest\n{head}    steps:\n{body}"


PINNING = [
    ("uses: actions/setup-python@v7", [f"+ - uses: actions/setup-python@{PYTHON} # v7.0.0"]),
    ("uses: actions/setup-python@v7.0.0 # mine", [f"+ - uses: actions/setup-python@{PYTHON} # mine"]),
    ("uses: 'some/action/sub@v1'", [f"+ - uses: 'some/action/sub@{OTHER}' # v1"]),
    ("{uses: some/action@v1, id: x}", [f"+ - {{uses: some/action@{OTHER}, id: x}}"]),
    ("uses: actions/setup-python@v4", []),
    ("uses: unknown/action@v1", []), (f"uses: some/action@{OTHER}", []), ("uses: ./here", []), ("uses: docker://a", []),
]  # fmt: skip


@pytest.mark.parametrize(("step", "expected"), PINNING)
def test_an_action_is_pinned_to_the_commit_of_its_own_tag(step: str, expected: list[str]) -> None:
    text = steps(step)
    found = fixed(text)
    assert [line for line in diff(text, found.text) if line[0] == "+"] == expected
    assert len(found.fixes) == len(expected)
    is_left = step.startswith(("uses: actions/setup-python@v4", "uses: unknown"))
    assert ["Set `GITHUB_TOKEN`" in fix.message for fix in found.left] == [True] * is_left


def test_the_known_commits_are_those_that_this_repository_uses() -> None:
    used = "".join(file.read_text() for file in (ROOT / ".github/workflows").glob("*.yml"))
    assert all(f"{action}@{commit} # {version}" in used for action, (version, commit) in PINS.items() if action in used)


TOKENS = [
    (f"uses: actions/checkout@{CHECKOUT}", ["+ with:", "+ persist-credentials: false"]),
    (f"uses: actions/checkout@{CHECKOUT} # v7.0.1\n        with:\n          # deep\n          fetch-depth: 0",
     ["+ persist-credentials: false"]),
    (f"name: x\n        uses: actions/checkout@{CHECKOUT}\n        id: y", ["+ with:", "+ persist-credentials: false"]),
    (f"uses: actions/checkout@{CHECKOUT}\n        with: {{ref: main}}",
     ["- with: {ref: main}", "+ with: {persist-credentials: false, ref: main}"]),
    (f"{{uses: actions/checkout@{CHECKOUT}}}",
     [f"- - {{uses: actions/checkout@{CHECKOUT}}}",
      f"+ - {{uses: actions/checkout@{CHECKOUT}, with: {{persist-credentials: false}}}}"]),
    (f"uses: actions/checkout@{CHECKOUT}\n        with:\n          persist-credentials: true", []),
]  # fmt: skip


@pytest.mark.parametrize(("step", "expected"), TOKENS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_checkout_that_needs_no_token_keeps_none(step: str, expected: list[str], end: str) -> None:
    text = steps(step, "run: pytest -q").replace("\n", end)
    found = fixed(text)
    assert diff(text, found.text) == expected
    assert found.text.count("\r\n") == found.text.count("\n") * (end == "\r\n")
    (checkout, _) = read_yaml(found.text.encode()).value["jobs"]["a"]["steps"]
    assert "persist-credentials" in checkout["with"]


JAVASCRIPT = "uses: actions/github-script@" + OTHER + '\n        with: {script: "%s"}'


MAY_PUSH = [
    *("git push", "git fetch origin", "bash release.sh", "./scripts/x", "./test", "make release", "npm run release"),
    *("npm ci && npm publish", "python release.py", "python - < x.py", "python -m release", "python -c 'x()'", "just"),
    *("npx lerna version", "mvn release:prepare", "pipx run commitizen bump", "uv run release.py", "$RELEASE"),
    *("if true; then sudo make; fi", "echo x | bash", "x=$(./next.sh)", "codex exec - < prompt.md"),
    *(r"git \\\n push origin main", "git $CMD", "git sync", "git -C docs sync", "git --no-pager sync"),
    "git config --get-all http.https://github.com/.extraheader",
]


@pytest.mark.parametrize(
    "later",
    [
        *(f'run: "{script}"' for script in MAY_PUSH), "uses: ./publish", "uses: unknown/p@" + OTHER,
        *(JAVASCRIPT % script for script in ("exec.exec('git', ['push'])", "require('./release.js')",
            "require(process.env.X)", "exec('make')", "await import('child_process')")),
    ],
)  # fmt: skip
def test_a_checkout_whose_token_may_be_used_later_keeps_it(later: str) -> None:
    text = steps(f"uses: actions/checkout@{CHECKOUT}", later)
    found = fixed(text)
    assert (found.text, [fix.path for fix in found.left]) == (text, ["/jobs/a/steps/0"])
    assert "because a later script may need it" in found.left[0].message or "uses:" in later


@pytest.mark.parametrize(
    "later",
    [
        *(
            f'run: "{script}"'
            for script in ("python -m pip install -e .", "python -m pytest tests", "npm ci && npm test",
                "uv sync && uv run pytest -q", "git diff --exit-code", "timeout 5m cargo test", "npx ruff check .",
                r"git \\\n diff && git --no-pager log -1", "git add -N . && git status", "git config user.name me")
        ),
        *(JAVASCRIPT % script for script in ("core.info('executed on github')", "require('fs'); /a/.exec(b)")),
        "uses: actions/setup-node@" + OTHER,
    ],
)  # fmt: skip
def test_a_step_that_runs_no_git_needs_no_token(later: str) -> None:
    text = fixed(steps(f"uses: actions/checkout@{CHECKOUT}", later)).text
    assert "persist-credentials: false" in text


def test_permissions_are_declared_where_nothing_writes() -> None:
    text = steps(f"uses: actions/checkout@{CHECKOUT}", "run: pytest", head="")
    assert diff(text, fixed(text).text)[-2:] == ["+ with:", "+ persist-credentials: false"]
    text = steps("run: pytest", head="")
    assert diff(text, fixed(text).text) == ["+ ", "+ permissions:", "+ contents: read"]
    bare = [
        steps(step, head="")
        for step in ("run: gh issue create", JAVASCRIPT % "x", "uses: unknown/p@" + OTHER, "run: git push")
    ]
    given = [
        text.replace("jobs:", "env: {T: '${{ github.token }}'}\njobs:"),
        text.replace(
            "    steps:", "    container: {credentials: {password: '${{ secrets.github_token }}'}}\n    steps:"
        ),
    ]
    after = [steps(f'run: "{script}"', head="") for script in MAY_PUSH]
    for each in (*bare, *given, *after):
        found = fixed(each)
        assert "permissions" not in found.text
        assert "`a` may write" in found.left[-1].message


def test_permissions_are_not_declared_beside_those_of_a_job() -> None:
    text = steps("run: pytest") + "  b:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pytest\n"
    found = fixed(text)
    assert (found.text, [fix.path for fix in found.left]) == (text, ["/jobs"])
    assert "because `a` declares some of its own" in found.left[0].message


WRITES = "    permissions: {contents: write}\n"


@pytest.mark.parametrize(
    ("text", "is_left"),
    [
        (steps("run: codex exec - < prompt.md", head=WRITES), True), (steps("run: make", head=WRITES), False),
        (steps("run: codex exec - < prompt.md"), False),
    ],
)  # fmt: skip
def test_a_job_whose_agent_may_write_is_named_and_not_changed(text: str, is_left: bool) -> None:
    found = fixed(text)
    assert (found.text, found.has_agent_job) == (text, is_left)
    assert [fix.path for fix in found.left if "template" in fix.message] == ["/jobs/a"] * is_left


def test_the_template_uses_the_known_commits() -> None:
    template = TWO_JOBS.read_text()
    assert all(f"{action}@{PINS[action][1]} # {PINS[action][0]}" in template for action in PINS if action in template)
    assert read_yaml(template.encode()).value["jobs"]["agent"]["permissions"] == {"contents": "read"}


@pytest.mark.slow
def test_githubs_schema_and_zizmor_accept_corrected_workflows_and_the_template(tmp_path: Path) -> None:
    corrected = fixed(steps(f"uses: actions/checkout@{CHECKOUT}", "run: pytest", head="")).text
    template = f"name: Agent\non: push\npermissions: {{}}\n{TWO_JOBS.read_text()}"
    files = [tmp_path / f"{i}.yml" for i in range(2)]
    for file, text in zip(files, (corrected, template), strict=True):
        file.write_text(text)
    tools = Path(sys.executable).parent
    for command in (
        [tools / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files],
        [tools / "zizmor", "--offline", "--quiet", *files],
    ):
        ended = subprocess.run(command, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr
