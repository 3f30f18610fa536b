"""The shipped kit: the templates of this version, a repository's choices among them, and the pins in them.

Pins are the commit and the repository of accord in ``uses:`` lines; templates have placeholders for both.

Choices change the templates before they are compared with a repository's files. So a changed choice is a change of the
template, and not an edit of the user.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

import accord
from accord import __version__
from accord.agents import REGISTRY_PATH
from accord.agents.registry import label_entries, shipped_registry
from accord.core.errors import WrongUsage
from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean
from accord.git.configuration import KIT_CONFIG
from accord.git.program import Git

SOURCE = "accord-ci/accord"
"""accord's repository, as the templates name it."""

FOLDER = ".github"
"""The folder of all files of the kit but the skills, so that reading one folder is enough without them."""

REGISTRY = REGISTRY_PATH.as_posix()
LABELS = f"{FOLDER}/labels.yml"

_PROMPTS = ("autofix", "bot-comments", "implement", "keepalive", "plan", "review", "verifier")
_ALSO = {
    "results/labels.yml": LABELS,
    **{f"runner/prompts/{mode}.md": f"{FOLDER}/prompts/{mode}.md" for mode in _PROMPTS},
}
"""Files of the package that consumers get unchanged; the templates have no second copy of them."""
_CHECKOUT = Path(__file__).parents[3]
_OF_WORKFLOW = re.compile(rf"{FOLDER}/(?:workflows/accord-(?P<workflow>[\w-]+)\.yml|prompts/(?P<prompt>[\w-]+)\.md)")
_SECRET = re.compile(r"^ +(?P<name>\w+): \$\{\{ secrets\.(?P=name) \}\}\n", re.MULTILINE)
_DEFAULT_AGENT = re.compile(r"^default_agent: .*$", re.MULTILINE)
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PIN = re.compile(
    r"(?<![\w./@-])(?P<source>\w[\w.-]*/[\w.-]+)(?P<path>(?:/[^@\s]*)?)@(?P<commit>[0-9a-f]{64}|[0-9a-f]{40})\b"
    r"(?: # v[\w.+-]+)?"
)


class Choices(BaseModel):
    """The choices of a repository: workflows (None: all), agent and accord's repository (empty: default), skills."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    only: tuple[str, ...] | None = None
    agent: str = Field("", pattern=rf"^(?:{_NAME})?$")
    source: str = Field("", pattern=rf"^(?:{_NAME}/{_NAME})?$")
    skills: bool = False


class Kit(Frozen):
    """The templates of a version by path, with placeholders as pins, and the secrets of each agent that is on."""

    version: str
    files: Mapping[str, str]
    agents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def workflows(self) -> tuple[str, ...]:
        """The names by which workflows are chosen."""
        found = (_OF_WORKFLOW.fullmatch(path) for path in self.files)
        return tuple(match["workflow"] for match in found if match and match["workflow"])


@cache
def shipped_kit() -> Kit:
    """Return the kit of this version."""
    agents = shipped_registry().agents
    secrets = {name: tuple(agent.required_secrets) for name, agent in agents.items() if agent.enabled}
    return Kit(__version__, dict(sorted(_files())), secrets)


def _files() -> Iterator[tuple[str, str]]:
    installed = Path(__file__).parent / "consumer-repo"
    root = installed if installed.is_dir() else _CHECKOUT / "templates/consumer-repo"
    for path in root.rglob("*"):
        if path.is_file():
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
    for name, place in _ALSO.items():
        text = (Path(accord.__file__).parent / name).read_text(encoding="utf-8")
        yield place, text + label_entries() if place == LABELS else text


def given_choices(
    kit: Kit, before: Choices, *, only: str = "", agent: str = "", source: str = "", skills: bool | None = None
) -> Choices:
    """Return the choices before with those that are given: names of workflows, or `all`. Raises WrongUsage."""
    names = [name for name in re.split(r"[\s,]+", only) if name]
    listed = before.only if not names else None if names == ["all"] else tuple(dict.fromkeys(names))
    if source and not re.fullmatch(f"{_NAME}/{_NAME}", source):
        raise WrongUsage(f"`{source:.100}` is not a repository.", hint="Pass `--source OWNER/NAME`.")
    for name in names if listed else ():
        if name not in kit.workflows:
            hint = did_you_mean(name, kit.workflows) or f"The kit has {', '.join(kit.workflows)}."
            raise WrongUsage(f"The kit has no workflow `{name:.100}`.", hint=hint)
    if agent and agent not in kit.agents:
        own = f"For another agent, set `default_agent` in {REGISTRY}, and pass its secret on in the workflows."
        hint = did_you_mean(agent, kit.agents) or own
        raise WrongUsage(f"The kit has no agent `{agent:.100}` that is on by default.", hint=hint)
    origin = "" if source.lower() == SOURCE else source or before.source
    has_skills = before.skills if skills is None else skills
    return Choices(only=listed, agent=agent or before.agent, source=origin, skills=has_skills)


def chosen_kit(kit: Kit, choices: Choices) -> Kit:
    """Return the kit with the chosen workflows, for the chosen agent, and with the skills if they are chosen."""
    of_files = {path: _OF_WORKFLOW.fullmatch(path) for path in kit.files}
    names = {path: (found["workflow"] or found["prompt"]) if found else "" for path, found in of_files.items()}
    names |= {LABELS: "labels", KIT_CONFIG: "start"}
    left_out = set() if choices.only is None else set(kit.workflows).difference(choices.only)
    files = {path: text for path, text in kit.files.items() if names[path] not in left_out}
    if choices.agent in kit.agents:
        files = {path: _for_agent(path, text, kit, choices.agent) for path, text in files.items()}
    if choices.skills:
        from accord.kit.skills import skill_files  # imported here: schemas need the models of all results

        files |= skill_files()
    return Kit(kit.version, files, kit.agents)


def _for_agent(path: str, text: str, kit: Kit, agent: str) -> str:
    """Make an agent the default, and pass on no secrets but its own. An agent without any may need all of them."""
    if path == REGISTRY:
        return _DEFAULT_AGENT.sub(f"default_agent: {agent}", text)
    own = set(kit.agents[agent])
    others = {name for names in kit.agents.values() for name in names} - own
    if not any(found["name"] in own for found in _SECRET.finditer(text)):
        return text
    return _SECRET.sub(lambda found: "" if found["name"] in others else found[0], text)


class Pin(Frozen):
    """A commit of accord, its version, and the repository that has it."""

    commit: str
    version: str
    source: str = SOURCE

    def __str__(self) -> str:
        return f"{self.commit} # v{self.version}"


def with_pin(text: str, pin: Pin | str, *, sources: Collection[str] = (SOURCE,), only: str = "") -> str:
    """Replace the pin of every ``uses: SOURCE…@COMMIT # vX`` of these repositories; ``only`` limits it to one commit.

    Tags, branches, shortened commits and other repositories are the consumer's choice, and stay.
    """

    def with_new_pin(found: re.Match[str]) -> str:
        if found["source"] not in sources or (only and found["commit"] != only):
            return found[0]
        source = pin.source if isinstance(pin, Pin) else found["source"]
        return f"{source}{found['path']}@{pin}"

    return _PIN.sub(with_new_pin, text)


def pin_for(ref: str | None) -> Pin:
    """Return the pin of a commit, by default of this version. Raises WrongUsage."""
    commit = ref or own_commit()
    if not _COMMIT.fullmatch(commit):
        problem = f"`{ref}` is not a full commit SHA." if ref else "The commit of this version of accord is unknown."
        raise WrongUsage(problem, hint="Pass `--ref` with the full SHA of the release, 40 hex digits.")
    return Pin(commit, __version__)


@cache
def own_commit() -> str:
    """Return the commit of accord's own checkout, or the one that the installed package was built from, if known."""
    released = Path(__file__).parents[1] / "COMMIT"
    if released.is_file():
        return released.read_text(encoding="ascii").strip()
    if not (_CHECKOUT / ".git").exists() or not (_CHECKOUT / "templates/consumer-repo").is_dir():
        return ""
    return Git(_CHECKOUT).attempt("rev-parse", "--verify", "--quiet", "HEAD").stdout.decode("ascii", "replace").strip()
