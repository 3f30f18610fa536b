import re
import string
from collections.abc import Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accord.kit import manifest as written
from accord.kit.manifest import PLACE, Manifest
from accord.kit.plan import DELETED, OWN, RETIRED, Action, KitPlan, plan_kit
from accord.kit.templates import Kit, Pin, shipped_kit, with_pin

PATH = ".github/workflows/accord-plan.yml"
OLD, NEW = Pin("a" * 40, "0.1.0"), Pin("b" * 40, "0.2.0")
T1, T2 = "one\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\nFIVE\n"
EDITED, CLASHING = "ONE\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\n5\n"
USES = f"    uses: accord-ci/accord/.github/workflows/reusable-apply-result.yml@{'0' * 40} # v0.0.0\n"


def planned(base: str | None, found: str | None, template: str | None, pin: Pin = NEW) -> KitPlan:
    files = {} if template is None else {PATH: template}
    held = {} if base is None else {PATH: base}
    manifest = Manifest(version=OLD.version, commit=OLD.commit, files=held)
    return plan_kit(Kit(pin.version, files), pin, manifest, {} if found is None else {PATH: found})


@pytest.mark.parametrize(
    ("base", "found", "template", "action", "after", "note"),
    [
        (None, None, T1, "add", T1, ""), (None, T1, T1, "up-to-date", T1, ""), (None, EDITED, T1, "keep", EDITED, OWN),
        (T1, T1, T1, "up-to-date", T1, ""), (T1, T1, T2, "update", T2, ""), (T1, T2, T2, "up-to-date", T2, ""),
        (T1, EDITED, T1, "keep", EDITED, "edited here"),
        (T1, EDITED, T2, "merge", EDITED.replace("five", "FIVE"), "edited here"),
        (T1, CLASHING, T2, "conflict", CLASHING, None), (T1, None, T2, "keep", None, DELETED),
        (T1, T1, None, "remove", None, ""), (T1, EDITED, None, "keep", EDITED, RETIRED),
    ],
)  # fmt: skip
def test_a_file_becomes_what_the_three_texts_say(
    base: str | None, found: str | None, template: str | None, action: str, after: str | None, note: str | None
) -> None:
    (file,) = planned(base, found, template).files
    assert (file.action.value, file.after) == (action, after)
    assert note in (None, file.note)
    assert planned(base, None, None).files == ()  # neither the kit nor the consumer has it


BUMPED = with_pin(USES, Pin("c" * 40, "0.1.5"))
"""A pin that a person moved."""

PINS = [
    (BUMPED, USES, Action.UPDATE, with_pin(USES, NEW)),
    (f"# mine\n\n{BUMPED}", f"{USES}      more: 1\n", Action.MERGE, f"# mine\n\n{with_pin(USES, NEW)}      more: 1\n"),
    (f"# mine\n{with_pin(USES, OLD)}", USES, Action.MERGE, f"# mine\n{with_pin(USES, NEW)}"),
    (f"# mine\n{BUMPED}", USES, Action.KEEP, f"# mine\n{BUMPED}"),
    *(
        (own, USES, Action.KEEP, own)
        for own in (USES.replace(f"{'0' * 40} # v0.0.0", ref) for ref in ("v0", "main", "abc1234", "0.1.0"))
    ),
]


@pytest.mark.parametrize(("own", "template", "action", "after"), PINS)
def test_pins_follow_the_kit_unless_a_person_chose_a_commit_a_tag_or_a_branch(
    own: str, template: str, action: Action, after: str
) -> None:
    (file,) = planned(USES, own, template).files
    assert (file.action, file.after) == (action, after)


def test_after_a_conflict_a_file_stays_with_the_commit_that_it_worked_with() -> None:
    own = with_pin(USES, OLD).replace("uses:", "uses : ")
    first = planned(USES, own, USES.replace("uses:", "uses:  "))
    assert [(file.action, file.after) for file in first.files] == [(Action.CONFLICT, own)]
    second = plan_kit(Kit("0.2.0", {PATH: USES.replace("uses:", "uses:  ")}), NEW, first.manifest, {PATH: own})
    assert not second.is_change


def test_a_pin_of_a_fork_or_of_another_action_is_not_ours() -> None:
    others = f"uses: octo/accord/actions/check@{'d' * 40} # v1\nuses: not-accord-ci/accord-x@{'d' * 40}\n"
    assert with_pin(others, NEW) == others


def test_windows_line_ends_stay_and_do_not_count_as_an_edit() -> None:
    (file,) = planned(T1, T1.replace("\n", "\r\n"), T2).files
    assert (file.action, file.after) == (Action.UPDATE, T2.replace("\n", "\r\n"))
    (file,) = planned(T1, EDITED.replace("\n", "\r\n"), T2).files
    assert (file.action, file.after) == (Action.MERGE, EDITED.replace("five", "FIVE").replace("\n", "\r\n"))


@pytest.mark.parametrize("raw", [b"ONE\xff\ntwo\nthree\nfour\nfive\n", b"ONE\0\ntwo\nthree\nfour\nfive\n"])
def test_a_binary_file_stays_byte_for_byte(raw: bytes) -> None:
    found = raw.decode("utf-8", "surrogateescape")
    (file,) = planned(T1, found, T2).files
    assert (file.action, file.after) == (Action.CONFLICT, found)


lines = st.lists(st.sampled_from(["a", "b", "c", "jobs:", "  x: 1", "", USES.rstrip("\n")]), max_size=8)
texts = lines.map(lambda found: "".join(f"{line}\n" for line in found))
maybe = st.none() | texts
files = st.fixed_dictionaries(dict.fromkeys((".github/one.yml", ".github/two.yml"), maybe))


def held(found: Mapping[str, str | None]) -> dict[str, str]:
    return {path: text for path, text in found.items() if text is not None}


def carried_out(plan: KitPlan) -> dict[str, str]:
    return {file.path: file.after for file in plan.files if file.after is not None}


@pytest.mark.slow
@settings(max_examples=30)
@given(templates=files, bases=files, found=files, pin=st.sampled_from([OLD, NEW]))
def test_planning_after_applying_finds_nothing_to_do(
    templates: dict[str, str | None], bases: dict[str, str | None], found: dict[str, str | None], pin: Pin
) -> None:
    before = Manifest(version="0", commit=OLD.commit, files=held(bases))
    kit = Kit(pin.version, held(templates))
    first = plan_kit(kit, pin, before, held(found))
    second = plan_kit(kit, pin, first.manifest, {**held(found), **carried_out(first)})
    removed = {file.path for file in first.of(Action.REMOVE)}
    assert {file.path for file in second.changes} <= removed  # those are there in this test, and gone in a repository
    assert second.manifest == first.manifest


@pytest.mark.slow
@settings(max_examples=30)
@given(template=texts, base=texts, found=texts, new=st.sampled_from(["mine", "  theirs: 2"]), at=st.integers(0, 8))
def test_a_line_that_a_person_wrote_is_still_there(template: str, base: str, found: str, new: str, at: int) -> None:
    own = found.splitlines(keepends=True)
    edited = "".join([*own[:at], f"{new}\n", *own[at:]])
    (file,) = planned(base, edited, template).files
    assert file.after is not None
    assert new in file.after.splitlines()


@pytest.mark.slow
@settings(max_examples=30)
@given(base=texts, found=texts, template=texts)
def test_a_file_unlike_both_templates_is_written_only_by_a_merge(base: str, found: str, template: str) -> None:
    assume(with_pin(found, NEW) not in (with_pin(base, NEW), with_pin(template, NEW)))
    (file,) = planned(base, found, template).files
    assert file.action in (Action.KEEP, Action.MERGE, Action.CONFLICT)
    assert file.action is Action.MERGE or file.after == found


@pytest.mark.slow
@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from([".github/a.yml", ".github/b/c.md"]), st.text(string.printable), min_size=1))
def test_a_written_manifest_is_read_back_equal(found: dict[str, str]) -> None:
    manifest = Manifest(version="1", commit="a" * 40, files=found)
    assert written.read_manifest(written.manifest_text(manifest)) == manifest


def test_the_kit_writes_below_one_folder_and_pins_itself_everywhere_by_a_commit() -> None:
    kit = shipped_kit()
    assert kit.files
    for path, text in kit.files.items():
        assert path.startswith(".github/")
        assert path != PLACE
        used = re.findall(r"accord-ci/accord\S*@\S+(?: # \S+)?", text)
        assert [entry.partition("@")[2] for entry in used] == [f"{'0' * 40} # v0.0.0"] * len(used)
