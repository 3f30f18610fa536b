"""Code of pull requests is found wherever it is checked out with secrets, and nowhere else."""

import pytest
from support.runner_workflows import SHA, workflow

from accord.workflows.facts import RepositoryFacts
from accord.workflows.untrusted import check_checkouts

CHECKOUT = f"actions/checkout@{SHA}"
HEAD = "${{ github.event.pull_request.head.sha }}"
TARGET = "on: pull_request_target\n"
COMMENT = "on: issue_comment\n"
AFTER = "on:\n  workflow_run:\n    workflows: [CI]\n"


def steps(*lines: str) -> str:
    """A job with these steps, each given as the lines of one step."""
    return "".join("      - " + line.replace("\n", "\n        ") + "\n" for line in lines)


def job(*lines: str, head: str = "") -> str:
    """The jobs of a workflow with one job of these steps."""
    return f"jobs:\n  build:\n{head}    steps:\n{steps(*lines)}"


def checkout(ref: str, more: str = "") -> str:
    return f'uses: {CHECKOUT}\nwith:\n  ref: "{ref}"{more}'


def run(*lines: str, env: str = "") -> str:
    text = "run: |\n  " + "\n  ".join(lines)
    return f"{text}\nenv: {env}" if env else text


def found(*texts: str) -> list[str]:
    """The severities of all findings in a repository with these workflows."""
    files = {f".github/workflows/{i}.yml": workflow(text) for i, text in enumerate(texts)}
    findings = [finding for _, finding in check_checkouts(RepositoryFacts(files))]
    assert {finding.code for finding in findings} <= {"untrusted-checkout"}
    return [finding.severity.value for finding in findings]


def output(*lines: str, env: str = "") -> str:
    return "id: pr\n" + run(*lines, env=env)


SCRIPT = "uses: actions/github-script@v8\nid: pr\nwith:\n  script: |\n    "
OF_OUTPUT = "${{ steps.pr.outputs.ref }}"
FORK = "${{ github.event.pull_request.head.repo.full_name }}"
FORK_URL = "${{ github.event.pull_request.head.repo.clone_url }}"
REFS = [
    HEAD, "${{ github.event.pull_request.head.sha || github.sha }}",
    "${{ github['event']['pull_request'].head.sha }}", "${{ github.event.pull_request.merge_commit_sha }}",
    "refs/pull/${{ github.event.number }}/merge", "${{ format('refs/pull/{0}/merge', github.event.number) }}",
]  # fmt: skip
SCRIPTS = [
    f"git fetch origin; git checkout {HEAD}", f"git checkout \\\n    {HEAD}", f"git merge --no-edit {HEAD}",
    f"git -C work --no-pager checkout --detach {HEAD}", f"git reset --hard {HEAD}", f"git worktree add pr {HEAD}",
    f'ref={HEAD}; git checkout "$ref"', f"git -c core.x=y checkout {HEAD} -- 'a b'", "git pull origin pull/$N/head",
    "git fetch origin pull/${{ github.event.number }}/head\n  git checkout FETCH_HEAD",
    "git fetch origin pull/$N/head:pr; git checkout pr", 'git fetch origin "pull/$N/head:pr-$N"; git checkout "pr-$N"',
    f"git remote add fork {FORK_URL}\n  git fetch fork; git checkout fork/x", f"git clone {FORK_URL} pr",
    f"gh repo clone {FORK}", "gh pr diff $N | git apply", "gh pr checkout $N",
    f"curl -L https://codeload.github.com/o/r/tar.gz/{HEAD} | tar xz",
]  # fmt: skip
OUTPUTS_OF = [
    output(f"echo ref={HEAD} >> $GITHUB_OUTPUT"), output("{", f'  echo "ref={HEAD}"', '} >> "$GITHUB_OUTPUT"'),
    output('echo "ref=$SHA" >> "$GITHUB_OUTPUT"', env=f'{{SHA: "{HEAD}"}}'),
    output("f.write(f\"ref={os.environ['HEAD']}\")  # GITHUB_OUTPUT", env=f'{{HEAD: "{HEAD}"}}'),
    output('ref=$(gh pr view "$N" --json headRefOid --jq .headRefOid)', 'echo "ref=$ref" >> $GITHUB_OUTPUT'),
    output('echo "ref=$(gh api repos/o/r/pulls/$N --jq .head.sha)" >> $GITHUB_OUTPUT'),
    SCRIPT + "const { data: pull } = await github.rest.pulls.get({ pull_number: 1 });\n"
    "    core.setOutput('ref', pull.head.sha);",
]  # fmt: skip
RUN_BRANCH = "${{ github.event.workflow_run.head_branch }}"
ATTACKS = {
    **{ref: TARGET + job(checkout(ref)) for ref in REFS},
    **{script: TARGET + job(run(script)) for script in SCRIPTS},
    **{step: TARGET + job(step, checkout(OF_OUTPUT)) for step in OUTPUTS_OF},
    "the fork without a ref": TARGET + job(f"uses: {CHECKOUT}\nwith:\n  repository: {FORK}"),
    "an action that checks out": TARGET + job(f"uses: some/git-checkout@v1\nwith:\n  ref: {HEAD}"),
    "a variable of the step": TARGET + job(run('git checkout "$SHA"', env=f'{{SHA: "{HEAD}"}}')),
    "a variable of the job": TARGET + job(run("git switch --detach $SHA"), head=f"    env:\n      SHA: {HEAD}\n"),
    "a fetch in an earlier step": TARGET
    + job(run("git fetch origin refs/pull/$N/merge"), run("git checkout -b work FETCH_HEAD")),
    "an output of an action": COMMENT
    + job("uses: some/pull-request-comment-branch@v2\nid: pr", checkout("${{ steps.pr.outputs.head_sha }}")),
    "an output of a workflow elsewhere": TARGET
    + "jobs:\n  find:\n    uses: octo/x/.github/workflows/find.yml@v1\n"
    + job(checkout("${{ needs.find.outputs.pr-head-sha }}"), head="    needs: find\n").removeprefix("jobs:\n"),
    "a branch of the fork": TARGET + job(checkout("${{ github.head_ref }}", f'\n  repository: "{FORK}"')),
    "words of a comment": COMMENT + job(checkout("${{ github.event.comment.body }}")),
    "a script that runs git": TARGET
    + job(SCRIPT + "await exec.exec('git', ['checkout', context.payload.pull_request.head.sha]);"),
    "a program in Python that runs git": TARGET
    + job(f"shell: python\nrun: |\n  import subprocess\n  subprocess.run(['git', 'merge', '{HEAD}'])"),
    "a fetch in a script of GitHub's": TARGET
    + job(SCRIPT + "await exec.exec(`git fetch origin pull/${n}/head:pr`);", run("git checkout pr")),
    "the commit of a run": AFTER + job(checkout("${{ github.event.workflow_run.head_sha }}")),
    "the branch of a run in its fork": AFTER
    + job(checkout(RUN_BRANCH, "\n  repository: ${{ github.event.workflow_run.head_repository.full_name }}")),
    "a document that a shell reads": TARGET + job(run("bash <<EOF", f"git checkout {HEAD}", "EOF")),
    "a checkout that says so": TARGET
    + job(checkout("${{ steps.unknown.outputs.x }}", "\n  allow-unsafe-pr-checkout: true")),
    "steps at once": TARGET + job(f"parallel:\n    - uses: {CHECKOUT}\n      with: {{ref: '{HEAD}'}}"),
    "a condition on the repository does not help": TARGET
    + job(checkout(HEAD), head="    if: contains(fromJSON('[\"octo/tools\"]'), github.repository)\n"),
    "an author's name does not help": TARGET + job(checkout(HEAD), head="    if: github.actor == 'dependabot[bot]'\n"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_code_of_a_pull_request_with_secrets_is_an_error(name: str) -> None:
    assert found(ATTACKS[name]) == ["error"]


OUTPUTS = "    outputs:\n      ref: ${{ steps.pr.outputs.ref }}\n"
PREPARED = f"jobs:\n  prepare:\n{OUTPUTS}    steps:\n" + steps(output(f"echo ref={HEAD} >> $GITHUB_OUTPUT"))


def test_an_output_of_a_job_is_followed() -> None:
    assert found(
        TARGET
        + PREPARED
        + "  build:\n    needs: prepare\n    steps:\n"
        + steps(checkout("${{ needs.prepare.outputs.ref }}"))
    ) == ["error"]


CALLED = "on:\n  workflow_call:\n    inputs:\n      what: {type: string}\n"


@pytest.mark.parametrize(
    ("event", "given", "expected"),
    [
        (TARGET, HEAD, ["error"]), (TARGET, "${{ github.event.pull_request.base.sha }}", []),
        ("on: pull_request\n", HEAD, []), ("on: workflow_dispatch\n", "${{ inputs.ref }}", []),
    ],
)  # fmt: skip
def test_an_input_is_followed_to_the_workflows_that_pass_it(event: str, given: str, expected: list[str]) -> None:
    caller = f"{event}jobs:\n  call:\n    uses: ./.github/workflows/0.yml\n    with:\n      what: {given}\n"
    assert found(CALLED + job(checkout("${{ inputs.what }}")), caller) == expected


OWN_REFS = [
    "${{ github.event.pull_request.base.sha }}", "${{ github.base_ref }}", "${{ github.sha }}",
    "${{ github.event.pull_request.base.sha || github.sha || github.event.repository.default_branch }}",
    "${{ github.head_ref == 'main' && 'main' || github.base_ref }}",
]  # fmt: skip
OWN_SCRIPTS = [
    f"git fetch origin {HEAD}; git diff --stat origin/main {HEAD}", f"echo 'run git checkout {HEAD}'",
    "git fetch origin pull/$N/head; git log FETCH_HEAD", "git checkout -b fix-$GITHUB_HEAD_REF",
    "git checkout ${{ github.event.pull_request.base.sha }}", 'git checkout "$GITHUB_HEAD_REF"',
    f"timeout 30m claude -p 'gh pr checkout 1, then git checkout {HEAD}'",
    f"claude -p 'First, run git checkout {HEAD} and gh pr checkout 1'", f'prompt="Do git checkout {HEAD}"',
    f"cat > prompt.md <<'EOF'\n  git checkout {HEAD}\n  gh pr checkout 1\n  EOF",
    f"cat <<-END\n  Then git merge {HEAD}\n  END\n  git status",
]  # fmt: skip
LIMITS = [
    "github.event.pull_request.head.repo.full_name == github.repository",
    "${{ !github.event.pull_request.head.repo.fork }}", "github.event.pull_request.user.login == 'dependabot[bot]'",
    "contains(fromJSON('[\"OWNER\",\"MEMBER\"]'), github.event.pull_request.author_association)",
    "github.event.pull_request.merged == true", "github.event_name == 'push'", "false",
]  # fmt: skip
RUN_LIMITS = [
    "github.event.workflow_run.event == 'push'",
    "github.event.workflow_run.head_repository.full_name == github.repository",
]
SAFE = {
    **{ref: TARGET + job(checkout(ref)) for ref in OWN_REFS},
    **{script: TARGET + job(run(script)) for script in OWN_SCRIPTS},
    **{limit: TARGET + job(checkout(HEAD), head=f"    if: {limit}\n") for limit in LIMITS},
    **{
        limit: AFTER + job(checkout("${{ github.event.workflow_run.head_sha }}"), head=f"    if: {limit}\n")
        for limit in RUN_LIMITS
    },
    "a command in a comment's text": TARGET
    + job(
        SCRIPT + "github.rest.issues.createComment({ body: 'Run gh pr checkout 1, or git checkout ' + pull.head.sha });"
    ),
    "a fetch with an unknown name": TARGET
    + job(run("git fetch origin pull/$N/head:${{ env.X }}; git checkout ${{ github.sha }}")),
    "a step for the repository's own": TARGET + job(f"if: {LIMITS[0]}\n{checkout(HEAD)}"),
    "a branch without a repository is the base's": TARGET + job(checkout("${{ github.head_ref }}")),
    "the branch of a run is the base's": AFTER + job(checkout(RUN_BRANCH)),
    "the base's branch in a script": AFTER
    + job(run('git fetch origin "$B"; git checkout "$B"', env=f"{{B: '{RUN_BRANCH}'}}")),
    "a branch that an action names": COMMENT
    + job("uses: some/pull-request-comment-branch@v2\nid: pr", checkout("${{ steps.pr.outputs.head_ref }}")),
    "no ref": TARGET + job(f"uses: {CHECKOUT}"),
    "an allowance for another event": COMMENT + job(f"uses: {CHECKOUT}\nwith: {{allow-unsafe-pr-checkout: true}}"),
    "another repository": TARGET + job(f"uses: {CHECKOUT}\nwith:\n  repository: octo/tools"),
    "a run of the fork itself": "on: pull_request\n" + job(checkout(HEAD)),
    "a person's choice": "on: workflow_dispatch\n" + job(run("gh pr checkout $N")),
    "another event of the workflow": "on: [pull_request, issue_comment]\n"
    + job(checkout(HEAD), head="    if: github.event_name == 'pull_request'\n"),
    "a condition on the head in another event": COMMENT + job(run("gh pr checkout $N"), head=f"    if: {LIMITS[0]}\n"),
    "the base as an output": TARGET
    + job(output("echo ref=${{ github.event.pull_request.base.sha }} >> $GITHUB_OUTPUT"), checkout(OF_OUTPUT)),
    "another output of that step": TARGET
    + job(output(f"echo head={HEAD} >> $GITHUB_OUTPUT", "echo ref=main >> $GITHUB_OUTPUT"), checkout(OF_OUTPUT)),
}


@pytest.mark.parametrize("name", SAFE)
def test_the_repositorys_own_code_is_not_a_finding(name: str) -> None:
    assert found(SAFE[name]) == []


def test_a_run_after_workflows_without_pull_requests_has_the_repositorys_code() -> None:
    later = AFTER + job(checkout("${{ github.event.workflow_run.head_sha }}"))
    assert found(later, "name: CI\non: push\njobs: {}\n") == []
    assert found(later, "name: CI\non: pull_request\njobs: {}\n") == ["error"]


def test_a_job_behind_one_that_is_limited_is_limited_too() -> None:
    text = "  check:\n    if: github.event.pull_request.head.repo.full_name == github.repository\n    steps: []\n"
    build = "  build:\n    needs: check\n    steps:\n" + steps(checkout(HEAD))
    assert found(f"{TARGET}jobs:\n{text}{build}") == []
    always = build.replace("needs: check", "needs: check\n    if: always()")
    assert found(f"{TARGET}jobs:\n{text}{always}") == ["error"]


ASKS = "run: gh api repos/o/r/collaborators/$WHO/permission | grep write"
HELPED = {
    "a label": "on:\n  pull_request_target:\n    types: [labeled]\n"
    + job(checkout(HEAD), head="    if: github.event.label.name == 'safe to test'\n"),
    "a label that stays": TARGET
    + job(checkout(HEAD), head="    if: contains(github.event.pull_request.labels.*.name, 'ok')\n"),
    "a member's comment": COMMENT
    + job(
        run("gh pr checkout ${{ github.event.issue.number }}"),
        head='    if: contains(fromJSON(\'["OWNER", "MEMBER"]\'), github.event.comment.author_association)\n',
    ),
    "an environment, which may ask for approval": TARGET + job(checkout(HEAD), head="    environment: gate\n"),
    "a check of the repository": COMMENT
    + job(run('gh pr view $N --json isCrossRepository --jq ".isCrossRepository" | grep false', "gh pr checkout $N")),
    "a check of the fork in a script": TARGET
    + job(
        SCRIPT + "if (pull.head.repo.full_name !== pull.base.repo.full_name) core.setFailed('fork');", checkout(HEAD)
    ),
    "a check in a job before": COMMENT.replace("\n", f"\njobs:\n  check:\n    steps:\n{steps(ASKS)}", 1)
    + job(run("gh pr checkout $N"), head="    needs: check\n").removeprefix("jobs:\n"),
    "an action that checks the team": COMMENT + job("uses: some/team-member-check@v1", run("gh pr checkout $N")),
}


@pytest.mark.parametrize("name", HELPED)
def test_code_that_runs_only_with_a_writers_help_is_a_warning(name: str) -> None:
    assert found(HELPED[name]) == ["warning"]
