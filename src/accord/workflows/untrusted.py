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
from accord.workflows.agents import COMMAND_INPUTS, assigned_texts
from accord.workflows.commands import commands_of, without_documents
from accord.workflows.expressions import embedded_expressions, parse
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


_OF_OTHERS = Origin.OUTSIDERS | Origin.AGENT
_READ = {"javascript": "process.env.{}", "pwsh": "$env:{}", "powershell": "$env:{}", "python": 'os.environ["{}"]'}
"""How languages other than those of Unix shells read a variable."""

_RESERVED = re.compile(r"\AGITHUB_|\ARUNNER_")
_JAVASCRIPT = re.compile(r"""(?P<expression>\$\{\{(?P<inner>(?:[^}$]|\}(?!\}))*)\}\})|\\[^\n]|//|/\*|\*/|['"`\n]""")
_ENDS = {"'": "'", '"': '"', "`": "`", "//": "\n", "/*": "*/"}
"""The end of each string and comment of JavaScript, by its beginning."""


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
        for step in job.nested_steps():
            places = [RunPlace(files, path, start, job_id, step) for start in starts]
            named = (flagged or {}).get(step.file or path)
            if scripts := [*_scripts(step, places[0].pointer, named)] if places else []:
                places = [place for place in places if place.is_reached_by(Actor.WRITER)]
                found += [(step.file or path, each) for script in scripts for each in _findings(script, places)]
    return found


def _scripts(step: Step, path: str, flagged: Collection[str] | None) -> Iterator[_Script]:
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
        references = parsed.yields if parsed else [("an unreadable expression",)]
        graded = [
            (not origin & _OF_OTHERS, ref, place)
            for ref in references
            for place in places
            if (origin := origin_of(place, f"${{{{ {'.'.join(ref)} }}}}")) & (_OF_OTHERS | Origin.WRITERS)
        ]
        if not graded:
            continue
        is_of_writers, ref, place = min(graded, key=lambda each: each[:2])
        words = "_".join([part for part in ref if part not in {"*", "outputs"}][-2:])  # two, so that it is never PATH
        variable = _RESERVED.sub("EVENT_", re.sub(r"\W", "_", words).upper())
        read = _READ.get(script.language, '"${}"').format(variable)
        read = {"": f"JSON.parse({read})", "`": f"${{{read}}}"}.get(quote, read)
        hint = f"env:\n  {variable}: ${{{{ {expression} }}}}\n# and in the script: {read}"
        whose = "people with write access or callers choose" if is_of_writers else "outsiders or agents write"
        shown = ".".join(ref).removesuffix(".*")
        message = f"`{shown}` is inserted into the script, so text that {whose} can run. Pass it as a variable."
        if place.steps[1:]:
            message += f" The action is used in the job `{place.job_id}` of `{place.path}`."
        severity = Severity.ERROR if script.is_surely_code and not is_of_writers else Severity.WARNING
        yield Finding("unsafe-interpolation", message, script.path, severity, hint=hint, quote=expression)


def _quotes_in(script: str) -> dict[str, str]:
    """Return what is open around each expression of a script in JavaScript: a quotation mark, a comment or nothing."""
    found, quote = dict[str, str](), ""
    for at in _JAVASCRIPT.finditer(script):
        if at["expression"]:
            expression = at["inner"].strip()
            found[expression] = found.get(expression) or quote
        elif at[0] == _ENDS.get(quote) or (at[0] == "\n" and quote in {"'", '"'}):
            quote = ""
        elif not quote and at[0] in _ENDS:
            quote = at[0]
    return found


# Code

_CHECKOUT_ACTION = re.compile(r"checkout|git-clone|clone-repo", re.IGNORECASE)
_ALLOW = "allow-unsafe-pr-checkout"
_IN_SCRIPT = ("/run", "/with/script")

_GIT = re.compile(
    r"\bgit(?:['\"`]\s*,\s*(?:\[\s*)?['\"`]?|(?:\s+(?:-[cC]\s+|--)\S{1,200}){0,6}\s+)"
    r"(?P<verb>checkout|switch|reset|merge|pull|rebase|worktree|clone|cherry-pick|read-tree|archive|restore|fetch|remote|apply|am)"
    r"\b(?!-)(?P<words>(?:\$\{\{[^}]{0,300}\}\}|[^;&|\n])*)"
)
_GH_CHECKOUT = re.compile(r"\bgh\s[^;&|\n]{0,200}?\bpr\s+checkout\b[^;&\n]*")
_ARCHIVE = re.compile(r"repo\s+clone|tarball|zipball|/archive/|codeload|git\+|github:|\.patch\b|\.diff\b")
_PATCH = re.compile(r"\bgh\s+pr\s+diff\b[^|;&\n]{0,200}\|\s*(?:git\s+(?:apply|am)|patch)\b[^;&\n]*")
_FETCHING = frozenset({"curl", "gh", "git", "npm", "npx", "pip", "pip3", "uv", "uvx", "wget"})
_NAMES = {
    "fetch": re.compile(r":(?:refs/(?:heads|remotes)/)?([\w.${}-]*\w[\w./${}-]*)"),
    "remote": re.compile(r"\badd\s+(?:-\S+\s+)*(\S+)"),
}
"""The names that these commands give to what they fetch, and to the remotes that they add."""

_RUNS = re.compile(r"exec|spawn|subprocess|system|\b(?:run|sh|call)\w*\(|\$`")
"""A line of JavaScript or Python that starts a program."""

_BY = {
    Actor.ALONE: (Severity.ERROR, "outsiders start it with `{}`, with secrets and the repository's own token"),
    Actor.HELPED: (Severity.WARNING, "a writer's approval starts it with `{}`, and the code may have changed since"),
}
"""How much a checkout weighs, and why, by who gets it to run: an outsider alone, or one whom a writer helps."""


def check_checkouts(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find steps that check out the code of a pull request in runs with secrets that outsiders start."""
    files, found = facts.workflows, dict[tuple[str, str], Finding]()
    for path, workflow in files.items():
        starts = starts_of_strangers(path, files)
        for job_id, job in workflow.jobs.items() if starts else ():
            fetched = {start: set[str]() for start in starts}
            for step in job.nested_steps():
                places = [RunPlace(files, path, start, job_id, step) for start in starts]
                findings = [
                    _finding(place, *what, severity, why)
                    for place in places
                    if (what := _checked_out(place, step, fetched[place.start]))
                    for actor, (severity, why) in _BY.items()
                    if place.is_reached_by(actor)
                ]
                for finding in sorted(findings, key=lambda each: each.severity)[:1]:
                    found.setdefault((step.file or path, finding.path), finding)
    yield from ((file, finding) for (file, _), finding in found.items())


def _checked_out(place: RunPlace, step: Step, fetched: set[str]) -> tuple[str, str] | None:
    """Return what foreign code a step checks out, and the pointer of the place that says so below the step.

    ``fetched`` are the names that the job has given to foreign commits and remotes; those of the step are added.
    """
    if _CHECKOUT_ACTION.search(step.uses.partition("@")[0]):
        for name in ("ref", "repository"):
            value = str(step.given.get(name, ""))
            if Origin.CODE in origin_of(place, value):
                return value, pointer("with", name)
        is_allowed = str(step.given.get(_ALLOW)).lower() == "true"
        if is_allowed and place.start.event in {"pull_request_target", "workflow_run"}:
            return f"{_ALLOW}: true", pointer("with", _ALLOW)
    called = {text: f"{path}: " for path, text in step.scripts.items()}
    brought = [(text, [*_foreign_commands(place, step, text, fetched)]) for text in step.script_texts]
    found = next((called.get(text, "") + commands[0] for text, commands in brought if commands), None)
    return (found, _IN_SCRIPT[0 if step.run else 1]) if found else None


def _foreign_commands(place: RunPlace, step: Step, script: str, fetched: set[str]) -> Iterator[str]:
    """Yield the commands of a script that bring foreign code into the work tree; add the names of what they fetch."""
    for line in _commands(step, script):
        for at in _GIT.finditer(line):
            words = {f"{word}/" for word in re.split(r"[\s\"'`~]+", at["words"])}
            names = re.findall(r"\$\{?(\w+)", at["words"])
            texts = [at["words"], *(text for name in names for text in assigned_texts(name, script))]
            is_fetched = any(word.startswith(f"{name}/") for word in words for name in fetched)
            if not is_fetched and Origin.CODE not in origin_of(place, "\n".join(texts), is_script=True):
                continue
            if at["verb"] in _NAMES:
                fetched.update(["FETCH_HEAD"] * (at["verb"] == "fetch"), _NAMES[at["verb"]].findall(at["words"]))
            else:
                yield at[0].strip()
        if brought := _GH_CHECKOUT.search(line) or _PATCH.search(line):
            yield brought[0].strip()
        if _ARCHIVE.search(line) and Origin.CODE in origin_of(place, line, is_script=True):
            yield line.strip()


def _commands(step: Step, script: str) -> Iterator[str]:
    """Yield the commands of a shell script without texts of several words; elsewhere, lines that start a program."""
    if step.uses or step.shell.startswith(("python", "node")):
        yield from filter(_RUNS.search, lines_of(script))
        return
    for words in commands_of(script):
        if words[0] in _FETCHING:
            yield " ".join(word if "${{" in word or not re.search(r"\s", word) else "TEXT" for word in words)
    yield from (at[0] for at in _PATCH.finditer("\n".join(lines_of(without_documents(script)))))


def _finding(place: RunPlace, what: str, where: str, severity: Severity, why: str) -> Finding:
    shown = what if len(what) <= 100 else f"{what[:100]}…"
    job = f"action, used in the job `{place.job_id}` of `{place.path}`," if place.steps[1:] else f"job `{place.job_id}`"
    message = f"The {job} checks out code of a pull request (`{shown}`), but {why.format(place.start.event)}."
    hint = (
        "Run that code under `pull_request`, or check out `github.event.pull_request.base.sha` and read the change "
        "with `gh pr diff`."
    )
    quote = re.split(r"[$'\"]", what)[0].rstrip() if where in _IN_SCRIPT else ""
    return Finding("untrusted-checkout", message, place.pointer + where, severity, hint=hint, quote=quote)
