"""Programs in the PATH of the walk through docs/getting-started.md: ``gh`` for the local GitHub, and ``codex``.

    python tools/stand_ins.py gh pr comment 12 --body "/accord review"

``gh`` does what the page asks of it, refuses everything else, and leaves the events that GitHub would deliver in the
file ``WALK_EVENTS``. ``codex`` takes up the comments of the example review.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import requests

CSV, TASKS = "src/exports/formats/csv.py", "Description of the pull request"
FIXES = {
    '("=", "+", "-")': '("=", "+", "-", "@")',
    "[[_harmless(cell) for cell in _cells(contact)] for contact in contacts]": (
        "([_harmless(cell) for cell in _cells(contact)] for contact in contacts)"
    ),
}
"""The suggestions of examples/reviewer-result.json: what they replace, and by what."""


def api(method: str, path: str, **body: Any) -> Any:
    """Send a request to the local GitHub as the maintainer."""
    headers = {"authorization": f"Bearer {os.environ['GITHUB_TOKEN']}"}
    url = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}"
    answer = requests.request(method, url, json=body or None, headers=headers, timeout=600)
    answer.raise_for_status()
    return answer.json() if answer.content else None


def deliver(event: str, **payload: Any) -> None:
    """Leave an event for the workflows."""
    with Path(os.environ["WALK_EVENTS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps([event, payload]) + "\n")


def add_label(number: int, label: str, *, is_pull: bool) -> None:
    """Add a label that exists, like ``gh``, which refuses others."""
    api("GET", f"labels/{label}")
    api("POST", f"issues/{number}/labels", labels=[label])
    kind = "pull_request" if is_pull else "issue"
    item = api("GET", f"{'pulls' if is_pull else 'issues'}/{number}")
    deliver("pull_request" if is_pull else "issues", action="labeled", label={"name": label}, **{kind: item})


def add_comment(number: int, body: str) -> None:
    """Comment on an issue or a pull request."""
    made = api("POST", f"issues/{number}/comments", body=body)
    deliver("issue_comment", action="created", comment=made, issue=api("GET", f"issues/{number}"))


def change(method: str, path: str, strings: list[str], values: list[str]) -> None:
    """Send the request of ``gh api`` with its fields."""
    fields = dict(field.split("=", 1) for field in strings)
    fields |= {name: json.loads(value) for name, value in (field.split("=", 1) for field in values)}
    api(method, path.removeprefix("repos/{owner}/{repo}/"), **fields)


def set_secret(name: str) -> None:
    """Refuse a secret that the local GitHub, whose secrets come from its seed, does not have."""
    names = [secret["name"] for secret in api("GET", "actions/secrets")["secrets"]]
    if name not in names:
        sys.exit(f"{name} is not among the secrets of the seed: {', '.join(names)}")


def gh(words: list[str]) -> None:
    """Do what a command of ``gh`` does; exit with 2 for one that the page does not have."""
    parser = argparse.ArgumentParser("gh", allow_abbrev=False)
    groups = parser.add_subparsers(dest="group", required=True)
    commands = {name: groups.add_parser(name).add_subparsers(dest="command", required=True) for name in GROUPS}
    commands["auth"].add_parser("token")
    commands["secret"].add_parser("set").add_argument("name")
    commands["pr"].add_parser("merge").add_argument("number", type=int)
    commands["pr"].choices["merge"].add_argument("--squash", action="store_true", required=True)
    for group in ("issue", "pr"):
        for command, option in (("comment", "--body"), ("edit", "--add-label")):
            one = commands[group].add_parser(command)
            one.add_argument("number", type=int)
            one.add_argument(option, dest="value", required=True)
    request = groups.add_parser("api")
    request.add_argument("--method", required=True)
    request.add_argument("path")
    request.add_argument("-f", dest="strings", action="append", default=[])
    request.add_argument("-F", dest="values", action="append", default=[])
    asked = parser.parse_args(words)
    if asked.group == "api":
        change(asked.method, asked.path, asked.strings, asked.values)
    elif asked.group == "auth":
        print(os.environ["WALK_TOKEN"])
    elif asked.group == "secret":
        set_secret(asked.name)
    elif asked.command == "comment":
        add_comment(asked.number, asked.value)
    elif asked.command == "edit":
        add_label(asked.number, asked.value, is_pull=asked.group == "pr")
    else:
        api("PUT", f"pulls/{asked.number}/merge", merge_method="squash")


GROUPS = ("auth", "secret", "issue", "pr")


def codex(words: list[str]) -> None:
    """Take up the suggestions of the example review, and call all tasks complete."""
    if "exec" not in words:  # a trial of its sandbox
        return
    prompt = sys.stdin.read()
    path = Path(CSV)
    text = path.read_text(encoding="utf-8")
    for old, new in FIXES.items():
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    tasks = [line for line in prompt.partition(TASKS)[0].splitlines() if line.startswith("- [ ] ")]
    answer = "\n".join(["Took up the comments of the review.", "", *(line.replace("[ ]", "[x]", 1) for line in tasks)])
    for event in (
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": answer}},
        {"type": "turn.completed", "usage": {"input_tokens": 1200, "cached_input_tokens": 0, "output_tokens": 34}},
    ):
        print(json.dumps(event), flush=True)
    if "-o" in words:
        Path(words[words.index("-o") + 1]).write_text(answer, encoding="utf-8")


if __name__ == "__main__":
    {"gh": gh, "codex": codex}[sys.argv[1]](sys.argv[2:])
