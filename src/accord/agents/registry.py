"""The agent registry: its format, and the shipped one merged with a repository's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from accord.agents.providers import Codec
from accord.core.documents import short_name
from accord.core.errors import WrongUsage
from accord.core.findings import Finding, pointer, warning
from accord.core.suggest import did_you_mean
from accord.files.yaml import YamlDocument, read_yaml

OUTPUT_MIB = 64
"""Enough for every recorded run. An artifact of two such logs stays far below its limit."""

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Host = Annotated[str, StringConstraints(pattern=r"^(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?$")]
Usd = Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)]
Word = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]


STALL_MINUTES = 15.0
"""Longer than the commands that the known CLIs let an agent run; an agent at work prints something before that."""


def unknown_keys(model: type[BaseModel], keys: Iterable[object], place: str = "") -> Iterator[Finding]:
    """Report the keys that a model does not know: those near a known one as errors, as it would have no effect."""
    for key in (key for key in keys if isinstance(key, str) and key not in model.model_fields):
        path = place + pointer(key)
        if hint := did_you_mean(key, model.model_fields):
            yield Finding("agent-key-misspelled", f"Unknown key `{short_name(key)}`.", path, hint=hint)
        else:
            message = f"Unknown key `{short_name(key)}`; accord ignores it."
            hint = f"Remove it, or use one of: {', '.join(sorted(model.model_fields))}."
            yield warning("agent-key-unknown", message, path, hint=hint)


class _ClosedModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Install(_ClosedModel):
    """An npm package and its exact version, installed outside the workspace before the agent starts."""

    package: str = Field(pattern=r"^(@[a-z0-9][\w.-]*/)?[a-z0-9][\w.-]*$", description="The npm package.")
    version: str = Field(pattern=r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$", description="The exact version.")
    runs_scripts: bool = Field(False, description="Whether the package needs its install scripts.")


class AgentSettings(_ClosedModel):
    """The settings that one value of a choice stands for."""

    arguments: list[Word] = Field([], description="Words added to the command.")
    environment: dict[VariableName, Word] = Field({}, description="Variables to set.")
    probe: list[Word] = Field(
        [],
        description="A command that succeeds where the agent's own sandbox can start; run before the agent on Linux.",
    )
    keeps_sudo: bool = Field(False, description="Whether the agent may gain privileges, by sudo or otherwise.")


class AgentChoice(_ClosedModel):
    """The values that an input of the runner may have for this agent. No agent starts with any other value."""

    default: str = Field(description="The value if none is given.")
    values: dict[str, AgentSettings] = Field(description="The settings of each value.")


class ResultSchema(_ClosedModel):
    """How the JSON Schema of a structured result reaches the agent."""

    passed_as: Literal["file", "text"] = Field(description="As the path of a file, or as text.")
    arguments: list[Word] = Field(description="Words added to the command; {value} is the path or the text.")


class Delivery(_ClosedModel):
    """How a secret reaches the agent, if not as a variable of the same name."""

    variable: VariableName | None = Field(None, description="The variable that the agent reads it from.")
    file: str | None = Field(None, description="The file below HOME; only the agent's user can read it.")


class McpServer(_ClosedModel):
    """How an agent learns of an MCP server."""

    arguments: list[Word] = Field(
        [],
        description="Words for the placeholder {mcp_server}; {file} is a JSON file with `mcpServers`, {toml} the "
        "server as an inline table.",
    )
    home_file: str | None = Field(None, description="A JSON file below HOME that gets the key `mcpServers`.")
    options: dict[str, Any] = Field({}, description="More keys of the server's entry, such as `trust`.")


class StopHook(_ClosedModel):
    """The setting by which an agent in an editor runs a command before it ends; exit code 2 keeps it working."""

    file: str = Field(description="The file of its settings.")
    event: str = Field(description="The name of the event there.")
    seconds: int = Field(1, ge=1, description="How its time limit says one second: 1, or 1000 for milliseconds.")
    entry: dict[str, Any] = Field({}, description="More keys of the hook's entry.")
    next_step: str = Field(description="The user's next step.")


class AgentAction(_ClosedModel):
    """An action that runs an agent."""

    outputs: list[str] = Field([], description="Its outputs that hold none of the agent's words.")
    token_inputs: list[str] = Field(
        [], description="Inputs that give the agent a token for GitHub, besides `github_token`."
    )
    app_token_unless: list[str] | None = Field(
        None,
        description="It changes the job's `id-token` for an app's token that may write, unless one of these inputs "
        "is set.",
    )
    is_for_writers: bool = Field(False, description="Whether it stops where a person without write access starts it.")
    opened_by: list[str] = Field([], description="Inputs whose value `*` lets such people start it after all.")


_FROM_OUTPUTS = BeforeValidator(
    lambda value: {"outputs": value} if isinstance(value, list) else value,
    json_schema_input_type=AgentAction | list[str],
)
Actions = dict[str, Annotated[AgentAction, _FROM_OUTPUTS]]


class AgentLabel(_ClosedModel):
    """The label `agent:NAME`, which starts the agent."""

    description: str = Field(max_length=100, description="The description on GitHub.")
    color: str = Field(pattern=r"^[0-9a-fA-F]{6}$", description="Six hex digits.")


class Mode(_ClosedModel):
    """Settings for runs of one mode, such as keepalive."""

    fallback: list[str] | None = Field(None, description="Agents to try next. Default: those of the whole registry.")
    max_cost_usd: Usd | None = Field(None, description="Budget of a run. Default: that of the whole registry.")


class Agent(BaseModel):
    """One agent. Unknown keys are kept and reported."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    enabled: bool = Field(True, description="Whether it may be started.")
    codec: Codec = Field("plain", description="The format of its output.")
    install: Install | None = Field(
        None, description="A package to install first; without it the program is on the PATH."
    )
    command: list[Word] = Field([], description="The command, word by word, with placeholders such as {model}.")
    arguments: list[Word] = Field([], description="More words, for the placeholder {arguments}.")
    prompt: Literal["stdin", "file", "argument"] = Field(
        "stdin", description="How it gets the prompt: on stdin, or for the placeholder {prompt} as a path or as text."
    )
    sandbox: AgentChoice | None = Field(None, description="Sandbox modes, for the placeholder {sandbox}.")
    safety_strategy: AgentChoice | None = Field(
        None, description="Safety strategies, for the placeholder {safety_strategy}."
    )
    model: list[Word] = Field([], description="Words for the placeholder {model}; {value} is the model's name.")
    default_model: str = Field("", description="The model if none is given; empty for the agent's own default.")
    resume: list[Word] = Field(
        [], description="Words for the placeholder {resume} in later turns; {value} is the session to go on with."
    )
    repair_turns: int = Field(
        2, ge=0, le=10, description="How often it is asked again when its result breaks its contract."
    )
    max_cost: list[Word] = Field(
        [],
        description="Words for the placeholder {max_cost}; {value} is what the run's budget has left, in US dollars.",
    )
    stall_minutes: float | None = Field(
        None,
        ge=0,
        le=360,
        description="End it after so long without output. Default: 15, none for the codec plain; 0: none.",
    )
    result_schema: ResultSchema | None = Field(None, description="How it gets a result schema: {result_schema}.")
    mcp: bool = Field(False, description="Whether it may use accord's tools in runs for a plan, a change or a review.")
    mcp_server: McpServer | None = Field(None, description="How it learns of the server of these tools.")
    final_message: list[Word] = Field([], description="Words for the placeholder {final_message}; {value} is a file.")
    required_secrets: list[VariableName] = Field([], description="The secrets that the agent may see.")
    required_secrets_mode: Literal["any", "all"] = Field("all", description="Whether it needs all of them or any one.")
    secret_delivery: dict[VariableName, Delivery] = Field(
        {}, description="Secrets that it reads from another variable or a file."
    )
    environment: dict[VariableName, Word] = Field({}, description="Variables to set for it.")
    environment_from: list[VariableName] = Field([], description="More variables of the job that it may see.")
    home_files: dict[str, Any] = Field({}, description="Files to write below its HOME: text, or a mapping for JSON.")
    isolation: Literal["auto", "container", "none"] = Field(
        "auto", description="Whether it runs in a container of its own: auto means in GitHub Actions, where possible."
    )
    network: list[Host] | None = Field(
        None, description="The only hosts it may reach: `host`, `*.host` (port 443) or `host:port`; needs a container."
    )
    output_mib: int = Field(OUTPUT_MIB, ge=1, description="How much of each output stream is kept, in MiB.")
    state_files: list[str] = Field([], description="The agent's own files, as .gitignore patterns; never committed.")
    steering_files: list[str] = Field([], description="Files that it obeys, as .gitignore patterns.")
    skills: str | None = Field(None, description="The folder in which it looks for skills.")
    stop_hook: StopHook | None = Field(None, description="How an agent in an editor checks its result before it ends.")
    programs: list[Word] = Field([], description="More programs that start it, which checks of workflows look for.")
    actions: Actions = Field(
        {}, description="Actions that start it, each with what is known of it, or only its outputs without its words."
    )
    assignee: str | None = Field(None, description="The account that begins to work when it is assigned to an issue.")
    label: AgentLabel | None = Field(None, description="The label that starts it.")
    provider: str = Field("", description="The provider of its models, as OpenTelemetry names it.")
    model_names: list[str] = Field([], description="How the names of these models begin, apart from the agent's name.")
    runner_workflow: str | None = Field(None, description="A workflow that runs it instead; kept for other tools.")
    branch_prefix: str | None = Field(None, description="Kept for other tools.")
    capacity: dict[str, Any] = Field({}, description="How many runs at once; kept for other tools.")
    ui_mentions_allowed: bool | None = Field(None, description="Kept for other tools.")
    automation_logins: list[str] = Field([], description="Kept for other tools.")
    preflight: dict[str, Any] = Field({}, description="Kept for other tools.")
    capabilities: dict[str, bool] = Field({}, description="Kept for other tools.")

    @property
    def silent_seconds(self) -> float:
        """How long it may print nothing; infinite without a limit."""
        default = 0.0 if self.codec == "plain" else STALL_MINUTES
        return 60 * (default if self.stall_minutes is None else self.stall_minutes) or math.inf


class Registry(BaseModel):
    """The agents by name, and the default one."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    version: Literal[1] = Field(1, description="The version of the format.")
    default_agent: str | None = Field(None, description="The agent if none is named.")
    keepalive_marker_prefix: str | None = Field(None, description="Kept for other tools.")
    review_bots: list[Word] = Field([], description="Logins of bots whose review threads an agent answers.")
    allowed_hosts: list[Word] = Field([], description="Hosts that images in posted texts may come from.")
    break_words: list[Word] = Field([], description="Commands of bots that posted texts break, such as bors r+.")
    references: Literal["all", "own"] = Field(
        "all", description="Whether posted texts refer to all repositories, or to their own only."
    )
    steering_files: list[str] = Field([], description="More files that agents obey, as .gitignore patterns.")
    steering: list[str] = Field([], description="Own files that no agent changes unseen, as .gitignore patterns.")
    protected: list[str] = Field([], description="Own files whose change is a draft, as .gitignore patterns.")
    actions: Actions = Field(
        {}, description="More actions that run an agent, such as composite ones of other repositories."
    )
    programs: list[Word] = Field([], description="More programs that start an agent, for checks of workflows.")
    model_keys: list[Word] = Field([], description="Patterns of the names that keys of models have, without case.")
    fallback: list[str] = Field([], description="Agents to try, in order, where one is full, down or stalled.")
    max_cost_usd: Usd | None = Field(None, description="Budget of a run in US dollars, as agents report their cost.")
    max_item_cost_usd: Usd | None = Field(None, description="Budget of all runs of a loop on one pull request.")
    modes: dict[str, Mode] = Field({}, description="Settings by the mode of a run.")
    agents: dict[str, Agent] = Field(description="The agents by name.")

    @classmethod
    def unknown_key_findings(cls, value: Any) -> Iterator[Finding]:
        """Report the unknown keys of a document that need not have the shape."""
        document = value if isinstance(value, dict) else {}
        yield from unknown_keys(cls, document)
        agents = document.get("agents")
        for name, entry in agents.items() if isinstance(agents, dict) else ():
            yield from unknown_keys(Agent, entry if isinstance(entry, dict) else (), f"/agents{pointer(name)}")

    @property
    def state_patterns(self) -> tuple[str, ...]:
        """Return the patterns of all agents' own files. A registry adds to those that accord ships."""
        agents = [*shipped_registry().agents.values(), *self.agents.values()]
        return tuple(dict.fromkeys(pattern for agent in agents for pattern in agent.state_files))

    @property
    def steering_patterns(self) -> tuple[str, ...]:
        """Return the patterns of all files that steer agents. A registry adds to those that accord ships."""
        both = shipped_registry(), self
        lists = [*(one.steering_files for one in both), self.steering]
        lists += [agent.steering_files for one in both for agent in one.agents.values()]
        return tuple(dict.fromkeys(pattern for patterns in lists for pattern in patterns))

    def agent(self, name: str) -> Agent:
        """Return an enabled agent with a command. Raises WrongUsage with the known names."""
        agent = self.agents.get(name)
        if agent is None:
            hint = f"{did_you_mean(name, self.agents)} Use one of: {', '.join(sorted(self.agents))}.".strip()
            raise WrongUsage(f"Unknown agent `{name}`." if name else "No agent given.", hint=hint)
        if not agent.enabled:
            raise WrongUsage(f"The agent `{name}` is disabled.", hint="Set `enabled: true` in its registry entry.")
        if not agent.command:
            started_by = f"; {agent.runner_workflow} runs it" if agent.runner_workflow else ""
            hint = "Add `command` to its registry entry, or run that workflow."
            raise WrongUsage(f"The agent `{name}` has no command{started_by}.", hint=hint)
        return agent

    def fallback_for(self, mode: str) -> tuple[str, ...]:
        """Name the agents to try after the first one, in order."""
        own = self.modes[mode].fallback if mode in self.modes else None
        return tuple(self.fallback if own is None else own)

    def max_cost_for(self, mode: str) -> float | None:
        """Return the budget of a run in US dollars; None without one."""
        own = self.modes[mode].max_cost_usd if mode in self.modes else None
        return self.max_cost_usd if own is None else own

    def enabled_agents(self, first: str = "") -> tuple[str, ...]:
        """Name the agents that may be started: ``first`` first, or else the default one.

        Raises WrongUsage if ``first`` may not be started.
        """
        names = [name for name, agent in self.agents.items() if agent.enabled and agent.command]
        if first:
            self.agent(first)
        preferred = first or self.default_agent
        return tuple(sorted(names, key=lambda name: name != preferred))


def label_entries() -> str:
    """Return the entries of a label file for the agents that accord ships."""
    labels = {name: agent.label for name, agent in shipped_registry().agents.items() if agent.label}
    return "".join(
        f'- {{name: "agent:{name}", description: "{label.description}", color: "{label.color}"}}\n'
        for name, label in labels.items()
    )


def declared_secrets(*registries: Registry) -> frozenset[str]:
    """Name the variables that any agent of the registries declares as a secret."""
    agents = (agent for registry in registries for agent in registry.agents.values())
    return frozenset(name for agent in agents for name in agent.required_secrets)


@cache
def shipped_registry() -> Registry:
    """Return the registry that comes with accord."""
    return Registry.model_validate(_shipped_document().value)


@cache
def _shipped_document() -> YamlDocument:
    return read_yaml(Path(__file__).with_name("registry.yml").read_bytes())


def over_shipped(own: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a repository's registry with the shipped one; each key of an agent is replaced as a whole."""
    shipped = _shipped_document().value
    agents = dict(shipped["agents"])
    for name, entry in own["agents"].items():
        agents[name] = {**agents.get(name, {}), **entry}
    added: dict[str, Any] = {name: [*shipped[name], *own.get(name, [])] for name in ("programs", "model_keys")}
    added["actions"] = {**shipped["actions"], **own.get("actions", {})}
    return {**shipped, **own, **added, "agents": agents}
