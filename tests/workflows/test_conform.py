"""Whether a workflow is a runner: one good one, and edits that each break one thing."""

import re
from datetime import date

import jsonschema_rs
import pytest
from support.runner_workflows import CALLED, DEFAULTS, INPUTS, OUTPUTS, RUNNER, SHA, THIN, edited, found, workflow

from accord.core.findings import Finding
from accord.core.schemas import json_schema
from accord.files.yaml import read_yaml
from accord.runner.models import RunOutputs
from accord.workflows import rules as contract
from accord.workflows.models import Workflow
from accord.workflows.versions import breaking_findings

STEP = "      - id: run\n"
RUN = 'run: agent < "$PROMPT"'


def codes(text: str, **called: str) -> list[str]:
    return [finding.code for finding in found(text, **called)]


def test_a_runner_that_keeps_the_contract_has_no_finding() -> None:
    assert (found(RUNNER), found(THIN)) == ([], [])
    assert found(THIN, agent=RUNNER) == []


def test_the_contract_in_the_code_is_the_contract() -> None:
    assert {name: wanted.type for name, wanted in contract.INPUTS.items()} == INPUTS
    assert [name for name, wanted in contract.INPUTS.items() if wanted.required] == ["prompt_file"]
    assert list(contract.OUTPUTS) == OUTPUTS
    assert set(OUTPUTS) <= set(RunOutputs().as_outputs())


@pytest.mark.parametrize(
    ("inputs", "is_one"),
    [
        ("prompt_file: {type: string, required: true}", True),
        ("Prompt_File: {type: string}", True),
        ("prompt_file: {type: string, default: ''}, pr_number: {}, sandbox: {}, mode: {}, pr_ref: {}", False),
        (
            "prompt_file: {default: ''}, " + ", ".join(f"{name}: {{}}" for name in INPUTS if name != "prompt_file"),
            False,
        ),
        ("pr_number: {}, sandbox: {}, mode: {}, pr_ref: {}", True),
        ("pr_number: {}, sandbox: {}, mode: {}", False),
        ("prompt: {type: string, required: true}", False),
    ],
)
def test_a_runner_is_known_by_its_prompt_or_by_names_of_the_contract(inputs: str, is_one: bool) -> None:
    assert contract.is_runner(workflow(f"on: {{workflow_call: {{inputs: {{{inputs}}}}}}}\njobs: {{}}\n")) is is_one


def test_a_runner_whose_prompt_wrongly_has_a_default_is_still_one() -> None:
    text = edited(
        RUNNER,
        (
            "prompt_file:\n        type: string\n        required: true",
            "prompt_file:\n        type: string\n        default: a.md",
        ),
    )
    assert codes(text) == ["input-required"]
    assert contract.is_runner(workflow(text))


def part(name: str) -> tuple[str, str, str]:
    """Return what is missing without an input or output, its place, and its lines in the good runner."""
    if name not in INPUTS:
        return "missing-output", "outputs", f"      {name}:\n        value: ${{{{ jobs.agent.outputs.{name} }}}}\n"
    required = str(name == "prompt_file").lower()
    lines = f"      {name}:\n        type: {INPUTS[name]}\n        required: {required}\n{DEFAULTS.get(name, '')}"
    return "missing-input", "inputs", lines


@pytest.mark.parametrize("name", [*INPUTS, *OUTPUTS])
def test_each_missing_input_and_output_is_found_with_the_lines_to_paste(name: str) -> None:
    code, place, lines = part(name)
    text = edited(RUNNER, (lines, ""))
    (finding,) = found(text)
    assert (finding.code, finding.path) == (code, f"/on/workflow_call/{place}")
    pasted = "".join(f"      {line}\n" for line in finding.hint.splitlines())
    assert found(text.replace(f"    {place}:\n", f"    {place}:\n{pasted}", 1)) == []


def with_outputs(*names: str) -> str:
    """The good runner with further outputs, from their step."""
    called = "".join(f"      {name}:\n        value: ${{{{ jobs.agent.outputs.{name} }}}}\n" for name in names)
    jobs = "".join(f"      {name}: ${{{{ steps.run.outputs.{name} }}}}\n" for name in names)
    return edited(RUNNER, ("permissions: {}\n", called + "permissions: {}\n"), ("    steps:\n", jobs + "    steps:\n"))


NEW = [*contract.CAPABILITY_OUTPUTS, "terminal-disposition"]


@pytest.mark.parametrize("names", [(), ("terminal-disposition",), contract.CAPABILITY_OUTPUTS, NEW])
def test_both_versions_of_the_contract_conform_and_the_newer_breaks_no_caller(names: list[str]) -> None:
    assert found(with_outputs(*names)) == []
    assert breaking_findings(workflow(RUNNER), workflow(with_outputs(*names)), TODAY) == []


@pytest.mark.parametrize("count", range(1, len(contract.CAPABILITY_OUTPUTS)))
def test_a_part_of_the_capability_outputs_is_found_with_the_lines_to_paste(count: int) -> None:
    given_names, missing = contract.CAPABILITY_OUTPUTS[:count], contract.CAPABILITY_OUTPUTS[count:]
    findings = found(with_outputs(*given_names, "terminal-disposition"))
    assert [finding.code for finding in findings] == ["outputs-incomplete"] * len(missing)
    assert all(f"{name}:" in finding.hint for name, finding in zip(missing, findings, strict=True))
    assert all(f"steps.run.outputs.{name}" in finding.hint for name, finding in zip(missing, findings, strict=True))


@pytest.mark.parametrize("name", NEW)
def test_a_constant_is_not_an_output_of_the_newer_contract_either(name: str) -> None:
    value = f"value: ${{{{ jobs.agent.outputs.{name} }}}}"
    (finding,) = found(edited(with_outputs(*NEW), (value, "value: const")))
    assert (finding.code, finding.path) == ("output-unwired", f"/on/workflow_call/outputs/{name}/value")
    assert "'const' comes from no job" in finding.message


def test_the_lines_to_paste_do_not_name_accord() -> None:
    assert [text for text in contract.described_outputs().values() if "accord" in text] == []


INPUT_EDITS = [
    ("skip:\n        type: boolean", "skip:\n        type: string", "input-type"),
    ("skip:\n        type: boolean\n", "skip:\n", "input-type"),
    ("max_runtime_minutes:\n        type: number", "max_runtime_minutes:\n        type: string", "input-type"),
    ("prompt_file:\n        type: string\n        required: true", "prompt_file:\n        type: string",
     "input-required"),
    ("mode:\n        type: string\n        required: false", "mode:\n        type: string\n        required: true",
     "input-required"),
    ('model:\n        type: string\n        default: ""', "model:\n        type: string\n        required: true",
     "agent-input-required"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code"), INPUT_EDITS)
def test_an_input_of_another_kind_is_found_on_its_line(old: str, new: str, code: str) -> None:
    text = edited(RUNNER, (old, new))
    (finding,) = found(text)
    name = old.partition(":")[0]
    assert (finding.code, finding.path) == (code, f"/on/workflow_call/inputs/{name}")
    assert text.splitlines()[(finding.line or 0) - 1].strip() == f"{name}:"
    assert isinstance(read_yaml(finding.hint.encode()).value, dict)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("max_runtime_minutes", "        default: 45\n", "        default: 60\n"),
        ("max_runtime_minutes", "        default: 45\n", ""),
        ("workflows_ref", "default: main", "default: dev"),
        ("skip", "type: boolean\n", "type: boolean\n        default: true\n"),
    ],
)
def test_a_caller_may_leave_out_what_the_contract_gives_a_default(name: str, old: str, new: str) -> None:
    (finding,) = found(edited(RUNNER, (old, new)))
    assert (finding.code, finding.path) == ("input-default", f"/on/workflow_call/inputs/{name}")
    assert read_yaml(finding.hint.encode()).value == {"default": {"workflows_ref": "main", "skip": False}.get(name, 45)}
    assert found(edited(RUNNER, ("type: boolean\n", "type: boolean\n        default: false\n"))) == []


OUTPUT_VALUE = "value: ${{ jobs.agent.outputs.exit-code }}"
JOB_VALUE = "      exit-code: ${{ steps.run.outputs.exit-code }}\n"
OUTPUT_PATH, JOB_PATH = "/on/workflow_call/outputs/exit-code/value", "/jobs/agent/outputs/exit-code"
UNWIRED = [
    (OUTPUT_VALUE, "value: ''", "comes from no job"),
    (OUTPUT_VALUE, "value: ${{ inputs.mode }}", "comes from no job"),
    (OUTPUT_VALUE, "description: none", "no value"),
    (OUTPUT_VALUE, "value: ${{ jobs.agent.outputs. }}", "not a valid expression"),
    (OUTPUT_VALUE, "value: ${{ jobs.agents.outputs.exit-code }}", "the job `agents` does not exist"),
    (OUTPUT_VALUE, "value: ${{ jobs.agent.outputs.exit_code }}", 'no output "exit_code"'),
    (OUTPUT_VALUE, "value: ${{ jobs.agent.outputs.exit-code || jobs.other.outputs.x }}", "`other` does not exist"),
    (OUTPUT_VALUE, "value: ${{ steps.run.outputs.exit-code }}", "only outputs of jobs"),
    (OUTPUT_VALUE, "value: ${{ jobs.agent.exit-code }}", "not an output of a job"),
    (JOB_VALUE, "", 'no output "exit-code"'),
    (JOB_VALUE, "      exit-code: '0'\n", "comes from no step"),
    (JOB_VALUE, "      exit-code: ${{ steps.agent.outputs.exit-code }}\n", 'id "agent"'),
    (JOB_VALUE, "      exit-code: ${{ steps }}\n", 'id ""'),
    (JOB_VALUE, "      exit-code: ${{ needs.first.outputs.exit-code }}\n", 'not need a job "first"'),
    (JOB_VALUE, "      exit-code: ${{ steps.run.outputs. }}\n", "not a valid expression"),
]


@pytest.mark.parametrize(("old", "new", "reason"), UNWIRED)
def test_an_output_without_a_source_is_reported_at_the_last_link(old: str, new: str, reason: str) -> None:
    (finding,) = found(edited(RUNNER, (old, new)))
    assert finding.code == "output-unwired"
    assert reason in finding.message
    ends_in_job = old == JOB_VALUE and new != ""
    assert finding.path == (JOB_PATH if ends_in_job else OUTPUT_PATH)
    assert "exit-code" in finding.hint or "exit_code" in finding.hint
    (finding,) = found(THIN, agent=edited(RUNNER, (old, new)))
    assert (finding.code, finding.path) == ("output-unwired", OUTPUT_PATH)
    assert f"in `{CALLED}`, " in finding.message
    assert reason in finding.message
    assert ".github/workflows/reusable-agent-run.yml" in finding.hint


@pytest.mark.parametrize("value", ["''", "${{ '' }}"])
@pytest.mark.parametrize("place", ["jobs.agent", "steps.run"])
def test_only_an_output_that_a_runner_may_never_have_a_value_for_may_be_empty(place: str, value: str) -> None:
    for name in (*OUTPUTS, *NEW):
        text = edited(with_outputs(*NEW), (f" ${{{{ {place}.outputs.{name} }}}}\n", f" {value}\n"))
        expected = [] if name in (*NEW, "llm-model") else ["output-unwired"]
        assert (codes(text), codes(THIN, agent=text)) == (expected, expected), name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OUTPUT_VALUE, "value: ${{ jobs.agent.outputs.exit-code || '1' }}"),
        (OUTPUT_VALUE, "value: ${{ JOBS.Agent.outputs['EXIT-CODE'] }}"),
        (OUTPUT_VALUE, "value: ${{ jobs.agent.result == 'success' && '0' || '1' }}"),
        (JOB_VALUE, "      exit-code: ${{ steps.RUN.outcome == 'success' && '0' || '1' }}\n"),
        (OUTPUT_VALUE, OUTPUT_VALUE + "\n      extra:\n        value: 'a constant of its own'"),
    ],
)
def test_a_value_may_fall_back_and_be_computed(old: str, new: str) -> None:
    assert found(edited(RUNNER, (old, new))) == []


@pytest.mark.parametrize(
    ("runner", "old", "new", "path"),
    [
        (RUNNER, OUTPUT_VALUE, "value: ${{ jobs.agent.outputs.changes-made }}", OUTPUT_PATH),
        (RUNNER, JOB_VALUE, "      exit-code: ${{ steps.run.outputs.changes-made }}\n", JOB_PATH),
        (THIN, "${{ jobs.run.outputs.exit-code }}", "${{ jobs.run.outputs.changes-made }}", OUTPUT_PATH),
    ],
)
def test_an_output_with_the_value_of_another_is_found(runner: str, old: str, new: str, path: str) -> None:
    (finding,) = found(edited(runner, (old, new)))
    assert (finding.code, finding.path) == ("output-unwired", path)
    assert "outputs.changes-made is the source of the output `changes-made`" in finding.message
    if runner == RUNNER:
        (finding,) = found(THIN, agent=edited(runner, (old, new)))
        assert (finding.code, finding.path) == ("output-unwired", OUTPUT_PATH)
        assert f"in `{CALLED}`, " in finding.message


@pytest.mark.parametrize(
    "step",
    [
        "steps.run.outputs.code",
        "steps.run.outputs.changes-made == 'true' && '0' || '1'",
        "contains(steps.run.outputs.error-category, 'a')",
        "steps.run.outputs.exit-code || steps.run.outputs.changes-made",
    ],
)
def test_an_output_may_have_another_name_in_its_step(step: str) -> None:
    assert found(edited(RUNNER, (JOB_VALUE, f"      exit-code: ${{{{ {step} }}}}\n"))) == []


SECOND_JOB = (
    "  publish:\n    needs: agent\n    outputs:\n      exit-code: ${{ needs.agent.outputs.VALUE }}\n    steps: []\n"
)


@pytest.mark.parametrize(("value", "expected"), [("exit-code", []), ("exit", ["output-unwired"])])
def test_an_output_is_followed_through_the_jobs_that_a_job_needs(value: str, expected: list[str]) -> None:
    through = (OUTPUT_VALUE, "value: ${{ jobs.publish.outputs.exit-code }}")
    assert codes(edited(RUNNER, through) + SECOND_JOB.replace("VALUE", value)) == expected


def test_jobs_that_name_each_other_do_not_hang_the_check() -> None:
    ring = re.sub(r"needs(: |\.)agent", r"needs\1publish", SECOND_JOB).replace("VALUE", "exit-code")
    through = (OUTPUT_VALUE, "value: ${{ jobs.publish.outputs.exit-code }}")
    assert codes(edited(RUNNER, through) + ring) == ["output-unwired"]


def test_a_long_chain_of_jobs_with_two_ways_each_is_followed_to_its_end() -> None:
    both = "    outputs: {{a: '${{{{ {0} }}}}', b: '${{{{ {0} }}}}'}}\n    steps: []\n"
    reads = ["needs.agent.outputs.exit-code", *[f"needs.j{n}.outputs.a || needs.j{n}.outputs.b" for n in range(599)]]
    needs = ["agent", *[f"j{n}" for n in range(599)]]
    jobs = [f"  j{n}:\n    needs: {needs[n]}\n{both.format(reads[n])}" for n in range(600)]
    through = (OUTPUT_VALUE, "value: ${{ jobs.j599.outputs.a }}")
    assert codes(edited(RUNNER, through) + "".join(jobs)) == []


NAMED = "".join(f'          echo "{name}=$X" >> "$GITHUB_OUTPUT"\n' for name in OUTPUTS if name != "exit-code")
BLOCK = "          {{\n" + NAMED.replace(' >> "$GITHUB_OUTPUT"', "") + '{more}          }} >> "$GITHUB_OUTPUT"\n'
CODE = "          echo exit-code=0\n"
DOCUMENT = 'cat >> "$GITHUB_OUTPUT" <<EOF\n          {}\n          EOF'
SET = '          printf "exit-code=0\\n" >> "$GITHUB_OUTPUT"'


@pytest.mark.parametrize(
    ("script", "is_found"),
    [
        (NAMED, True), (f"          codex exec -\n{NAMED}", True),
        (f'          B=$(base64 -w0 a.txt | tr -d "x")\n{NAMED}', True), (f"          python run.py\n{NAMED}", False),
        (f"          ./run.sh\n{NAMED}", False), (f'{NAMED}          echo "$NAME=0" >> "$GITHUB_OUTPUT"\n', False),
        (f'{NAMED}          printf "%s=%s\\n" "$A" 0 >> "$GITHUB_OUTPUT"\n', False),
        (f'{NAMED}          cat all.env >> "$GITHUB_OUTPUT"\n', False), (BLOCK.format(more=""), True),
        (BLOCK.format(more="          cat all.env\n"), False), (BLOCK.format(more=CODE), False),
        (BLOCK.format(more='          printf "x=%s\\n" "$(cat a; cat b)"\n'), True),
        (BLOCK.format(more='          echo "$RESULTS"\n'), False),
        (f'{NAMED}          trap "python a.py" EXIT\n', False),
        *[
            (f'{NAMED}          {line} >> "$GITHUB_OUTPUT"\n', False)
            for line in ('echo "$(cat all.env)"', 'echo "$out"', 'printf "%s\\n" "$RESULTS"', "echo `cat all.env`",
                'printf "x=1\\n%s" "$RESULTS"', "echo; cat all.env", 'echo "x=1" && cat all.env', "cat a.env | head -3",
                """printf '%s\\n' "a=$A" "$B\"""", """printf '%s\\n' 'exit-code=0'""", "printf '%s=%s\\n' exit-code 0",
                'echo "${{ steps.p.outputs.all }}"')
        ],
        (f"          ${{{{ inputs.iteration }}}}\n{NAMED}", False),
        *[
            (f"{NAMED}          {line}\n", True)
            for line in ('# echo "exit-code=0" >> "$GITHUB_OUTPUT"', "echo hi # exit-code=0",
                'echo "exit-code=0" >> "$GITHUB_ENV"', 'echo "exit-code=0" >> out.txt',
                'echo "agent-exit-code=0" >> "$GITHUB_OUTPUT"', 'echo "exit-code-of-tests=0" >> "$GITHUB_OUTPUT"',
                'codex exec "$(cat "$PROMPT") text"', 'npx -y @openai/codex exec - < "$P"', "timeout 30m claude -p x",
                'put() { echo "$1" >> log; }; put a', 'if [ "$A" == "b" ]; then git push; fi',
                '{ echo "long<<END"; cat "$F"; echo END; } >> "$GITHUB_OUTPUT"', 'echo "exit-code=0"',
                'if true; then A=1; fi; echo a=1 >> "$GITHUB_OUTPUT"\n          printf "exit-code=0 > b"',
                'set -euo pipefail\n          put() { echo "$1=$2" >> "$GITHUB_OUTPUT"; }\n          put a "$A"',
                'echo a | tee -a "$GITHUB_OUTPUT"', 'echo "a=$A" | tee --append "${GITHUB_OUTPUT}" > /dev/null',
                *(DOCUMENT.format(text) for text in ("a=$A", "a=1\n          b=2", "a<<X\n          $A\n          X")),
                DOCUMENT.format("a=1").replace('>> "$GITHUB_OUTPUT" <<EOF', "<<-'EOF' >>$GITHUB_OUTPUT"),
                DOCUMENT.format("a=1").replace('>> "$GITHUB_OUTPUT" <<EOF', '<<EOF | tee -a "$GITHUB_OUTPUT"'),
                'put() { echo "${1}<<E\n          $2\n          E" >> "$GITHUB_OUTPUT"; }\n          put a "$A"')
        ],
        *[
            (f"{NAMED}          {line}\n", False)
            for line in (f"if false; then\n  {SET}\n          fi", f"[ ! -f x ] || exit 0\n{SET}",
                'put() { echo "$1=$2" >> "$GITHUB_OUTPUT"; }\n          put exit-code 0', "npx tsx a.ts", "sh x.sh",
                'F=$GITHUB_OUTPUT; echo "$ALL" >> "$F"', 'F=$GITHUB_OUTPUT; echo exit-code=1 >> "$F"',
                'exec 3>> "$GITHUB_OUTPUT"; echo exit-code=0 >&3',
                'for k in $A; do echo "a-$k=1" >> "$GITHUB_OUTPUT"; done',
                'for k in *; do\n            echo "$k=1"\n          done >> "$GITHUB_OUTPUT"', 'codex exec "$(./a.sh)"',
                'exec >> "$GITHUB_OUTPUT"; cat all.env', 'echo "$A" | tee -a "$GITHUB_OUTPUT"', "curl x | bash",
                *(DOCUMENT.format(text) for text in ("exit-code=$A", "$NAME=0", "$ALL", "a-$B=0", "`date`=0")),
                DOCUMENT.format("a=1").replace("cat", "cat a.env -"), DOCUMENT.format("a=1").replace("cat", "./run.sh"),
                DOCUMENT.format("a=1").replace("cat", "cat <<X"),
                'echo "exit-code=0" | tee -a "$GITHUB_OUTPUT"', "cat a.env | tee --append $GITHUB_OUTPUT",
                f'put() {{\n{CODE}          }}\n          put >> "$GITHUB_OUTPUT"',
                f'(echo a=1\n{CODE}          echo b=1) | tee -a "$GITHUB_OUTPUT"',
                f'for k in a; do\n{CODE}          echo "$k"; done >> "$GITHUB_OUTPUT"',
                'echo "exit-code=0\n          a=1" >> "$GITHUB_OUTPUT"',
                'put() { echo "$1=$2" >> "$GITHUB_OUTPUT"; }\n          put "$A" 0',
                'put() { echo "$1=$2" >> "$GITHUB_OUTPUT"; }\n          put exit-code 0 2> log.txt',
                'put() { echo "exit-$1=0" >> "$GITHUB_OUTPUT"; }\n          put code',
                'put() { echo "$1=0" >> "$GITHUB_OUTPUT"; }\n          set -- "$A"; put a',
                'put() { echo "$1=0" >> "$GITHUB_OUTPUT"; }\n          put `date +%s`',
                f'[ -f a ] && exec >> "$GITHUB_OUTPUT"\n{CODE}',
                'put() { shift; echo "$1=0" >> "$GITHUB_OUTPUT"; }\n          put a "$A"',
                'echo "::set-output name=exit-code::0"', SET.replace("exit", "a=1\\nexit").strip())
        ],
    ],
)  # fmt: skip
def test_an_output_that_a_script_never_sets_is_found(script: str, is_found: bool) -> None:
    text = edited(RUNNER, ('run: agent < "$PROMPT"', "run: |\n" + script.rstrip()))
    findings = [each for each in found(text) if each.code != "unsafe-interpolation"]
    assert [(each.code, each.path) for each in findings] == [("output-unwired", JOB_PATH)] * is_found
    findings += [each for each in found(THIN, agent=text) if each.code == "output-unwired"]
    assert len(findings) == 2 * is_found
    assert [each.hint for each in findings if 'echo "exit-code=VALUE" >> "$GITHUB_OUTPUT"' not in each.hint] == []
    shell = text.replace("        env:\n", "        shell: python\n        env:\n")
    assert "output-unwired" not in codes(shell)
    assert "output-unwired" not in codes(text + "defaults: {run: {shell: python}}\n")


def test_a_script_that_does_not_name_the_file_sets_no_outputs() -> None:
    lines = "".join(f'          echo "{name}=0"\n' for name in OUTPUTS)
    script = "run: |\n" + lines.rstrip()
    assert codes(edited(RUNNER, (RUN, script))) == ["output-unwired"] * len(OUTPUTS)
    for end in ('>> "${{ github.output }}"', '>> "$OUT"', '| tee -a "$OUT"'):
        assert codes(edited(RUNNER, (RUN, script.replace('=0"', f'=0" {end}')))) == []


@pytest.mark.parametrize(
    ("condition", "is_idle"),
    [
        ("${{ inputs.skip }}", True), ("inputs.skip == true", True), ("${{ inputs.skip && always() }}", True),
        ("inputs.skip == 'false'", True), ("${{ !inputs.skip && false }}", True),
        ("${{ !inputs.skip || failure() }}", False), ("always()", False), ("inputs.mode == 'autofix'", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("old", "path"), [(STEP, "/steps/1/if"), ("    runs-on: ubuntu-latest\n", "/if")])
def test_outputs_of_a_step_or_job_that_only_runs_when_it_is_skipped_are_found(
    condition: str, is_idle: bool, old: str, path: str
) -> None:
    text = edited(RUNNER, (old, f"{old}{' ' * (8 if old == STEP else 4)}if: {condition}\n"))
    expected = [("output-unwired", f"/jobs/agent{path}")] * is_idle
    assert [(each.code, each.path) for each in found(text)] == expected


OF_SKIPPED = {
    "exit-code": "0", "changes-made": "false", "files-changed": "0", "llm-analysis-run": "false",
    "llm-completed-tasks": "[]", "llm-has-completions": "false",
}  # fmt: skip
JOB = "    runs-on: ubuntu-latest\n"


@pytest.mark.parametrize(
    ("value", "step", "job"),
    [
        ("{} || '{}'", [], []), ("inputs.skip && '{1}' || {0}", [], []), ("{0} == '' && '{1}' || {0}", [], []),
        ("format('{{0}}', {0})", [], []),
        ("{0}", ["output-unwired"], ["output-unwired"]), ("{0} || ''", ["output-unwired"], ["output-unwired"]),
        ("{0} || '1'", ["output-unwired"], ["output-unwired"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("condition", ["${{ !inputs.skip }}", "inputs.skip != true && inputs.mode == 'autofix'"])
def test_a_skipped_run_must_leave_the_values_of_the_contract(
    value: str, step: list[str], job: list[str], condition: str
) -> None:
    for old, indent, expected in ((STEP, 8, step), (JOB, 4, job)):
        text = edited(RUNNER, (old, f"{old}{' ' * indent}if: {condition}\n"))
        for name, default in OF_SKIPPED.items():
            read = f"jobs.agent.outputs.{name}"
            text = edited(text, (f"${{{{ {read} }}}}", f"${{{{ {value.format(read, default)} }}}}"))
        assert codes(text) == expected
        assert codes(with_values(text, found(text))) == []
    only_in_job = edited(RUNNER, *[
        (f"${{{{ steps.run.outputs.{name} }}}}", f"${{{{ {value.format(f'steps.run.outputs.{name}', default)} }}}}")
        for name, default in OF_SKIPPED.items()
    ])  # fmt: skip
    assert codes(edited(only_in_job, (STEP, f"{STEP}        if: {condition}\n"))) == step
    assert codes(edited(only_in_job, (JOB, f"{JOB}    if: {condition}\n"))) == ["output-unwired"]


def with_values(text: str, findings: list[Finding]) -> str:
    """A runner with the outputs of its finding pasted in place of its own."""
    for name, value in re.findall(r"^([\w-]+):\n  value: (.*)$", "".join(each.hint for each in findings), re.MULTILINE):
        text = re.sub(
            rf"(?m)^      {name}:\n        value: .*",
            lambda _, n=name, v=value: f"      {n}:\n        value: {v}",
            text,
        )
    return text


def test_a_thin_runner_that_is_skipped_as_a_whole_leaves_no_values() -> None:
    (finding,) = found(edited(THIN, ("    uses:", "    if: ${{ !inputs.skip }}\n    uses:")))
    assert (finding.code, finding.path) == ("output-unwired", "/on/workflow_call/outputs")
    assert "The output `exit-code` is not `0` in a skipped run" in finding.message


def test_a_step_for_skipped_runs_may_set_the_same_outputs() -> None:
    skipped = "      - id: none\n        if: ${{ inputs.skip }}\n        run: ./none.sh\n"
    value = "      exit-code: ${{ steps.none.outputs.exit-code || steps.run.outputs.exit-code }}\n"
    assert found(edited(RUNNER, (JOB_VALUE, value), (STEP, skipped + STEP))) == []


# Inputs that have no effect

SKIP, PROMPT = "          SKIP: ${{ inputs.skip }}\n", "          PROMPT: ${{ inputs.prompt_file }}\n"


@pytest.mark.parametrize(
    ("old", "new", "unused"),
    [
        (SKIP, "", ["skip"]), (PROMPT, "          A: b\n", ["prompt_file"]),
        (SKIP, "          SKIP: ${{ inputs.skip == false }}\n", []),
        (SKIP, "          SKIP: ${{ !inputs.skipped }}\n", ["skip"]),
        (PROMPT, "          A: ${{ toJSON(inputs) }}\n", []),
        ("permissions: {}\n", "permissions: {}\nenv: {S: '${{ inputs.SKIP || inputs.prompt_file }}'}\n", []),
    ],
)  # fmt: skip
def test_a_runner_that_ignores_skip_or_the_prompt_is_found(old: str, new: str, unused: list[str]) -> None:
    text = edited(RUNNER, (old, new), *([(SKIP, ""), (PROMPT, "          A: b\n")] if "inputs.SKIP" in new else []))
    assert [(each.code, each.path) for each in found(text)] == [
        ("input-unused", f"/on/workflow_call/inputs/{name}") for name in unused
    ]


@pytest.mark.parametrize("name", ["pr_ref", "appendix", "max_runtime_minutes"])
def test_an_input_of_a_run_that_nothing_reads_is_a_warning_unless_its_description_says_so(name: str) -> None:
    text = edited(RUNNER, (f"${{{{ inputs.{name} }}}}", "60"))
    (finding,) = found(text)
    assert (finding.code, finding.severity, finding.path) == (
        "input-unused", "warning", f"/on/workflow_call/inputs/{name}"
    )  # fmt: skip
    assert found(edited(text, (f"      {name}:\n", f"      {name}:\n        description: Ignored.\n"))) == []


# Thin runners


def test_a_thin_runner_must_pass_on_its_inputs() -> None:
    text = edited(THIN, ("      appendix: ${{ inputs.appendix }}\n", ""))
    (finding,) = found(text, agent=RUNNER)
    assert (finding.code, finding.path) == ("input-unused", "/jobs/run/with")
    assert [(each.severity, each.path) for each in found(text)] == [("warning", "/on/workflow_call/inputs/appendix")]


@pytest.mark.parametrize(
    ("key", "hint"), [("skp", "Did you mean `skip`?"), ("SKIP", None), ("effort", "Remove it, or declare the input")]
)
def test_a_thin_runner_passes_only_inputs_that_exist(key: str, hint: str | None) -> None:
    text = edited(THIN, ("      skip: ${{ inputs", f"      {key}: ${{{{ inputs"))
    findings = [each for each in found(text, agent=RUNNER) if each.code != "input-unused"]
    assert [(each.code, each.path) for each in findings] == (
        [("unknown-input", f"/jobs/run/with/{key}")] if hint else []
    )
    assert [each for each in findings if hint not in each.hint] == []
    assert found(text) == []


def test_a_thin_runner_must_pass_required_inputs() -> None:
    (finding,) = found(edited(THIN, ("      prompt_file: ${{ inputs.prompt_file }}\n", "")), agent=RUNNER)
    assert (finding.code, finding.path) == ("missing-input", "/jobs/run/with")


def test_a_thin_runner_has_only_the_outputs_of_what_it_calls() -> None:
    without = edited(RUNNER, ("      commit-sha:\n        value: ${{ jobs.agent.outputs.commit-sha }}\n", ""))
    (finding,) = found(THIN, agent=without)
    assert (finding.code, finding.path) == ("output-unwired", "/on/workflow_call/outputs/commit-sha/value")
    assert CALLED in finding.message


# Scripts


@pytest.mark.parametrize(
    ("expression", "is_found"),
    [
        ("inputs.appendix", True), ("inputs['appendix']", True), ("inputs.unknown", True), ("inputs.", True),
        ("format('{0}', inputs.mode)", True), ("inputs.skip", False), ("inputs.max_runtime_minutes", False),
        ("inputs.mode == 'autofix' && '--fix' || ''", False), ("secrets.KEY", False), ("hashFiles('uv.lock')", False),
    ],
)  # fmt: skip
def test_text_that_callers_choose_is_found_in_a_script(expression: str, is_found: bool) -> None:
    text = edited(RUNNER, (RUN, f"run: |\n          agent '${{{{ {expression} }}}}'"))
    findings = found(text)
    place = ("unsafe-interpolation", "/jobs/agent/steps/1/run")
    assert [(each.code, each.path) for each in findings] == [place] * is_found
    assert all("run: |" in text.splitlines()[(each.line or 0) - 1] for each in findings)
    assert all(expression in each.hint for each in findings)


STEPS = [
    (f"uses: actions/github-script@{SHA}\n        with:\n          script: return '${{{{ inputs.pr_ref }}}}'", "error"),
    (f"uses: docker://alpine@sha256:{SHA}{'0' * 24}\n        with:\n          args: ${{{{ inputs.pr_ref }}}}", "error"),
    (f"uses: some/ssh@{SHA}\n        with:\n          command: ls ${{{{ inputs.pr_ref }}}}", "warning"),
    ("run: ls\n        shell: ${{ inputs.pr_ref }}", "error"),
]


@pytest.mark.parametrize(("step", "severity"), STEPS)
def test_scripts_in_other_places_are_checked(step: str, severity: str) -> None:
    text = edited(RUNNER, (STEP, f"      - {step}\n{STEP}"))
    assert [(finding.code, finding.severity) for finding in found(text)] == [("unsafe-interpolation", severity)]


def test_other_inputs_of_actions_accept_any_text() -> None:
    step = f"      - uses: some/agent@{SHA}\n        with:\n          prompt: ${{{{ inputs.appendix }}}}\n"
    assert found(edited(RUNNER, (STEP, step + STEP))) == []


# Pins


DIGEST = f"sha256:{SHA}{'0' * 24}"
PINNED = [
    f"actions/checkout@{SHA}", f"actions/cache/save@{SHA}", "./actions/run", "$/actions/run", "$/",
    f"docker://alpine@{DIGEST}", f"docker://alpine:3.20@{DIGEST}",
]  # fmt: skip
UNPINNED = [
    "actions/checkout@v4", "actions/checkout@main", f"actions/checkout@{SHA[:12]}", "actions/checkout",
    "docker://alpine:3.20", "docker://alpine", f"docker://alpine@sha256:{SHA}",
]  # fmt: skip


@pytest.mark.parametrize("uses", [*PINNED, *UNPINNED])
def test_only_a_full_commit_counts_as_pinned(uses: str) -> None:
    findings = found(edited(RUNNER, (f"actions/checkout@{SHA} # v7.0.1", uses)))
    assert [finding.code for finding in findings] == ([] if uses in PINNED else ["unpinned-action"])
    assert all(finding.path == "/jobs/agent/steps/0/uses" for finding in findings)


def test_external_workflows_must_be_pinned() -> None:
    assert codes(edited(THIN, (CALLED, "octo/flows/.github/workflows/run.yml@v1"))) == ["unpinned-action"]
    assert codes(edited(THIN, (CALLED, f"octo/flows/.github/workflows/run.yml@{SHA}"))) == []


# Other shapes


@pytest.mark.parametrize("trigger", ["push", "[push, pull_request]", "{push: }"])
def test_a_runner_must_be_callable(trigger: str) -> None:
    assert codes(f"on: {trigger}\njobs: {{}}\n") == ["schema"]


@pytest.mark.parametrize("trigger", ["workflow_call", "[workflow_call]", "{workflow_call: }"])
def test_a_workflow_without_inputs_lacks_all_of_them(trigger: str) -> None:
    expected = ["missing-input"] * len(INPUTS) + ["missing-output"] * len(OUTPUTS)
    assert codes(f"on: {trigger}\njobs: {{}}\n") == expected


# Two versions

TODAY = date(2026, 8, 31)


def broken(old: str, new: str) -> list[tuple[str, str, str]]:
    return [(f.code, f.severity.value, f.path) for f in breaking_findings(workflow(old), workflow(new), TODAY)]


CALL = "/on/workflow_call"
MODEL = '      model:\n        type: string\n        default: ""\n'
FIRST_OUTPUT = "    outputs:\n      final-message:\n        value"
NEW_OUTPUT = FIRST_OUTPUT.replace(
    "      final", "      cost-usd:\n        value: ${{ jobs.agent.outputs.cost-usd }}\n      final"
)
CHANGES = [
    ((MODEL, ""), ["/inputs", "/inputs"]),
    (("exit-code:\n        value", "exit-status:\n        value"), ["/outputs", "/outputs"]),
    (("model:\n        type: string", "model:\n        type: number"), ["/inputs/model/type"]),
    (('default: ""', "default: large"), ["/inputs/model/default"]),
    (('type: string\n        default: ""', "type: string\n        required: true"), ["/inputs/model"]),
    ((MODEL, MODEL + "      new:\n        type: string\n        required: true\n"), ["/inputs/new"]),
    (("permissions: {}\n", "permissions: {}\nenv: {}\n"), []),
    ((MODEL, MODEL + "      new:\n        type: string\n"), []),
    ((FIRST_OUTPUT, NEW_OUTPUT), []),
    (("prompt_file:\n        type: string\n        required: true", "prompt_file:\n        type: string"), []),
    (('default: ""', "required: false"), []),
    (("contents: read", "contents: write"), ["/jobs/agent/permissions/contents"]),
    (("      contents: read\n", "      contents: read\n      issues: read\n"), ["/jobs/agent/permissions/issues"]),
    (("permissions: {}\n", "permissions: {issues: read}\n"), []),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_only_changes_that_break_callers_are_found(change: tuple[str, str], expected: list[str]) -> None:
    codes = ["breaking-change", "deprecation-missing"]  # of a removed part both
    places = [place if place.startswith("/jobs") else f"{CALL}{place}" for place in expected]
    wanted = [(code, "error", place) for code, place in zip(codes, places, strict=False)]
    assert broken(RUNNER, edited(RUNNER, change)) == wanted


def test_a_permission_of_the_workflow_counts_for_jobs_without_their_own() -> None:
    own, above = "    permissions:\n      contents: read\n", "permissions: {contents: read}\n"
    old = edited(RUNNER, (own, ""), ("permissions: {}\n", above))
    seen = broken(old, edited(old, (above, above.replace("read", "write"))))
    assert seen == [("breaking-change", "error", "/permissions/contents")]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("{contents: read}", "write-all", [""]), ("{contents: read}", "read-all", [""]), ("{}", "read-all", [""]),
        ("read-all", "write-all", [""]), ("read-all", "{contents: write, issues: read}", ["/contents"]),
        ("write-all", "read-all", []), ("write-all", "{contents: write, id-token: write}", []),
        ("read-all", "{contents: read}", []), ("write-all", "write-all", []),
        ("{contents: write, issues: read}", "write-all", [""]),
    ],
)  # fmt: skip
def test_permissions_for_all_scopes_are_compared(before: str, after: str, expected: list[str]) -> None:
    own = "    permissions:\n      contents: read\n"
    inside = [edited(RUNNER, (own, f"    permissions: {given}\n")) for given in (before, after)]
    assert [place for _, _, place in broken(*inside)] == [f"/jobs/agent/permissions{place}" for place in expected]
    above = [edited(RUNNER, (own, ""), ("permissions: {}", f"permissions: {given}")) for given in (before, after)]
    assert [place for _, _, place in broken(*above)] == [f"/permissions{place}" for place in expected]


def test_a_version_does_not_break_itself() -> None:
    assert (broken(RUNNER, RUNNER), broken(THIN, THIN)) == ([], [])


@pytest.mark.parametrize(
    ("since", "severity", "says"),
    [
        ("2026-05-01", "warning", "The deprecated input"),
        ("2026-05-31", "warning", "The deprecated input"),
        ("2026-06-01", "error", "may not be removed before 2026-09-01"),
        ("2026-08-31", "error", "may not be removed before 2026-11-30"),
        ("2026-99-99", "warning", "three months without use come first"),
    ],
)
def test_a_deprecated_part_is_removed_after_three_months(since: str, severity: str, says: str) -> None:
    old = edited(RUNNER, (MODEL, f"{MODEL}        description: Deprecated since {since}, use the registry.\n"))
    new = edited(old, (f"{MODEL}        description: Deprecated since {since}, use the registry.\n", ""))
    found = breaking_findings(workflow(old), workflow(new), TODAY)
    assert found[0].severity.value == severity
    assert says in " ".join(each.message for each in found)


def test_each_change_that_breaks_callers_asks_for_a_major_version_a_guide_and_phases() -> None:
    found = breaking_findings(workflow(RUNNER), workflow(edited(RUNNER, (MODEL, ""))), TODAY)
    texts = [each.message for each in found if each.code == "breaking-change"]
    assert texts
    assert all("a major version with a migration guide, and callers that move in phases" in text for text in texts)


@pytest.mark.parametrize(
    ("mark", "is_deprecated"),
    [
        ("description: Deprecated, use the registry.", True), ("deprecationMessage: Use the registry.", True),
        ("description: The model; deprecated.", True), ("description: The model is deprecated.", True),
        ("description: '**DEPRECATED** Use the registry.'", True), ("description: The model (deprecated)", True),
        ("description: Replaces the deprecated input.", False), ("description: Not deprecated.", False),
        ("description: Number of deprecated APIs", False), ("description: Will be deprecated soon", False),
    ],
)  # fmt: skip
def test_only_removing_a_deprecated_part_is_a_warning(mark: str, is_deprecated: bool) -> None:
    old = edited(RUNNER, (MODEL, f"{MODEL}        {mark}\n"))
    seen = broken(old, edited(old, (f"{MODEL}        {mark}\n", "")))
    assert ("breaking-change", "warning", f"{CALL}/inputs") in seen if is_deprecated else len(seen) == 2
    assert {severity for _, severity, _ in seen} == {"warning" if is_deprecated else "error"}


@pytest.mark.parametrize(
    ("old", "new", "path"), [(OUTPUT_VALUE, "value: '0'", OUTPUT_PATH), (JOB_VALUE, "      exit-code: '0'\n", JOB_PATH)]
)
def test_an_output_that_becomes_a_constant_breaks_callers(old: str, new: str, path: str) -> None:
    constant = edited(RUNNER, (old, new))
    assert (broken(RUNNER, constant), broken(constant, constant)) == ([("breaking-change", "error", path)], [])
    assert broken(constant, RUNNER) == []


def test_secrets_of_callers_are_compared_too() -> None:
    secrets = "    secrets:\n      KEY: {{required: {}}}\n      OLD: {{required: false}}\npermissions: {{}}\n"
    optional, required = (edited(RUNNER, ("permissions: {}\n", secrets.format(needed))) for needed in ("false", "true"))
    assert broken(optional, required) == [("breaking-change", "error", f"{CALL}/secrets/KEY")]
    assert [code for code, *_ in broken(optional, RUNNER)] == ["breaking-change", "deprecation-missing"] * 2


def test_a_workflow_that_can_no_longer_be_called_breaks_every_caller() -> None:
    assert broken(RUNNER, "on: push\njobs: {}\n") == [("breaking-change", "error", "/on")]
    assert broken("on: push\njobs: {}\n", RUNNER) == []


def test_the_schema_accepts_what_the_check_accepts() -> None:
    schema = jsonschema_rs.validator_for(json_schema(Workflow))
    for text in (RUNNER, THIN):
        assert schema.is_valid(read_yaml(text.encode()).value)
    assert not schema.is_valid({"on": {"workflow_call": {"inputs": {"skip": {"required": "no"}}}}, "jobs": {}})
