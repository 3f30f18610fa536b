"""Any changes of a plan, mixed with those of people: the issues follow the plan, and no edit of a person is lost."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.plans import plan, task
from support.rotation import NIGHTLY
from support.stage import Stage

from accord.results.bodies import split_body

KEYS = range(6)
EDITS = ["add", "remove", "retitle", "rebody", "rescope", "relabel", "rename", "reorder", "block"]
PEOPLES = ["title", "body", "label", "priority", "tick"]
ROUND = st.tuples(
    st.lists(st.tuples(st.sampled_from(EDITS), st.sampled_from(KEYS), st.integers(0, 5)), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from(PEOPLES), st.sampled_from(KEYS)), max_size=2),
)


class World:
    """A plan and the edits of people, and so how the issues must look."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.versions = {
            key: {"name": f"t{key}", "title": f"Do work {key}", "text": "", "path": f"{key}", "label": "high"}
            for key in KEYS
        }
        self.blockers: dict[int, set[int]] = {key: set() for key in KEYS}
        self.planned = [0, 1, 2]
        self.edits: dict[int, dict[str, Any]] = {key: {} for key in KEYS}
        self.ever: set[int] = set()

    def edit_plan(self, kind: str, key: int, n: int) -> None:
        version, is_planned = self.versions[key], key in self.planned
        if kind == "add" and not is_planned:
            self.planned.insert(n % (len(self.planned) + 1), key)
        elif kind == "remove" and is_planned and len(self.planned) > 1:
            self.planned.remove(key)
        elif kind == "retitle" and is_planned and not version["name"].endswith("new"):
            version["title"] = f"Do work {key} as {n}"
        elif kind == "rebody":
            version["text"] = f"In {n} steps."
        elif kind == "rescope":
            version["path"] = f"{key}-{n}"
        elif kind == "relabel":
            version["label"] = "high" if n % 2 else "medium"
        elif kind == "reorder":
            self.planned.sort(key=lambda each: (each * (n + 1)) % 7)
        elif kind == "block" and n < key:
            self.blockers[key] ^= {n}

    def rename(self, key: int, n: int) -> None:
        """Give an item another tempID in a version that leaves its title and its scope alone."""
        self.versions[key]["name"] = f"t{key}-{n}"

    def result(self) -> dict[str, Any]:
        items = []
        for key in self.planned:
            version = self.versions[key]
            blockers = [self.versions[other]["name"] for other in self.blocking(key)]
            item = task(
                version["name"],
                *blockers,
                title=version["title"],
                in_scope=f"- src/{version['path']}.py",
                objective=f"Work {key}. {version['text']}",
            )
            item["labels"][2] = f"priority:{version['label']}"
            items.append(item)
        return plan(*items)

    def blocking(self, key: int) -> list[int]:
        return sorted(self.blockers[key] & set(self.planned))

    def issues(self) -> dict[int, list[dict[str, Any]]]:
        """The open issues by the key in their text."""
        found: dict[int, list[dict[str, Any]]] = {}
        for issue in self.stage.snapshot():
            if issue["state"] == "open":
                key = next(key for key in KEYS if f"Work {key}." in issue["body"])
                found.setdefault(key, []).append(issue)
        return found

    def edit_issue(self, kind: str, key: int) -> None:
        """Edit the issue of an item as a person does."""
        for issue in self.issues().get(key, []):
            edits, path = self.edits[key], f"/repos/{self.stage.repository}/issues/{issue['number']}"
            if kind == "title":
                edits["title"] = f"A person's {key}"
                self.stage.send("PATCH", path, title=edits["title"])
            elif kind == "body" and "body" not in edits:
                self.stage.send("PATCH", path, body=f"A note.\r\n\r\n{issue['body']}")
            elif kind == "tick":
                self.stage.send("PATCH", path, body=issue["body"].replace("- [ ]", "- [x]"))
                edits["tick"] = True
            elif kind == "label":
                edits["label"] = True
                self.stage.send("POST", f"{path}/labels", labels=["help wanted"])
            elif kind == "priority":
                edits["priority"] = True
                others = [label for label in issue["labels"] if not label.startswith("priority:")]
                self.stage.send("PUT", f"{path}/labels", labels=[*others, "priority:low"])
            if kind in ("body", "tick") and ("body" in edits or kind == "body"):
                edits["body"] = split_body(self.stage.get(path)["body"]).content

    def check(self) -> None:
        """Compare the open issues with the plan, and with what people wrote."""
        found = self.issues()
        numbers = {key: issues[0]["number"] for key, issues in found.items()}
        assert {key: len(issues) for key, issues in found.items() if len(issues) > 1} == {}, "an item has a twin"
        taken_up = {key for key in self.ever if self.edits[key]}
        assert set(found) == set(self.planned) | taken_up, "an item is missing, or one that vanished is open"
        for planned in self.result()["create"]:
            key = next(key for key in KEYS if f"Work {key}." in planned["body"])
            issue, edits = found[key][0], self.edits[key]
            body = planned["body"].rstrip().replace("- [ ]", "- [x]" if "tick" in edits else "- [ ]")
            priority = "priority:low" if "priority" in edits else planned["labels"][2]
            labels = [*planned["labels"][:2], priority, planned["labels"][3]] + ["help wanted"] * ("label" in edits)
            assert issue["title"] == edits.get("title", planned["title"])
            assert split_body(issue["body"]).content == edits.get("body", body)
            assert issue["labels"] == sorted(labels)
            assert issue["blocked_by"] == sorted(numbers[other] for other in self.blocking(key))


@pytest.mark.slow
@settings(max_examples=15 if NIGHTLY else 4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROUND, min_size=1, max_size=5))
def test_issues_follow_a_plan_through_any_changes_and_keep_what_people_wrote(stage: Stage, rounds: Any) -> None:
    stage.reset()
    world = World(stage)
    stage.apply(world.result(), run_key="k")
    world.ever.update(world.planned)
    for edits, peoples in rounds:
        for kind, key in peoples:
            world.edit_issue(kind, key)
        is_renamed = edits[0][0] == "rename"
        for kind, key, n in edits:
            if is_renamed and key in world.planned and "title" not in world.edits[key]:
                world.rename(key, n)
            elif not is_renamed:
                world.edit_plan(kind, key, n)
        stage.clock.sleep(60 * len(edits))
        receipt = stage.apply(world.result(), run_key="k", closes_vanished=True)
        assert receipt.exit_code == 0, receipt
        world.ever.update(world.planned)
        world.check()
        assert stage.apply(world.result(), run_key="k", closes_vanished=True).writes == 0
