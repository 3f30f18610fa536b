"""Syncing labels with a file: only the needed changes, and issues keep their labels."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.killing import kill_at
from support.stage import Stage

from accord.cli.repos_run import sync_labels
from accord.core.errors import AccordError, BrokenContract, Interrupted, WrongUsage
from accord.engine.operations import OperationLog
from accord.github.client import Connection, GitHub
from accord.github.models import Label
from accord.kit.many import ManyOutcome
from accord.results.label_sync import (
    LabelAction,
    LabelEntry,
    LabelRecord,
    apply_labels,
    label_checks,
    parse_labels,
    plan_labels,
    shipped_labels,
)
from accord_sandbox.faults import KINDS, Exchange, Fault
from accord_sandbox.planting import STRANGER_TOKEN


def entry(name: str, *aliases: str, description: str = "d", color: str = "aabbcc") -> LabelEntry:
    return LabelEntry(name=name, description=description, color=color, aliases=aliases)


def sync(
    stage: Stage, entries: Sequence[LabelEntry], removable: Collection[str] = (), *, github: GitHub | None = None
) -> tuple[list[LabelAction], AccordError | None]:
    github = github or stage.adapter()
    actions, _ = plan_labels(entries, github.labels(), removable)
    return apply_labels(github, actions, lambda _: None)


def changes(actions: Sequence[LabelAction]) -> dict[str, str]:
    return {action.name: action.action for action in actions if action.is_change}


def make(stage: Stage, *names: str) -> None:
    for name in names:
        stage.send("POST", f"/repos/{stage.repository}/labels", name=name, color="aabbcc", description="d")


def labels_on(stage: Stage) -> dict[str, tuple[str, str]]:
    return {label.name: (label.description, label.color) for label in stage.adapter().labels()}


def test_a_new_repository_gets_every_label_and_keeps_its_own(stage: Stage) -> None:
    before = labels_on(stage)
    ended, problem = sync(stage, shipped_labels())
    assert problem is None
    assert {action.action for action in ended} == {"created"}
    assert labels_on(stage) == before | {e.name: (e.description, e.color) for e in shipped_labels()}


@pytest.mark.slow
def test_a_repository_in_step_costs_one_read_and_no_write(stage: Stage) -> None:
    entries = [entry(f"label {i}") for i in range(31)]
    sync(stage, entries)
    github = stage.adapter()
    ended, _ = sync(stage, entries, github=github)
    assert not changes(ended)
    assert (github.requests.read, github.requests.write) == (1, 0)


def test_only_what_differs_is_written(stage: Stage) -> None:
    make(stage, "same", "faded", "silent")
    github = stage.adapter()
    wanted = [entry("same"), entry("faded", color="000000"), entry("silent", description=""), entry("new")]
    ended, _ = sync(stage, wanted, github=github)
    assert changes(ended) == {"faded": "updated", "silent": "updated", "new": "created"}
    assert github.requests.write == 3


@pytest.mark.parametrize(("old", "aliases"), [("bug", ["bug"]), ("BUG", ["bug"]), ("Type: Bug", ["defect"])])
def test_a_renamed_label_stays_on_its_issues(stage: Stage, old: str, aliases: list[str]) -> None:
    for name in ("bug", "defect"):
        stage.adapter().delete_label(name)
    make(stage, "defect" if "defect" in aliases else old)
    labels = ["defect" if "defect" in aliases else old, "other"]
    issue = stage.send("POST", f"/repos/{stage.repository}/issues", title="T", labels=labels)
    ended, _ = sync(stage, [entry("type: bug", *aliases)])
    assert changes(ended) == {"type: bug": "renamed"}
    carried = stage.adapter().issue(issue["number"])
    assert set(carried.labels) == {"type: bug", "other"}


PLANS: dict[str, tuple[list[LabelEntry], str, list[str], dict[str, str], list[str]]] = {
    "an alias beside its name": ([entry("new", "old")], "old new", ["old"], {}, ["alias-left"]),
    "two aliases": ([entry("new", "old", "older")], "older old", [], {"new": "renamed"}, ["alias-left"]),
    "nothing to remove": ([entry("kept")], "gone kept theirs", [], {}, []),
    "one to remove": ([entry("kept")], "gone kept theirs", ["gone"], {"gone": "deleted"}, []),
    "another case": ([entry("kept")], "gone kept theirs", ["GONE"], {"gone": "deleted"}, []),
    "one that is wanted": ([entry("kept")], "gone kept theirs", ["kept", "gone"], {"gone": "deleted"}, []),
    "one that is not there": ([entry("kept")], "gone kept theirs", ["absent"], {}, []),
    "capitals of a letter without one": ([entry("STRASSE")], "Straße", [], {"STRASSE": "renamed"}, []),
    "a letter without a capital": ([entry("straße")], "STRASSE", [], {"straße": "renamed"}, []),
    "a letter with two small forms": ([entry("ΣΑΣ")], "σας", [], {"ΣΑΣ": "renamed"}, []),
}


@pytest.mark.parametrize(("entries", "present", "ours", "planned", "found"), PLANS.values(), ids=PLANS)
def test_labels_are_renamed_by_aliases_and_go_only_if_named_and_not_wanted(
    entries: list[LabelEntry], present: str, ours: list[str], planned: dict[str, str], found: list[str]
) -> None:
    current = [Label(name, "d", "aabbcc") for name in present.split()]
    actions, findings = plan_labels(entries, current, ours)
    assert (changes(actions), [finding.code for finding in findings]) == (planned, found)
    assert all(action.found in current[-1:] for action in actions if action.action == "renamed")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gonne", "Did you mean `gone`?"),
        ("absent", "Correct the name, or leave out `--remove`."),
        ("kept", "Take it out of the file first."),
    ],
)
def test_a_label_that_is_not_removed_has_a_hint(name: str, hint: str) -> None:
    _, (found,) = plan_labels([entry("kept")], [Label("gone", "d", "aabbcc")], (), [name])
    assert (found.code, found.hint) == ("not-removed", hint)


@pytest.mark.parametrize(("name", "other"), [("STRASSE", "Straße"), ("ΣΑΣ", "σας")])
def test_a_file_names_a_label_once_as_github_compares_names(name: str, other: str) -> None:
    with pytest.raises(BrokenContract):
        parse_labels(f"- {{name: {name}, color: 'aabbcc'}}\n- {{name: {other}, color: 'aabbcc'}}\n".encode())


def test_the_record_knows_what_syncs_created_through_deletion_and_renaming(stage: Stage, tmp_path: Path) -> None:
    record = tmp_path / "deep" / "labels.json"
    make(stage, "theirs")
    for wanted, known in [
        ([entry("a"), entry("b"), entry("theirs")], {"a", "b"}),
        ([entry("a2", "a"), entry("b"), entry("mine", "theirs")], {"a2", "b"}),
        ([entry("b")], {"b"}),
    ]:
        current, log = stage.adapter().labels(), OperationLog()
        ours = LabelRecord(record, current)
        actions, _ = plan_labels(wanted, current, ours.names)
        apply_labels(stage.adapter(), actions, lambda _: None, log, ours.track)
        assert ours.names == {*json.loads(record.read_text())} == known
    assert "mine" in labels_on(stage)
    assert "a2" not in labels_on(stage)


@pytest.mark.slow
def test_a_sync_that_is_killed_has_noted_what_it_created_so_that_pruning_finds_it(stage: Stage, tmp_path: Path) -> None:
    record, file = tmp_path / "record.json", tmp_path / "labels.yml"
    file.write_text("\n".join(f"- {{name: {name}, color: '111111'}}" for name in ("one", "two", "three")))
    kill_at(4, ["labels", "sync", "--file", str(file), "--record", str(record)], stage)
    assert labels_on(stage).keys() >= {"one", "two", "three"}
    assert LabelRecord(record, stage.adapter().labels()).names == {"one", "two", "three"}
    stage.send("PATCH", f"/repos/{stage.repository}/labels/three", description="Mine")
    assert LabelRecord(record, stage.adapter().labels()).names == {"one", "two"}, "another one may be of a person"


@pytest.mark.slow
@pytest.mark.parametrize(("found", "ours"), [(None, {"new"}), ("old", {"new"}), ("theirs", set())])
@pytest.mark.parametrize("is_sent", [True, False])
def test_a_label_whose_request_was_interrupted_is_of_the_sync_if_github_has_it_as_it_was_sent(
    stage: Stage, tmp_path: Path, found: str | None, ours: set[str], is_sent: bool
) -> None:
    record = tmp_path / "record.json"
    record.write_text('["gone", "old"]')
    make(stage, "old", "theirs")
    wanted = [entry("new", *filter(None, [found]))]
    current = stage.adapter().labels()
    (action,) = plan_labels(wanted, current, ())[0]

    def interrupt() -> None:
        with LabelRecord(record, current).track(action):
            if is_sent:
                sync(stage, wanted)
            raise Interrupted("A signal.", hint="")

    with pytest.raises(Interrupted):
        interrupt()
    left = {"old"} - {found}
    again = LabelRecord(record, stage.adapter().labels())
    assert again.names == (ours | left if is_sent else {"old"})
    again.save()
    assert json.loads(record.read_text()) == sorted(again.names)


def test_a_refused_label_is_not_in_the_record(stage: Stage, tmp_path: Path) -> None:
    record = LabelRecord(tmp_path / "record.json", ())
    bad = LabelAction("bad", "created", Label("bad", "", "red"))
    ended, _ = apply_labels(stage.adapter(), [bad], lambda _: None, None, record.track)
    assert (ended[0].action, json.loads((tmp_path / "record.json").read_text())) == ("failed", [])


@pytest.mark.parametrize("text", ["{", "{}", "[1]", "\udcff"])
def test_a_record_that_cannot_be_read_deletes_nothing(tmp_path: Path, text: str) -> None:
    record = tmp_path / "labels.json"
    record.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(WrongUsage):
        LabelRecord(record, ())


def test_one_refused_label_does_not_keep_the_others_back(stage: Stage) -> None:
    wanted = [Label("ok", "", "aabbcc"), Label("bad", "", "red"), Label("fine", "", "aabbcc")]
    actions = [LabelAction(label.name, "created", label) for label in wanted]
    ended, problem = apply_labels(stage.adapter(), actions, lambda _: None)
    assert problem is None
    assert [action.action for action in ended] == ["created", "failed", "created"]
    assert "422" in ended[1].error


def test_one_label_that_fails_does_not_keep_the_others(stage: Stage) -> None:
    make(stage, "..", "faded", "last", "gone")
    github = stage.adapter()
    entries = [entry("faded", color="000000"), entry("new")]
    actions, _ = plan_labels(entries, github.labels(), (), ["..", "last", "gone"])
    stage.adapter().delete_label("gone")
    ended, problem = apply_labels(github, actions, lambda _: None)
    assert changes(ended) == {
        "..": "failed",
        "faded": "updated",
        "new": "created",
        "last": "deleted",
        "gone": "deleted",
    }
    assert problem is None
    assert "`..`" in next(action.error for action in ended if action.name == "..")


def test_a_single_refused_label_is_the_result_of_a_repository_among_many(stage: Stage) -> None:
    name = shipped_labels()[0].name
    make(stage, name)

    def delete(exchange: Exchange) -> None:
        if exchange.phase == "applied" and exchange.path.endswith("/labels"):
            with stage.server.database.writing() as connection:
                connection.execute("DELETE FROM labels WHERE name = ?", (name,))

    stage.server.observers.append(delete)
    access = Connection(stage.adapter(), stage.repository, stage.server.url, stage.server.token)
    result = sync_labels(access, is_dry_run=False)
    stage.server.observers.remove(delete)
    assert (result.outcome, f"{name}: " in result.note) == (ManyOutcome.REFUSED, True)


@pytest.mark.parametrize(
    ("present", "entries", "named"),
    [
        (("old", "older"), (), ("old", "older")),
        (("a", "b"), (entry("a", color="000000"), entry("b", color="000000")), ()),
        ((), (entry("a"), entry("b")), ()),
    ],
)
def test_each_kind_of_change_says_that_the_token_lacks_write_access(
    stage: Stage, present: tuple[str, ...], entries: tuple[LabelEntry, ...], named: tuple[str, ...]
) -> None:
    make(stage, *present)
    github = stage.adapter(token=STRANGER_TOKEN)
    actions, _ = plan_labels(entries, github.labels(), (), named)
    ended, problem = apply_labels(github, actions, lambda _: None)
    assert [action.action for action in ended] == ["failed", "failed"]
    assert "write access" in f"{problem.hint if problem else ''} {ended[0].error}"


def test_without_the_permission_one_refusal_is_enough(stage: Stage) -> None:
    github = stage.adapter(token=STRANGER_TOKEN)
    ended, problem = sync(stage, [entry("a"), entry("b"), entry("c")], github=github)
    assert problem.exit_code == 4
    assert github.requests.write == 1
    assert {action.action for action in ended} == {"failed"}


FAULTS_FILE = [entry("new"), entry("renamed", "old"), entry("same"), entry("Case"), entry("redrawn", color="000000")]


def prepare(stage: Stage) -> None:
    stage.server.reset()
    make(stage, "old", "same", "case", "redrawn", "gone")
    stage.server.requests.clear()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow if kind in ("lost-after", "error-502") else pytest.mark.matrix)
        for kind in KINDS
        if kind != "slow"
    ],
)
def test_a_fault_at_any_request_leaves_the_labels_of_a_clean_run(stage: Stage, kind: str) -> None:
    prepare(stage)
    assert sync(stage, FAULTS_FILE, ["gone"])[1] is None
    count, clean = len(stage.server.requests), labels_on(stage)
    assert count == 6
    for nth in range(1, count + 1):
        prepare(stage)
        stage.server.faults.add(Fault(kind, nth=nth, seconds=30))
        ended, problem = sync(stage, FAULTS_FILE, ["gone"])
        assert problem is None, (nth, problem)
        assert not [action for action in ended if action.action == "failed"], nth
        assert labels_on(stage) == clean, nth
        github = stage.adapter()
        assert not changes(sync(stage, FAULTS_FILE, ["gone"], github=github)[0]), nth
        assert github.requests.write == 0


@pytest.mark.slow
def test_when_github_stays_away_the_next_sync_finishes(stage: Stage) -> None:
    prepare(stage)
    sync(stage, FAULTS_FILE, ["gone"])
    count, clean = len(stage.server.requests), labels_on(stage)
    for nth in range(2, count + 1):
        prepare(stage)
        stage.server.faults.add(Fault("lost-after", nth=nth, times=1000))
        _, problem = sync(stage, FAULTS_FILE, ["gone"])
        assert problem.exit_code == 3
        stage.server.faults.clear()
        assert sync(stage, FAULTS_FILE, ["gone"])[1] is None
        assert labels_on(stage) == clean, nth


GOOD = {"name": "bug", "description": "Broken", "color": "D73A4A", "aliases": ["defect"]}


@pytest.mark.parametrize("write", [json.dumps, lambda value: json.dumps(value, indent="\t")])
def test_a_label_file_may_be_json(write: Any) -> None:
    content = [GOOD, {"name": "caf\u00e9 \U0001f600", "color": "000000"}]
    assert parse_labels(write(content).encode()) == (
        entry("bug", "defect", description="Broken", color="d73a4a"),
        entry("caf\u00e9 \U0001f600", description="", color="000000"),
    )


def test_limits_are_counted_in_characters_and_reached_exactly() -> None:
    (label,) = parse_labels(json.dumps([{**GOOD, "name": "ä" * 50, "description": "ü" * 100}]).encode())
    assert (len(label.name), len(label.description)) == (50, 100)


@pytest.mark.parametrize("color", ["000000", "'123456'", '"0e1000"', "1e1000", "ABCDEF"])
def test_a_color_that_yaml_leaves_a_text_is_taken(color: str) -> None:
    (label,) = parse_labels(f"- name: a\n  color: {color}\n".encode())
    assert label.color == color.strip("'\"").lower()


@pytest.mark.parametrize(
    ("text", "code", "path", "line"),
    [
        ("name: a\ncolor: aabbcc", "schema", "", 1),
        ("", "schema", "", 1),
        ("- a", "schema", "/0", 1),
        ("- {name: a, color: aabbcc}\n- {color: aabbcc}", "schema", "/1/name", 2),
        (f"- name: {'n' * 51}\n  color: aabbcc", "schema", "/0/name", 1),
        ("- name: ''\n  color: aabbcc", "schema", "/0/name", 1),
        ("- name: ' a'\n  color: aabbcc", "schema", "/0/name", 1),
        ("- name: 7\n  color: aabbcc", "schema", "/0/name", 1),
        (f"- name: a\n  color: aabbcc\n  description: {'d' * 101}", "schema", "/0/description", 3),
        ("- name: a\n  color: aabbcc\n  description: [d]", "schema", "/0/description", 3),
        ("- name: a", "schema", "/0/color", 1),
        ("- name: a\n  color: 123456", "schema", "/0/color", 2),
        ("- name: a\n  color: '#aabbcc'", "schema", "/0/color", 2),
        ("- name: a\n  color: red", "schema", "/0/color", 2),
        ("- name: a\n  color: aabbc", "schema", "/0/color", 2),
        ("- name: a\n  color: 'aabbcc\n\n    '", "schema", "/0/color", 2),
        ("- name: a\n  color: aabbcc\n  colour: x", "schema", "/0/colour", 3),
        ("- name: a\n  color: aabbcc\n  aliases: b", "schema", "/0/aliases", 3),
        ("- name: a\n  color: aabbcc\n  aliases: [b, '']", "schema", "/0/aliases/1", 3),
        ("- {name: a, color: aabbcc}\n- {name: A, color: aabbcc}", "label-repeated", "/1/name", 2),
        ("- {name: '..', color: aabbcc}", "schema", "/0/name", 1),
        ("- {name: ., color: aabbcc}", "schema", "/0/name", 1),
        ('- {name: "a\\tb", color: aabbcc}', "schema", "/0/name", 1),
        ('- {name: a, color: aabbcc, aliases: [b, ".."]}', "schema", "/0/aliases/1", 1),
        ("- {name: a, color: aabbcc, aliases: [b]}\n- {name: B, color: aabbcc}", "label-repeated", "/1/name", 2),
        ("- {name: a, color: aabbcc, aliases: [A]}", "label-repeated", "/0/aliases/0", 1),
        ("- name: a\n  name: b\n  color: aabbcc", "duplicate-key", "", 2),
    ],
)
def test_label_files_that_github_would_refuse_are_refused_offline(text: str, code: str, path: str, line: int) -> None:
    with pytest.raises(BrokenContract) as caught:
        parse_labels(text.encode())
    assert [(found.code, found.path, found.line) for found in caught.value.findings] == [(code, path, line)]


@pytest.mark.parametrize(
    ("names", "note", "unread"),
    [
        ((), "none;", []),
        (("labels.yaml",), "1 labels in .github/labels.yaml", []),
        (("labels.yml", "labels.json"), "1 labels in .github/labels.yml", ["labels.json"]),
        (("labels.yml", "labels.yaml", "labels.json"), "1 labels in", ["labels.yaml", "labels.json"]),
    ],
)
def test_one_label_file_counts_and_others_are_findings(
    tmp_path: Path, names: tuple[str, ...], note: str, unread: list[str]
) -> None:
    (tmp_path / ".github").mkdir()
    for name in names:
        (tmp_path / ".github" / name).write_text('[{"name": "a", "color": "aabbcc"}]')
    check = next(label_checks(tmp_path, "offline"))
    assert check.note.startswith(note)
    assert [(path, finding.code) for path, finding in check.findings] == [
        (f".github/{name}", "config-unread") for name in unread
    ]
