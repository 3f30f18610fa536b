"""Doctor names every token and secret within an agent's reach, and who may start the agent."""

from collections.abc import Callable

import pytest
from support.growth import grows_too_fast
from support.runner_workflows import SHA, workflow

from accord.agents.registry import shipped_registry
from accord.agents.registry_rules import registry_from
from accord.core.findings import Finding
from accord.workflows.agents import known_agents, shipped_agents
from accord.workflows.facts import RepositoryFacts
from accord.workflows.models import Step
from accord.workflows.tokens import check_agents, check_outsiders, check_unknown_actions, left_texts

CLAUDE = f"uses: anthropics/claude-code-action@{SHA}"
RUN = "run: claude -p x"
APP = f"id: app\nuses: actions/create-github-app-token@{SHA}"
OWN = "${{ secrets.GITHUB_TOKEN }}"
PAT = "${{ secrets.PAT }}"
MADE = "${{ steps.app.outputs.token }}"
SCRIPT = "uses: actions/github-script@v8\nwith:\n  script: |-\n    "


def job(*steps: str, permissions: str = "{contents: read}", head: str = "", on: str = "push") -> str:
    """A workflow with one job of these steps."""
    lines = "".join("      - " + step.replace("\n", "\n        ") + "\n" for step in steps)
    return f"on: {on}\n{head}jobs:\n  a:\n    permissions: {permissions}\n    steps:\n{lines}"


def found(text: str, known: object = None) -> list[Finding]:
    facts = RepositoryFacts({".github/workflows/a.yml": workflow(text)}, known=known or shipped_agents())  # type: ignore[arg-type]
    return [each for check in (check_agents, check_unknown_actions) for _, each in check(facts)]


def codes(text: str, known: object = None) -> dict[str, str]:
    """The severity of each code."""
    return {each.code: each.severity.value for each in found(text, known)}


IDENTITY = "{contents: read, id-token: write}"
WRITES = {
    "an action that changes its identity for a token": job(CLAUDE, permissions=IDENTITY),
    "opencode": job("uses: sst/opencode/github@v1", permissions=IDENTITY),
    "droid": job("uses: Factory-AI/droid-action@main", permissions=IDENTITY),
    "everything": job(CLAUDE, permissions="write-all"),
    "the token of an app": job(APP, f"{CLAUDE}\nwith: {{github_token: '{MADE}'}}"),
    "the token of an app or the job's": job(
        APP, f"{RUN}\nenv: {{GH_TOKEN: '${{{{ steps.app.outputs.token || github.token }}}}'}}"
    ),
    "another app": job("id: app\nuses: tibdex/github-app-token@v2", f"{RUN}\nenv: {{GITHUB_TOKEN: '{MADE}'}}"),
    "an app that may write issues": job(
        f"{APP}\nwith: {{permission-issues: write}}", f"{RUN}\nenv: {{GH_TOKEN: '{MADE}'}}"
    ),
    "a secret": job(f"{CLAUDE}\nwith: {{github_token: '${{{{ secrets.PAT }}}}'}}"),
    "a secret in a variable": job(f"{RUN}\nenv: {{GH_TOKEN: '${{{{ secrets.PAT }}}}'}}"),
    "a variable of the workflow": job(RUN, head="env: {GH_TOKEN: '${{ secrets.PAT }}'}\n"),
    "a token that git keeps": job(f"uses: actions/checkout@{SHA}\nwith: {{token: '${{{{ secrets.PAT }}}}'}}", RUN),
    "a token that a step chooses": job(
        "id: app\nrun: echo \"token=$PAT\" >> $GITHUB_OUTPUT\nenv: {PAT: '${{ secrets.PAT }}'}",
        f"{RUN}\nenv: {{GH_TOKEN: '{MADE}'}}",
    ),
    "a command that outputs put together": job(
        'id: cli\nrun: echo "name=codex exec" >> $GITHUB_OUTPUT',
        "run: ${{ steps.cli.outputs.name }} - < prompt.md",
        permissions="{contents: write}",
    ),
    "a command of another job": job("run: ${{ needs.b.outputs.agent }} -p x", permissions="{issues: write}")
    + "  b:\n    outputs: {agent: '${{ steps.pick.outputs.it }}'}\n    steps:\n"
    "      - id: pick\n        run: echo it=claude >> $GITHUB_OUTPUT\n",
    "a command of a matrix": job("run: ${{ matrix.agent }} -p x", permissions="{issues: write}").replace(
        "    permissions", "    strategy: {matrix: {agent: [make, gemini]}}\n    permissions"
    ),
    "a command of a matrix by its other spelling": job(
        "run: ${{ matrix['agent'] }} -p x", permissions="{issues: write}"
    ).replace("    permissions", "    strategy: {matrix: {include: [{agent: make}, {agent: codex}]}}\n    permissions"),
    "a command of an input or another": job(
        "run: ${{ inputs.tool || 'codex' }} exec -",
        permissions="{issues: write}",
        on="{workflow_dispatch: {inputs: {tool: {default: claude}}}}",
    ),
    "a command of an input": job(
        "run: ${{ inputs.agent }} exec -",
        permissions="{issues: write}",
        on="{workflow_dispatch: {inputs: {agent: {default: codex}}}}",
    ),
    "a command from a variable": job("run: $AGENT -p x\nenv: {AGENT: claude}", permissions="{issues: write}"),
    **{
        name: job(f"uses: {name}", permissions="{issues: write}")
        for name in (
            "anthropics/claude-code-action/base-action@v1",
            "docker://codiumai/pr-agent:latest",
            "QwenLM/qwen-code-action@v1",
        )
    },
    "a program without an entry": job("run: droid exec --auto high x", permissions="{contents: write}"),
}


@pytest.mark.parametrize("name", WRITES)
def test_every_token_that_may_write_beside_an_agent_is_an_error(name: str) -> None:
    assert codes(WRITES[name]).get("agent-may-write") == "error"


READS = {
    "its own token": job(f"{CLAUDE}\nwith: {{github_token: '{OWN}'}}", permissions=IDENTITY),
    **{
        f"identity for {cloud}": job(f"{CLAUDE}\nwith: {{use_{cloud}: 'true'}}", permissions=IDENTITY)
        for cloud in ("bedrock", "vertex", "foundry")
    },
    "opencode with the job's token": job(
        "uses: sst/opencode/github@v1\nwith: {use_github_token: true}\nenv: {GITHUB_TOKEN: '${{ github.token }}'}",
        permissions=IDENTITY,
    ),
    "no identity": job(CLAUDE),
    "an action that changes nothing": job("uses: openai/codex-action@v1", permissions=IDENTITY),
    "an app that may only read": job(
        f"{APP}\nwith: {{permission-contents: read, permission-issues: read}}", f"{RUN}\nenv: {{GH_TOKEN: '{MADE}'}}"
    ),
    "the job's token": job(f"{RUN}\nenv: {{GH_TOKEN: '{OWN}'}}"),
    "the innermost variable of a name": job(f"{RUN}\nenv: {{GH_TOKEN: '{OWN}'}}", head=f"env: {{GH_TOKEN: '{PAT}'}}\n"),
    "a token for a later step": job(RUN, APP, f"run: gh pr create\nenv: {{GH_TOKEN: '{MADE}'}}"),
    "a token that git does not keep": job(
        f"uses: actions/checkout@{SHA}\nwith: {{token: '${{{{ secrets.PAT }}}}', persist-credentials: false}}", RUN
    ),
    "a token that a firewall keeps from the agent": job(
        "run: awf --env-all --exclude-env GH_TOKEN -- bash -c 'claude -p x'\nenv: {GH_TOKEN: '${{ secrets.PAT }}'}"
    ),
    "a key of a model": job(
        f"{CLAUDE}\nwith: {{anthropic_api_key: '${{{{ secrets.KEY }}}}'}}",
        f"{RUN}\nenv: {{CLAUDE_CODE_OAUTH_TOKEN: '${{{{ secrets.X }}}}', Y: '${{{{ secrets.OPENAI_API_KEY }}}}'}}",
    ),
}


@pytest.mark.parametrize("name", READS)
def test_tokens_that_only_read_and_keys_of_models_are_accepted(name: str) -> None:
    assert codes(READS[name]) == {}


@pytest.mark.parametrize(
    ("called", "caller", "is_found"),
    [
        (RUN, "permissions: {contents: write}", True), (RUN, "permissions: write-all", True),
        (CLAUDE, "permissions: {id-token: write}", True), (RUN, "", False),
        (RUN, "permissions: {contents: read}", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_of_job", [True, False])
def test_a_called_workflow_without_permissions_has_those_of_its_callers(
    called: str, caller: str, is_found: bool, is_of_job: bool
) -> None:
    inner = job(called, on="workflow_call").replace("    permissions: {contents: read}\n", "")
    of_job, of_file = ("", caller) if not is_of_job else (caller, "")
    texts = {
        "inner": inner,
        "middle": "on: workflow_call\njobs: {b: {uses: ./inner}}\n",
        "outer": f"on: push\n{of_file}\njobs:\n  c:\n    uses: ./middle\n    {of_job}\n",
        "reader": "on: issues\npermissions: {}\njobs: {d: {uses: ./inner}}\n",
    }
    facts = RepositoryFacts({path: workflow(texts[path]) for path in sorted(texts, reverse=True)})
    assert [(path, each.code, each.path) for path, each in check_agents(facts)] == [
        ("inner", "agent-may-write", "/jobs/a/steps/0" if called == CLAUDE and "id" in caller else "/jobs/a")
    ] * is_found
    assert all("granted by outer" in each.message or "id-token" in caller for _, each in check_agents(facts))


def test_outputs_that_go_in_a_circle_end() -> None:
    circle = "    outputs: {x: '${{ needs.a.outputs.x }}'}\n"
    assert codes(job("run: ${{ needs.a.outputs.x }} -p", permissions="{issues: write}") + circle) == {}


def test_a_job_is_one_finding_with_all_its_tokens_and_the_place_of_the_first() -> None:
    step = f"{CLAUDE}\nwith: {{github_token: '${{{{ secrets.PAT }}}}'}}"
    (finding,) = found(job(step))
    assert (finding.path, finding.hint) == (
        "/jobs/a/steps/0/with/github_token",
        "with:\n  github_token: ${{ github.token }}",
    )
    (finding,) = found(job(APP, f"{step}\nenv: {{GH_TOKEN: '{MADE}'}}", permissions="{issues: write}"))
    assert finding.path == "/jobs/a/permissions"
    assert "a token that may write issues, and with the secret `PAT` as `github_token`, a token of" in finding.message


@pytest.mark.parametrize(
    ("permissions", "advice", "hint"),
    [
        ("{contents: write}", "patch", "contents: read"),
        ("{issues: write, contents: read}", "post it", "issues: read"),
        ("{pull-requests: write}", "post it", "pull-requests: read"), ("{checks: write}", "do that", "checks: read"),
        ("write-all", "patch", "contents: read"), ("{id-token: write, issues: write}", "post it", "id-token: write"),
    ],
)  # fmt: skip
def test_the_advice_depends_on_what_may_be_written(permissions: str, advice: str, hint: str) -> None:
    (finding,) = found(job(RUN, permissions=permissions))
    assert advice in finding.message
    assert hint in finding.hint


@pytest.mark.parametrize(
    ("step", "severities"),
    [
        (f"{CLAUDE}\nwith: {{github_token: '{OWN}', allowed_non_write_users: '*'}}", ("warning", "error")),
        (f"{CLAUDE}\nwith: {{github_token: '{OWN}', allowed_non_write_users: 'a, *'}}", ("warning", "error")),
        ("uses: openai/codex-action@v1\nwith: {allow-users: '*'}", ("warning", "error")),
        ("uses: openai/codex-action@v1\nwith: {allow-users: 'alice, bob'}", (None, None)),
        (f"{CLAUDE}\nwith: {{github_token: '{OWN}', allowed_non_write_users: ''}}", (None, None)),
        (f"{CLAUDE}\nwith: {{github_token: '{OWN}', claude_args: '*'}}", (None, None)),
    ],
)
def test_an_input_that_opens_an_agent_to_everybody_weighs_by_its_token(step: str, severities: tuple[str, str]) -> None:
    graded = [codes(job(step, permissions=level)).get("agent-for-anyone") for level in ("{}", "{issues: write}")]
    assert tuple(graded) == severities


PYTHON = "defaults: {run: {shell: python}}"


@pytest.mark.parametrize(
    ("text", "is_foreign"),
    [
        (job(f"{RUN}\nenv: {{DB: '${{{{ secrets.DATABASE_URL }}}}'}}"), True),
        (job(RUN, head="env: {AWS: '${{ secrets.AWS_SECRET_ACCESS_KEY }}'}\n"), True),
        (job(f"{CLAUDE}\nwith: {{settings: '${{{{ secrets.NPM_TOKEN }}}}'}}"), True),
        (job("run: awf --exclude-env DB -- bash -c 'claude -p x'\nenv: {DB: '${{ secrets.DB }}'}"), False),
        (job("run: |-\n    # awf --exclude-env DB\n    claude -p x\nenv: {DB: '${{ secrets.DB }}'}"), True),
        (
            job("run: |-\n    echo '--exclude-env DB'; claude -p x # --exclude-env DB\nenv: {DB: '${{ secrets.DB }}'}"),
            True,
        ),
        (job("run: |-\n    awf \\\n      --exclude-env=DB -- claude -p x\nenv: {DB: '${{ secrets.DB }}'}"), False),
        (job("run: awf --exclude-env OTHER -- bash -c 'claude -p x'\nenv: {DB: '${{ secrets.DB }}'}"), True),
        (job(RUN, "run: make deploy\nenv: {DB: '${{ secrets.DATABASE_URL }}'}"), False),
        (job("uses: warpdotdev/oz-agent-action@v1\nwith: {warp_api_key: '${{ secrets.OZ }}'}"), False),
        (job(f"{RUN}\nenv: {{ANTHROPIC_API_KEY: '${{{{ secrets.MINE }}}}'}}"), False),
        (job('run: |-\n    claude -p x --mcp-config \'{"env": {"DB": "${{ secrets.DB }}"}}\''), True),
        (job('run: echo "DB=${{ secrets.DB }}" >> "$GITHUB_ENV"', RUN), True),
        (job("run: printf %s \"$DB\" > .env\nenv: {DB: '${{ secrets.DB }}'}", RUN), True),
        (job("run: echo $DB | tee .env\nenv: {DB: '${{ secrets.DB }}'}", RUN), True),
        (job("run: |-\n    cat > .env <<EOF\n    DB=${{ secrets.DB }}\n    EOF", RUN), True),
        (job(RUN, 'run: echo "DB=${{ secrets.DB }}" >> "$GITHUB_ENV"'), False),
        (job('run: |-\n    {\n      echo "DB=${{ secrets.DB }}"\n    } >> "$GITHUB_ENV"', RUN), True),
        (job('run: |-\n    {\n      echo "DB=${{ secrets.DB }}"\n    } >> "$GITHUB_OUTPUT"', RUN), False),
        (
            job("run: |-\n    for i in 1 2\n    do\n      echo DB$i=${{ secrets.DB }}\n    done >> $GITHUB_ENV", RUN),
            True,
        ),
        (job("run: |-\n    for i in 1 2\n    do\n      ./deploy ${{ secrets.DB }}\n    done > log", RUN), False),
        (job(f"{SCRIPT}core.exportVariable('DB', process.env.DB)\nenv: {{DB: '${{{{ secrets.DB }}}}'}}", RUN), True),
        (job(f"{SCRIPT}const db = '${{{{ secrets.DB }}}}';\n    core.exportVariable('DB', db)", RUN), True),
        (job(f"{SCRIPT}core.exportVariable('X', 1)\nenv: {{DB: '${{{{ secrets.DB }}}}'}}", RUN), False),
        (job(f"{SCRIPT}core.setOutput('login', process.env.DB)\nenv: {{DB: '${{{{ secrets.DB }}}}'}}", RUN), False),
        (job("run: echo ${{ secrets.DB }} | docker login --password-stdin 2>&1", RUN), True),
        (job("run: git remote set-url origin https://x:$DB@github.com/o/r\nenv: {DB: '${{ secrets.DB }}'}", RUN), True),
        (job("uses: docker/login-action@v4\nwith: {username: x, password: '${{ secrets.DB }}'}", RUN), True),
        (job(RUN, "uses: docker/login-action@v4\nwith: {password: '${{ secrets.DB }}'}"), False),
        (job("uses: some/deploy@v1\nwith: {password: '${{ secrets.DB }}'}", RUN), False),
        (job("run: echo ${{ secrets.DB }} | ./deploy --password-stdin 2>&1", RUN), False),
        (job('run: echo "x=${{ secrets.DB }}" >> "$GITHUB_OUTPUT"', RUN), False),
        (
            job("run: |-\n    cat >> $GITHUB_STEP_SUMMARY <<EOF\n    Done\n    EOF\n    ./go ${{ secrets.DB }}", RUN),
            False,
        ),
        *(
            (job(f"shell: {shell}\nrun: |-\n    {lines}\nenv: {{DB: '${{{{ secrets.DB }}}}'}}", RUN), is_left)
            for shell, lines, is_left in (
                ("bash", 'env >> "$GITHUB_ENV"', True),
                ("bash", "env X=1 ./deploy $DB > log", False),
                ("bash", 'exec >> "$GITHUB_ENV"\n    printf %s "D=$DB"', True),
                ("bash", 'for n in "$DB"; do echo "D=$n" >> "$GITHUB_ENV"; done', True),
                ("bash", 'X=$DB\n    Y="a $X"\n    echo "D=$Y" >> "$GITHUB_ENV"', True),
                ("bash", 'n=1; ./deploy $DB; echo "D=$n" >> "$GITHUB_ENV"', False),
                ("bash", '{ echo "A=1"; } >> "$GITHUB_ENV"\n    ./deploy "$DB"', True),  # all of the script counts
                ("bash", 'X=$DB; {\n      echo "D=$X"\n    } >> "$GITHUB_ENV"', True),
                ("bash", 'if [ "$DB" ]; then echo HAS=1 >> "$GITHUB_ENV"; fi', False),
                ("bash", 'echo "Server=x; Password=$DB" > .env', True),
                ("bash", 'read v <<< "$DB"\n    echo "D=$v" >> "$GITHUB_ENV"', True),
                ("bash", 'printf -v v %s "$DB"; echo "D=$v" >> "$GITHUB_ENV"', True),
                ("bash", 'read v <<< "$DB"\n    ./deploy "$v"; echo "D=1" >> "$GITHUB_ENV"', False),
                ("bash", 'echo "$DB" | while read v; do\n      echo "D=$v" >> $GITHUB_ENV\n    done', True),
                ("bash", 'f(){ echo "D=$DB"; }; f >> $GITHUB_ENV', True),
                ("python", "import os\n    k = os.environ['DB']\n    f = open(os.environ['GITHUB_ENV'], 'a')", True),
                ("python", "import os\n    call(os.environ['DB'])", False),
            )
        ),
        *(
            (job(f"{SCRIPT}core.exportVariable('D', {value})\nenv: {{DB: '${{{{ secrets.DB }}}}'}}", RUN), True)
            for value in ("`x${process.env.DB}`", "process.env['DB']", '`${process.env["DB"]}`')
        ),
        *(
            (text, is_left)
            for use, is_left in (("print(k, file=open(os.environ['GITHUB_ENV'], 'a'))", True), ("call(k)", False))
            for script in (
                f"run: |-\n    import os\n    k = os.environ['DB']\n    {use}\nenv: {{DB: '${{{{ secrets.DB }}}}'}}",
            )
            for text in (
                job(script, RUN, head=f"{PYTHON}\n"),
                job(script, RUN).replace("    steps:", f"    {PYTHON}\n    steps:"),
            )
        ),
        (job("run: echo done > log; ./deploy\nenv: {DB: '${{ secrets.DB }}'}", RUN), False),
        (job('run: echo "OPENAI_API_KEY=${{ secrets.OPENAI_API_KEY }}" >> $GITHUB_ENV', RUN), False),
    ],
)
def test_a_secret_that_no_model_needs_is_a_warning(text: str, is_foreign: bool) -> None:
    assert codes(text) == ({"agent-secret": "warning"} if is_foreign else {})


def names(form: str, number: int) -> str:
    """The numbered names of a script, each in a form."""
    return "".join(form.replace("#", str(i)) for i in range(number))


@pytest.mark.parametrize(
    "script",
    [
        lambda n: names("f#(){\n", n) + "\n}" * n + names("\nf# > x", n),
        lambda n: "{\n" * n + "\n} > x" * n,
        lambda n: "cat > x <<A\n" * n + "\nA\n",
        lambda n: "f(){\n" + "echo $x\n" * n + "}\n" + "f > x\n" * n,
        lambda n: f'echo "{names("$A#", n)}" >> $GITHUB_ENV\nread {names("A# ", n)}',
        lambda n: 'echo "$A0" >> $GITHUB_ENV' + "".join(f"\nA{i}=$A{i + 1}" for i in range(n)),
        lambda n: "&done" * n,
    ],
)
def test_long_scripts_are_read_in_linear_time(script: Callable[[int], str]) -> None:
    steps = {n: Step.model_validate({"run": script(n)}) for n in (500, 2000, 8000)}
    assert not grows_too_fast(lambda n: [*left_texts(steps[n], "bash")], 8000)


def test_many_commands_by_the_name_of_a_key_are_read_in_linear_time() -> None:
    def look(number: int) -> object:
        return found(
            job(*(f"run: ${{{{ matrix.run }}}} step{i}" for i in range(number)), permissions="{issues: write}")
        )

    assert not grows_too_fast(look, 80)


@pytest.mark.parametrize(
    ("runs_on", "network", "is_open"),
    [
        ("self-hosted", None, True), ("[self-hosted, linux]", None, True),
        ("{group: a, labels: self-hosted}", None, True),
        ("[linux, Self-Hosted]", None, True), ("{labels: [self-hosted, x]}", None, True),
        ("not-self-hosted", None, False), ("{group: self-hosted-pool, labels: linux}", None, False),
        ("ubuntu-latest", None, False), ("self-hosted", ["api.test"], False), ("[self-hosted]", [], False),
    ],
)  # fmt: skip
def test_an_agent_on_a_machine_of_ones_own_may_reach_the_machines_cloud(
    runs_on: str, network: list[str] | None, is_open: bool
) -> None:
    text = job("uses: accord-ci/accord/actions/run-agent@v1\nwith: {agent: mine}")
    text = text.replace("    steps", f"    runs-on: {runs_on}\n    steps")
    mine = shipped_registry().agents["codex"].model_copy(update={"network": network})
    facts = RepositoryFacts({".github/workflows/a.yml": workflow(text)}, agents={"mine": mine})
    assert [each.code for _, each in check_agents(facts)] == ["agent-reaches-cloud"] * is_open


@pytest.mark.parametrize(
    ("step", "is_unknown"),
    [
        ("uses: some/reviewer@v1\nwith: {anthropic_api_key: '${{ secrets.KEY }}'}", True),
        ("uses: some/reviewer@v1\nenv: {X: '${{ secrets.OPENAI_API_KEY }}'}", True),
        ("uses: some/reviewer@v1\nwith: {openai-key: '${{ secrets.A || secrets.B }}'}", True),
        ("uses: some/reviewer@v1\nwith: {token: '${{ secrets.GEMINI_ROBOT_PAT }}'}", False),
        ("uses: some/reviewer@v1\nwith: {openai_model: gpt}", False),
        ("uses: actions/github-script@v8\nenv: {OPENAI_API_KEY: '${{ secrets.OPENAI_API_KEY }}'}", False),
        ("uses: openai/codex-action@v1\nwith: {openai-api-key: '${{ secrets.OPENAI_API_KEY }}'}", False),
    ],
)
def test_an_unknown_action_with_a_key_of_a_model_is_a_warning(step: str, is_unknown: bool) -> None:
    assert codes(job(step)) == ({"agent-unknown": "warning"} if is_unknown else {})


def test_a_registry_adds_actions_programs_and_keys_to_those_that_are_shipped() -> None:
    raw = (
        b"version: 1\nactions:\n  some/reviewer: {app_token_unless: [token], opened_by: [who]}\nprograms: [fixer]\n"
        b"model_keys: ['ACME_*']\nagents:\n  mine: {command: [mine], actions: {octo/mine: [summary]}}\n"
    )
    known = known_agents(registry_from(raw))
    assert known.actions.keys() > {name.lower() for name in shipped_registry().actions}
    assert codes(job("uses: some/reviewer@v1\nwith: {who: '*'}", permissions=IDENTITY), known) == {
        "agent-may-write": "error", "agent-for-anyone": "error",
    }  # fmt: skip
    for step in ("uses: octo/mine@v1", "run: fixer now"):
        assert codes(job(step, permissions="{issues: write}"), known) == {"agent-may-write": "error"}
    assert codes(job("uses: some/other@v1\nwith: {key: '${{ secrets.ACME_KEY }}'}"), known) == {
        "agent-unknown": "warning"
    }


def outsiders(text: str) -> list[str]:
    files = {".github/workflows/a.yml": workflow(text)}
    return [each.severity.value for _, each in check_outsiders(RepositoryFacts(files))]


MAKE = "run: make"
ASKS = "run: gh api repos/o/r/collaborators/$WHO/permission | grep write"
LABELLED = "contains(github.event.issue.labels.*.name, 'agent')"
NEVER = "\nif: github.event.pull_request.head.repo.full_name == github.repository"
SECRET = "run: make\nenv: {X: '${{ secrets.X }}'}"
ASKED = "    if: contains(fromJSON('[\"OWNER\"]'), github.event.comment.author_association)\n    permissions"
OPEN = [
    job(MAKE, permissions="{contents: write}", on="issue_comment"), job(SECRET, on="issues"),
    job(SECRET, on="[push, discussion]"), job(MAKE, permissions="write-all", on="pull_request_target"),
    job(MAKE, on="issues", head="env: {X: '${{ secrets.X }}'}\n"),
    "on: issues\njobs:\n  a:\n    uses: octo/x/.github/workflows/r.yml@v1\n    secrets: inherit\n",
    job(SECRET, "run: echo x\nif: github.actor == 'octocat' && false", on="issues"),
    job(SECRET, ASKS, on="issues"),
    *(
        job(SECRET, on="issues").replace("    permissions", f"    if: ${{{{ {condition} }}}}\n    permissions")
        for condition in (
            "github.actor == github.event.issue.user.login", "github.event_name == 'Issues'", "('a' || 'b') == 'a'",
            "github.event.comment.body == ''", "contains(github.actor, 'octo')",
            "!github.event.pull_request.head.repo.fork",
        )
    ),
    job(MAKE, permissions="{contents: write}", on="{issues: {types: [labeled, edited]}}"),
    *(
        job(SECRET, on="issue_comment").replace("    permissions", f"    if: {condition}\n    permissions")
        for condition in (
            "github.event.comment.author_association != 'NONE'",
            "github.event.comment.author_association == 'FIRST_TIME_CONTRIBUTOR'",
            "contains(fromJSON('[\"OWNER\", \"CONTRIBUTOR\"]'), github.event.comment.author_association)",
            "contains('MEMBER,CONTRIBUTOR', github.event.comment.author_association)",
            f"{LABELLED} && startsWith(github.event.comment.body, '/agent')",
            "github.event.issue.author_association == 'MEMBER'", "github.event.issue.user.login == 'alice'",
        )
    ),
    *(
        job(SECRET, on=f"{{{event}: {{types: [{types}]}}}}").replace("    perm", f"    if: {condition}\n    perm")
        for event, types, condition in (
            ("issues", "labeled, edited", LABELLED), ("issues", "", LABELLED), ("issues", "reopened", LABELLED),
            ("discussion_comment", "created", "github.event.discussion.user.login == 'alice'"),
            ("pull_request_target", "", LABELLED.replace("issue", "pull_request")),
            ("issues", "labeled, opened", "github.event.action == 'opened'"),
            ("issues", "labeled, edited", f"github.event.action != 'labeled' && {LABELLED}"),
            ("watch", "started", "true"),
        )
    ),
    job(f"{SECRET}\nif: {LABELLED}", on="issue_comment"),
    f"{job(SECRET, on='issues')}    needs: b\n    if: always()\n  b:\n    if: needs.check.outputs.ok\n    steps: []\n",
]  # fmt: skip
CLOSED = [
    *(
        job(SECRET, on=f"{{{event}: {{types: [{types}]}}}}").replace("    perm", f"    if: {condition}\n    perm")
        for event, types, condition in (
            ("issues", "opened, labeled", LABELLED), ("issues", "labeled, edited", "github.event.action == 'labeled'"),
            ("issues", "", "contains(fromJSON('[\"labeled\", \"assigned\"]'), github.event.action)"),
            ("issues", "edited", "github.event.issue.user.login == 'alice'"),
            ("issue_comment", "", f"{LABELLED} && github.event.comment.user.login == 'alice'"),
            ("watch", "started", "github.actor == github.repository_owner"),
        )
    ),
    job(MAKE, permissions="{issues: write}", on="issues"), job(SECRET, on="push"), job(SECRET, on="pull_request"),
    *(
        job(SECRET, on="issues").replace("    perm", f"    if: {condition}\n    perm")
        for condition in ("github.event.issue.author_association == 'OWNER'",
            "contains(github.event.issue.author_association, 'OWNER')", "github.actor == github.repository_owner")
    ),
    job(SECRET, on="issue_comment").replace("    permissions", ASKED), job(MAKE, on="issues"),
    job(SECRET, on="issues").replace("    perm", "    if: github.event.label.name == 'ok'\n    perm"),
    job(ASKS, SECRET, on="issues"), job(MAKE, ASKS, SECRET, permissions="{contents: write}", on="issues"),
    job(f"{SECRET}{NEVER}", "run: echo x", on="pull_request_target"),
    job(SECRET, on="{issues: {types: [labeled]}}"), job(SECRET, on="{pull_request_target: {types: labeled}}"),
    job(SECRET, permissions="write-all", on="{issues: {types: [assigned, milestoned]}}"),
    job(f"{CLAUDE}\nwith: {{anthropic_api_key: '${{{{ secrets.X }}}}'}}", on="issue_comment"),
    job(SECRET, on="issues").replace("    perm", "    environment: gate\n    perm"),
    *(
        job(SECRET, on=on).replace("    perm", "    if: needs.check.outputs.is-member == 'true'\n    perm")
        for on in ("issues", "{issues: {types: [opened]}}")
    ),
    f"{job(SECRET, on='issues')}    needs: b\n  b:\n    if: needs.check.outputs.is-member == 'true'\n    steps: []\n",
]  # fmt: skip


@pytest.mark.parametrize("text", OPEN)
def test_a_job_with_secrets_that_anyone_starts_is_a_warning(text: str) -> None:
    assert outsiders(text) == ["warning"]


@pytest.mark.parametrize(
    ("steps", "has"),
    [
        ((RUN, ASKS, SECRET), "`contents: write` and `DEPLOY`"),
        ((MAKE, RUN, ASKS), "`contents: write` and `DEPLOY`"),
        ((f"{RUN}\nenv: {{X: '${{{{ secrets.X }}}}'}}", ASKS), "`contents: write` and the secrets `DEPLOY`, `X`"),
        ((ASKS, RUN, SECRET), ""),
        ((MAKE, ASKS, RUN), ""),
    ],
)
def test_an_agent_before_the_check_has_what_the_job_has(steps: tuple[str, ...], has: str) -> None:
    text = job(*steps, permissions="{contents: write}", on="issues", head="env: {D: '${{ secrets.DEPLOY }}'}\n")
    found = [each.message for _, each in check_outsiders(RepositoryFacts({".github/workflows/a.yml": workflow(text)}))]
    assert found == (
        [f"Anyone can start the job `a` with `issues`, and it has {has}. Ask first who it is."] if has else []
    )


@pytest.mark.parametrize("text", CLOSED)
def test_a_job_that_asks_who_starts_it_or_has_nothing_is_accepted(text: str) -> None:
    assert outsiders(text) == []


@pytest.mark.parametrize(("asks", "is_open"), [("needs.ask.outputs.ok == 'true'", False), ("always()", True)])
def test_a_called_job_is_guarded_by_what_its_caller_found_out(asks: str, is_open: bool) -> None:
    call = f'needs: ask, if: "{asks}", uses: ./.github/workflows/a.yml'
    files = {
        ".github/workflows/a.yml": workflow(job(SECRET, on="workflow_call")),
        ".github/workflows/b.yml": workflow(f"on: issues\njobs:\n  ask: {{steps: []}}\n  call: {{{call}}}\n"),
    }
    assert [path for path, _ in check_outsiders(RepositoryFacts(files))] == [".github/workflows/a.yml"] * is_open


@pytest.mark.parametrize(
    ("event", "asked"),
    [
        ("pull_request_target", "pull_request.head.repo.full_name =="), ("issues", "issue.author_association"),
        ("workflow_run", "workflow_run.head_repository.full_name =="), ("issue_comment", "comment.author_association"),
        ("discussion", "discussion.author_association"), ("watch", "github.actor == github.repository_owner"),
    ],
)  # fmt: skip
def test_the_hint_asks_the_person_or_repository_of_the_event(event: str, asked: str) -> None:
    files = {".github/workflows/a.yml": workflow(job(SECRET, on=event))}
    ((_, finding),) = check_outsiders(RepositoryFacts(files))
    assert asked in finding.hint
