"""Text in scripts weighs by who chooses it: outsiders, writers, or the workflow itself."""

import pytest
from support.runner_workflows import SHA, workflow

from accord.runner.models import RunOutputs
from accord.workflows.untrusted import script_findings


def grade(text: str, *others: str) -> list[str]:
    """The severities of what the first of these workflows inserts into its scripts."""
    files = {f".github/workflows/{i}.yml": workflow(each) for i, each in enumerate((text, *others))}
    findings = [finding for _, finding in script_findings(".github/workflows/0.yml", files)]
    assert {finding.code for finding in findings} <= {"unsafe-interpolation"}
    return [finding.severity.value for finding in findings]


def shown(events: str, expression: str, head: str = "", before: str = "") -> str:
    """A workflow that starts on these events and prints an expression."""
    step = f"      - run: echo '${{{{ {expression} }}}}'\n"
    return f"on: {events}\njobs:\n  show:\n{head}    steps:\n{before}{step}"


CHOICE = "{workflow_dispatch: {inputs: {what: {type: choice, options: [a, b]}}}}"
FREE = "{workflow_dispatch: {inputs: {what: {type: string}}}}"


@pytest.mark.parametrize(
    ("events", "expression"),
    [
        ("issues", "github.event.issue.title"), ("issue_comment", "github.event.comment.body"),
        ("pull_request", "github.head_ref"), ("pull_request_target", "github.event.pull_request.head.ref"),
        ("pull_request", "github.event.pull_request.head.label"), ("discussion", "github.event.discussion.body"),
        ("pull_request_review", "github.event.review.body"), ("issues", "toJSON(github.event)"),
        ("workflow_run", "github.event.workflow_run.head_branch"), ("issues", "toJSON(github.event.issue)"),
        ("workflow_run", "github.event.workflow_run.display_title"), ("[push, issues]", "github.event.issue.body"),
        ("pull_request", "github.event.pull_request.body || 'none'"), ("issues", "toJSON(github)"),
        ("pull_request", "toJSON(github.event.pull_request.head)"),
        ("pull_request", "github.event.pull_request.head.ref"),
        ("pull_request_target", "github.event.pull_request.head.repo.description"),
        ("workflow_run", "github.event.workflow_run.head_commit.message"),
        ("issues", "github.event.changes.title.from"), ("gollum", "github.event.pages[0].page_name"),
        ("pull_request_review_comment", "github.event.comment.diff_hunk"),
        ("pull_request_review_comment", "github.event.comment.path"),
        ("workflow_call", "toJSON(github.event)"), ("workflow_call", "toJSON(github)"),
        ("workflow_call", "fromJSON(toJSON(github.event)).issue.title"),
        ("[workflow_call, push]", "join(github.event.*)"),
        ("{workflow_call: {inputs: {prompt_file: {}, appendix: {}}}}", "toJSON(inputs)"),
    ],
)  # fmt: skip
def test_text_that_outsiders_choose_is_an_error(events: str, expression: str) -> None:
    assert grade(shown(events, expression)) == ["error"]


@pytest.mark.parametrize(
    ("events", "expression"),
    [
        (FREE, "inputs.what"), (FREE, "github.event.inputs.what"), ("push", "github.ref_name"),
        ("{push: {branches: ['v*']}}", "github.ref_name"), ("push", "github.event.head_commit.message"),
        ("repository_dispatch", "github.event.client_payload.id"),
        ("issues", "github.event.label.name"), ("push", "some.context"),
        ("issues", "join(github.event.issue.labels.*.name)"), ("issues", "toJSON(github.event.issue.labels)"),
        ("discussion", "github.event.discussion.category.name"),
        ("repository_dispatch", "github.event.client_payload.pull_request"),
        ("deployment", "github.event.deployment.payload.x"), ("push", "toJSON(github.event.head_commit.modified)"),
        ("issues", "github.event.issue.type.name"), ("deployment_status", "github.event.deployment.environment"),
        ("release", "github.event.release.body"), ("{workflow_call: {inputs: {x: {type: string}}}}", "inputs.x"),
        ("push", "an unreadable one"), ("push", "toJSON(github.event)"), (FREE, "toJSON(inputs)"),
    ],
)  # fmt: skip
def test_text_that_writers_choose_is_a_warning(events: str, expression: str) -> None:
    assert grade(shown(events, expression)) == ["warning"]


@pytest.mark.parametrize(
    ("events", "expression"),
    [
        (CHOICE, "toJSON(inputs)"), ("workflow_call", "github.event"),
        (CHOICE, "inputs.what"), (CHOICE, "github.event.inputs.what"), ("issues", "github.event.issue.number"),
        ("{workflow_dispatch: {inputs: {what: {type: number}}}}", "inputs.what"), ("issues", "github.actor"),
        ("pull_request", "github.event.pull_request.head.sha"), ("issues", "github.event.issue.html_url"),
        ("issues", "github.event.issue.user.login"), ("pull_request", "github.ref"), ("schedule", "github.ref_name"),
        ("push", "github.head_ref"), ("{push: {branches: [main]}}", "github.ref_name"),
        ("{push: {branches: 1.0}}", "github.ref_name"), ("push", "env.SET_BY_A_STEP"),
        ("push", "steps.some.outputs.x"), ("push", "needs.some.outputs.x"), ("issues", "github.event.repository.name"),
        ("workflow_run", "github.event.workflow_run.name"), ("issue_comment", "github.event.issue.pull_request.url"),
        ("issue_comment", "github.event.issue.pull_request"),
        ("schedule", "github.event.issue.title"), ("pull_request", "github.event.pull_request.draft"),
        # objects, of which only the word `Object` is inserted
        ("issues", "github.event.issue"), ("pull_request", "github.event.pull_request.head.repo"),
        ("issues", "github.event"),
        ("pull_request", "github.event.pull_request.labels"), ("issue_comment", "github.event.comment.user"),
        ("workflow_run", "github.event.workflow_run.head_commit"),
        ("pull_request_target", "toJSON(github.event.pull_request.user)"),
        ("pull_request", "github.event.pull_request.head.repo.language"), ("label", "github.event.label.color"),
        ("pull_request", "github.event.pull_request._links.html.href"),
        ("workflow_run", "github.event.workflow_run.repository.default_branch"),
        # counters
        ("pull_request", "github.event.pull_request.review_comments"), ("issues", "github.event.issue.reactions.heart"),
        ("issues", "github.event.repository.open_issues"), ("workflow_run", "github.event.workflow_run.run_attempt"),
        # names of the repository's own workflows, and the base of a pull request
        ("workflow_run", "github.event.workflow.name"), ("workflow_run", "github.event.workflow_run.path"),
        ("issues", "github.workflow"), ("pull_request", "github.base_ref"),
        ("pull_request", "github.event.pull_request.base.ref"),
        ("pull_request_target", "toJSON(github.event.pull_request.base)"),
        ("repository_dispatch", "github.event.client_payload.pull_request.base.ref"),
        ("workflow_run", "github.event.workflow_run.pull_requests[0].base.ref"),
        ("pull_request_target", "github.event.pull_request.head.repo.name"),
    ],
)  # fmt: skip
def test_fixed_lists_numbers_and_own_values_are_accepted(events: str, expression: str) -> None:
    assert grade(shown(events, expression)) == []


def test_all_variables_are_what_each_holds() -> None:
    listed = "    env: {A: 1, T: '${{ github.event.issue.title }}'}\n"
    assert grade(shown("issues", "toJSON(env)", listed)) == ["error"]
    assert grade(shown("issues", "toJSON(env)", listed.replace("title", "number"))) == []


def test_a_value_of_a_matrix_is_what_the_matrix_lists() -> None:
    listed = "    strategy: {matrix: {x: ['${{ github.event.issue.title }}', a]}}\n"
    assert grade(shown("issues", "matrix.x", listed)) == ["error"]
    assert grade(shown("issues", "matrix.x", listed.replace("title", "number"))) == []


CALL = f"  run: {{uses: accord-ci/accord/.github/workflows/reusable-codex-run.yml@{SHA}}}\n"
AGENT = f"      - id: made\n        uses: openai/codex-action@{SHA}\n"


OWN_HEAD = "    if: github.event.pull_request.head.repo.full_name == github.repository\n"


@pytest.mark.parametrize(
    ("events", "head"),
    [("issues", ""), ("push", ""), ("workflow_dispatch", ""), ("schedule", ""), ("pull_request", OWN_HEAD)],
)
def test_words_of_an_agent_are_an_error_with_any_event(events: str, head: str) -> None:
    for output in ("final-message", "structured_output"):
        text = shown(events, f"steps.made.outputs.{output}", head, AGENT)
        assert grade(text) == ["error"]
        ((_, finding),) = script_findings("a.yml", {"a.yml": workflow(text)})
        assert "so text that outsiders or agents write can run" in finding.message
    assert grade(shown(events, "steps.made.outputs.exit-code", head, AGENT)) == []


def test_each_output_with_words_of_an_agent_is_known_by_its_declaration() -> None:
    names = [*RunOutputs().as_outputs(), "run-dir"]
    words = [
        "final-message", "final-message-summary", "error-summary", "llm-completed-tasks", "agent-model",
        "error-evidence", "run-warnings", "result-json", "attempts",
    ]  # fmt: skip
    step = AGENT.replace("openai/codex-action", "accord-ci/accord/actions/run-agent")
    assert [name for name in names if grade(shown("push", f"steps.made.outputs.{name}", before=step))] == words
    assert [name for name in names if grade(shown("push", f"needs.run.outputs.{name}") + CALL)] == words
    passed_on = AGENT.replace("openai/codex-action", "accord-ci/accord/actions/publish-run")
    assert [name for name in names if grade(shown("push", f"steps.made.outputs.{name}", before=passed_on))] == words


COMMON = {"agent-model", "run-warnings", "attempts"}


@pytest.mark.parametrize(
    ("before", "is_by_name"),
    [
        ("      - id: made\n        run: ./count.sh\n", False),
        ("      - id: made\n        run: ./count.sh\n      - run: codex exec - < prompt.md\n", True),
        (f"      - id: made\n        uses: some/retry@{SHA}\n", True),
        ("      - id: made\n        uses: ./wrapper\n", True),
    ],
)
def test_an_output_of_another_step_is_an_agents_only_by_a_name_that_no_other_has(before: str, is_by_name: bool) -> None:
    names = RunOutputs().as_outputs()
    found = {name for name in names if grade(shown("push", f"steps.made.outputs.{name}", before=before))}
    expected = {"final-message", "final-message-summary", "error-summary", "error-evidence", "llm-completed-tasks"}
    assert found == ({*expected, "result-json"} if is_by_name else set())


@pytest.mark.parametrize(
    ("called", "is_runner"),
    [
        (f"accord-ci/accord/.github/workflows/reusable-codex-run.yml@{SHA}", True),
        ("./.github/workflows/reusable-agent-run.yml", True),
        (f"some/builds/.github/workflows/build.yml@{SHA}", False), ("./.github/workflows/reusable-test-run.yml", False),
    ],
)  # fmt: skip
def test_a_called_workflow_gives_an_agents_words_by_common_names_only_if_it_runs_agents(
    called: str, is_runner: bool
) -> None:
    call, names = f"  run: {{uses: {called}}}\n", {*COMMON, "error-evidence"}
    found = {name for name in names if grade(shown("push", f"needs.run.outputs.{name}") + call) == ["error"]}
    assert found == (names if is_runner else names - COMMON)


def test_a_comment_on_a_writers_issue_is_text_of_outsiders() -> None:
    own = "    if: github.event.issue.author_association == 'MEMBER'\n"
    assert grade(shown("issue_comment", "github.event.comment.body", own)) == ["error"]
    assert grade(shown("issue_comment", "github.event.issue.title", own)) == ["warning"]


def test_text_of_pull_requests_of_the_repository_is_that_of_writers() -> None:
    own = "    if: github.event.pull_request.head.repo.full_name == github.repository\n"
    assert grade(shown("pull_request", "github.head_ref", own)) == ["warning"]
    assert (
        grade(shown("[schedule, pull_request]", "github.head_ref", "    if: github.event_name == 'schedule'\n")) == []
    )


def test_a_job_may_need_many_that_need_one_another() -> None:
    jobs = "".join(f"  j{i}:\n    needs: j{i - 1}\n    steps: [{{run: 'true'}}]\n" for i in range(1, 600))
    first = "on: issues\njobs:\n  J0:\n    if: github.event_name == 'issues'\n    steps: [{run: 'true'}]\n"
    last = "  show:\n    needs: j599\n    steps:\n      - run: echo '${{ github.event.issue.title }}'\n"
    assert grade(f"{first}{jobs}{last}") == ["error"]
    assert grade(f"{first.replace('==', '!=')}{jobs}{last}") == []


def test_files_that_all_call_one_another_are_read() -> None:
    calls = "".join(f"  j{i}: {{uses: ./.github/workflows/{i}.yml}}\n" for i in range(14))
    step = "  show:\n    steps:\n      - run: echo '${{ github.event.issue.title }}'\n"
    assert grade(*[f"on: [workflow_call, issues]\njobs:\n{calls}{step}"] * 14) == ["error"]


def test_an_input_is_what_the_callers_of_the_repository_pass() -> None:
    called = shown("{workflow_call: {inputs: {x: {type: string}}}}", "inputs.x")
    caller = "on: issues\njobs:\n  call:\n    uses: ./.github/workflows/0.yml\n    with:\n      x: VALUE\n"
    values = {"fixed": [], "'${{ github.event.issue.title }}'": ["error"], "'${{ github.event.issue.number }}'": []}
    assert {value: grade(called, caller.replace("VALUE", value)) for value in values} == values


def test_steps_at_once_and_in_the_background_are_read() -> None:
    bad = "run: echo '${{ github.event.issue.title }}'"
    groups = f"      - parallel:\n          - {bad}\n          - run: 'true'\n      - {bad}\n        background: true\n"
    files = {"a.yml": workflow(f"on: issues\njobs:\n  a:\n    steps:\n{groups}")}
    findings = [finding for _, finding in script_findings("a.yml", files)]
    assert [finding.path for finding in findings] == ["/jobs/a/steps/0/parallel/0/run", "/jobs/a/steps/1/run"]


TITLE = "github.event.issue.title"
JAVASCRIPT = [
    ("const v = ${{ toJSON(X) }};", None),
    ("const v = {it: ${{ toJSON(X) }}}; // don't", None),
    ("const r = /'/;\n            const v = ${{ toJSON(X) }};", None),
    ("const v = '${{ X }}';", "process.env.ISSUE_TITLE"),
    ('f("${{ X }}");', "process.env.ISSUE_TITLE"),
    ("f(`about ${{ X }}`);", "${process.env.ISSUE_TITLE}"),
    ("const v = JSON.parse('${{ toJSON(X) }}');", "process.env.ISSUE_TITLE"),
    ("const v = ${{ X }};", "JSON.parse(process.env.ISSUE_TITLE)"),
    ("const a = ${{ toJSON(X) }}, b = '${{ toJSON(X) }}';", "process.env.ISSUE_TITLE"),
    ("f('it\\'s a \"quote'); const v = ${{ toJSON(X) }};", None),
    ('f(\'a "b\'); const v = "${{ toJSON(X) }}";', "process.env.ISSUE_TITLE"),
    ('f("a\\""); const v = "${{ toJSON(X) }}";', "process.env.ISSUE_TITLE"),
    ("f('it\\'s'); const v = '${{ toJSON(X) }}';", "process.env.ISSUE_TITLE"),
    ("f('`'); const v = `${{ toJSON(X) }}`;", "${process.env.ISSUE_TITLE}"),
    ("// a ` mark\n            const v = `${{ toJSON(X) }}`;", "${process.env.ISSUE_TITLE}"),
    ("f(`https://a.b`); /* ` */ const v = `${{ toJSON(X) }}`;", "${process.env.ISSUE_TITLE}"),
    ("/* ${{ toJSON(X) }} */", "process.env.ISSUE_TITLE"),
]


@pytest.mark.parametrize(("script", "read"), JAVASCRIPT)
def test_a_literal_of_javascript_is_accepted_and_no_hint_changes_the_value(script: str, read: str | None) -> None:
    step = "      - uses: actions/github-script@v8\n        with:\n          script: |\n            "
    text = f"on: issues\njobs:\n  a:\n    steps:\n{step}{script.replace('X', TITLE)}\n"
    found = script_findings("a.yml", {"a.yml": workflow(text)})
    assert [finding.hint.rpartition(": ")[2] for _, finding in found] == ([read] if read else [])


SHELLS = {
    "": '"$ISSUE_TITLE"',
    "bash": '"$ISSUE_TITLE"',
    "pwsh": "$env:ISSUE_TITLE",
    "python": 'os.environ["ISSUE_TITLE"]',
}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_hint_is_in_the_language_of_the_script(shell: str) -> None:
    step = f"      - run: f('${{{{ toJSON({TITLE}) }}}}')\n" + (f"        shell: {shell}\n" if shell else "")
    ((_, finding),) = script_findings("a.yml", {"a.yml": workflow(f"on: issues\njobs:\n  a:\n    steps:\n{step}")})
    assert finding.hint.endswith(f"# and in the script: {SHELLS[shell]}")


@pytest.mark.parametrize(
    ("expression", "variable"),
    [
        ("github.head_ref || github.ref_name", "EVENT_HEAD_REF"), ("github.head_ref", "EVENT_HEAD_REF"),
        ("github.event.pull_request.title", "PULL_REQUEST_TITLE"), ("github.event.issue.title", "ISSUE_TITLE"),
    ],
)  # fmt: skip
def test_the_hint_names_no_variable_that_the_runner_sets_itself(expression: str, variable: str) -> None:
    text = f"on: [pull_request_target, issues]\njobs:\n  a:\n    steps:\n      - run: echo ${{{{ {expression} }}}}\n"
    ((_, finding),) = script_findings("a.yml", {"a.yml": workflow(text)})
    assert finding.hint.splitlines()[1] == f"  {variable}: ${{{{ {expression} }}}}"
