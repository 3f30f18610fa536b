"""The check of the loops: labels that nothing listens to, loops that start nothing, bots that are the loop itself."""

from typing import Any

import pytest

from accord.doctor.checks import loops_check
from accord.results.labels import loops_in
from accord.workflows.models import Workflow

REUSABLE = "accord-ci/accord/.github/workflows/reusable-{}.yml@v0"
BOT = "github-actions[bot]"
KEPT = ("agents:keepalive", "agents:paused", "needs-human")


def calling(loop: str, token: str = "", **given: str) -> Workflow:
    secrets = {"secrets": {"token": f"${{{{ secrets.{token} }}}}"}} if token else {}
    return Workflow.model_validate(
        {"on": "push", "jobs": {"a": {"uses": REUSABLE.format(loop), "with": given, **secrets}}}
    )


def running(script: str, condition: str = "true") -> Workflow:
    job = {"runs-on": "x", "if": condition, "steps": [{"run": script}]}
    return Workflow.model_validate({"on": "push", "jobs": {"a": job}})


KEEPALIVE, BOTS = calling("keepalive"), calling("bot-comments")
START = running('bash "$ACCORD" start run')


@pytest.mark.parametrize(
    ("workflows", "labels", "bots", "secrets", "codes"),
    [
        ([KEEPALIVE], KEPT, (), None, []),
        ([calling("verifier")], KEPT, (), None, ["label-unheard"]),
        ([KEEPALIVE], ("agents:plan",), (), None, ["label-unheard"]),
        ([KEEPALIVE, START], ("agents:plan", "Agents:Review"), (), None, []),
        ([KEEPALIVE], ("agents:deploy",), (), None, ["label-unheard"]),
        ([KEEPALIVE, running("make", "github.event.label.name == 'agents:deploy'")], ("agents:deploy",), (), None, []),
        ([calling("keepalive", review_workflow="accord-review.yml")], (), (), None, ["loop-workflow-missing"]),
        ([calling("autofix", dispatch_workflow="gone.yml")], (), (), None, ["loop-workflow-missing"]),
        ([calling("autofix", dispatch_workflow="0.yml")], (), (), None, []),
        ([calling("autofix", dispatch_workflow="${{ vars.FILE }}")], (), (), None, []),
        ([BOTS], (), (BOT,), None, ["own-bot"]),
        ([BOTS], (), ("coderabbitai[bot]", "GitHub-Actions"), None, ["own-bot"]),
        ([BOTS], (), ("coderabbitai[bot]",), None, []),
        ([calling("bot-comments", "APP_TOKEN")], (), (BOT,), frozenset({"APP_TOKEN"}), []),
        ([calling("bot-comments", "APP_TOKEN")], (), (BOT,), frozenset(), ["own-bot"]),
        ([calling("bot-comments", "APP_TOKEN")], (), (BOT,), None, []),
        ([KEEPALIVE], (), (BOT,), None, []),
    ],
)
def test_settings_of_loops_that_cannot_work_say_so(
    workflows: list[Workflow], labels: tuple[str, ...], bots: tuple[str, ...], secrets: Any, codes: list[str]
) -> None:
    named = {f".github/workflows/{number}.yml": workflow for number, workflow in enumerate(workflows)}
    check = loops_check(named, labels, bots, secrets)
    assert [finding.code for _, finding in check.findings] == codes
    assert all(finding.hint for _, finding in check.findings)


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("uses: o/r/.github/workflows/reusable-keepalive.yml@v0", {"keepalive"}),
        ("uses: ./.github/workflows/reusable-bot-comments.yml", {"bot-comments"}),
        ("uses: o/accord/actions/verifier@v0", {"verifier"}),
        ("run: accord Keepalive run --pull 3", {"keepalive"}),
        ('bash "$ACCORD" start run && accord verify run', {"start", "verify"}),
        ("Enforce the keepalive run cap before agents start run", set()),
        ("exec bash x/setup/accord.sh autofix run; accord  bot-comments run", {"autofix", "bot-comments"}),
        ("uses: o/r/reusable-keepalive-notes.yml@v0", set()),
        ("name: keepalive\nrun: accord keepalive decide", set()),
        ("run: npm start running", set()),
        ("uses: ./actions/keepalive", {"keepalive"}),
        ('- uses: "$/actions/autofix"\n', {"autofix"}),
        ("uses: ./actions/keepalive-notes\nrun: cat ./actions/verifier/README.md", set()),
        ("run: |\n  accord \\\n    keepalive run --pull 3", {"keepalive"}),
        ("run: |\r\n  accord keepalive \\\r\n    run", {"keepalive"}),
        ("  # uses: ./actions/keepalive\n#run: accord autofix run", set()),
    ],
)
def test_the_loops_of_workflows_are_known_by_what_they_run(text: str, loops: set[str]) -> None:
    assert loops_in(text) == loops


def test_doctor_reads_commands_over_lines_and_no_comments() -> None:
    for script, is_heard in {"accord \\\n  keepalive run": True, "make\n# accord keepalive run\ntrue": False}.items():
        found = loops_check({".github/workflows/a.yml": running(script)}, (), (), None).note
        assert (found == "keepalive") is is_heard


def test_a_repository_without_loops_is_not_checked_for_them() -> None:
    assert not loops_check({".github/workflows/ci.yml": running("make")}, KEPT, (BOT,), None).findings
