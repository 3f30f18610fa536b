"""Every rule of the three results: what breaks it is found at its place, and what keeps it passes."""

import json
import re
import subprocess
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

import pytest
from support.growth import grows_too_fast
from support.plans import TASK_LABELS, plan, refinement, refinement_body, task, task_body, update
from support.reviews import FINDING, approve, comment, needs_changes, warn
from support.trees import commit, repository

import accord.results
from accord.core.findings import Finding
from accord.core.kinds import check_document
from accord.git.patches import changes_between, filtered_findings
from accord.git.program import Git
from accord.results.bodies import read_body
from accord.results.labels import CREATION_RULES
from accord.results.scope_entries import crossing_entries

Case = tuple[Any, str, str]


def findings_of(result: Any) -> list[Finding]:
    return check_document(json.dumps(result, indent=1).encode(), None)[1]


def check(result: Any) -> list[tuple[str, str, str]]:
    return [(finding.code, finding.severity.value, finding.path) for finding in findings_of(result)]


# Planner


def changed(item: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**item, **fields}


def labelled(item: dict[str, Any], *labels: str) -> dict[str, Any]:
    return changed(item, labels=list(labels))


PLANS = {
    "nothing to do": plan(),
    "one task": plan(task("a")),
    "one refinement": plan(refinement("a")),
    "forward reference": plan(task("a", "b"), task("b")),
    "existing items by number": plan(task("a", "#12", "13"), close=["1", "#2"], update=[update(3)]),
    "other labels": plan(changed(task("a"), labels=[*task("a")["labels"], "area: web", "good first issue"])),
    "medium refinement": plan(labelled(refinement("a"), "task:refinement", "status:pending", "priority:medium")),
    "same blocker twice": plan(task("a"), task("b", "a", "a")),
    "a title of 256 characters": plan(task("a", title="x" * 256)),
    "emoji in a title": plan(task("a", title="\U0001f600" * 256)),
    "update of labels alone": plan(update=[update(3, labels=["priority:high"])]),
    "update to the refinement template": plan(update=[update(3, body=refinement_body())]),
    "numbers as names": plan(task("1"), task("2", "#7"), close=["8"]),
    "owners": plan(
        task("a", out_of_scope="- src/b.py (owned by #b)\n- src/c.py (owned by #12)"),
        task("b", out_of_scope="- src/d.py\n\n```\n(owned by #other)\n```"),
    ),
    "one file, in order by a number": plan(
        task("a#1", in_scope="- src/x.py"),
        task("b#2", "#1", in_scope="- src/x.py"),
        task("c", "2", in_scope="- src/x.py"),
    ),
    "owners before punctuation": plan(
        task("a", out_of_scope="- src/b.py (owned by #b b.)\n- src/c.py: owned by #12.\n- **owned by #a**: x.py"),
        task("b b", in_scope="- src/b.py"),
    ),
    "one file, in order": plan(task("a", in_scope="- src/x.py"), task("b", "a"), task("c", "b", in_scope="- src/x.py")),
}

WORK_ITEM, BLOCKER = "/update/0/workItemID", "/create/1/blockedBy/0"
BROKEN_PLANS: dict[str, Case] = {
    "tempID twice": (plan(task("a"), task("a")), "duplicate-temp-id", "/create/1/tempID"),
    "empty tempID": (plan(task(" ")), "schema", "/create/0/tempID"),
    "unknown name": (plan(task("a", "b")), "unknown-reference", "/create/0/blockedBy/0"),
    "number zero": (plan(task("a", "0")), "unknown-reference", "/create/0/blockedBy/0"),
    "negative number": (plan(task("a", "-1")), "unknown-reference", "/create/0/blockedBy/0"),
    "number with zeros before": (plan(close=["007"]), "unknown-reference", "/close/0"),
    "other digits": (plan(close=["\u0664\u0662"]), "unknown-reference", "/close/0"),
    "close by name": (plan(task("a"), close=["a"]), "unknown-reference", "/close/0"),
    "update name": (plan(task("a"), update=[changed(update(1), workItemID="a")]), "unknown-reference", WORK_ITEM),
    "a number as a name, and with its sign": (plan(task("2"), task("b", "#2")), "ambiguous-reference", BLOCKER),
    "a number as a name": (plan(task("1"), task("2", "1")), "ambiguous-reference", BLOCKER),
    "a name like a closed item": (plan(task("8"), close=["8"]), "ambiguous-reference", "/close/0"),
    "a name like an updated item": (
        plan(task("#8"), update=[update(8, labels=None)]),
        "ambiguous-reference",
        WORK_ITEM,
    ),
    "a sign in a name, and without it": (plan(task("#2"), task("b", "2")), "ambiguous-reference", BLOCKER),
    "two names for a number": (plan(task("2"), task("#2")), "ambiguous-reference", "/create/1/tempID"),
    "owner by a number that is a name": (
        plan(task("2"), task("b", out_of_scope="- src/c.py (owned by #2)")),
        "ambiguous-reference",
        "/create/1/body",
    ),
    "unknown owner": (
        plan(task("a", out_of_scope="- src/c.py (owned by #unknown)")),
        "unknown-reference",
        "/create/0/body",
    ),
    "unknown owner on the next line": (
        plan(task("a", out_of_scope="- src/c.py (owned by\n  #unknown)")),
        "unknown-reference",
        "/create/0/body",
    ),
    "unknown owner before punctuation": (
        plan(task("a", out_of_scope="- src/c.py, owned by #a-b. Later")),
        "unknown-reference",
        "/create/0/body",
    ),
    "unknown owner in an update": (
        plan(update=[update(1, body=task_body(out_of_scope="- src/c.py (owned by #unknown)"))]),
        "unknown-reference",
        "/update/0/body",
    ),
    "itself": (plan(task("a", "a")), "self-reference", "/create/0/blockedBy/0"),
    "two in a circle": (plan(task("a", "b"), task("b", "a")), "dependency-cycle", "/create/0/blockedBy"),
    "itself by its number": (plan(task("a#1", "#1")), "self-reference", "/create/0/blockedBy/0"),
    "two in a circle by their numbers": (
        plan(task("a#1", "2"), task("b#2", "#1")),
        "dependency-cycle",
        "/create/0/blockedBy",
    ),
    "two of one number": (plan(task("a#1"), task("b#1")), "item-identity", "/create/1/tempID"),
    "a number that is a name, and in another": (
        plan(task("1"), task("b#1"), task("c", "#1")),
        "ambiguous-reference",
        "/create/2/blockedBy/0",
    ),
    "more dependencies than GitHub allows": (
        plan(task("hub"), *(task(f"t{i}", "hub") for i in range(51))),
        "dependencies-too-many",
        "/create/0/blockedBy",
    ),
    "close and update": (plan(close=["#5"], update=[update(5)]), "close-and-update", WORK_ITEM),
    "close twice": (plan(close=["5", "#5"]), "close-repeated", "/close/1"),
    "update twice": (plan(update=[update(5), update(5)]), "update-repeated", WORK_ITEM),
    "long title": (plan(task("a", title="x" * 257)), "title-too-long", "/create/0/title"),
    "empty title": (plan(task("a", title="  ")), "title-empty", "/create/0/title"),
    "long body": (plan(task("a", body=task_body(objective="x" * 65_536))), "body-too-long", "/create/0/body"),
    "update with two priorities": (
        plan(update=[update(1, labels=["priority:low", "priority:high"])]),
        "label-repeated",
        "/update/0/labels/1",
    ),
    "update with unknown label": (
        plan(update=[update(1, labels=["priority:low", "complexity:huge"])]),
        "label-unknown",
        "/update/0/labels/1",
    ),
    "update with another body": (plan(update=[update(1, body="Just do it.")]), "section-missing", "/update/0/body"),
}

LABELS = {
    "no priority": ("task:implement status:pending complexity:low", "label-missing", ""),
    "no status": ("task:implement priority:low complexity:low", "label-missing", ""),
    "no complexity": ("task:implement status:pending priority:low", "label-missing", ""),
    "refinement without status": ("task:refinement priority:high", "label-missing", ""),
    "refinement without priority": ("task:refinement status:pending", "label-missing", ""),
    "refinement with two priorities": (
        "task:refinement status:pending priority:high priority:medium", "label-repeated", "/3",
    ),
    "refinement created as ready": ("task:refinement status:ready priority:high", "label-forbidden", "/1"),
    "no type": ("status:pending priority:low complexity:low", "label-missing", ""),
    "no labels at all": ("", "label-missing", ""),
    "two types": (" ".join([*TASK_LABELS, "task:refinement"]), "label-repeated", "/4"),
    "two priorities": (" ".join([*TASK_LABELS, "priority:high"]), "label-repeated", "/4"),
    "the same label twice": (" ".join([*TASK_LABELS, "priority:medium"]), "label-repeated", "/4"),
    "unknown priority": ("task:implement status:pending priority:urgent complexity:low", "label-unknown", "/2"),
    "priority in capitals": ("task:implement status:pending Priority:High complexity:low", "label-unknown", "/2"),
    "created as ready": ("task:implement status:ready priority:low complexity:low", "label-forbidden", "/1"),
    "complex refinement": ("task:refinement status:pending priority:high complexity:low", "label-forbidden", "/3"),
    "refinement of low priority": ("task:refinement status:pending priority:low", "label-forbidden", "/2"),
    "label of 51 characters": (" ".join([*TASK_LABELS, "x" * 51]), "label-too-long", "/4"),
    "label of one dot": (" ".join([*TASK_LABELS, "."]), "label-unknown", "/4"),
    "label of two dots": (" ".join([*TASK_LABELS, ".."]), "label-unknown", "/4"),
    "label with a zero-width space": (" ".join([*TASK_LABELS, "b\u200bug"]), "label-unknown", "/4"),
    "label with a variant of a letter": (" ".join([*TASK_LABELS, "bug\ufe0f"]), "label-unknown", "/4"),
    "label with a character of no standard": (" ".join([*TASK_LABELS, "bug\ue000"]), "label-unknown", "/4"),
    "label with a control character": (" ".join([*TASK_LABELS, "a\x7fb"]), "label-unknown", "/4"),
    "101 labels": (" ".join([*TASK_LABELS, *(f"l{i}" for i in range(97))]), "labels-too-many", ""),
}  # fmt: skip
BROKEN_PLANS |= {
    name: (
        plan(labelled(refinement("a") if "refinement" in name else task("a"), *names.split())),
        code,
        f"/create/0/labels{place}",
    )
    for name, (names, code, place) in LABELS.items()
}
BROKEN_PLANS |= {
    f"a whole body of the other kind than {names[0]}": (
        plan(labelled(item, *names)), "label-forbidden", "/create/0/labels/0",
    )
    for item, names in (
        (task("a"), ["task:refinement", "status:pending", "priority:high", "complexity:low"]),
        (refinement("a"), ["task:implement", "status:pending", "priority:high"]),
    )
}  # fmt: skip


def test_the_labels_of_new_items_are_those_of_the_contract() -> None:
    rules = {f"{kind}": [" ".join(labels) for labels in given.values()] for kind, given in CREATION_RULES.items()}
    complexity = "complexity:trivial complexity:low complexity:medium complexity:high"
    assert rules == {
        "task:implement": [
            "task:implement",
            "status:pending",
            "priority:high priority:medium priority:low",
            complexity,
        ],
        "task:refinement": ["task:refinement", "status:pending", "priority:high priority:medium", ""],
    }


# Implementor


BLOCKED = """Type: spec-gap
Description: The spec does not say what an empty list means.
Spec reference: docs/specs/a.md, section "Input": "The list is read."
Options:
1. Ignore it: simple, but errors stay hidden
2. Refuse it: safe, but callers break
Recommendation: option 2, because a hidden error costs more.
Impact: the task cannot be finished."""

FAILED = "Step: test_upload\nTried: a longer limit, and alone\nOutside: the fixture is broken on main"
PATCH = "diff --git a/a b/a\nnew file mode 100644\nindex 0000000..e69de29\n"


def report(outcome: str, summary: str, patch: str | None = None) -> dict[str, Any]:
    return {"role": "implementor", "outcome": outcome, "patch": patch, "summary": summary}


def blocked_with(old: str, new: str) -> dict[str, Any]:
    assert old in BLOCKED
    return report("blocked", BLOCKED.replace(old, new))


SUBLIST = """- Ignore it
  - Pro: simple
  - Con: errors stay hidden
- Refuse it
  - Pro: safe
  - Con: callers break"""
ELABORATE = {
    "what an option costs in a list below it": SUBLIST,
    "options by the word, with lists that are not indented": SUBLIST.replace("- I", "Option A: I")
    .replace("- R", "Option B: R")
    .replace("  -", "-"),
    "a list that is not quite straight": "- Ignore it: simple, errors hidden\n - Refuse it: safe, callers break",
    "Japanese": "- 無視する。簡単だが、誤りが隠れる\n- 拒否する。安全だが、呼び出し側が壊れる",
    "Thai": "- ละเว้น: ง่ายแต่ข้อผิดพลาดซ่อนอยู่\n- ปฏิเสธ: ปลอดภัยแต่ผู้เรียกเสียหาย",
    "German": "- Ignorieren: einfach, verbirgt aber Fehler\n- Ablehnen: sicher, bricht aber Aufrufer",
}

QUOTES = [
    "„Die Liste wird gelesen.“",
    "« La liste est lue. »",
    "「一覧を読む。」",
    "“The list is read.”",
    "'The list is read.'",
    "\u2018It\u2019s read.\u2019",
    "\n> The list is read.\n",
]
OPTIONS = "1. Ignore it: simple, but errors stay hidden\n2. Refuse it: safe, but callers break"
LIMIT = f"\n{FAILED}"
SPEC_LINE = next(f"{line}\n" for line in BLOCKED.splitlines() if line.startswith("Spec reference"))
REPORTS = {
    "completed": report("completed", "Added the parser and its tests.", PATCH),
    "blocked": report("blocked", BLOCKED),
    "validation failure": report("validation-failure", FAILED),
    "another blocker": report("blocked", BLOCKED.replace("spec-gap", "technical-constraint").replace(SPEC_LINE, "")),
    **{
        f"debugging limit, {outcome}": report(outcome, BLOCKED.replace("spec-gap", "debugging-limit") + LIMIT)
        for outcome in ("blocked", "validation-failure")
    },
    "debugging limit as a blocker": report("validation-failure", BLOCKED.replace("spec-gap", "debugging-limit")),
    **{name: blocked_with(OPTIONS, options) for name, options in ELABORATE.items()},
    "folded": report("blocked", f"<details><summary>Blocked: see below</summary>\n{BLOCKED}\n</details>"),
    **{
        f"quote {quote.strip()}": report(
            "blocked", BLOCKED.replace('"The list is read."', quote).replace('"Input"', "Input")
        )
        for quote in QUOTES
    },
}
BROKEN_REPORTS = {
    "no patch": ("completed", "Done.", None, "patch-missing"),
    "blank patch": ("completed", "Done.", " \n", "patch-missing"),
    "patch of a blocked one": ("blocked", BLOCKED, PATCH, "patch-unexpected"),
    "empty patch of a failed one": ("validation-failure", FAILED, "", "patch-unexpected"),
    "patch of another tool": ("completed", "Done.", "*** Begin Patch\n", "patch-invalid"),
    "no summary": ("completed", " ", PATCH, "summary-empty"),
    **{
        f"{word} as a summary": ("completed", word, PATCH, "summary-empty")
        for word in ("TODO", "...", "None.", "&nbsp;")
    },
    "the contract's summary": (
        "completed",
        "Brief description of what was implemented and tested.",
        PATCH,
        "summary-empty",
    ),
    "the contract's validation": (
        "validation-failure",
        "Step: Which validation step failed\nTried: the make run\nOutside: a broken mirror.",
        None,
        "validation-step-missing",
    ),
}
CHANGED = {
    "type in a code block": ("Type: spec-gap\n", "```\nType: spec-gap\n```\n", "blocker-type-missing"),
    "another type": ("spec-gap", "bad-mood", "blocker-type-unknown"),
    "two types": ("spec-gap", "spec-gap | spec-ambiguity", "blocker-type-unknown"),
    "two types in words": ("spec-gap", "`spec-gap` or `external-dependency`", "blocker-type-unknown"),
    "all types": ("spec-gap", "spec-gap, spec-ambiguity, spec-contradiction", "blocker-type-unknown"),
    "no section": (SPEC_LINE, 'Spec reference: docs/specs/a.md: "The list is read."\n', "blocker-spec-reference"),
    "the contract's impact": ("the task cannot be finished.", "The consequence if nothing changes.", "blocker-impact"),
    "no description": ("Description: The spec does not say what an empty list means.\n", "", "blocker-description"),
    "no advice": ("Recommendation: option 2, because a hidden error costs more.\n", "", "blocker-recommendation"),
    "no impact": ("Impact: the task cannot be finished.", "", "blocker-impact"),
    "no path": ("docs/specs/a.md", "the spec", "blocker-spec-reference"),
}  # fmt: skip
TOO_FEW = ["### Option A\n\n### Option B", "- A\n  - it is simple, but slow", "- 無視\n- 拒否"]
TOO_FEW += ["- Option A: wait (pro: no copy; con: two days late)", "### Wait\n\nPro: no copy; con: two days late"]
BROKEN_RESULTS: dict[str, Case] = {
    **{
        name: (report(outcome, summary, patch), code, "/patch" if "patch" in code else "/summary")
        for name, (outcome, summary, patch, code) in BROKEN_REPORTS.items()
    },
    **{name: (blocked_with(old, new), code, "/summary") for name, (old, new, code) in CHANGED.items()},
    **{f"options {text!r}": (blocked_with(OPTIONS, text), "blocker-options", "/summary") for text in TOO_FEW},
    "no step": (report("validation-failure", FAILED.replace("Step", "X")), "validation-step-missing", "/summary"),
}


# Reviewer


COMPLETE = {
    "labels": FINDING,
    "folded": "<details><summary>What: a</summary>\n\nWhy: b\nFix: c\n\n</details>",
    "a suggestion as fix": "What: a\nWhy: b\nFix:\n```suggestion\nrange(n)\n```",
}
REVIEWS = {
    "approval": approve(),
    "approval with a warning": approve(warn("a.py")),
    "approval with a warning in a list": approve(comment("a.py", 1, "- **[Warning]** It may be slow.")),
    "approval with the heading of a warning": approve(comment("a.py", 1, "### [Warning] It may be slow.")),
    "finding and warning": needs_changes(comment("a.py", 3), warn("a.py")),
    **{f"finding, {name}": needs_changes(comment("a.py", 1, text)) for name, text in COMPLETE.items()},
}
INCOMPLETE = {
    "a label in code": "What: a\nWhy: b\n```\nFix: c\n```",
    "a word that only looks alike": "What: a\nWhy: b\nFixture: c",
    "the contract's words": "What: a\nWhy: b\nFix: **Concrete, actionable guidance** for resolving the issue.",
}
FIRST = "/review/comments/0"
BROKEN_RESULTS |= {
    **{
        f"finding, {name}": (needs_changes(comment("a.py", 1, text)), "finding-incomplete", f"{FIRST}/body")
        for name, text in INCOMPLETE.items()
    },
    "no comment": (needs_changes(), "needs-changes-without-finding", "/review/comments"),
    "only a warning": (needs_changes(warn("a.py", 1)), "needs-changes-without-finding", "/review/comments"),
    "approval with a finding": (approve(comment("a.py", 1)), "approve-with-finding", f"{FIRST}/body"),
    **{f"line {n}": (needs_changes(comment("a.py", n)), "line-invalid", f"{FIRST}/line") for n in (0, -3)},
    **{
        f"path {path!r}": (needs_changes(comment(path, 1)), "path-invalid", f"{FIRST}/path")
        for path in ("", "/etc/passwd", "../a.py", "a/../../b", "C:\\a.py", ".", "./", "src/", "src/..", "a\\")
    },
    **{
        f"the contract's summary of a rejection, {text}": (
            needs_changes(comment("a.py", 1, "What: a\nWhy: b\nFix: c"), summary=text),
            "summary-empty",
            "/review/summary",
        )
        for text in (
            "The summary describes the findings.",
            "One or more checklist steps have findings. The summary describes the findings.",
            "Provides a high-level overview of the review result.",
            "It summarizes the findings.",
        )
    },
    "the contract's summary of a review": (
        approve(summary="Confirms all checks passed and lists any warnings."),
        "summary-empty",
        "/review/summary",
    ),
    "no summary of a review": (approve(summary=" "), "summary-empty", "/review/summary"),
    "a hidden summary of a review": (approve(summary="<span></span>"), "summary-empty", "/review/summary"),
    "a hidden comment": (approve(comment("a.py", None, "[Warning] <!-- x -->")), "comment-empty", f"{FIRST}/body"),
    "a review to do": (approve(summary="TBD"), "summary-empty", "/review/summary"),
    "the contract's words about approvals": (
        approve(summary="For approvals, it confirms all checks passed and lists any warnings."),
        "summary-empty",
        "/review/summary",
    ),
    "empty comment": (approve(comment("a.py", None, "[Warning] ")), "comment-empty", f"{FIRST}/body"),
}

VALID = {**PLANS, **REPORTS, **REVIEWS}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_result_has_no_findings(name: str) -> None:
    assert check(VALID[name]) == []


@pytest.mark.parametrize("name", BROKEN_PLANS)
def test_a_broken_rule_of_a_plan_is_found_at_its_place(name: str) -> None:
    result, code, path = BROKEN_PLANS[name]
    assert (code, "error", path) in check(result)


@pytest.mark.parametrize("name", BROKEN_RESULTS)
def test_a_broken_rule_of_another_result_is_the_only_finding(name: str) -> None:
    result, code, path = BROKEN_RESULTS[name]
    assert {*check(result)} == {(code, "error", path)}


UNLABELLED = (
    "This is wrong.",
    "See:\n\n```\nType: spec-gap\nDescription: a\nStep: b\nTried: c\nWhat: d\nWhy: e\n```",
    "Die Prüfung der Typen bricht ab.\n\nDer Fehler liegt in einem fremden Modul: er ist alt.",
)
STEERING = "diff --git a/AGENTS.md b/AGENTS.md\n--- a/AGENTS.md\n+++ b/AGENTS.md\n@@ -1 +1 @@\n-a\n+b\n"
WARNED: list[tuple[Any, list[tuple[str, str]]]] = [
    (plan(task("a", "#5"), close=["5"]), [("closed-reference", "/create/0/blockedBy/0")]),
    (plan(task("a", "b#5"), task("b#5"), close=["5"]), [("closed-reference", "/create/0/blockedBy/0")]),
    (
        plan(task("b-c"), task("a", out_of_scope="- x/b — owned by b-c.\n- x/a (owned by b-c)\n- x/c (owned by a d)")),
        [("unknown-reference", "/create/1/body")],
    ),
    (plan(update=[update(1, labels=["bug"])]), [("label-kept", "/update/0/labels")]),
    (
        plan(
            task("a", in_scope="- src/x.py"),
            task("b", in_scope="- `./src/x.py` (new)"),
            task("c", "b", in_scope="- src/x.py"),
        ),
        [("shared-scope", "/create/1/body"), ("shared-scope", "/create/2/body")],
    ),
    (
        plan(
            task("a", in_scope="- src/"),
            task("b", in_scope="- src/x.py"),
            task("c", "b", in_scope="- lib/*", out_of_scope="- lib/y.py"),
            task("d", "b", in_scope="- lib/\n- lib/y.py", out_of_scope="None"),
            task("e", in_scope="- web/*.py"),
            task("f", in_scope="- web/x.md"),
        ),
        [("shared-scope", "/create/1/body"), ("shared-scope", "/create/3/body")],
    ),
    (
        plan(
            task("a", in_scope="- `**/*.py`"),
            task("b", in_scope="- src/x/"),
            task("c", in_scope="- src/x*/deep/\n- src/[x]*/"),
            task("d", in_scope="- Makefile\n- docs/a.md\n- web/*.ts\n- web/**/test_*.rs"),
            task("e", "a", in_scope="- web/x_*.rs\n- lib/"),
            task("f", in_scope="- `**/*.c`", out_of_scope="- lib/\n- src/"),
            task("g", "a", in_scope="- app/", out_of_scope="- `**/*.c`"),
        ),
        [("shared-scope", "/create/1/body"), ("shared-scope", "/create/2/body"), ("shared-scope", "/create/2/body")],
    ),
    (
        plan(
            task("a", in_scope="- `docs/**/*.md`\n- LICENSES\n- `src/*/a.py`\n- `**/*.cs`\n- .github"),
            task("b", in_scope="- `docs/v1.2`"),
            task("c", "b", in_scope="- `**/x.py`"),
            task("d", "c", in_scope="- src/profile"),
            task("e", "d", in_scope="- src/My.Tests"),
            task("f", "e", in_scope="- `.*/*.yml`"),
            task("g", "f", in_scope="- LICENSE\n- .gitignore\n- `docs/a.txt`\n- Dockerfile"),
        ),
        [("shared-scope", f"/create/{i}/body") for i in (1, 2, 3, 4, 5)],
    ),
    *((report("blocked", text), [("blocker-description", "/summary")]) for text in UNLABELLED),
    *((report("validation-failure", text), [("validation-step-missing", "/summary")]) for text in UNLABELLED),
    *((needs_changes(comment("a.py", 1, text)), [("finding-incomplete", f"{FIRST}/body")]) for text in UNLABELLED),
    (report("completed", "Done.", STEERING), [("steering-file", "/patch")]),
]


@pytest.mark.parametrize(("result", "expected"), WARNED)
def test_oddities_for_a_person_are_warnings(result: Any, expected: list[tuple[str, str]]) -> None:
    assert check(result) == [(code, "warning", path) for code, path in expected]


def review(verdict: str) -> dict[str, Any]:
    return {**approve(), "review": {**approve()["review"], "verdict": verdict}}


PRIORITY = "task:implement", "status:pending", "complexity:low"
SLIPS: dict[str, tuple[Any, str]] = {
    "slip": (plan(labelled(task("a"), *PRIORITY, "priority:hgih")), "priority:high"),
    "case": (plan(labelled(task("a"), *PRIORITY, "Priority:High")), "priority:high"),
    "key": ({("creat" if key == "create" else key): value for key, value in plan(task("a")).items()}, "create"),
    "case of a key": (
        plan({("temp_id" if key == "tempID" else key): value for key, value in task("a").items()}),
        "tempID",
    ),
    "verdict": (review("aprove"), "approve"),
    "outcome": (report("blockd", "Stopped."), "blocked"),
}
OTHER_WORDS: dict[str, Any] = {
    "a status that no new task has": plan(labelled(task("a"), "task:implement", "status:redy", "complexity:low")),
    "another word": plan(labelled(task("a"), *PRIORITY, "priority:someday")),
    "a word of another tracker": plan(labelled(task("a"), *PRIORITY, "priority:urgent")),
    "another key": {**plan(), "notes": []},
    "a key that is there": {**plan(), "creat": []},
    "another verdict": review("rejected"),
    "another blocker": blocked_with("spec-gap", "scope-constraint"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_hint_that_is_followed_blindly_corrects_the_fault(name: str) -> None:
    result, meant = SLIPS[name]
    (finding,) = (each for each in findings_of(result) if "Did you mean" in each.hint)
    assert finding.hint == f"Did you mean `{meant}`?"
    assert [each for each in findings_of(result) if each.code == finding.code] == [finding]
    *above, last = (int(step) if step.isdigit() else step for step in finding.path.split("/")[1:])
    parent = corrected = json.loads(json.dumps(result))
    for step in above:
        parent = parent[step]
    if isinstance(last, str) and "is not part" in finding.message:
        parent[meant] = parent.pop(last)
    else:
        parent[last] = meant
    assert [each for each in findings_of(corrected) if each.code == finding.code] == []


@pytest.mark.parametrize("name", OTHER_WORDS)
def test_a_word_that_is_another_one_gets_the_list_and_no_guess(name: str) -> None:
    assert findings_of(OTHER_WORDS[name])
    assert not [each.hint for each in findings_of(OTHER_WORDS[name]) if "Did you mean" in each.hint]


def without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: part for name, part in value.items() if name != key}


COMPLEX = labelled(refinement("a"), "task:refinement", "status:pending", "priority:high", "complexity:hgih")
SPLIT = {"role": "reviewer", "verdict": "approve", "sumary": "Fine.", "comments": []}
INSIDE = {"role": "reviewer", "review": {"verdict": "approve", "comments": []}, "summary": "Fine."}
EDITS: dict[str, tuple[Any, str, str]] = {
    "one of two": (
        plan(labelled(refinement("a"), "task:refinement", "status:pending", "priority:p3")),
        "/create/0/labels/2",
        "Use `priority:high` or `priority:medium`.",
    ),
    "a label beside the right one": (
        plan(labelled(task("a"), *TASK_LABELS, "task:test")),
        "/create/0/labels/4",
        "Remove it.",
    ),
    **{
        f"a type label beside the right one: {labels}": (
            plan(labelled(task("a"), *labels, *TASK_LABELS[1:])),
            f"/create/0/labels/{place}",
            "Remove it.",
        )
        for place, labels in (
            (1, ("task:implement", "task:refinement")),
            (0, ("task:refinement", "task:implement")),
            (1, ("task:implement", "task:implement")),
            (0, ("Task:Implement", "task:implement")),
            (0, (" task:implement", "task:implement")),
        )
    },
    "a status beside the right one": (
        plan(labelled(task("a"), TASK_LABELS[0], "status:ready", *TASK_LABELS[1:])),
        "/create/0/labels/1",
        "Remove it.",
    ),
    "a second priority": (plan(labelled(task("a"), *TASK_LABELS, "priority:low")), "/create/0/labels/4", "Keep one."),
    "a label with a blank": (
        plan(labelled(task("a"), *TASK_LABELS, " web")),
        "/create/0/labels/4",
        "Remove the whitespace.",
    ),
    "a finding of an approval": (
        approve(comment("a.py", 1, FINDING)),
        f"{FIRST}/body",
        "Set `verdict` to `needs-changes`, or begin the comment with `[Warning]`.",
    ),
    "a verdict without a finding": (
        needs_changes(warn("a.py")),
        "/review/comments",
        "Add a comment with `What:`, `Why:` and `Fix:` for each problem that the summary names.",
    ),
    "a label that no refinement has": (plan(COMPLEX), "/create/0/labels/3", "Remove it."),
    "a key beside its object": (INSIDE, "/summary", "Move it to `/review/summary`."),
    "a key below its object": (plan({**task("a"), "close": ["1"]}), "/create/0/close", "Move it to `/close`."),
    "a key below the object that lacks it": (
        without(plan({**task("a"), "close": []}), "close"),
        "/create/0/close",
        "Move it to `/close`.",
    ),
    "a value that has no place": (plan(update=[{**update(1), "close": True}]), "/update/0/close", "Remove it."),
    "another word for a missing key": (
        plan({"id": "a", **without(task("a"), "tempID")}),
        "/create/0/id",
        "Rename it to `tempID`, or remove it.",
    ),
    "a key of a sibling": (
        plan(update=[{**update(1), "title": "b"}]),
        "/update/0/title",
        "Write its content under a known key (`workItemID`, `body`, `labels`), or remove it.",
    ),
    "a list that may say the opposite": (
        plan({**task("a"), "blocks": ["b"]}),
        "/create/0/blocks",
        "Write its content under a known key (`tempID`, `title`, `body`, `labels`, `blockedBy`), or remove it.",
    ),
    "content that no key has": (
        {"role": "reviewer", "review": {**approve()["review"], "findings": [{"path": "a.py"}]}},
        "/review/findings",
        "Write its content under a known key (`verdict`, `summary`, `comments`), or remove it.",
    ),
}


@pytest.mark.parametrize(
    ("labels", "hints"),
    [
        ("task:refinement task:test task:implement", ["Remove it.", "Remove it."]),
        ("task:test task:tset", ["Use `task:implement`.", "Remove it."]),
        ("task:implement status:ready status:review", ["Use `status:pending`.", "Remove it."]),
    ],
)
def test_each_label_too_many_has_one_hint_and_following_all_corrects_the_list(labels: str, hints: list[str]) -> None:
    result = plan(labelled(task("a"), *labels.split(), *TASK_LABELS[2 if "status" in labels else 1 :]))
    found = sorted((each.path, each.hint) for each in findings_of(result))
    assert [hint for _, hint in found] == hints
    names = result["create"][0]["labels"]
    for path, hint in reversed(found):
        names[int(path.rpartition("/")[2])] = hint[5:-2] if hint.startswith("Use") else ""
    names[:] = filter(None, names)
    assert findings_of(result) == []


@pytest.mark.parametrize("name", EDITS)
def test_a_fault_has_one_hint_which_is_an_edit(name: str) -> None:
    result, path, hint = EDITS[name]
    assert [(each.path, each.hint) for each in findings_of(result)] == [(path, hint)]


def test_of_two_keys_that_belong_in_one_place_only_the_first_moves_there() -> None:
    items = {**task("a"), "close": ["1"]}, {**task("b"), "close": ["2"]}
    for close, first in (([], "Move it to `/close`"), (["9"], "Write its content")):
        hints = [each.hint for each in findings_of(plan(*items, close=close))]
        assert all(hint.startswith(start) for hint, start in zip(hints, (first, "Write its content"), strict=True))


def test_each_key_beside_a_missing_object_belongs_in_it() -> None:
    found = [(each.path, each.hint) for each in findings_of(SPLIT)]
    names = {"verdict": "verdict", "sumary": "summary", "comments": "comments"}
    assert found == [(f"/{key}", f"Move it to `/review/{name}`.") for key, name in names.items()]


ESCAPED: dict[str, tuple[Any, str]] = {
    "body": (plan(changed(task("a"), body=task("a")["body"].replace("\n", "\\n"))), "/create/0/body"),
    "update": (plan(update=[update(1, body=task("a")["body"].replace("\n", "\\n"))]), "/update/0/body"),
    "summary": (report("blocked", "Type: spec-gap\\nDescription: a\\nImpact: b"), "/summary"),
    "comment": (needs_changes(comment("a.py", 1, "What: a\\nWhy: b\\nFix: c")), f"{FIRST}/body"),
}


@pytest.mark.parametrize("text", [r"Normalised `\r\n` and `\n` line ends.", r"Reads C:\new\nodes.txt and C:\nt now."])
def test_a_text_about_line_ends_has_no_finding(text: str) -> None:
    assert check(report("completed", text, PATCH)) == []
    assert check(approve(summary=text)) == []


@pytest.mark.parametrize("name", ESCAPED)
def test_line_ends_that_were_escaped_twice_are_named_once(name: str) -> None:
    result, path = ESCAPED[name]
    assert check(result) == [("line-ends-escaped", "error", path)]


IN_BODIES = """
body-fenced criteria-missing criterion-unboxed objective-long options-too-few placeholder-left quote-missing scope-empty
scope-outside scope-overlap scope-unread section-empty section-missing section-repeated spec-path-missing
spec-section-missing trade-off-missing
"""


OF_LIMITS = {"items-too-many"}
"""Codes of limits that a command sets, which test_plan_updates.py has."""


def test_each_code_of_the_rules_has_a_case() -> None:
    folder = Path(accord.results.__file__).parent
    sources = [path.read_text() for path in (*folder.glob("*/rules.py"), folder / "body_rules.py")]
    codes = set(chain.from_iterable(re.findall(r'(?:Finding|warning)\(\s*"([a-z-]+)"', text) for text in sources))
    cases = {code for _, code, _ in chain(BROKEN_PLANS.values(), BROKEN_RESULTS.values())}
    warned = {code for _, expected in WARNED for code, _ in expected}
    assert codes - cases - warned - {*IN_BODIES.split()} - OF_LIMITS == set(), (
        "test_templates.py has the codes of bodies"
    )


MISSPELT = task("a", "bb-tsak")
MISSPELT["labels"][2] = "priority:hihg"
MISSPELT_BODY = task_body().replace("Acceptance Criteria", "Acceptance Criterias")
MESSAGES = [
    (plan(MISSPELT, task("bb-task")), "label-unknown", "Did you mean `priority:high`?"),
    (plan(MISSPELT, task("bb-task")), "unknown-reference", "Did you mean `bb-task`?"),
    (plan(task("b-cd"), task("a", out_of_scope="- x (owned by #bcd)")), "unknown-reference", "Did you mean `#b-cd`?"),
    (plan(task("b-cd"), task("a", out_of_scope="- x (owned by `#bcd`)")), "unknown-reference", "Did you mean `#b-cd`?"),
    (plan(task("b-c"), task("a", out_of_scope="- x/a (owned by b-c)")), "unknown-reference", "Did you mean `#b-c`?"),
    (plan(task("a "), task("b", "a")), "unknown-reference", "Did you mean `a `?"),
    (plan(task("a"), task("b", "task-2")), "unknown-reference", "a tempID of this result: `a`."),
    (plan(task("bb-task", "bbtask")), "unknown-reference", "nor a work item number. Use a number like 42."),
    (
        plan(task("b-c", out_of_scope="- x (owned by #bc)")),
        "unknown-reference",
        "nor a work item number. Use a number like 42.",
    ),
    (
        plan(update=[update(1, body=task_body(out_of_scope="- x (owned by #bc)"))]),
        "unknown-reference",
        "nor a work item number. Use a number like 42.",
    ),
    *((plan(close=[text]), "unknown-reference", "Use `12`.") for text in ("GH-12", "012", "#012", "issue #12")),
    *(
        (plan(task("a"), task("b", text)), "unknown-reference", "Use `12` if that is an issue of this repository.")
        for text in ("https://github.com/o/r/issues/12", "o/r#12")
    ),
    (plan(update=[changed(update(1), workItemID="GH-12")]), "unknown-reference", "Use `12`."),
    (plan(task("a"), close=["temp-12"]), "unknown-reference", "Use its number, such as `42`."),
    (plan(task("a", body=MISSPELT_BODY)), "section-missing", "Did you mean `Acceptance Criteria`?"),
    *(
        (blocked_with("spec-gap", text), "blocker-type-unknown", "Did you mean `spec-gap`?")
        for text in ("spec-gpa", "specgap", "spec_gap", "`SPEC_GAP`, I think")
    ),
    (
        plan(labelled(task("a"), "task:refinement", *TASK_LABELS[1:])),
        "label-forbidden",
        "`task:refinement` does not fit the body, which has the sections of a task. Use `task:implement`.",
    ),
    (
        plan(labelled(refinement("a"), "task:implement", *TASK_LABELS[1:3])),
        "label-forbidden",
        "`task:implement` does not fit the body, which has the sections of a refinement. Use `task:refinement`.",
    ),
    (
        report("blocked", "Type: spec-gap\nThe spec lacks a number."),
        "blocker-description",
        "only the label `Type`, so accord cannot tell whether it is complete. Add the lines `Description:`,",
    ),
    (
        report("validation-failure", "Tried: the make run"),
        "validation-step-missing",
        "only the label `Tried`, so accord cannot tell whether it is complete. Add the lines `Step:` and `Outside:`.",
    ),
    (plan(task("a", "b"), task("b", "c"), task("c", "a"), task("d")), "dependency-cycle", "a → b → c → a"),
]


@pytest.mark.parametrize(("result", "code", "said"), MESSAGES)
def test_a_message_names_the_nearest_valid_word_and_the_whole_cycle(result: Any, code: str, said: str) -> None:
    message = next(finding.text for finding in findings_of(result) if finding.code == code)
    assert said in message


def test_a_plan_of_wrong_references_gets_few_suggestions_since_each_is_compared_with_every_name() -> None:
    findings = findings_of(plan(*(task(f"task-{n}", f"tsk-{(n + 1) % 60}") for n in range(60))))
    hints = [finding.hint for finding in findings if finding.code == "unknown-reference"]
    assert [hint.startswith("Did you mean `task-") for hint in hints] == [True] * 20 + [False] * 40


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 8\n"


def replaced(old: str, new: str, path: str = "x.bin") -> str:
    lines = [f"-{line}\n" for line in old.splitlines()] + [f"+{line}\n" for line in new.splitlines()]
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
    return f"{head}@@ -1,{len(old.splitlines())} +1,{len(new.splitlines())} @@\n{''.join(lines)}"


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (POINTER.format("1" * 64), "bytes\n", ["filtered-content"]),
        (POINTER.format("1" * 64), POINTER.format("2" * 64), []),
        (POINTER.format("1" * 64), "", []),
        ("a\n", "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n", ["conflict-markers"]),
        ("a\n", "<<<<<<< a\n1\n||||||| base\n0\n=======\n2\n>>>>>>> b\n", ["conflict-markers"]),
        ("a\n", "Heading\n=======\n>>>>>>> quoted\n", []),
        ("a\n", "    <<<<<<< a\n    =======\n    >>>>>>> b\n", []),
    ],
)
def test_pointers_that_become_bytes_and_markers_are_found_in_a_patch(old: str, new: str, wanted: list[str]) -> None:
    result = {"role": "implementor", "outcome": "completed", "patch": replaced(old, new), "summary": "Did it."}
    findings = findings_of(result)
    assert [finding.code for finding in findings] == wanted
    assert all("`x.bin`" in finding.message for finding in findings)


def added(path: str, line: str) -> str:
    return f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n"


LFS, RAW, FOUND = "*.bin filter=lfs", added("a.bin", "bytes"), ["filtered-content"]
OTHERS, IN_FOLDER = replaced("a\n", "b\n", "src/a.py"), added("sub/.gitattributes", LFS) + added("sub/a.bin", "bytes")
BY_FILTERS: dict[str, tuple[str | None, str, list[str]]] = {
    "by the checkout's attributes": (LFS, RAW, FOUND),
    "by another filter": ("*.bin filter=upper", RAW, FOUND),
    "for other names": ("*.psd filter=lfs", RAW, []),
    "by attributes that the patch adds": ("", IN_FOLDER, FOUND),
    "by attributes that the patch takes away": (LFS, replaced(LFS, "*.psd text", ".gitattributes") + RAW, FOUND),
    "beside a changed file": (LFS, OTHERS + RAW, FOUND),
    "without a checkout": (None, added(".gitattributes", LFS) + OTHERS + RAW, FOUND),
    "without a checkout, a pointer": (None, replaced(POINTER.format(1), "b\n") + added("a", "filter="), FOUND),
    "without attributes": (None, RAW, []),
}


@pytest.mark.parametrize("name", BY_FILTERS)
def test_bytes_of_files_with_a_filter_are_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attributes, patch, wanted = BY_FILTERS[name]
    if attributes is not None:
        repository(tmp_path, {"src/a.py": "a\n", **({".gitattributes": f"{attributes}\n"} if attributes else {})})
    monkeypatch.chdir(tmp_path)
    result = {"role": "implementor", "outcome": "completed", "patch": patch, "summary": "Did it."}
    assert [finding.code for finding in findings_of(result) if finding.code != "steering-file"] == wanted
    if attributes is not None:  # as `apply` finds it, and also where the work is committed already
        subprocess.run(["git", "apply"], input=patch.encode(), check=True)
        head = commit(tmp_path)
        changes = changes_between(Git(tmp_path), "HEAD^", head)
        found = filtered_findings(Git(tmp_path), "HEAD^", changes, changes)
        assert [finding.code for finding in found.values()] == wanted
        assert [finding.code for finding in findings_of(result) if finding.code != "steering-file"] == wanted


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/src/a.py", "such as `src/a.py`."),
        ("../a.py", "root."),
        ("/../a.py", "root."),
        ("C:\\a.py", "root."),
        ("/home/runner/work/tools/tools/src/http/retry.ts", "such as `src/http/retry.ts`."),
        ("/github/workspace/src/a.py", "such as `src/a.py`."),
        ("/__w/tools/tools/work/tools/tools/a.py", "such as `work/tools/tools/a.py`."),
        ("/opt/actions-runner/_work/tools/tools/a.py", "such as `a.py`."),
        ("D:\\a\\tools\\tools\\src\\a.py", "such as `src/a.py`."),
        ("/home/runner/work/tools/other/a.py", "root."),
        ("/home/ann/tools/src/a.py", "root."),
        ("/workspace/src/a.py", "root."),
        ("/tmp/tools/src/a.py", "root."),
        ("/github/workspace/src/", "root."),
        ("//src/a.py", "root."),
    ],
)
def test_a_path_from_the_root_gets_the_relative_one_as_a_hint(path: str, hint: str) -> None:
    assert [finding.hint.endswith(hint) for finding in findings_of(needs_changes(comment(path, 1)))] == [True]


def test_long_scope_lists_take_time_in_proportion_to_their_entries() -> None:
    def check_lists(entries: int) -> None:
        inside, outside = ("\n".join(f"- src/{side}{i}.py" for i in range(entries)) for side in "ab")
        bodies = [task_body(in_scope=inside, out_of_scope=outside), task_body(in_scope=inside)]
        assert check(plan(*(task(f"t{i}", body=body) for i, body in enumerate(bodies))))

    assert not grows_too_fast(check_lists, 1_000, noticed=0.1)


def test_the_time_for_many_unknown_keys_beside_many_entries_grows_in_proportion() -> None:
    def check_keys(count: int) -> None:
        entries = [without(task(f"t{n}", body="a"), "tempID") for n in range(10 * count)]
        names = islice(map("".join, product(*((char, char.upper()) for char in "tempid"), ["", "_", "-", " "])), count)
        assert len(findings_of({**plan(*entries), **dict.fromkeys(names, "x")})) > 10 * count

    assert not grows_too_fast(check_keys, 120, noticed=0.4)


@pytest.mark.parametrize("unit", [".", "a.b::", "{,", ",", "\uff08"])
def test_a_long_word_in_a_scope_list_takes_time_in_proportion_to_its_length(unit: str) -> None:
    def read(size: int) -> None:
        read_body.cache_clear()
        for start in ("`` [", "`{", "`a", "a"):
            assert read_body(task_body(in_scope=f"- {start}{unit * (size // len(unit))}/x`")).scopes

    assert not grows_too_fast(read, 20_000, noticed=0.1)


def test_many_titles_in_a_scope_list_take_time_in_proportion_to_them() -> None:
    def read(size: int) -> None:
        read_body.cache_clear()
        assert not read_body(task_body(in_scope="a:\n" * size)).scopes[0].paths

    assert not grows_too_fast(read, 10_000, noticed=0.1)


def test_a_glob_beside_many_files_takes_time_in_proportion_to_them() -> None:
    assert not grows_too_fast(lambda size: crossing_entries(["**", *map(str, range(size))]), 16_000, noticed=0.1)


def test_each_of_two_globs_is_compared_with_entries() -> None:
    entries = [f"{i}.{kind}" for i in range(10_500) for kind in ("py", "c")]
    found = crossing_entries(["*.py", "*.c", *entries])
    assert len(found["*.py"]) == len(found["*.c"]) > 0
