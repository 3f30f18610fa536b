"""Tokens and secrets beside an agent: what a step that runs one may write with, read, and who may start it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from accord.core.findings import Finding, PlacedFinding, Severity, first_of, pointer, warning
from accord.workflows.agents import action_name, agent_steps, assigned_texts, written_scopes
from accord.workflows.commands import commands_of, program_of
from accord.workflows.expressions import secrets_in
from accord.workflows.facts import RepositoryFacts
from accord.workflows.models import Job, Step, run_default
from accord.workflows.origins import VARIABLE, leaves_of, lines_of, step_beside
from accord.workflows.requirements import levels_of
from accord.workflows.trust import CALLED, Actor, RunPlace, Start, checks_person, starts_of, starts_of_strangers

_TOKEN_NAMES = frozenset({"github_token", "gh_token", "gh_enterprise_token", "github_enterprise_token"})
_JOB_TOKENS = {("secrets", "github_token"), ("github", "token")}
_CREDENTIAL = re.compile(r"(?:.*[_-])?(?:key|token|auth|secret|credentials?)(?:[_-]json)?", re.IGNORECASE)
_POSTED = frozenset({"issues", "pull-requests", "discussions"})
_EVERYTHING = ("everything",)
_MAY_WRITE = "a token that may write "


class _Token(NamedTuple):
    """A token within an agent's reach: its name in a finding, what it may write, its place, and the better lines."""

    says: str
    scopes: tuple[str, ...]
    place: str
    hint: str


class _Value(NamedTuple):
    """A value that an agent's step gets: its name, text, place in a run, and pointer."""

    name: str
    text: str
    at: RunPlace
    pointer: str
    kind: str


def check_agents(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find jobs that run an agent with a token that may write or with secrets it does not need, or for anyone."""
    for path, workflow in facts.workflows.items():
        starts = [*starts_of(path, facts.workflows)] or [Start(CALLED, path)]
        for job_id, job in workflow.jobs.items():
            nested = [*agent_steps(workflow, job, facts.known)]
            if not nested:
                continue
            places = [RunPlace(facts.workflows, path, start, job_id) for start in starts]
            everywhere = [replace(at, step=step) for at in places for step in nested]
            steps = everywhere[: len(nested)]
            tokens = dict.fromkeys(token for at in places for token in _job_token(at))
            tokens |= dict.fromkeys(token for at in everywhere for token in _tokens_of(facts, at))
            found = [
                *([_may_write(job_id, [*tokens])] if tokens else []),
                *(each for step in steps for each in _open_input_findings(facts, step, bool(tokens))),
                *_foreign_secrets(facts, steps),
                *_reached_cloud(facts, steps),
            ]
            yield from ((path, each) for each in found)


def _reached_cloud(facts: RepositoryFacts, steps: list[RunPlace]) -> Iterator[Finding]:
    """Find an agent on a machine of one's own, at whose cloud it may get the credentials of the machine."""
    job = steps[0].job
    entries = {**facts.agents, **facts.default_agent}
    names = (str(at.step.given.get("agent", "")) if at.step else "" for at in steps)
    agents = [entries.get(name) or next(iter(facts.default_agent.values()), None) for name in names]
    labels = (job.model_extra or {}).get("runs-on")
    labels = labels.get("labels") if isinstance(labels, dict) else labels
    is_own = any(str(label).lower() == "self-hosted" for label in (labels if isinstance(labels, list) else [labels]))
    if is_own and any(agent is None or agent.network is None for agent in agents):
        message = (
            f"The job `{steps[0].job_id}` runs an agent on a self-hosted machine. If accord cannot be root there, the "
            "agent reaches 169.254.169.254, where clouds serve the credentials of a machine."
        )
        place = pointer("jobs", steps[0].job_id, "runs-on")
        hint = "# in the agent's entry of .github/agents/registry.yml:\nnetwork: [api.openai.com]"
        yield warning("agent-reaches-cloud", message, place, hint=hint)


def _job_token(at: RunPlace) -> Iterator[_Token]:
    granted, declared_in = at.token_permissions
    scopes = tuple(written_scopes(granted))
    if scopes:
        kept = granted if isinstance(granted, dict) else {"contents": "read"}
        lines = [f"  {scope}: {'read' if scope in scopes else level}" for scope, level in kept.items()]
        place = pointer("jobs", at.job_id, *(() if at.job.permissions is None else ("permissions",)))
        giver = f" (granted by {declared_in})" if declared_in != at.path else ""
        says = f"{_MAY_WRITE}{', '.join(scopes)}{giver}"
        yield _Token(says, scopes, place, "\n".join(["permissions:", *lines]))


def _tokens_of(facts: RepositoryFacts, at: RunPlace) -> Iterator[_Token]:
    """Yield the tokens that a step gets besides that of the job: secrets, tokens of apps, exchanged and stored ones."""
    action = facts.known.action(at.step) if at.step else None
    names = _TOKEN_NAMES | {_plain(name) for name in (action.token_inputs if action else ())}
    for value in _values_of(at):
        is_token = _plain(value.name) in (names if value.kind == "with" else _TOKEN_NAMES)
        yield from _tokens_in(value, is_token=is_token)
    has_identity = levels_of(at.token_permissions[0] or {}).get("id-token") == "write"
    if action and action.app_token_unless is not None and at.step and has_identity:
        given = {_plain(name): str(text) for name, text in at.step.given.items()}
        if all(given.get(_plain(name), "").lower() in ("", "false") for name in action.app_token_unless):
            says = f"the app's token that `{action_name(at.step)}` gets for `id-token: write`"
            name = action.app_token_unless[0]
            hint = f"with:\n  {name}: {'true' if name.startswith('use_') else '${{ github.token }}'}"
            yield _Token(says, _EVERYTHING, _outer(at), hint)
    for step in at.earlier:
        is_kept = str(step.given.get("persist-credentials", "true")).lower() != "false"
        if step.uses.partition("@")[0].lower() == "actions/checkout" and is_kept:
            stored = {name: text for name, text in step.given.items() if name in {"token", "ssh-key"}}
            for value in _inputs_of(replace(at, step=step), stored, "checkout"):
                yield from _tokens_in(value, is_token=True)


def _tokens_in(value: _Value, *, is_token: bool) -> Iterator[_Token]:
    hint = f"{value.kind}:\n  {value.name}: ${{{{ github.token }}}}"
    if value.kind == "checkout":
        hint = "with:\n  persist-credentials: false"
    where = "in git's settings" if value.kind == "checkout" else f"as `{value.name}`"
    for at, ref in leaves_of(value.at, value.text):
        match ref:
            case _ if ref in _JOB_TOKENS:
                pass
            case ("secrets", name) if is_token:
                says = f"the secret `{name.upper()}` {where}"
                yield _Token(says, _EVERYTHING, value.pointer, hint)
            case ("steps", name, "outputs", output) if "token" in output and (step := step_beside(at, name)):
                scopes = _scopes_of_app(step)
                if step.uses and scopes:
                    says = f"a token of `{action_name(step)}` {where}"
                    says += f" ({', '.join(scopes)})" if scopes != _EVERYTHING else ""
                    yield _Token(says, scopes, value.pointer, hint)


def _scopes_of_app(step: Step) -> tuple[str, ...]:
    limits = {name.lower(): str(level).lower() for name, level in step.given.items() if "permission" in name.lower()}
    if not limits:
        return _EVERYTHING
    single = {name.removeprefix("permission-"): level for name, level in limits.items() if name != "permissions"}
    return (
        *(scope for scope, level in single.items() if level not in ("read", "none")),
        *(_EVERYTHING if "write" in limits.get("permissions", "") else ()),
    )


def _inputs_of(at: RunPlace, given: Mapping[str, Any], kind: str) -> list[_Value]:
    return [_Value(name, str(text), at, _below(at, "with", name), kind) for name, text in given.items()]


def _values_of(at: RunPlace) -> Iterator[_Value]:
    """Yield the inputs and the variables that an agent's step gets, of each name the innermost."""
    scripts = at.step.shell_texts if at.step else ()
    yield from _inputs_of(at, at.step.given if at.step else {}, "with")
    yield from (_Value("", text, at, _below(at, "run"), "run") for text in scripts[:1] if text)
    runs = (words for text in scripts for words in commands_of(text) if program_of(words[0]) == "awf")
    seen = {name for words in runs for name in _KEPT_BACK.findall(" ".join(words))}
    for where, env in at.environments:
        for name in [name for name in env if name not in seen]:
            place = _below(where, "env", name) if where.step or env is at.job.env else pointer("env", name)
            yield _Value(name, str(env[name]), where, place, "env")
        seen |= env.keys()


def _left_values(at: RunPlace) -> Iterator[_Value]:
    """Yield what earlier steps leave for later ones: scripts in variables and files, actions that log in."""
    for step in at.earlier:
        where = replace(at, step=step)
        yield from _inputs_of(where, step.given if _LOGS_IN.search(action_name(step)) else {}, "")
        place = _below(where, *(("run",) if step.run else ("with", "script")))
        shell = step.shell or run_default("shell", *(() if step.file else (at.job, at.workflow)))
        yield from (_Value("", text, where, place, "run") for text in left_texts(step, shell))


_INTO = r">{1,2}(?![>&]|[ \t]*[\"']?(?:/dev/|\$\{?GITHUB_(?:OUTPUT|STEP_SUMMARY)))"
"""A redirection into a file, but not into the outputs or the summary of the step."""

_INTO_OR_TEE = rf"(?:{_INTO}|\|[ \t]*tee\b)"
_LEAVES = re.compile(
    r"(?=(\b(?:login|config(?:ure)?|set-url|clone|ssh-add|GITHUB_ENV)\b"
    rf"|\b(?:echo|printf)\b.{{0,300}}?{_INTO_OR_TEE}))"
)
_COMMAND = re.compile(r"""(?:"[^"]*"|'[^']*'|;(?![ \t])|[^;"'])+""")
_WHOLE = re.compile(
    rf"\bcat\b[^\n<>]{{0,200}}(?:{_INTO}[^\n<]{{0,200}}<<|<<[^\n>]{{0,200}}{_INTO})"
    rf"|(?:^|[\n;|&])[ \t]*[}})][ \t]*(?:2>\S{{1,40}}[ \t]*)?{_INTO_OR_TEE}"
)
"""A document or a group of commands goes into a file."""

_GROUP = re.compile(r"(?:^|[\n;|&])[ \t]*[{(](?!\()|\w[ \t]?\(\)|\b(?:done|exec)\b")
_ENVIRONMENT = re.compile(rf"\b(?:env|printenv|export -p|declare -x)[ \t]*(?:\|[^\n]{{0,200}})?{_INTO_OR_TEE}")
_EXPORTS = re.compile(r"\bexportVariable\b|\bGITHUB_ENV\b")
_NO_SHELL = re.compile(r"python|node|perl|ruby")


def left_texts(step: Step, shell: str) -> Iterator[str]:
    """Yield the texts of a step's scripts, in this shell, and of its variables that it leaves."""
    env = step.env if isinstance(step.env, dict) else {}
    is_shell = step.run and not _NO_SHELL.search(shell)
    for script in step.script_texts:
        is_whole = _WHOLE.search(script) or ("GITHUB_ENV" in script and _GROUP.search(script))
        texts = [script] if is_whole or _EXPORTS.search(script) else []
        if is_shell and not is_whole:
            commands = (command for line in lines_of(script) for command in _COMMAND.findall(line))
            texts = [*filter(_LEAVES.search, commands)]
        names, known = set[str](), set(texts)
        for text in texts:  # which grow
            more = {at[at.lastindex or 0] for at in VARIABLE.finditer(text)} - names
            given = {one.partition(";")[0] for name in more for one in assigned_texts(name, script)} - known
            names |= more
            known |= given
            texts += sorted(given)
        names |= env.keys() if is_shell and _ENVIRONMENT.search(script) else set()
        yield from (*texts, *(str(text) for name, text in env.items() if name in names))


_EXPRESSION = re.compile(r"\s*\$\{\{[^}]*\}\}\s*")
_LOGS_IN = re.compile(r"login|auth|credential|ssh-agent|import-gpg|vault")
_KEPT_BACK = re.compile(r"(?:\A|\s)--exclude-env[= ](\w+)")
"""A variable that the firewall `awf` keeps from the agent in it."""


def _outer(at: RunPlace) -> str:
    """Return the pointer of a step in its workflow: of the one that uses the action that it is in."""
    return pointer("jobs", at.job_id) + "".join(step.place for step in at.steps[:1])


def _below(at: RunPlace, *parts: str) -> str:
    return _outer(at) + ("" if at.steps[1:] else pointer(*parts))


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _may_write(job_id: str, tokens: list[_Token]) -> Finding:
    scopes = {scope for token in tokens for scope in token.scopes}
    advice = "Let a second job do that with what the agent leaves."
    if scopes <= _POSTED:
        advice = "Let the agent leave its answer as a file or an output, and post it in a second job."
    elif scopes & {"contents", *_EVERYTHING}:
        advice = "Let the agent leave a patch and publish it in a second job."
    named = list(dict.fromkeys(token.says for token in tokens))
    first, others = (named[0], named[1:]) if named[0].startswith(_MAY_WRITE) else (_MAY_WRITE.rstrip(), named)
    with_others = f"{', and with' if named[0] == first else ':'} {', '.join(others)}" if others else ""
    message = f"The job `{job_id}` runs an agent with {first}{with_others}. {advice}"
    return Finding("agent-may-write", message, tokens[0].place, hint=tokens[0].hint)


def _open_input_findings(facts: RepositoryFacts, at: RunPlace, has_token: bool) -> Iterator[Finding]:
    action = facts.known.action(at.step) if at.step else None
    opening = {*map(_plain, action.opened_by)} if action else set[str]()
    for name, text in at.step.given.items() if at.step else ():
        if _plain(name) in opening and "*" in re.split(r"[\s,]+", str(text)):
            beside = ", beside a token that may write" if has_token else ""
            message = f"`{name}` lets people without write access start the agent of the job `{at.job_id}`{beside}."
            severity = Severity.ERROR if has_token else Severity.WARNING
            yield Finding("agent-for-anyone", message, _below(at, "with", name), severity, hint="Name the people.")


def _foreign_secrets(facts: RepositoryFacts, steps: list[RunPlace]) -> Iterator[Finding]:
    found = dict[str, _Value]()
    for value in (value for at in steps for value in (*_values_of(at), *_left_values(at))):
        is_own = value.kind == "with" and _CREDENTIAL.fullmatch(value.name)
        is_key = facts.known.is_model_key(value.name) and _EXPRESSION.fullmatch(value.text)
        if is_own or is_key or _plain(value.name) in _TOKEN_NAMES:
            continue
        for _, ref in leaves_of(value.at, value.text):
            if ref[0] == "secrets" and ref[1:] and ref not in _JOB_TOKENS and not facts.known.is_model_key(ref[1]):
                found.setdefault(ref[1].upper(), value)
    if found:
        named = ", ".join(f"`{name}`" for name in found)
        first = next(iter(found.values()))
        message = f"The agent of the job `{steps[0].job_id}` can read secrets that no model needs: {named}."
        yield warning("agent-secret", message, first.pointer, hint="Give it to other steps only.")


def check_unknown_actions(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find actions and workflows that may run an agent: they get the key of a model, and nothing is known of them."""
    for path, workflow in facts.workflows.items():
        seen = set[str]()
        for job_id, job in workflow.jobs.items():
            at = RunPlace(facts.workflows, path, Start(CALLED, path), job_id)
            for where in (at, *(replace(at, step=step) for step in job.nested_steps())):
                name = action_name(where.step) if where.step else job.uses.partition("@")[0]
                is_known = name in seen or (where.step and facts.known.action(where.step))
                if not name or is_known or _NO_AGENT.match((where.step or job).uses):
                    continue
                if key := next(_model_keys(facts, where), None):
                    seen.add(name)
                    message = (
                        f"`{name}` gets the key of a model as `{key}`, so it may run an agent, and doctor cannot tell "
                        "with which token."
                    )
                    hint = f"# in .github/agents/registry.yml, if it does:\nactions:\n  {name}: {{}}"
                    yield path, warning("agent-unknown", message, _outer(where), hint=hint)


_NO_AGENT = re.compile(r"[.$]/|actions/|github/|[\w.-]+/accord/", re.IGNORECASE)
"""Own actions, which are read, and those of GitHub and of accord."""


def _model_keys(facts: RepositoryFacts, at: RunPlace) -> Iterator[str]:
    part: Step | Job = at.step or at.job
    more = (part.secrets if isinstance(part, Job) else part.env) or {}
    for name, text in {**part.given, **(more if isinstance(more, dict) else {})}.items():
        secrets = [ref[1] for _, ref in leaves_of(at, text) if ref[0] == "secrets" and ref[1:]]
        if any(map(facts.known.is_model_key, secrets)) or (secrets and facts.known.is_model_key(name)):
            yield name


_MEMBERS = '["OWNER", "MEMBER", "COLLABORATOR"]'
_OWN_HEADS = {
    "pull_request_target": "github.event.pull_request.head.repo.full_name == github.repository",
    "workflow_run": "github.event.workflow_run.head_repository.full_name == github.repository",
}
"""Conditions that let only code of the repository itself run."""


def check_outsiders(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find jobs with ``contents: write`` or secrets that outsiders start, whatever the jobs run."""
    files = facts.workflows
    for path, workflow in files.items():
        starts = starts_of_strangers(path, files)
        found = list[Finding]()
        for job_id, job in workflow.jobs.items() if starts else ():
            agents = [*agent_steps(workflow, job, facts.known)]
            if any(action and action.is_for_writers for action in map(facts.known.action, agents)):
                continue
            places = (RunPlace(files, path, start, job_id) for start in starts)
            event, has = next(((at.start.event, has) for at in places if (has := _possessions(at, agents))), ("", ""))
            if not has:
                continue
            part = next((each for each in ("comment", "issue", "discussion") if each in event), "")
            asks = f"contains(fromJSON('{_MEMBERS}'), github.event.{part}.author_association)"
            condition = _OWN_HEADS.get(event) or (asks if part else "github.actor == github.repository_owner")
            message = f"Anyone can start the job `{job_id}` with `{event}`, and it has {has}. Ask first who it is."
            found.append(warning("job-for-anyone", message, pointer("jobs", job_id), hint=f"if: {condition}"))
        yield from ((path, finding) for finding in first_of(found, "jobs"))


def _possessions(at: RunPlace, agents: list[Step]) -> str:
    """Say what an outsider alone gets to: secrets of the steps that run, and of the job.

    A step that asks who it is guards those after it, and what the job has unless an agent is before it.
    """
    job = at.job
    if not at.is_reached_by(Actor.STARTER):
        return ""
    steps = [*job.nested_steps()]
    reached = [step for step in steps if replace(at, step=step).is_reached_by(Actor.STARTER)]
    has_agent = any(step is agent for step in reached for agent in agents)
    is_guarded = not has_agent and (any(map(checks_person, steps)) or (steps and not reached))
    shared = [] if is_guarded else [job.model_dump(by_alias=True, exclude={"steps"}), at.workflow.env]
    texts = [*shared, *(step.model_dump(by_alias=True) for step in reached)]
    named = [f"`{name.upper()}`" for name in sorted(secrets_in(texts) - {"github_token"})]
    writes = not is_guarded and {"contents", *_EVERYTHING} & {*written_scopes(at.token_permissions[0])}
    secrets = f"{'the secrets ' if named[1:] else ''}{', '.join(named)}"
    parts = ["`contents: write`" if writes else "", "all secrets" if job.secrets == "inherit" else secrets]
    return " and ".join(filter(None, parts))
