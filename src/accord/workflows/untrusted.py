"""Untrusted text in scripts, and untrusted code that runs with secrets check out.

GitHub inserts the value of ``${{ … }}`` into a script before the shell reads it, so a title of ``$(…)`` runs. Runs of
``pull_request`` from forks have a read-only token and no secrets; those of other events have both. Source: GitHub
documentation, "Script injections" and "Securely using pull_request_target".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from accord.core.findings import Finding, PlacedFinding, Severity, pointer
from accord.workflows.agents import COMMAND_INPUTS
from accord.workflows.commands import commands_of, without_documents
from accord.workflows.expressions import Reference, embedded_expressions, parse
from accord.workflows.facts import RepositoryFacts
from accord.workflows.models import Step, Workflow
from accord.workflows.origins import Origin, lines_of, origin_of
from accord.workflows.trust import Actor, RunPlace, starts_of, starts_of_strangers


class _Script(NamedTuple):
    """A script with its pointer, its language, and whether it is surely one."""

    text: str
    path: str
    language: str
    is_surely_code: bool


_READ = {"javascript": "process.env.{}", "pwsh": "$env:{}", "powershell": "$env:{}", "python": 'os.environ["{}"]'}
"""How languages other than those of Unix shells read a variable."""

_JAVASCRIPT = re.compile(
    r"""//[^\n]*|/\*(?:[\s\S]*?\*/|[\s\S]*)|(?P<expression>\$\{\{(?P<inner>(?:[^}$]|\}(?!\}))*)\}\})"""
    r"""|\\[\s\S]|(?P<quote>['"`])|\n"""
)


def script_findings(
    path: str, files: Mapping[str, Workflow], flagged: Mapping[str, Collection[str]] | None = None
) -> list[PlacedFinding]:
    """Find expressions in the scripts of a workflow that insert text of outsiders, or, as warnings, of writers.

    Nothing is found for values that people cannot choose. ``flagged`` are the pointers of the scripts to look at by
    file, those that zizmor names; all scripts of other files are looked at.
    """
    starts = [*dict.fromkeys(starts_of(path, files))]
    found: list[PlacedFinding] = []
    for job_id, job in files[path].jobs.items():
        for step, users in job.nested_steps():
            places = [RunPlace(files, path, start, job_id, step, users) for start in starts]
            named = (flagged or {}).get(step.file or path)
            if scripts := [*_scripts(step, places[0].pointer, named)] if places else []:
                places = [place for place in places if place.is_reached_by(Actor.WRITER)]
                found += [(step.file or path, each) for script in scripts for each in _findings(script, places)]
    return found


def _scripts(step: Step, path: str, flagged: Collection[str] | None) -> Iterator[_Script]:
    """Yield the scripts of a step that hold expressions."""
    is_github_script = step.uses.partition("@")[0].lower() == "actions/github-script"
    language = "javascript" if is_github_script else step.shell.partition(" ")[0].removesuffix("3")
    if "${{" in step.run and (flagged is None or f"{path}/run" in flagged):
        yield _Script(step.run, f"{path}/run", language, is_surely_code=True)
    if "${{" in step.shell:  # which zizmor does not see
        yield _Script(step.shell, f"{path}/shell", "", is_surely_code=True)
    for name, value in step.given.items():
        where = f"{path}/with{pointer(name)}"
        is_unseen = step.uses.startswith("docker:") and name in {"args", "entrypoint"}  # by zizmor
        is_code = is_github_script and name == "script" if flagged is None else where in flagged
        is_likely = name.lower() in COMMAND_INPUTS and not is_github_script and not step.uses.startswith(("./", "$/"))
        if "${{" in str(value) and (is_unseen or is_code or is_likely):
            yield _Script(str(value), where, language, is_unseen or is_code)


def _findings(script: _Script, places: Sequence[RunPlace]) -> Iterator[Finding]:
    """Report each untrusted expression of a script once, with the variable to use instead."""
    quotes = _quotes_in(script.text) if script.language == "javascript" else {}
    for expression in dict.fromkeys(embedded_expressions(script.text)):
        parsed = parse(expression)
        quote = quotes.get(expression, "'")
        if not quote and parsed and parsed.kind == "call" and parsed.name == "tojson":
            continue  # a literal of JavaScript
        references = sorted(parsed.yields) if parsed else [("an unreadable expression",)]
        graded = [(*grade, ref) for ref in references if (grade := _grade(ref, places))]
        if not graded:
            continue
        severity, place, ref = min(graded, key=lambda each: (each[0], each[2]))
        variable = _variable(ref)
        read = _READ.get(script.language, '"${}"').format(variable)
        read = {"": f"JSON.parse({read})", "`": f"${{{read}}}"}.get(quote, read)
        hint = f"env:\n  {variable}: ${{{{ {expression} }}}}\n# and in the script: {read}"
        whose = "outsiders choose" if severity is Severity.ERROR else "people with write access or callers choose"
        shown = ".".join(ref).removesuffix(".*")
        message = f"`{shown}` is inserted into the script, so text that {whose} can run. Pass it as a variable."
        if place.users:
            message += f" The action is used in the job `{place.job_id}` of `{place.path}`."
        severity = severity if script.is_surely_code else Severity.WARNING
        yield Finding("unsafe-interpolation", message, script.path, severity, hint=hint, quote=expression)


def _quotes_in(script: str) -> dict[str, str]:
    """Return the quotation mark around each expression of a script in JavaScript; empty for one without."""
    found, quote = dict[str, str](), ""
    for at in _JAVASCRIPT.finditer(script):
        if at["expression"]:
            expression = at["inner"].strip()
            found[expression] = found.get(expression) or quote
        elif at["quote"] and quote in ("", at["quote"]):
            quote = "" if quote else at["quote"]
        elif at[0] == "\n" and quote != "`":
            quote = ""
    return found


def _grade(ref: Reference, places: Sequence[RunPlace]) -> tuple[Severity, RunPlace] | None:
    """Return how much it weighs that a reference is inserted, by who chooses its text, and where that is so."""
    text = ".".join(ref[:-1] if ref[-1] == "*" else ref)
    text = f"toJSON({text})" if ref[-1] == "*" else text
    origins = [(origin_of(place, f"${{{{ {text} }}}}"), place) for place in places]
    for wanted, severity in ((Origin.OUTSIDERS, Severity.ERROR), (Origin.WRITERS, Severity.WARNING)):
        for origin, place in origins:
            if origin & wanted:
                return severity, place
    return None


def _variable(ref: Reference) -> str:
    """Return a variable's name of two words, so that it is never PATH, and none that the runner sets itself."""
    words = [part for part in ref if part not in {"*", "outputs"}]
    return re.sub(r"\AGITHUB_|\ARUNNER_", "EVENT_", re.sub(r"\W", "_", "_".join(words[-2:])).upper())


# Code

_CHECKOUT_ACTION = re.compile(r"checkout|git-clone|clone-repo", re.IGNORECASE)
_ALLOW = "allow-unsafe-pr-checkout"
_IN_SCRIPT = ("/run", "/with/script")

_GIT = re.compile(
    r"\bgit(?:['\"`]\s*,\s*(?:\[\s*)?['\"`]?|(?:\s+-[cC]\s+\S{1,200}|\s+--[\w-]{1,40}(?:=\S{1,200})?){0,6}\s+)"
    r"(?P<verb>checkout|switch|reset|merge|pull|rebase|worktree|clone|cherry-pick|read-tree|archive|restore|fetch|remote|apply|am)"
    r"\b(?!-)(?P<words>(?:\\\n|\"[^\"]*\"|'[^']*'|\$\{\{[^}]*\}\}|[^;&|\n])*)"
)
_NEW_BRANCH = re.compile(r"(?:^|\s)(?:-[bBcC]|--orphan)\s+(?:\"[^\"]*\"|\S+)")
_GH_CHECKOUT = re.compile(r"\bgh\s+(?:-\S{1,40}\s+){0,6}pr\s+checkout\b[^;&\n]*")
_DOWNLOAD = re.compile(
    r"\b(?:gh\s+(?:-\S{1,40}\s+){0,6}(?:repo\s+clone|api)|curl|wget|pip3?\s+install|npm\s+(?:i|install)|npx|uvx"
    r"|uv\s+pip\s+install|go\s+(?:install|run))\b[^;&\n]*"
)
_ARCHIVE = re.compile(r"repo\s+clone|tarball|zipball|/archive/|codeload|git\+|github:|\.patch\b|\.diff\b")
_PATCH = re.compile(r"\bgh\s+pr\s+diff\b[^|;&\n]{0,200}\|\s*(?:git\s+(?:apply|am)|patch)\b[^;&\n]*")
_FETCHING = frozenset({"curl", "gh", "git", "go", "npm", "npx", "pip", "pip3", "uv", "uvx", "wget"})
_PRINTS = re.compile(r"\s*(?:echo|printf|core\.\w+|console\.\w+)\b(?!.*(?:\$\(|\|))")


def check_checkouts(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find steps that check out the code of a pull request in runs with secrets that outsiders start."""
    files, known = facts.workflows, set[tuple[str, str]]()
    for path, workflow in files.items():
        starts = starts_of_strangers(path, files)
        for job_id, job in workflow.jobs.items() if starts else ():
            fetched = {start: set[str]() for start in starts}
            for step, users in job.nested_steps():
                places = [RunPlace(files, path, start, job_id, step, users) for start in starts]
                for place in places:
                    for text in step.shell_texts:
                        fetched[place.start] |= _fetched_names(place, text, fetched[place.start])
                graded = [(severity, place) for place in places if (severity := _severity(place))]
                for severity, place in sorted(graded, key=lambda each: each[0]):
                    if named := _checked_out(place, fetched[place.start]):
                        finding = _finding(place, *named, severity)
                        if (step.file, finding.path) not in known:
                            yield step.file or path, finding
                        known |= {(step.file, finding.path)} if step.file else set()
                        break


def _severity(place: RunPlace) -> Severity | None:
    """Return an error if an outsider alone gets the step to run, and a warning if a writer has to help."""
    if place.is_reached_by(Actor.ALONE):
        return Severity.ERROR
    return Severity.WARNING if place.is_reached_by(Actor.HELPED) else None


def _checked_out(place: RunPlace, fetched: set[str]) -> tuple[str, str] | None:
    """Return what foreign code a step checks out, and the pointer of the place that says so below the step.

    ``fetched`` are the names of foreign commits that the job has fetched by the end of the step.
    """
    step = place.step or Step.model_construct()
    if _CHECKOUT_ACTION.search(step.uses.partition("@")[0]):
        for name in ("ref", "repository"):
            value = str(step.given.get(name, ""))
            if _is_foreign(place, value):
                return value, pointer("with", name)
        is_allowed = str(step.given.get(_ALLOW)).lower() == "true"
        if is_allowed and place.start.event in {"pull_request_target", "workflow_run"}:
            return f"{_ALLOW}: true", pointer("with", _ALLOW)
    for text in step.script_texts:
        if command := _foreign_command(place, text, fetched):
            called = next((f"{path}: " for path, script in step.scripts.items() if script == text), "")
            return called + command, _IN_SCRIPT[0 if step.run else 1]
    return None


def _is_foreign(place: RunPlace, text: str, *, is_script: bool = False) -> bool:
    """Return whether a text names foreign code: a pull request, or what an outsider chose."""
    return bool(origin_of(place, text, is_script=is_script) & Origin.CODE)


def _foreign_command(place: RunPlace, script: str, fetched: set[str]) -> str:
    """Return the command of a script that brings foreign code into the work tree; empty without one."""
    for line in _commands(place, script):
        for at in _GIT.finditer(line):
            words = _NEW_BRANCH.sub(" ", at["words"]) if at["verb"] in {"checkout", "switch"} else at["words"]
            if at["verb"] not in {"fetch", "remote"} and _names_foreign(place, script, words, fetched):
                return at[0].strip()
        if brought := _GH_CHECKOUT.search(line) or _PATCH.search(line):
            return brought[0].strip()
        for at in _DOWNLOAD.finditer(line):
            if _ARCHIVE.search(at[0]) and _is_foreign(place, at[0], is_script=True):
                return at[0].strip()
    return ""


def _commands(place: RunPlace, script: str) -> Iterator[str]:
    """Yield the commands of a shell script without texts of several words; elsewhere, lines that print nothing."""
    step = place.step
    if step and (step.uses or step.shell.startswith(("python", "node"))):
        yield from (line for line in lines_of(script) if not _PRINTS.match(line))
        return
    for words in commands_of(script):
        if words[0] in _FETCHING:
            yield " ".join(word if "${{" in word or not re.search(r"\s", word) else "TEXT" for word in words)
    yield from (at[0] for at in _PATCH.finditer("\n".join(lines_of(without_documents(script)))))


def _names_foreign(place: RunPlace, script: str, words: str, fetched: set[str]) -> bool:
    """Return whether words of a command name foreign code, themselves or through a variable of the script."""
    names = set(re.findall(r"\$\{?(\w+)", words))
    assigned = [line for line in lines_of(script) if names & set(re.findall(r"\b(\w+)=", line))]
    return _is_foreign(place, "\n".join([words, *assigned]), is_script=True) or bool(fetched & _refs(words))


def _fetched_names(place: RunPlace, script: str, known: set[str]) -> set[str]:
    """Return the names that a script gives to foreign commits and remotes; ``known`` are those of earlier ones."""
    found = set[str]()
    for line in _commands(place, script):
        for at in _GIT.finditer(line):
            words = at["words"]
            if at["verb"] not in {"fetch", "remote"} or not _names_foreign(place, script, words, known | found):
                continue
            if at["verb"] == "fetch":
                found |= {"FETCH_HEAD", *re.findall(r":(?:refs/heads/|refs/remotes/)?([\w.${}-][\w./${}-]*)", words)}
            elif added := re.search(r"\badd\s+(?:-\S+\s+)*(\S+)", words):
                found.add(added[1])
    return found


def _refs(words: str) -> set[str]:
    """Return the words of a command without quotes, and the remote or branch that each begins with."""
    return {part for word in re.sub(r"[\"'`]", " ", words).split() for part in (word, *re.split(r"[/~]", word)[:1])}


def _finding(place: RunPlace, what: str, where: str, severity: Severity) -> Finding:
    event = place.start.event
    shown = what if len(what) <= 100 else f"{what[:100]}…"
    why = f"a writer's approval starts it with `{event}`, and the code may have changed since"
    if severity is Severity.ERROR:
        why = f"outsiders start it with `{event}`, with secrets and the repository's own token"
    job = f"action, used in the job `{place.job_id}` of `{place.path}`," if place.users else f"job `{place.job_id}`"
    message = f"The {job} checks out code of a pull request (`{shown}`), but {why}."
    hint = (
        "Run that code under `pull_request`, or check out `github.event.pull_request.base.sha` and read the change "
        "with `gh pr diff`."
    )
    quote = re.split(r"[$'\"]", what)[0].rstrip() if where in _IN_SCRIPT else ""
    return Finding("untrusted-checkout", message, place.pointer + where, severity, hint=hint, quote=quote)
