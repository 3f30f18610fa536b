"""Writes every part of the documentation that the code already says: one source for a fact, one command to renew all.

    python -P tools/generate.py            write what is out of date
    python -P tools/generate.py --check    exit 1 and show the difference when something is

A part is a whole file (``docs/cli.md``), or what stands between ``<!-- name -->`` and ``<!-- /name -->`` of a page that
people write. Finding codes are collected from the source, so that none stays without a line in ``tools/findings.yml``.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.kinds import KINDS
from accord.cli.main import accord
from accord.kernel import errors
from accord.kernel.markdown_text import table
from accord.kernel.protected import PROTECTED
from accord.kernel.schemas import json_schema, strict_schema
from accord.kernel.yaml_files import read_yaml
from accord.loops.reasons import ALL as ALL_LOOPS
from accord.loops.reasons import REASONS
from accord.results.labels import shipped_labels
from accord.results.models import ImplementorResult, PlannerResult, ReviewerResult
from accord.results.receipts import EXIT_CODES
from accord.results.status import WORK_ITEM
from accord.runner import contract, error_rules
from accord.runner.models import RunOutputs
from accord.runner.registry_models import Registry
from accord.sandbox import faults
from accord.sandbox.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from accord.loops.models import LoopName

ROOT = Path(__file__).parents[1]
COMMAND = "./dev generate"
RESULTS: dict[str, type[BaseModel]] = {
    "docs/implementor-results.md": ImplementorResult,
    "docs/planner-results.md": PlannerResult,
    "docs/reviewer-results.md": ReviewerResult,
}
"""The page of each kind of agent result."""

WRITTEN_BY = f"<!-- Written by tools/generate.py; change its source, then run {COMMAND}. -->"


class Problem(Exception):
    """Something that the generator cannot put right by itself."""


@dataclass(frozen=True)
class Part:
    """One generated part: a whole file, or a marked place of a page (``mark``)."""

    path: str
    render: Callable[[], str]
    mark: str = ""


def parts(root: Path) -> Iterator[Part]:
    """Name every generated part below ``root``, and what writes it."""
    yield Part("docs/cli.md", cli_reference)
    yield Part("docs/findings.md", lambda: findings_page(root))
    for name in KINDS:
        model = KINDS[name].model
        yield Part(f"schemas/{name}.schema.json", lambda model=model: as_json(json_schema(model)))  # type: ignore[misc]
        yield Part(f"schemas/{name}.strict.schema.json", lambda model=model: as_json(strict_schema(model)))  # type: ignore[misc]
    yield Part("README.md", demo_output, "demo")
    yield Part("docs/applying.md", exit_codes, "exit-codes")
    yield Part("docs/agents.md", lambda: fields_tables(Registry), "fields")
    yield Part("docs/architecture.md", lambda: module_map(root), "modules")
    yield Part("docs/errors.md", causes_table, "causes")
    yield Part("docs/errors.md", rules_table, "rules")
    yield Part("docs/errors.md", lambda: runs_table(root), "runs")
    for loop in ALL_LOOPS:
        yield Part("docs/keepalive.md", lambda loop=loop: reasons_table(loop), f"reasons-{loop}")  # type: ignore[misc]
    yield Part("docs/labels.md", labels_table, "labels")
    for page, result in RESULTS.items():
        yield Part(page, lambda result=result: fields_tables(result), "fields")  # type: ignore[misc]
    yield Part("docs/implementor-results.md", protected_paths, "protected")
    yield Part("docs/implementor-results.md", lambda: quoted(root / "examples/workflows/implement.yml"), "workflow")
    yield Part("docs/reviewer-results.md", lambda: quoted(root / "examples/workflows/review.yml"), "workflow")
    yield Part("docs/runner-outputs.md", runner_outputs_table, "runner-outputs")
    yield Part("docs/sandbox.md", fault_table, "faults")
    yield Part("docs/sandbox.md", routes_table, "routes")
    yield Part("docs/work-items.md", lambda: f"```mermaid\n{WORK_ITEM.mermaid()}\n```", "machine")
    for action in sorted(root.glob("actions/*/action.yml")):
        yield from action_parts(action, f"actions/{action.parent.name}/README.md")
    yield from action_parts(root / "action.yml", "docs/actions.md")
    yield Part("docs/runner-workflows.md", contract_inputs, "contract inputs")
    yield Part("docs/runner-workflows.md", contract_outputs, "contract outputs")
    for workflow in sorted(root.glob(".github/workflows/reusable-*.yml")):
        yield from workflow_parts(workflow)


# What the command line says of itself


def cli_reference() -> str:
    """Describe every command and option from click's own objects."""
    context = click.Context(accord, info_name="accord", terminal_width=100)
    with context:
        pieces = ["# Command line", WRITTEN_BY, *help_of(accord), "## Exit codes", exit_codes(), variables(context)]
        for name in accord.list_commands(context):
            command = accord.get_command(context, name)
            if command:
                pieces += command_reference(command, click.Context(command, parent=context, info_name=name))
    return "\n\n".join(pieces) + "\n"


def variables(context: click.Context) -> str:
    """Tell how options are set by the environment, and which go by another name there."""
    renamed = {}
    for option in options_of(accord, context):
        spelled = option.opts[-1].removeprefix("--").replace("-", "_").upper()
        if option.name and option.name.upper() != spelled:
            renamed[option.opts[-1]] = option.name.upper()
    exceptions = ", ".join(f"`{option}` is `{name}`" for option, name in sorted(renamed.items()))
    return (
        "## Options from the environment\n\n"
        "Every option can be set by a variable: `ACCORD_`, the command, and the option, in capitals with underscores. "
        f"`ACCORD_APPLY_MAX_WAIT=60` is `accord apply --max-wait 60`. Some go by another name: {exceptions}. What the "
        "command line says wins. The repository, the token and the server come from `GITHUB_REPOSITORY`, "
        "`GITHUB_TOKEN` and `GITHUB_API_URL`, as a runner sets them."
    )


def options_of(command: click.Command, context: click.Context) -> Iterator[click.Option]:
    """Yield the options of a command and of all below it, without those of click's own."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child:
                yield from options_of(child, context)
    else:
        yield from (option for option in command.params if isinstance(option, click.Option))


def command_reference(command: click.Command, context: click.Context) -> Iterator[str]:
    """Describe a command, and all commands of a group."""
    level = len(context.command_path.split())
    yield f"{'#' * level} {context.command_path}"
    yield from help_of(command)
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            child = command.commands[name]
            yield from command_reference(child, click.Context(child, parent=context, info_name=name))
        return
    with context.scope(cleanup=False):
        yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```"
        rows = [option_row(option, context) for option in command.params if isinstance(option, click.Option)]
    if rows:
        yield table(["Option", "Default", "Meaning"], rows)


def help_of(command: click.Command) -> list[str]:
    """Return a command's help as paragraphs, without click's sign for lines that must not be wrapped."""
    text = re.sub(r"^\s*(?:\\b|\x08)\s*$", "", command.help or "", flags=re.MULTILINE)
    paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]
    return [paragraph for paragraph in paragraphs if paragraph and not paragraph.startswith("Exit codes:")]


def option_row(option: click.Option, context: click.Context) -> list[str]:
    """Describe an option as a row: its spellings with what they take, its default, its help."""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if not (option.is_flag or option.count):
        names += f" `{option.make_metavar(context)}`"
    shown = f"`{option.default}`" if option.show_default and option.default is not None else ""
    return [plain(names), "required" if option.required else shown, plain(option.help or "")]


def exit_codes() -> str:
    """Tell the exit codes from the error tree, with the outcomes of ``accord apply`` that lead to each."""
    meanings = {"0": "done"}
    for name, code, meaning in re.findall(r"^[├└]── (\w+) +(\d) +(.+)$", errors.__doc__ or "", re.MULTILINE):
        if getattr(errors, name).exit_code != int(code):
            raise Problem(f"The tree of accord.kernel.errors says {code} for {name}, and its class says otherwise.")
        meanings[code] = meaning
    rows = [
        [
            code,
            plain(meaning),
            ", ".join(f"`{outcome}`" for outcome, exit_code in EXIT_CODES.items() if exit_code == int(code)),
        ]
        for code, meaning in meanings.items()
    ]
    return table(["Code", "Meaning", "Outcomes of `apply`"], rows)


def demo_output() -> str:
    """Run the demo, and take what it prints, without what differs each time."""
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in [name for name in environment if name.startswith(("GITHUB_", "ACCORD_"))]:
        del environment[name]
    run = subprocess.run(
        [sys.executable, "-P", "-m", "accord", "demo", "--no-stay"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if run.returncode:
        raise Problem(f"accord demo failed: {run.stderr}")
    shown = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", run.stdout.strip())
    shown = re.sub(r"(push-branch +\S+ +)[0-9a-f]{10}$", r"\1COMMIT", shown, flags=re.MULTILINE)
    return f"```text\n{shown}\n```"


# What actions and workflows say of themselves


def action_parts(action: Path, page: str) -> Iterator[Part]:
    """Name the tables of an action's inputs and outputs, as far as it has any."""
    document = read_yaml(action.read_bytes()).value
    if document.get("inputs"):
        yield Part(page, lambda: inputs_table(document["inputs"]), "inputs")
    if document.get("outputs"):
        yield Part(page, lambda: outputs_table(document["outputs"]), "outputs")


def quoted(workflow: Path) -> str:
    """Show a workflow that is tested."""
    return f"```yaml\n{workflow.read_text(encoding='utf-8')}```"


def workflow_parts(workflow: Path) -> Iterator[Part]:
    """Name the tables of a reusable workflow."""
    document = read_yaml(workflow.read_bytes()).value
    call = document["on"]["workflow_call"]
    is_runner = workflow.stem.endswith("-run")
    page, name = "docs/runner-workflows.md" if is_runner else "docs/workflows.md", workflow.stem
    yield Part(page, lambda: inputs_table(call.get("inputs") or {}), f"{name} inputs")
    yield Part(page, lambda: secrets_table(call.get("secrets") or {}), f"{name} secrets")
    if not is_runner:  # all runners have the outputs of the contract, which are listed once
        yield Part(page, lambda: outputs_table(call.get("outputs") or {}), f"{name} outputs")
    yield Part(page, lambda: permissions_table(document["jobs"]), f"{name} permissions")


def contract_inputs() -> str:
    """List the inputs that every runner takes."""
    rows = [[f"`{i.name}`", i.type, "yes" if i.is_required else "no", plain(i.description)] for i in contract.INPUTS]
    return table(["Input", "Type", "Required", "Meaning"], rows)


def contract_outputs() -> str:
    """List the outputs that accord's runners give, and which of them every runner gives."""
    rows = [
        [f"`{name}`", "yes" if name in contract.OUTPUTS else "no", plain(meaning)]
        for name, meaning in contract.described_outputs().items()
    ]
    return table(["Output", "In the contract", "Meaning"], rows)


def inputs_table(inputs: Mapping[str, Mapping[str, Any]]) -> str:
    """List inputs: name, whether it must be given, default, description."""
    if not inputs:
        return "There are no inputs."
    rows = [
        [
            f"`{name}`",
            "yes" if is_true(given.get("required")) else "no",
            default(given.get("default")),
            plain(given["description"]),
        ]
        for name, given in inputs.items()
    ]
    return table(["Input", "Required", "Default", "Meaning"], rows)


def secrets_table(secrets: Mapping[str, Mapping[str, Any]]) -> str:
    """List secrets: name, whether it must be given, description."""
    if not secrets:
        return "There are no secrets."
    rows = [
        [f"`{name}`", "yes" if is_true(s.get("required")) else "no", plain(s["description"])]
        for name, s in secrets.items()
    ]
    return table(["Secret", "Required", "Meaning"], rows)


def outputs_table(outputs: Mapping[str, Mapping[str, Any]]) -> str:
    """List outputs: name, description."""
    if not outputs:
        return "There are no outputs."
    return table(["Output", "Meaning"], [[f"`{name}`", plain(given["description"])] for name, given in outputs.items()])


def permissions_table(jobs: Mapping[str, Mapping[str, Any]]) -> str:
    """List what each job may do; the calling job must grant as much."""
    rows = [
        [f"`{job}`", ", ".join(f"`{area}: {level}`" for area, level in given.get("permissions", {}).items()) or "none"]
        for job, given in jobs.items()
    ]
    return table(["Job", "Permissions"], rows)


def default(value: Any) -> str:
    """Write a default: text as code, booleans as YAML has them, nothing for the empty text."""
    if value is None or value == "":
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def is_true(value: Any) -> bool:
    """Tell whether YAML says true, as a word or as text."""
    return str(value).lower() == "true"


# What contracts and tables say of themselves


def as_json(document: Any) -> str:
    """Write a schema as a file."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def fields_tables(model: type[BaseModel]) -> str:
    """Describe the fields of a result, and of the objects in it, from the model's schema."""
    schema = json_schema(model)
    objects = {model.__name__: schema, **schema.get("$defs", {})}
    pieces = []
    for name, found in objects.items():
        rows = [
            [f"`{key}`", type_of(field), plain(field.get("description", ""))]
            for key, field in found["properties"].items()
        ]
        pieces += [f"**{name}**", table(["Field", "Type", "Meaning"], rows)]
    return "\n\n".join(pieces)


def runner_outputs_table() -> str:
    """List the outputs of a runner, with what they hold when nothing is known."""
    fields = RunOutputs.model_fields.values()
    rows = [[f"`{field.alias}`", default(field.default), plain(field.description or "")] for field in fields]
    return table(["Output", "When unknown", "Meaning"], rows)


def type_of(field: Mapping[str, Any]) -> str:
    """Name the type of a field as people say it."""
    if "anyOf" in field:
        return " or ".join(type_of(choice) for choice in field["anyOf"])
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    if "enum" in field:
        return " or ".join(f'`"{choice}"`' for choice in field["enum"])
    if "const" in field:
        return f'`"{field["const"]}"`'
    if "type" not in field:
        return "anything"
    if isinstance(field.get("additionalProperties"), dict):
        return f"mapping to {type_of(field['additionalProperties'])}"
    return f"list of {type_of(field['items'])}" if field["type"] == "array" else str(field["type"])


def protected_paths() -> str:
    """List the paths that only people change."""
    return "```text\n" + "\n".join(PROTECTED) + "\n```"


def labels_table() -> str:
    """List the labels that accord ships."""
    rows = [[f"`{label.name}`", plain(label.description), f"`{label.color}`"] for label in shipped_labels()]
    return table(["Label", "Description", "Color"], rows)


def causes_table() -> str:
    """List why runs fail: the words of the contract, what happened, what mends it."""
    rows = [
        [
            f"`{name}`",
            f"`{cause.category}`",
            f"`{cause.type}`",
            f"`{cause.recovery}`",
            plain(f"{cause.means}. {cause.mend}"),
        ]
        for name, cause in error_rules.CAUSES.items()
    ]
    return table(["Cause", "Category", "Type", "Recovery", "What happened, and what mends it"], rows)


def rules_table() -> str:
    """List the rules of classification by their evidence, in the order in which they are asked."""
    statuses = {f"http-{status}": cause for status, cause in error_rules.STATUSES.items()}
    exits = {
        f"exit-{code}" + (f" ({codec})" if codec else ""): cause
        for codec, codes in error_rules.EXITS.items()
        for code, cause in codes.items()
    }
    groups: list[tuple[str, Mapping[str, str]]] = [
        ("what accord saw", {str(kind): cause for kind, cause in error_rules.OWN.items()}),
        ("a rate limit that names a hard quota, and no delay", {"hard-quota": "quota"}),
        ("a class of the CLI or the provider", error_rules.KINDS),
        ("an HTTP status", {**statuses, "http-4xx": "request", "http-5xx": "outage"}),
        ("a broad class", error_rules.BROAD_KINDS),
        ("words of an error", {f"says-{cause}": cause for cause in error_rules.WORDS}),
        ("a class that says little", error_rules.WEAK_KINDS),
        ("the exit code", exits),
        ("a transcript that breaks off", {"no-terminal-event": "interrupted"}),
        ("nothing that is known", {"unknown-error": "unknown", "no-evidence": "unknown"}),
    ]
    rows = []
    for evidence, rules in groups:
        by_cause: dict[str, list[str]] = {}
        for rule, cause in rules.items():
            by_cause.setdefault(cause, []).append(f"`{rule}`")
        rows += [[evidence, f"`{cause}`", ", ".join(names)] for cause, names in by_cause.items()]
    return table(["Evidence", "Cause", "Rules"], rows)


def runs_table(root: Path) -> str:
    """List the recorded runs whose verdict is a choice, with the reason."""
    rows = []
    for row in read_yaml((root / "tools" / "runs.yml").read_bytes()).value:
        error = row["error"]
        verdict = ", ".join(f"`{error[key]}`" for key in ("category", "type", "recovery")) if error else "no error"
        rows.append([", ".join(f"`{run}`" for run in row["runs"]), verdict, plain(row["why"])])
    return table(["Runs", "Verdict", "Why"], rows)


def fault_table() -> str:
    """Take the table of faults from the module that plays them, and see that it has every kind."""
    lines = [line for line in (faults.__doc__ or "").splitlines() if line.startswith("|")]
    missing = [kind for kind in faults.KINDS if kind not in "\n".join(lines)]
    if missing:
        raise Problem(f"The table in accord.sandbox.faults lacks {', '.join(missing)}.")
    return "\n".join(lines)


def reasons_table(loop: LoopName) -> str:
    """List the reasons that a loop gives, in the order of the table that decisions are made from."""
    rows = [
        [f"`{code}`", reason.action, plain(reason.meaning) + (" Puts `needs-human` on." if reason.asks else "")]
        for code, reason in REASONS.items()
        if loop in reason.loops
    ]
    return table(["Reason", "Action", "Meaning"], rows)


def routes_table() -> str:
    """List the operations of the sandbox by path."""
    by_path: dict[str, list[str]] = {}
    for route in ROUTES:
        path = re.sub(r"{(\w+):\w+}", r"{\1}", route.path)
        by_path.setdefault(path, []).append(route.method)
    return table(["Path", "Methods"], [[f"`{path}`", ", ".join(methods)] for path, methods in by_path.items()])


def module_map(root: Path) -> str:
    """List every module with the first sentence of its docstring, room by room."""
    source = root / "src" / "accord"
    pieces = []
    for room in sorted(path.parent for path in source.glob("*/**/__init__.py")):
        modules = [path for path in sorted(room.glob("*.py")) if path.stem != "__init__"]
        rows = [[f"`{path.stem}`", plain(first_sentence(path))] for path in modules]
        pieces += [
            f"### {room.relative_to(source)}/",
            first_sentence(room / "__init__.py"),
            table(["Module", "What it is"], rows),
        ]
    return "\n\n".join(pieces)


def first_sentence(module: Path) -> str:
    """Return the first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split()).replace("``", "`")
    return re.split(r"(?<=[.]) (?=[A-Z])", paragraph)[0].removesuffix("::")


# Finding codes


def findings_page(root: Path) -> str:
    """Describe every finding code of the source by the table that people write."""
    codes = codes_of(root / "src" / "accord")
    groups = read_yaml((root / "tools" / "findings.yml").read_bytes()).value
    described = {code for group in groups for code in group["codes"]}
    if missing := sorted(codes.keys() - described):
        raise Problem(f"Finding codes without a line in tools/findings.yml: {', '.join(missing)}.")
    if stale := sorted(described - codes.keys()):
        raise Problem(f"tools/findings.yml describes codes that the source does not have: {', '.join(stale)}.")
    pieces = ["# Finding codes", WRITTEN_BY]
    pieces.append(
        "A finding says what breaks a contract, where, and what mends it. One error means that nothing is written; a "
        "warning is reported and stops nothing. Codes are stable: programs may rely on them."
    )
    for group in groups:
        rows = [
            [f"`{code}`", " or ".join(sorted(codes[code])), plain(text["means"]), plain(text["mend"])]
            for code, text in group["codes"].items()
        ]
        pieces += [f"## {group['title']}", group["intro"], table(["Code", "Severity", "Meaning", "Mend"], rows)]
    return "\n\n".join(pieces) + "\n"


def codes_of(source: Path) -> dict[str, set[str]]:
    """Map each finding code of the source to its severities."""
    codes: dict[str, set[str]] = {}
    for path in sorted(source.rglob("*.py")):
        for code, severity in codes_in(path.read_text(encoding="utf-8"), path.name):
            codes.setdefault(code, set()).add(severity)
    return codes


def codes_in(text: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield code and severity of each finding that a module makes, by ``Finding``, ``warning`` or a helper of its own.

    A helper is a function that hands its parameter ``code`` on. Raises Problem for a code that is no constant.
    """
    tree = ast.parse(text)
    helpers = {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        if any(hands_code_on(call.args[0]) for call in calls_in(function, {"Finding", "warning"}))
    }
    for call in calls_in(tree, helpers | {"Finding", "warning"}):
        code = call.args[0]
        if isinstance(code, ast.Constant) and isinstance(code.value, str):
            is_warning = isinstance(call.func, ast.Name) and call.func.id == "warning"
            yield code.value, "warning" if is_warning else "error"
        elif not hands_code_on(code):
            raise Problem(f"{name}:{call.lineno}: the finding's code is no constant, so it cannot be listed.")


def calls_in(tree: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    """Yield the calls of these functions that have an argument by position."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names and node.args:
            yield node


def hands_code_on(argument: ast.expr) -> bool:
    """Tell whether an argument is the parameter ``code`` of a helper."""
    return isinstance(argument, ast.Name) and argument.id == "code"


# Writing and checking


def plain(text: str) -> str:
    """Write text as one line of a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")


def filled(page: str, mark: str, content: str, name: str) -> str:
    """Put generated content into its place of a page."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    if page.count(start) != 1 or page.count(end) != 1 or page.index(start) > page.index(end):
        raise Problem(f"{name} needs {start} and {end}, once each, for what is generated there.")
    before, _, rest = page.partition(start)
    return f"{before}{start}\n\n{content}\n\n{end}{rest.partition(end)[2]}"


def expected(root: Path) -> tuple[dict[str, str], list[str]]:
    """Return what every generated file should hold, and the problems that are for people to mend."""
    pages: dict[str, str] = {}
    problems: list[str] = []
    for part in parts(root):
        try:
            if part.mark:
                page = pages.get(part.path) or read(root / part.path)
                pages[part.path] = filled(page, part.mark, part.render(), part.path)
            else:
                pages[part.path] = part.render()
        except Problem as problem:
            problems.append(str(problem))
    return pages, problems


def read(path: Path) -> str:
    """Read a page; Problem when it is not there."""
    if not path.exists():
        raise Problem(f"{path.name} is missing in {path.parent}.")
    return path.read_text(encoding="utf-8")


def stale_schemas(root: Path, pages: Iterable[str]) -> list[str]:
    """Name schemas of kinds that are gone."""
    return sorted({f"schemas/{path.name}" for path in root.glob("schemas/*.json")} - set(pages))


def difference(root: Path, name: str, wanted: str) -> str:
    """Show how a file differs from what it should hold; empty when it does not."""
    path = root / name
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(found.splitlines(), wanted.splitlines(), name, f"{name} (generated)", lineterm="", n=1)
    return "\n".join(lines)


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write what is out of date, or with ``--check`` only say so."""
    pages, problems = expected(root)
    stale = stale_schemas(root, pages)
    differences = [text for name, wanted in pages.items() if (text := difference(root, name, wanted))]
    if "--check" in arguments:
        problems += [*differences, *(f"{name} is of no kind that there is." for name in stale)]
        if problems:
            print("\n".join(problems))
            print(f"Generated parts are out of date. Run {COMMAND}.")
        return 1 if problems else 0
    for name, wanted in pages.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != wanted:
            path.write_text(wanted, encoding="utf-8", newline="\n")
            print(f"wrote {name}")
    for name in stale:
        (root / name).unlink()
        print(f"deleted {name}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
