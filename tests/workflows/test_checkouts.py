"""Code of pull requests is found wherever it is checked out with secrets, and nowhere else."""

import pytest
from support.runner_workflows import SHA, workflow

from accord.workflows.checkouts import check_checkouts
from accord.workflows.facts import RepositoryFacts

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
ATTACKS = {
    "the head's commit": TARGET + job(checkout(HEAD)),
    "the head's branch": TARGET + job(checkout("${{ github.head_ref }}")),
    "the head as an alternative": TARGET + job(checkout("${{ github.event.pull_request.head.sha || github.sha }}")),
    "the merge": TARGET + job(checkout("refs/pull/${{ github.event.number }}/merge")),
    "the merge, put together": TARGET + job(checkout("${{ format('refs/pull/{0}/merge', github.event.number) }}")),
    "the merge commit": TARGET + job(checkout("${{ github.event.pull_request.merge_commit_sha }}")),
    "the fork without a ref": TARGET
    + job(f"uses: {CHECKOUT}\nwith:\n  repository: ${{{{ github.event.pull_request.head.repo.full_name }}}}"),
    "the head in quotes": TARGET + job(checkout("${{ github['event']['pull_request'].head.sha }}")),
    "an action that checks out": TARGET + job(f"uses: some/git-checkout@v1\nwith:\n  ref: {HEAD}"),
    "git in a script": TARGET + job(run("git fetch origin", f"git checkout {HEAD}")),
    "git over lines": TARGET + job(run("git checkout \\", f"  {HEAD}")),
    "git with options": TARGET + job(run(f"git -C work --no-pager checkout --detach {HEAD}")),
    "git merge": TARGET + job(run(f"git merge --no-edit {HEAD}")),
    "git reset": TARGET + job(run(f"git reset --hard {HEAD}")),
    "git worktree": TARGET + job(run(f"git worktree add pr {HEAD}")),
    "a variable of the step": TARGET + job(run('git checkout "$SHA"', env=f'{{SHA: "{HEAD}"}}')),
    "a variable of the job": TARGET + job(run("git switch --detach $SHA"), head=f"    env:\n      SHA: {HEAD}\n"),
    "a variable of the workflow": f"{TARGET}env:\n  SHA: {HEAD}\n" + job(checkout("${{ env.SHA }}")),
    "a variable of the script": TARGET + job(run(f"ref={HEAD}", 'git checkout "$ref"')),
    "a variable of the runner": TARGET + job(run('git checkout "$GITHUB_HEAD_REF"')),
    "a fetch of the pull request": TARGET
    + job(run("git fetch origin pull/${{ github.event.number }}/head", "git checkout FETCH_HEAD")),
    "a fetch into a branch": TARGET + job(run("git fetch origin pull/$N/head:pr", "git checkout pr")),
    "a fetch into a branch with its number": TARGET
    + job(run('git fetch origin "pull/$N/head:pr-$N"', 'git checkout "pr-$N"')),
    "an output of Python": TARGET
    + job(
        output("f.write(f\"ref={os.environ['HEAD']}\")  # GITHUB_OUTPUT", env=f'{{HEAD: "{HEAD}"}}'),
        checkout(OF_OUTPUT),
    ),
    "a fetch in an earlier step": TARGET
    + job(run("git fetch origin refs/pull/$N/merge"), run("git checkout -b work FETCH_HEAD")),
    "a pull": TARGET + job(run("git pull origin pull/$N/head")),
    "a remote of the fork": TARGET
    + job(
        run(
            "git remote add fork ${{ github.event.pull_request.head.repo.clone_url }}",
            "git fetch fork",
            "git checkout fork/x",
        )
    ),
    "a clone of the fork": TARGET + job(run("git clone ${{ github.event.pull_request.head.repo.clone_url }} pr")),
    "a clone of the fork by its name": TARGET
    + job(
        run(
            'git clone "https://github.com/$FORK"', env='{FORK: "${{ github.event.pull_request.head.repo.full_name }}"}'
        )
    ),
    "gh repo clone": TARGET + job(run("gh repo clone ${{ github.event.pull_request.head.repo.full_name }}")),
    "gh pr checkout": COMMENT + job(run("gh pr checkout ${{ github.event.issue.number }}")),
    "a tarball": TARGET + job(run(f"curl -L https://codeload.github.com/o/r/tar.gz/{HEAD} | tar xz")),
    "a patch": TARGET + job(run("gh pr diff $N | git apply")),
    "an output of a step": TARGET + job(output(f"echo ref={HEAD} >> $GITHUB_OUTPUT"), checkout(OF_OUTPUT)),
    "an output through variables": TARGET
    + job(output("sha=$SHA", 'echo "ref=$sha" >> "$GITHUB_OUTPUT"', env=f'{{SHA: "{HEAD}"}}'), checkout(OF_OUTPUT)),
    "an output in a group": TARGET
    + job(output("{", '  echo "a=1"', f'  echo "ref={HEAD}"', '} >> "$GITHUB_OUTPUT"'), checkout(OF_OUTPUT)),
    "an output of gh": COMMENT
    + job(
        output('ref=$(gh pr view "$N" --json headRefOid --jq .headRefOid)', 'echo "ref=$ref" >> $GITHUB_OUTPUT'),
        checkout(OF_OUTPUT),
    ),
    "an output of the API": COMMENT
    + job(output('echo "ref=$(gh api repos/o/r/pulls/$N --jq .head.sha)" >> $GITHUB_OUTPUT'), checkout(OF_OUTPUT)),
    "an output of a script": COMMENT
    + job(
        SCRIPT
        + "const { data: pull } = await github.rest.pulls.get({ pull_number: 1 });\n"
        + "    core.setOutput('ref', pull.head.sha);",
        checkout(OF_OUTPUT),
    ),
    "an output of an action": COMMENT
    + job("uses: some/pull-request-comment-branch@v2\nid: pr", checkout("${{ steps.pr.outputs.head_ref }}")),
    "a script that runs git": TARGET
    + job(SCRIPT + "await exec.exec('git', ['checkout', context.payload.pull_request.head.sha]);"),
    "the commit of a run": AFTER + job(checkout("${{ github.event.workflow_run.head_sha }}")),
    "the branch of a run": AFTER + job(checkout("${{ github.event.workflow_run.head_branch }}")),
    "the fork of a run": AFTER
    + job(f"uses: {CHECKOUT}\nwith:\n  repository: ${{{{ github.event.workflow_run.head_repository.full_name }}}}"),
    "a checkout that says so": TARGET
    + job(checkout("${{ steps.unknown.outputs.x }}", "\n  allow-unsafe-pr-checkout: true")),
    "steps at once": TARGET + job(f"parallel:\n    - uses: {CHECKOUT}\n      with: {{ref: '{HEAD}'}}"),
    "a step in the background": TARGET + job(f"background: true\n{checkout(HEAD)}"),
    "an author's name does not help": TARGET + job(checkout(HEAD), head="    if: github.actor == 'dependabot[bot]'\n"),
    "a condition on the branch does not help": AFTER
    + job(
        checkout("${{ github.event.workflow_run.head_sha }}"),
        head="    if: github.event.workflow_run.conclusion == 'success'\n",
    ),
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


SAFE = {
    "no ref": TARGET + job(f"uses: {CHECKOUT}"),
    "the base's commit": TARGET + job(checkout("${{ github.event.pull_request.base.sha }}")),
    "the base's branch": TARGET + job(checkout("${{ github.base_ref }}")),
    "alternatives of the base": TARGET
    + job(
        checkout("${{ github.event.pull_request.base.sha || github.sha || github.event.repository.default_branch }}")
    ),
    "the workflow's commit": TARGET + job(checkout("${{ github.sha }}")),
    "a run of the fork itself": "on: pull_request\n" + job(checkout(HEAD)),
    "a review": "on: pull_request_review\n" + job(checkout(HEAD)),
    "a person's choice": "on: workflow_dispatch\n" + job(run("gh pr checkout $N")),
    "a comparison": TARGET + job(checkout("${{ github.head_ref == 'main' && 'main' || github.base_ref }}")),
    "another repository": TARGET + job(f"uses: {CHECKOUT}\nwith:\n  repository: octo/tools"),
    "a diff": TARGET + job(run(f"git fetch origin {HEAD}", f"git diff --stat origin/main {HEAD}")),
    "a fetch alone": TARGET + job(run("git fetch origin pull/$N/head", "git log FETCH_HEAD")),
    "the base in a script": TARGET + job(run("git checkout ${{ github.event.pull_request.base.sha }}")),
    "a text about git": TARGET + job(run(f"echo 'run git checkout {HEAD}'")),
    "a new branch with the head's name": TARGET + job(run("git checkout -b fix-$GITHUB_HEAD_REF")),
    "the base as an output": TARGET
    + job(output("echo ref=${{ github.event.pull_request.base.sha }} >> $GITHUB_OUTPUT"), checkout(OF_OUTPUT)),
    "another output of that step": TARGET
    + job(output(f"echo head={HEAD} >> $GITHUB_OUTPUT", "echo ref=main >> $GITHUB_OUTPUT"), checkout(OF_OUTPUT)),
    "a pull request of the repository": TARGET
    + job(checkout(HEAD), head="    if: github.event.pull_request.head.repo.full_name == github.repository\n"),
    "no fork": TARGET + job(checkout(HEAD), head="    if: ${{ !github.event.pull_request.head.repo.fork }}\n"),
    "a known author": TARGET
    + job(checkout(HEAD), head="    if: github.event.pull_request.user.login == 'dependabot[bot]'\n"),
    "a member's pull request": TARGET
    + job(
        checkout(HEAD),
        head='    if: contains(fromJSON(\'["OWNER","MEMBER"]\'), github.event.pull_request.author_association)\n',
    ),
    "a merged pull request": TARGET + job(checkout(HEAD), head="    if: github.event.pull_request.merged == true\n"),
    "a step for the repository's own": TARGET
    + job(f"if: github.event.pull_request.head.repo.full_name == github.repository\n{checkout(HEAD)}"),
    "a job that is off": TARGET + job(checkout(HEAD), head="    if: false\n"),
    "another event of the workflow": "on: [pull_request, issue_comment]\n"
    + job(checkout(HEAD), head="    if: github.event_name == 'pull_request'\n"),
    "an event without the value": "on: [push, issue_comment]\n" + job(checkout("${{ github.head_ref || github.ref }}")),
    "a run of a push": AFTER
    + job(
        checkout("${{ github.event.workflow_run.head_sha }}"),
        head="    if: github.event.workflow_run.event == 'push'\n",
    ),
    "a run of the repository": AFTER
    + job(
        checkout("${{ github.event.workflow_run.head_sha }}"),
        head="    if: github.event.workflow_run.head_repository.full_name == github.repository\n",
    ),
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
    "a check of the commenter": COMMENT
    + job(
        SCRIPT + "await github.rest.repos.getCollaboratorPermissionLevel({ username: 'x' });",
        run("gh pr checkout ${{ github.event.issue.number }}"),
    ),
    "a round over all pull requests": "on: schedule\n" + job(run("gh pr checkout $N")),
    "a dispatch of another program": "on: repository_dispatch\n"
    + job(checkout("${{ github.event.client_payload.pull_request.head.sha }}")),
    "an unknown caller": "on:\n  workflow_call:\n    inputs:\n      head_sha: {type: string}\n"
    + job(checkout("${{ inputs.head_sha }}"), head="    permissions:\n      contents: write\n"),
}


@pytest.mark.parametrize("name", HELPED)
def test_code_that_runs_only_with_a_writers_help_is_a_warning(name: str) -> None:
    assert found(HELPED[name]) == ["warning"]


def test_an_unknown_caller_gives_a_job_no_more_than_it_asks_for() -> None:
    text = "on:\n  workflow_call:\n    inputs:\n      head_sha: {type: string}\npermissions: {}\n"
    assert found(text + job(checkout("${{ inputs.head_sha }}"))) == []
