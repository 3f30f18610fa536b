"""Workflows run for real: nektos/act carries out the actions of this checkout in a consumer's repository.

The consumer refers to them the way a user does (``accord-ci/accord@v0``). act gets a copy of this checkout under that
name, in which four things are rewritten that GitHub knows and act 0.2.89 does not: ``uses: $/path``, ``queue: max``,
``cache-mode`` and ``continue-on-error`` of a job. Jobs run one after the other. Third-party actions are small
stand-ins. A green run proves nothing about permissions, concurrency and size limits.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import yaml

from accord.kit.templates import with_pin

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates/consumer-repo/.github/workflows"
ACT = Path(sys.executable).with_name("act")
PUBLISHED = "accord-ci/accord@v0"
CONSUMER = "octo/consumer"
TIMEOUT_SECONDS = 1200
QUICK: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Reads all values as texts, ten times as fast where PyYAML was built with libyaml."""

_OURS = re.compile(r"\baccord-ci/accord(?:/[^@\s]*)?@([0-9a-f]{40})\b")
"""Commits of accord that a workflow pins: whichever it is, act gets this checkout."""

_NAMES = "set-env|set-output|save-state|add-mask|add-path|add-matcher|remove-matcher|stop-commands|echo"
_SHOWN = "warning|error|notice|debug|group|endgroup"
_FIRED = re.compile(rf"^\s*::(?:{_NAMES}|{_SHOWN})\b.*?::|##\[(?:{_NAMES}|{_SHOWN})\b[^\]]*\]")
_COMMAND = re.compile(r"::(?P<name>[^ :]+)(?P<properties> .*?)?::(?P<data>.*)", re.DOTALL)

CHECKOUT = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1"
"""Without a ``ref``, act does this one by itself: it copies the consumer's folder into the workspace, empty before."""

STAND_INS = {
    "actions/checkout": (
        'git clone --quiet "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY.git" "${INPUT_PATH:-.}" && cd "${INPUT_PATH:-.}" &&'
        ' git fetch --quiet origin "${INPUT_REF:-HEAD}" && git checkout --quiet FETCH_HEAD'
    ),
    "actions/setup-python": "python3 --version",
    "actions/upload-artifact": f'python3 -I "{Path(__file__).with_name("upload_artifact.py")}"',
    "actions/cache": 'mkdir -p "$INPUT_PATH"',
}
"""Stand-ins for third-party actions: one line of bash each, to which an input ``some-name`` is ``INPUT_SOME_NAME``."""

DEFAULTS = {"actions/upload-artifact": {"name": "artifact", "if-no-files-found": "warn", "overwrite": "false"}}
"""Inputs of those actions that mean something to their stand-ins, besides ``path`` and ``ref``."""


@dataclass(frozen=True)
class Annotation:
    """A line that GitHub shows next to a file."""

    kind: str
    message: str
    file: str | None = None
    line: int | None = None
    title: str | None = None


@dataclass(frozen=True)
class Run:
    """The events of one run under act, one dict each."""

    exit_code: int
    events: Sequence[Mapping[str, Any]] = field(repr=False)
    artifacts: Path

    @cached_property
    def log(self) -> str:
        """The output of the steps, without lines that the runner obeyed."""
        return "".join(event["msg"] for event in self.events if event.get("raw_output"))

    @property
    def trouble(self) -> str:
        """What to read when a run failed that should not have."""
        return "\n".join(str(event["msg"]) for event in self.events)

    @property
    def forged(self) -> list[str]:
        """The lines of the log that GitHub's own runner would obey (act overlooks some), source: actions/runner."""
        return [line for line in re.split(r"[\r\n]", self.log) if _FIRED.search(line)]

    @property
    def summary(self) -> str:
        """The step summaries of all jobs (act tells each again for the step that uses the action)."""
        told = dict.fromkeys((event["job"], event["content"]) for event in self._commands("summary"))
        return "\n".join(content for _, content in told)

    @property
    def annotations(self) -> list[Annotation]:
        """The annotations of all jobs."""
        found = [event for kind in ("error", "warning", "notice") for event in self._commands(kind)]
        return [_annotation(event) for event in found]

    @property
    def jobs(self) -> dict[str, str]:
        """How each job ended, by its name; jobs of a matrix have a number behind it."""
        return {event["job"]: event["jobResult"] for event in self.events if "jobResult" in event}

    def outputs(self, step: str) -> dict[str, str]:
        """The outputs of the step with this id, of whichever job."""
        own = [event for event in self._commands("set-output") if event.get("stepID") == [step]]
        return {event["name"]: event["arg"] for event in own}

    def _commands(self, name: str) -> Iterator[Mapping[str, Any]]:
        return (event for event in self.events if event.get("command") == name)


@dataclass(frozen=True)
class Bench:
    """Shared by all runs: the published copy, the stand-ins, and the folder of tools that setup.sh fills once.

    ``programs`` has python3 itself, where a runner's may be a script of pyenv that starts twenty processes.
    """

    published: Path
    stand_ins: Mapping[str, Path]
    home: Path
    programs: Path

    @property
    def with_own_tokens(self) -> Self:
        """The same bench with a copy in which each job has a token of its own."""
        return replace(self, published=self.published.with_name("published-with-own-tokens"))

    def run(
        self,
        workflow: str,
        directory: Path,
        *,
        event: str = "workflow_dispatch",
        files: Mapping[str, str] | None = None,
        api_url: str = "http://127.0.0.1:9",
        token: str = "",
        job: str = "",
        run_id: int = 1,
        inputs: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
        payload: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        clone: Path | None = None,
        actor: str = "octo",
        programs: Path | None = None,
    ) -> Run:
        """Run a workflow in a new consumer's repository below ``directory``, which holds ``files`` besides.

        With a ``clone`` it runs there, and the clone stays as it is. ``programs`` is a folder that comes first on the
        PATH, and ``actor`` is who caused the event.

        Artifacts go to the local GitHub at ``api_url``, to the run ``run_id``; what else is in ``Run.artifacts``, steps
        put there by the variable ARTIFACTS. ``settings`` are the repository's variables; ``environment`` is that of the
        runner: of every job, called ones too.
        """
        directory.mkdir(parents=True, exist_ok=True)
        it = directory / "it.yml"
        it.write_text(workflow)
        consumer = clone or make_consumer(
            directory / "consumer", {".github/workflows/it.yml": workflow, **(files or {})}
        )
        artifacts = directory / "artifacts"
        artifacts.mkdir(exist_ok=True)
        event_file = directory / "event.json"
        default = {"inputs": dict(inputs or {}), "repository": {"default_branch": "main"}}
        event_file.write_text(json.dumps(default if payload is None else payload))
        variables = {
            **(environment or {}),
            "GITHUB_API_URL": api_url,
            "GITHUB_SERVER_URL": api_url,
            "GITHUB_RUN_ID": str(run_id),
            "ACCORD_HOME": str(self.home),
            "ARTIFACTS": str(artifacts),
        }
        shared = {**(secrets or {}), "GITHUB_TOKEN": token}
        pinned = [f"accord-ci/accord@{commit}" for commit in sorted(set(_OURS.findall(workflow)))]
        folders = {**dict.fromkeys([PUBLISHED, *pinned], self.published), **self.stand_ins}
        command = [
            *(str(ACT), event, "--directory", str(consumer), "--platform", "ubuntu-latest=-self-hosted"),
            *("--workflows", str(it), "--actor", actor),
            *("--eventpath", str(event_file), "--json", "--rm", "--no-cache-server"),
            *("--concurrent-jobs", "1"),  # see _one_at_a_time
            "--insecure-secrets",  # a secret in the log must not hide
            *("--action-cache-path", str(directory / "act")),
            *(part for name, value in shared.items() for part in ("--secret", f"{name}={value}")),
            *(part for name, value in (settings or {}).items() for part in ("--var", f"{name}={value}")),
            *(part for name, value in variables.items() for part in ("--env", f"{name}={value}")),
            *(("--job", job) if job else ()),
            *(part for name, folder in folders.items() for part in ("--local-repository", f"{name}={folder}")),
        ]
        first = [str(programs)] if programs else []
        path = os.pathsep.join([*first, str(self.programs), os.environ["PATH"]])
        settled = {
            "capture_output": True,
            "text": True,
            "timeout": TIMEOUT_SECONDS,
            "env": {**os.environ, "PATH": path},
        }
        ended = subprocess.run(command, check=False, **settled)
        lines = (ended.stdout + ended.stderr).split("\n")
        events = [json.loads(line) if line.startswith("{") else {"msg": line} for line in lines]
        return Run(ended.returncode, events, artifacts)


def make_consumer(directory: Path, files: Mapping[str, str]) -> Path:
    """Make a git repository of a user of accord."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    identity = ["-c", "user.name=octo", "-c", "user.email=octo@example.invalid"]
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["remote", "add", "origin", f"https://github.com/{CONSUMER}.git"],
        ["add", "--all"],
        [*identity, "commit", "--quiet", "--message=Start"],
    ):
        subprocess.run(["git", *arguments], cwd=directory, check=True)
    return directory


def publish(directory: Path, *, own_tokens: bool = False, sources: Path | None = None) -> Path:
    """Copy the files of a tag of this repository, in the words of act; see ``with_own_tokens``.

    With ``sources``, ``src`` is a link to it. act copies the folder for each action of each run, and Python compiles
    the modules of a linked folder only once.
    """
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    names = ["--", "action.yml", "actions", ".github", "src", "templates", "pyproject.toml", "uv.lock"]
    found = subprocess.run([*listed, *names], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in found.split("\0"):
        if (ROOT / name).is_file() and not (sources and name.startswith("src/")):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, directory / name)
    if sources:
        (directory / "src").symlink_to(sources)
    for path in (directory / ".github/workflows").glob("*.yml"):
        text = rewritten(path.read_text(encoding="utf-8"))
        path.write_text(with_own_tokens(text) if own_tokens else text, encoding="utf-8")
    for path in directory.glob("actions/*/action.yml") if own_tokens else ():
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("inputs.token == github.token", OWN_TOKEN), encoding="utf-8")
    return directory


def rewritten(workflow: str) -> str:
    """Write a workflow of ours in the words of act."""
    owner, ref = PUBLISHED.split("@")
    workflow = re.sub(r"uses: \$/(\S+)", rf"uses: {owner}/\1@{ref}", workflow)
    workflow = re.sub(r"uses: \$/(?=\s)", f"uses: {owner}@{ref}", workflow)
    workflow = _one_at_a_time(without_new_keys(workflow))
    jobs = re.split(r"^(?=  [\w-]+:$)", workflow, flags=re.MULTILINE)
    return "".join(_forgiven(job) if "\n    continue-on-error: true" in job else job for job in jobs)


def _one_at_a_time(workflow: str) -> str:
    """Write a workflow so that the jobs of a matrix run one after the other.

    act 0.2.89 writes to a map without a lock when two jobs fetch a local action at once (LocalRepositoryCache), and
    ends with "concurrent map writes", in one of some hundred runs.
    """
    workflow = re.sub(r"\n +max-parallel: [^\n]+", "", workflow)
    return re.sub(r"^( +)strategy:$", r"\1strategy:\n\1  max-parallel: 1", workflow, flags=re.MULTILINE)


def without_new_keys(workflow: str) -> str:
    """Leave out keys that GitHub knows and act does not."""
    return re.sub(r"\n +(?:queue|cache-mode): [^\n]+", "", workflow)


def _forgiven(job: str) -> str:
    """Write a job that may fail alone so that its steps may; the steps after one that failed are skipped as before."""
    head, *steps = re.split(r"^(?=      - )", job, flags=re.MULTILINE)
    for i, step in enumerate(steps):
        found = re.search(r"^        id: (.+)$", step, flags=re.MULTILINE)
        steps[i] = step if found else re.sub(r"\n", f"\n        id: step-{i}\n", step, count=1)
    names = [re.findall(r"^        id: (.+)$", step, flags=re.MULTILINE)[0] for step in steps]
    for i, step in enumerate(steps):
        before = " && ".join(f"steps.{name}.outcome == 'success'" for name in names[:i])
        condition = f"        if: {before}\n" if before and "\n        if: " not in step else ""
        steps[i] = re.sub(r"\n", f"\n        continue-on-error: true\n{condition}", step, count=1)
    return "".join([head, *steps])


OWN_TOKEN = "startsWith(inputs.token, 'job-token-')"
"""By what an action sees, in a run with own tokens, that its token is that of its job."""


def with_own_tokens(workflow: str) -> str:
    """Write a workflow so that each job has a token of its own, by its permissions, where act has one for all jobs."""
    permissions = permissions_of(workflow)
    head, jobs, body = workflow.partition("\njobs:\n")
    parts = re.split(r"^(?=  [\w-]+:$)", body, flags=re.MULTILINE)
    names = [part.partition(":")[0].strip() for part in parts]
    own = [
        part.replace("github.token", f"'{job_token(permissions[name])}'") if name else part
        for name, part in zip(names, parts, strict=True)
    ]
    return "".join([head, jobs, *own])


def permissions_of(workflow: str) -> dict[str, dict[str, str]]:
    """Return what each job of a workflow may do."""
    document = yaml.load(workflow, Loader=QUICK)
    return {name: job.get("permissions", {}) for name, job in document["jobs"].items()}


def job_token(permissions: Mapping[str, str]) -> str:
    """Name the token that a job with these permissions has in a run with own tokens."""
    return "-".join(["job-token", *(f"{area}.{level}" for area, level in sorted(permissions.items()))])


def job_tokens(workflows: Iterable[str]) -> list[dict[str, Any]]:
    """Return the tokens of all jobs of some workflows, as a seed of the local GitHub has them."""
    all_permissions = [given for workflow in workflows for given in permissions_of(workflow).values()]
    found = {job_token(permissions): permissions for permissions in all_permissions}
    app = {"login": "github-actions[bot]", "kind": "installation", "repositories": [CONSUMER]}
    spelled = {
        token: {area.replace("-", "_"): level for area, level in given.items()} for token, given in found.items()
    }
    return [{**app, "token": token, "permissions": permissions} for token, permissions in spelled.items()]


def stand_ins(directory: Path) -> dict[str, Path]:
    """Write a stand-in for every third-party action of our workflows; return the folders by ``owner/name@sha``."""
    folders = {}
    for uses in sorted({uses for path in workflow_files() for uses in others_used(path)}):
        folder = directory / uses.replace("/", "_")
        folder.mkdir(parents=True)
        name = uses.partition("@")[0]
        inputs = {"path": "", "ref": "", **DEFAULTS.get(name, {})}
        variables = {f"INPUT_{key.replace('-', '_').upper()}": f"${{{{ inputs.{key} }}}}" for key in inputs}
        step = {"run": STAND_INS[name], "shell": "bash", "env": variables}
        stand_in = {"name": "stand-in", "description": "stand-in", "runs": {"using": "composite", "steps": [step]}}
        offered = {key: {"default": value} for key, value in inputs.items()}
        (folder / "action.yml").write_text(json.dumps({**stand_in, "inputs": offered}))
        folders[uses] = folder
    return folders


def steps_with(uses: str, inputs: Mapping[str, Mapping[str, Any]], failing: Sequence[str] = ()) -> str:
    """Write a step for each id with the inputs of an action, for a job; those in ``failing`` do not fail the job."""
    parts = (
        f"      - id: {name}\n        continue-on-error: {str(name in failing).lower()}\n"
        f"        uses: {uses}\n        with: {json.dumps(given)}\n"
        for name, given in inputs.items()
    )
    return "".join(parts).rstrip("\n")


def job_with(
    uses: str, inputs: Mapping[str, Mapping[str, Any]], failing: Sequence[str] = (), *, after: str = ""
) -> str:
    """Write a workflow of one job: it checks the repository out, and has the steps of ``steps_with``."""
    head = "on: workflow_dispatch\njobs:\n  it:\n    runs-on: ubuntu-latest\n    steps:\n"
    return f"{head}      - uses: {CHECKOUT}\n{steps_with(uses, inputs, failing)}\n{after}"


def workflow_files() -> list[Path]:
    """All workflows of this repository, and those for a consumer to copy."""
    return sorted([*(ROOT / ".github/workflows").glob("*.yml"), *TEMPLATES.glob("*.yml")])


def template(name: str) -> str:
    """A workflow of the consumer kit, following the tag under which act knows this checkout."""
    text = without_new_keys((TEMPLATES / f"accord-{name}.yml").read_text(encoding="utf-8"))
    return with_pin(text, PUBLISHED.partition("@")[2])


def action_files() -> list[Path]:
    """All actions of this repository."""
    return [ROOT / "action.yml", *sorted((ROOT / "actions").glob("*/action.yml"))]


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a workflow or an action; its key ``on`` stays a text."""
    found: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=QUICK)
    return found


def steps_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All steps of a workflow or of a composite action."""
    if "runs" in document:
        return list(document["runs"]["steps"])
    return [step for job in document["jobs"].values() for step in job.get("steps", [])]


def others_used(path: Path) -> list[str]:
    """The ``uses`` of a file that are neither ours nor local."""
    document = read_yaml(path)
    parts = [*steps_of(document), *document.get("jobs", {}).values()]
    owner = PUBLISHED.partition("@")[0]
    return [part["uses"] for part in parts if "uses" in part and not part["uses"].startswith(("$/", "./", owner))]


def _annotation(event: Mapping[str, Any]) -> Annotation:
    """Read a command as GitHub's runner does: the second ``::`` ends the properties (act takes the last one)."""
    match = _COMMAND.match(event.get("raw", ""))
    if match is None:
        return Annotation(event["command"], event["arg"])
    given = dict(pair.split("=", 1) for pair in (match["properties"] or "").strip().split(",") if "=" in pair)
    place = {name: _unescape(value) for name, value in given.items() if name in ("file", "title")}
    line = int(given["line"]) if "line" in given else None
    return Annotation(match["name"], _unescape(match["data"].rstrip("\r\n")), line=line, **place)


def _unescape(text: str) -> str:
    for code, sign in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, sign)
    return text
