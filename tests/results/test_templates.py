"""Bodies are read as GitHub shows them: structure counts where a reader sees it, and nowhere else."""

import re

import pytest
from support.plans import refinement_body, task_body

from accord.results.bodies import likely_kind, read_body
from accord.results.body_rules import body_findings
from accord.results.labels import ItemKind


def codes(body: str, kind: ItemKind = ItemKind.TASK) -> set[str]:
    return {finding.code for finding in body_findings(read_body(body), kind, "/body")}


TASK = task_body()
UNSEEN = ("&nbsp;", "<br>", "<span></span>", "...", "?", "\u3164", "-")
TASK_CASES: dict[str, tuple[str, set[str]]] = {
    "as the template has it": (TASK, set()),
    "CRLF": (TASK.replace("\n", "\r\n"), set()),
    "setext headings": (TASK.replace("## Objective\n", "Objective\n---\n"), set()),
    "another order": (
        "## Constraints\n\nNone\n\n" + TASK.replace("## Constraints\n\nNone\n", "") + "\n## Notes\n\nMore.\n",
        set(),
    ),
    "heading in a fence": (TASK.replace("## Objective\n", "```\n## Objective\n```\n"), {"section-missing"}),
    "heading in a quote": (TASK.replace("## Objective\n", "> ## Objective\n"), {"section-missing"}),
    "heading in a comment": (TASK.replace("## Objective\n", "<!--\n## Objective\n-->\n"), {"section-missing"}),
    "heading in a list": (TASK.replace("## Objective\n", "- ## Objective\n"), {"section-missing"}),
    "heading of another level": (TASK.replace("## Objective", "# Objective"), {"section-missing"}),
    "comment that never ends": (TASK.replace("## Context", "<!-- ## Context"), {"section-missing"}),
    **{
        f"{title} as a heading": (TASK.replace("## Objective\n", f"## {title}\n"), set())
        for title in ("**Objective**", "1. Objective", "2.1 _Objective_:", "`Objective` ##", "\U0001f3af Objective")
    },
    "every heading with a number": (TASK.replace("# ", "# 3. "), set()),
    "a heading and one like it": (TASK.replace("## Obj", "## 1. Obj") + "\n## Context:\n\nMore.\n", set()),
    "In Scope outside of Scope": (
        TASK.replace("### In Scope\n\n- src/a.py\n\n", "") + "\n### In Scope\n\n- src/a.py\n",
        {"section-missing"},
    ),
    "empty objective": (task_body(objective=""), {"section-empty"}),
    "objective is None": (task_body(objective="None"), {"section-empty"}),
    "objective is a comment": (task_body(objective="<!-- say it -->"), {"section-empty"}),
    **{f"objective is {text}": (task_body(objective=text), {"section-empty"}) for text in UNSEEN},
    **{f"context is {text}": (task_body(context=text), {"section-empty"}) for text in UNSEEN},
    **{
        f"a box with {text}": (task_body(criteria=f"- [ ] It works\n- [ ] {text}"), {"criteria-missing"})
        for text in UNSEEN
    },
    "a title of an own criterion": (task_body(criteria="- [ ] Criterion 1 of the spec", context="Criterion 1"), set()),
    "an address as the context": (task_body(context="<https://example.org/a>"), set()),
    "context is None": (task_body(context="None."), set()),
    "context is a heading": (task_body(context="### Notes\n\n#### Of 2026"), {"section-empty"}),
    "context is empty": (task_body(context=""), {"section-empty"}),
    "nothing out of scope": (task_body(out_of_scope="- None"), set()),
    "out of scope is empty": (task_body(out_of_scope=""), {"section-empty"}),
    "no path in scope": (task_body(in_scope="Everything that is needed."), {"scope-empty"}),
    "prose in the list": (task_body(in_scope="- the parser and its tests"), {"scope-empty"}),
    "code in the list": (task_body(in_scope="- whatever calls `parse()`"), {"scope-empty"}),
    "none in scope": (task_body(in_scope="- None"), {"scope-empty", "section-empty"}),
    "path in a fence": (task_body(in_scope="```\n- src/a.py\n```"), set()),
    "both in and out": (task_body(in_scope="- src/a.py", out_of_scope="- `./src//a.py`"), {"scope-overlap"}),
    "the same folder in and out": (task_body(in_scope="- src/**", out_of_scope="- src/"), {"scope-overlap"}),
    **{
        f"out of scope is {text}": (task_body(in_scope="- src/a.py", out_of_scope=f"{text}"), {"scope-unread"})
        for text in (
            "- Any file other than `src/a.py`",
            "- Anything not in src/a.py",
            "- All tests, excluding `src/a.py`",
            "- Other functions of `src/a.py`",
            "- Everything except: src/a.py",
            "- Everything else (`src/a.py` may change)",
            "- Everything but\n  - `src/a.py`",
            "All files besides:\n\n- ./src/a.py",
            "Anything beyond the file\n`src/a.py`.",
            "#### Any file other than\n\n- src/a.py",
            "- `src/a.py` is the only file that may change",
            "- Changes to `src/a.py`",
            "- All but src/a.py and src/test_a.py",
            "- Everything else",
        )
    },
    **{
        f"out of scope is also {text}": (task_body(in_scope="- src/a.py", out_of_scope=text), {"scope-overlap"})
        for text in (
            "Files/modules explicitly excluded:\n\n- src/a.py (owned by #2)",
            "- `src/a.py` — later",
        )
    },
    **{
        f"out of scope as well is {text}": (task_body(in_scope="- src/a.py", out_of_scope=text), set())
        for text in (
            "**All code not in this task:**\n\n- `src/b.py`",
            "- Everything beyond CSV: `src/b.py`",
            "- **PDF** (`src/b.py`, owned by #3)",
            "- All files below `src/x/`\n- Anything that touches `src/y/`\n- All other files in `src/z/`",
            "- All files that must not change: `src/b.py`",
        )
    },
    "folder in, file out": (task_body(in_scope="- src/", out_of_scope="- src/a.py"), set()),
    "file in, folder out": (task_body(in_scope="- src/a.py", out_of_scope="- src/**"), set()),
    "criteria without boxes": (task_body(criteria="- It works"), {"criteria-missing"}),
    "criteria below headings": (task_body(criteria="### A\n\n- [ ] It works\n\n#### B\n\n- [ ] Fast"), set()),
    "criteria below headings without boxes": (task_body(criteria="### A\n\n- It works"), {"criteria-missing"}),
    "a criterion without a box": (task_body(criteria="- [ ] It works\n- It is fast"), {"criterion-unboxed"}),
    "a numbered one below a heading": (
        task_body(criteria="- [ ] It works\n\n### Speed\n\n1. It is fast"),
        {"criterion-unboxed"},
    ),
    "details of a criterion": (task_body(criteria="- [ ] It works\n  - with a file\n    - of any size"), set()),
    "box in a fence": (task_body(criteria="```\n- [ ] It works\n```"), {"criteria-missing"}),
    "box in a quote": (task_body(criteria="> - [ ] It works"), {"criteria-missing"}),
    "box in a comment": (task_body(criteria="See below.\n\n<!--\n- [ ] It works\n-->"), {"criteria-missing"}),
    "box without text": (task_body(criteria="Then:\n\n- [ ] "), {"criteria-missing"}),
    "ticked box": (task_body(criteria="- [x] It works"), set()),
    "objective of the template": (task_body(objective="One sentence: what this task achieves."), {"placeholder-left"}),
    "objective to do": (task_body(objective="TODO"), {"placeholder-left"}),
    "criterion to do": (task_body(criteria="- [ ] It works\n- [ ] TBD"), {"placeholder-left"}),
    "criteria of the template": (task_body(criteria="- [ ] Criterion 1\n- [ ] Criterion 2"), {"placeholder-left"}),
    **{
        f"{text} as criteria": (task_body(criteria=text), {"placeholder-left"})
        for text in (
            "- [ ] It works\n- [ ] **Criterion 2**",
            "### Speed\n\n1. [ ] Criterion 1\n   - It is fast",
            "- Export\n  - [ ] `Criterion`",
        )
    },
    **{
        f"{text} among the criteria": (task_body(criteria=f"{text}\n\n- [ ] It works"), set())
        for text in (
            "| Criterion | Test |\n|-|-|\n| speed | `a.py` |",
            "| # | **Criterion** |\n|-|-|\n| 1 | speed |",
            "| Criterion 1 | speed |\n|-|-|\n| Criterion 2 | size |",
            "**Criterion 1**\n\nIt is fast.",
            "Criterion 1:\n- [ ] It is fast",
            "### Criterion 1",
            "- **Criterion 1**\n  - [ ] It is fast",
            "- [ ] **Criterion 1**\n  It is fast",
            "```\nCriterion 1\n```",
        )
    },
    "a head of a table in the context": (task_body(context="| Done | Todo |\n|-|-|\n| CSV | vCard |"), set()),
    "a cell to do": (task_body(context="| File | Part |\n|-|-|\n| a.py | TODO |"), {"placeholder-left"}),
    "context of the template": (task_body(context="Anything the agent needs beyond the spec."), {"placeholder-left"}),
    "constraints of the template": (task_body(constraints="What the agent must NOT do"), {"placeholder-left"}),
    "scope of the template": (task_body(in_scope="- path/to/file.ts"), {"placeholder-left"}),
    "owner of the template": (task_body(out_of_scope="- src/b.py (owned by #<issue-number>)"), {"placeholder-left"}),
    "spec of the template": (TASK.replace("specs/a.md", "specs/<name>.md"), {"placeholder-left"}),
    "sections of the template": (TASK.replace("): All", "): <relevant sections>"), {"placeholder-left"}),
    "an element in a section's name": (TASK.replace("): All", "): The `<name>` element"), set()),
    "an element before a section's name": (TASK.replace("): All", "): `<name>` elements"), set()),
    "angle brackets of an address": (task_body(context="The page is `/users/<name>`, see <https://a.b>."), set()),
    "no spec file": (TASK.replace("`docs/specs/a.md`", "the specification"), {"spec-path-missing"}),
    "an issue as the spec": (TASK.replace("`docs/specs/a.md`", "#12"), set()),
    "no section of the spec": (TASK.replace("- Section(s): All\n", ""), {"spec-section-missing"}),
    "an issue in place of a section": (TASK.replace("Section(s): All", "Issue: #5"), {"spec-section-missing"}),
    "a file in place of a section": (TASK.replace("Section(s): All", "Plan: `docs/b.md`"), {"spec-section-missing"}),
    "an empty section of the spec": (TASK.replace("): All", "):"), {"spec-section-missing"}),
    "the spec with an anchor": (TASK.replace("a.md`\n- Section(s): All", "a.md#limits`"), set()),
    "the section after the file": (TASK.replace("`\n- Section(s): All", "`, Limits"), set()),
    "none as the spec": (TASK.replace("`docs/specs/a.md`", "N/A"), {"spec-path-missing"}),
    "a word of a template above a list": (task_body(context="TODO:\n\n- It is old."), {"placeholder-left"}),
    "words of the template above nothing": (task_body(constraints="What the agent must not do:"), {"placeholder-left"}),
    "words of the template above a list": (
        task_body(context="Anything the agent needs beyond the spec:\n\n- It is old.", constraints="**What** to do"),
        set(),
    ),
    "two sentences": (task_body(objective="Make it work. Then make it fast."), {"objective-long"}),
    "two paragraphs": (task_body(objective="Make it work\n\nmake it fast"), {"objective-long"}),
    "two entries": (task_body(objective="- Make it work\n- Make it fast"), {"objective-long"}),
    "two Chinese sentences": (task_body(objective="联系人可以导出。文件是CSV。"), {"objective-long"}),
    "one Chinese sentence": (task_body(objective="联系人可以导出。"), set()),
    "one sentence with a list": (task_body(objective="Contacts are exported:\n\n- as CSV\n- as vCard"), set()),
    "two sentences on two lines": (task_body(objective="Make it work.\n\n**Make** it fast."), {"objective-long"}),
    "a question and an answer": (task_body(objective="Is it fast? It should be."), {"objective-long"}),
    "one sentence with points": (task_body(objective="Read v1.2 of `a.b. C`, e.g. CSV, etc. And so on"), set()),
    "one sentence with a remark": (task_body(objective="Contacts follow RFC 4180 (cf. Sec. 2, No. 3)."), set()),
    "a remark between sentences": (task_body(objective="Make it work (cf. No. 3). Make it fast."), {"objective-long"}),
    "one sentence on two lines": (task_body(objective="Make it\nWork."), set()),
    "a link to the spec": (TASK.replace("`docs/specs/a.md`", "[export](docs/specs/export.md)"), set()),
    "objective twice": (TASK + "\n## Objective\n\nMore.\n", {"section-repeated"}),
    "in scope twice": (TASK.replace("### Out", "### In Scope\n\n- src/b.py\n\n### Out"), {"section-repeated"}),
    "a section of its own twice": (TASK + "\n## Notes\n\nA.\n\n## Notes\n\nB.\n", set()),
    "absolute path": (task_body(in_scope="- /etc/passwd"), {"scope-outside"}),
    "path out of the tree": (task_body(in_scope="- `src/../../a.py`"), {"scope-outside"}),
    "path of a home": (task_body(in_scope="- ~/a.py"), {"scope-outside"}),
    "path of a drive": (task_body(in_scope="- `C:\\a.py`"), {"scope-outside"}),
    "absolute path out of scope": (task_body(out_of_scope="- `/etc/passwd`"), {"scope-outside"}),
    "path with dots": (task_body(in_scope="- src/../a..py\n- .github/a.yml\n- src/...py"), set()),
    "numbered boxes": (task_body(criteria="1. [ ] It works"), set()),
    "box in a nested list": (task_body(criteria="- Group\n  - [ ] It works"), set()),
}


@pytest.mark.parametrize("name", TASK_CASES)
def test_a_task_is_judged_by_what_its_reader_sees(name: str) -> None:
    body, expected = TASK_CASES[name]
    assert codes(body) == expected


NAMED = (
    '2.1 "Roles and rights of members"',
    "\u201cRoles\u201d, \u201cAPI\u201d",
    '\u00a7 2 "Roles"; \u00a7 3 "API"',
    '2.1 and 2.2 "Roles" & "API"',
    '"Roles" / \'Rights\' and 2.1\u20132.3 "API"',
    'Roles, "API"',
    '\n  - "Roles"\n  - 2.1 "API"',
)
SILENT = (
    "N/A (the spec is silent)",
    "(none \u2014 the section does not exist)",
    'None (it says nothing of "speed").',
    "*n/a* [not there]",
    "\n  none - it is silent",
)
REFINEMENT_CASES: dict[str, tuple[str, set[str]]] = {
    "as the template has it": (refinement_body(), set()),
    "quote as a block": (refinement_body(quote="\n> It shall be fast."), set()),
    "bold label": (refinement_body(quote="- **Quote:** It shall be fast."), set()),
    "no quote": (refinement_body(quote=""), {"quote-missing"}),
    "empty quote": (refinement_body(quote="- Quote:"), {"quote-missing"}),
    **{
        f"quote is {text}": (refinement_body(quote=f"- Quote: {text}"), {"quote-missing"})
        for text in ("None", "TBD", "&nbsp;", '"..."', "<!-- It shall be fast. -->", *SILENT)
    },
    **{
        f"quote below {label}": (refinement_body(quote=f"{label}It shall be fast."), set())
        for label in (
            "- Quote 1: ",
            "- Quote (line 12): ",
            "- **Quote** (lines 3-4): ",
            "\n### Quote\n\n",
            "\n**Quotes**\n\n- ",
            "- Relevant quote: ",
            "- Quoted text: ",
            "\n| Quote | Line |\n|-|-|\n| 2 | ",
        )
    },
    **{
        f"nothing below {label}": (refinement_body(quote=label), {"quote-missing"})
        for label in (
            "- Quote 1: TBD",
            "- Quote (line 12):",
            "\n### Quote",
            "- Quote\n- Spec: `docs/specs/b.md`",
            "| Quote | N/A |\n| Spec | `docs/specs/b.md` |",
        )
    },
    "quote on its own line": (refinement_body(quote='\nIt says: "It shall be fast."'), set()),
    "quote before the file": (refinement_body(quote="- Quote:\n- Spec: `docs/specs/b.md`"), {"quote-missing"}),
    "quote below its label": (refinement_body(quote="- Quote:\n\n  > It shall be fast."), set()),
    "quote as code": (refinement_body(quote="- Quote:\n\n  ```\n  It shall be fast.\n  ```"), set()),
    "quoted section only": (
        refinement_body(quote="").replace("- Section(s): Speed", '- Section(s): "Speed"'),
        {"quote-missing"},
    ),
    **{
        f"no quote behind {name} but {quote.strip()}": (
            refinement_body(quote=quote).replace("- Section(s): Speed", f"- Section(s): {name}"),
            {"quote-missing"},
        )
        for name in NAMED
        for quote in ("", "- Quote:", "- Quote: none")
    },
    **{
        f"quote of {name}": (refinement_body().replace("- Section(s): Speed", f"- Section(s): {name}"), set())
        for name in NAMED
    },
    **{
        f"the quote of {text}": (
            refinement_body(quote="").replace("- Section(s): Speed", f"- {text}\n"),
            set(),
        )
        for text in (
            'Section 2.1: "It shall be fast"',
            'Section: Speed \u2014 "It shall be fast"',
            'Section: 2.1 "Speed" - "It shall be fast"',
            'Section(s): "Speed", "Size": "It shall be fast"',
            'Section(s): "Speed"\n- "It shall be fast"',
            'Section(s):\n  - "Speed"\n- "It shall be fast"',
            "Section(s):\n- Speed\n- > It shall be fast",
            'Section(s): 2.1 "Speed"\n\n> It shall be fast',
            'Section(s): 2.1 "Speed"\n\n```\nIt shall be fast\n```',
            "\u00a72.1, \u201cIt shall be fast.\u201d",
        )
    },
    "no quote but that of a section's line": (
        refinement_body(quote="- Quote: none").replace(": Speed", ': Speed \u2014 "It shall be fast"'),
        {"quote-missing"},
    ),
    "sections as a list": (
        refinement_body().replace("- Section(s): Speed", "- Section(s):\n  - Speed\n  - Size"),
        set(),
    ),
    "a section with the name of a placeholder": (
        refinement_body().replace("- Section(s): Speed", "- Section(s): Todo"),
        set(),
    ),
    "no name of a section": (
        refinement_body().replace("- Section(s): Speed", "- Section(s):"),
        {"spec-section-missing"},
    ),
    "quote of nothing": (refinement_body(quote='- Quote: ""'), {"quote-missing"}),
    "one option": (refinement_body(options="1. **One** is enough"), {"options-too-few"}),
    "options as prose": (refinement_body(options="One or two."), {"options-too-few"}),
    "options as bullets": (refinement_body(options="- One: cheap\n- Two: good"), set()),
    "options without trade-offs": (refinement_body(options="- One\n- Two"), {"trade-off-missing"}),
    "options with names only": (
        refinement_body(options="1. **Option A** — Use UTF-8\n2. **Option B** — Use Latin"),
        {"trade-off-missing"},
    ),
    "pros and cons below": (refinement_body(options="- One\n  - cheap\n- Two\n  - good"), set()),
    "a table of options": (refinement_body(options="| | Cost |\n|-|-|\n| One | small |\n| Two | much |"), set()),
    "a table of letters": (refinement_body(options="| | Cost |\n|-|-|\n| A | small |\n| B | much |"), set()),
    "a table without costs": (
        refinement_body(options="| | Cost |\n|-|-|\n| One | |\n| Two | |"),
        {"trade-off-missing"},
    ),
    "options of the template": (
        refinement_body(options="1. **Option A** — description and trade-offs\n2. **Two** is better"),
        {"placeholder-left"},
    ),
    "quote of the template": (refinement_body(quote='- Quote: "<relevant text from spec>"'), {"placeholder-left"}),
    "section twice": (refinement_body() + "\n## Options\n\n1. More\n", {"section-repeated"}),
    "a reference as a table": (
        refinement_body(
            quote='\n| Spec | Section(s) | Quote |\n|-|-|-|\n| `docs/specs/a.md` | Speed | "It is fast." |'
        ),
        set(),
    ),
    "a table without a quote": (
        refinement_body(quote="\n| Spec | Section(s) | Quote |\n|-|-|-|\n| `docs/specs/a.md` | Speed | |"),
        {"quote-missing"},
    ),
    "a quote in place of a section": (
        refinement_body(quote='- Relevant quote: "It is fast."').replace("- Section(s): Speed\n", ""),
        {"spec-section-missing"},
    ),
    "no section of the spec": (refinement_body().replace("- Section(s): Speed\n", ""), {"spec-section-missing"}),
    "no spec file": (refinement_body().replace("`docs/specs/a.md`", "the spec"), {"spec-path-missing"}),
    "options as headings": (refinement_body(options="### One\n\nCheap.\n\n### Two\n\nGood."), set()),
    "options as headings of any level": (refinement_body(options="#### One\n\nCheap.\n\n#### Two\n\nGood."), set()),
    "headings below options": (
        refinement_body(options="### One\n\n#### Pros\n\nCheap.\n\n### Two\n\n#### Cons\n\nDear."),
        set(),
    ),
    "one option with headings": (
        refinement_body(options="#### One\n\n##### Pros\n\nCheap.\n\n##### Cons\n\nSlow."),
        {"options-too-few"},
    ),
    "headings without trade-offs": (refinement_body(options="#### One\n\n#### Two"), {"trade-off-missing"}),
    "options as paragraphs": (
        refinement_body(options="**Option A** is cheap, but slow.\n\n**Option B** is good, but dear."),
        set(),
    ),
    "options as bold lines above lists": (
        refinement_body(options="**Option A: One**\n\n- cheap\n- slow\n\n**Option B: Two**\n\n- good\n- dear\n- new"),
        set(),
    ),
    "options with bold labels below": (
        refinement_body(
            options="1. **One**\n   - **Pros:** cheap\n2. **Two**\n   - **Pros:** good\n   - **Cons:** dear"
        ),
        set(),
    ),
    "bold options above bold labels": (
        refinement_body(
            options="**One**\n- **Pros**: cheap\n- **Cons**: slow\n\n**Two**\n- **Pros**: good\n- **Cons**: dear"
        ),
        set(),
    ),
    "one option with bold labels": (
        refinement_body(options="- One\n  - **Pros**: cheap\n  - **Cons**: slow"),
        {"options-too-few"},
    ),
    "headings above tables": (
        refinement_body(
            options="### One\n\n| + | - |\n|-|-|\n| cheap | slow |\n\n### Two\n\n| + | - |\n|-|-|\n| good | dear |"
        ),
        set(),
    ),
    "a table without a trade-off": (
        refinement_body(options="| Option | What | Trade-offs |\n|-|-|-|\n| A | One | slow |\n| B | Two | |"),
        {"trade-off-missing"},
    ),
    "options behind a bold introduction": (
        refinement_body(options="**Two ways were weighed:**\n\n- One: cheap\n- Two: good"),
        set(),
    ),
    "options in HTML": (refinement_body(options="### One\n\n<p>Cheap, slow.</p>\n\n### Two\n\n<p>Good.</p>"), set()),
    "options in code": (refinement_body(options="### One\n\n```py\na()\n```\n\n### Two\n\n    b()"), set()),
    "options in a comment": (refinement_body(options="<!--\n1. One: cheap\n-->\n2. Two: good"), {"options-too-few"}),
    "options in a quote": (refinement_body(options="> 1. One: cheap\n> 2. Two: good"), set()),
    "bold names in sentences": (refinement_body(options="**One.** It is cheap.\n\n**Two.** It is good."), set()),
    "an option that is spoken of": (refinement_body(options="The option is cheap."), {"options-too-few"}),
    "wide colon": (refinement_body(quote="- Quote\uff1a「速く」"), set()),
    "pros and cons are not options": (refinement_body(options="1. One\n   - cheap\n   - quick"), {"options-too-few"}),
    "no recommendation": (refinement_body(recommendation=""), {"section-empty"}),
    "recommendation is hidden": (refinement_body(recommendation="&nbsp;"), {"section-empty"}),
    "recommendation is None": (refinement_body(recommendation="None"), {"section-empty"}),
    "a task's body": (TASK, {"section-missing"}),
}


@pytest.mark.parametrize("name", REFINEMENT_CASES)
def test_a_refinement_is_judged_by_what_its_reader_sees(name: str) -> None:
    body, expected = REFINEMENT_CASES[name]
    assert codes(body, ItemKind.REFINEMENT) & expected == expected
    if not expected:
        assert codes(body, ItemKind.REFINEMENT) == set()


PATHS = {
    "src/a.py": "src/a.py",
    "`src/a b.py`": "src/a b.py",
    "`src/a.py` (owned by #3)": "src/a.py",
    "src/a.py (new)": "src/a.py",
    "src/a.py - the parser": "src/a.py",
    "src/a.py: the parser": "src/a.py",
    "./src//a.py": "src/a.py",
    "[a.py](src/a.py)": "src/a.py",
    "[src/a.py](https://example.org/a.py)": "src/a.py",
    "Makefile": "Makefile",
    "[`src/a.py`](src/a.py)": "src/a.py",
    "[src/a b.py](<src/a b.py> 'new')": "src/a b.py",
    "[the parser](src/a%20b.py#L3)": "src/a b.py",
    "[src/a.py](../../blob/main/src/a.py)": "src/a.py",
    "**[src/(g)/a.py](./src/(g)/a.py)**": "src/(g)/a.py",
    "[src/a.py][parser]": "src/a.py",
    "[Makefile](https://example.org/blob/main/Makefile)": "Makefile",
    "src/[...all]/a.ts": "src/[...all]/a.ts",
    "<code>src/a.py</code> — new": "src/a.py",
    "./": ".",
    "`./`": ".",
    "src/a.py::test_b[1]": "src/a.py",
    "`src/a.py:Parser.read`": "src/a.py",
    "src/a.py#read": "src/a.py",
    "src/{{cookiecutter.name}}/a.py": "src/{{cookiecutter.name}}/a.py",
    "src/": "src",
    "src/**/*.py": "src/**/*.py",
    "``we`ird.py``": "we`ird.py",
    "café/été.py": "café/été.py",
    "[ ] src/a.py": "src/a.py",
    "Create __init__.py": "__init__.py",
    "**src/a.py** — new": "src/a.py",
    "**src/**": "src",
    "*src/*": "src",
    "_src/a.py_ is new": "src/a.py",
    "__src/a__": "src/a",
    "*.min.*": "*.min.*",
    "**`src/a.py`**: new": "src/a.py",
    '"src/a.py"': "src/a.py",
    "src/a.py:10-20": "src/a.py",
    "`src/a.py#L7`": "src/a.py",
    "Update `src/a.py` and its neighbours": "src/a.py",
    "新しいファイル `src/a.py`": "src/a.py",
    "`docs/my file.md`": "docs/my file.md",
    "The page `docs/my file.md` and its picture": "docs/my file.md",
    "**/a.py": "**/a.py",
    "**/src/**": "**/src/**",
    "__tests__/": "__tests__",
    "src/app/[slug]/page.tsx": "src/app/[slug]/page.tsx",
}


@pytest.mark.parametrize("entry", PATHS)
def test_a_path_is_read_however_the_entry_is_dressed(entry: str) -> None:
    assert read_body(task_body(in_scope=f"- {entry}")).in_scope == (PATHS[entry],)


LISTS = {
    "two in one entry": (
        "- `src/a.py`, `src/b.py`\n- src/c.py and src/d.py (new)",
        "src/a.py src/b.py src/c.py src/d.py",
    ),
    "names of files in code": (
        "- `README.md`, `LICENSE`\n- Update `src/a.py` and `Makefile`\n- `api`, `web`",
        "README.md LICENSE src/a.py Makefile api web",
    ),
    "cells with remarks": (
        (
            "| File | Tests |\n|-|-|\n| `src/a.py` (new) | `t/a.py` |\n| Modify `src/b.py` | `t/b.py` (create) |\n"
            "| the folder `lib/core` | `go.mod` |\n| src/c.py - rows | t/unit: new |"
        ),
        "src/a.py t/a.py src/b.py t/b.py lib/core go.mod src/c.py t/unit",
    ),
    "one or both": ("- src/a.py and/or `src/b.py`", "src/a.py src/b.py"),
    "two without a comma": ("- src/a.py `src/b.py`", "src/a.py src/b.py"),
    "a remark in front": ("- (new) src/y.ts\n- (renamed, see #3) `src/z.ts`", "src/y.ts src/z.ts"),
    "a verb in front": (
        "- Create src/y.ts\n- Create the folder `lib/`\n- Modify: src/z.ts, src/w.ts",
        "src/y.ts lib src/z.ts src/w.ts",
    ),
    "a rename": ("- src/a.py -> src/b.py", "src/a.py src/b.py"),
    "a code block": ("```text\nsrc/a.py  # the parser\nsrc/b/\n```", "src/a.py src/b"),
    "a list in a code block": ("```\n- src/a.py\n* src/b.py\n```", "src/a.py src/b.py"),
    "a paragraph": ("Files that may change:\n`src/a.py`, `src/b.py`", "src/a.py src/b.py"),
    "a table": (
        "| What | File |\n|-|-|\n| the parser | `src/a.py` |\n| its test | tests/b.py |",
        "src/a.py tests/b.py",
    ),
    "a nested list": ("- src/\n  - a.py\n  - deep/\n    - b.py", "src/a.py src/deep/b.py"),
    "folders without a slash": (
        "- src\n  - n.py\n  - sub\n    - o.py\n- tests\n  - exports\n    - deep\n      - test_csv.py",
        "src/n.py src/sub/o.py tests/exports/deep/test_csv.py",
    ),
    "a nested list of whole paths": ("- src\n  - src/a.py\n- Backend:\n  - lib/b.py", "src/a.py lib/b.py"),
    "a path below a title": ("- Backend\n  - src/b.py\n- **Tests**\n  - tests/b.py", "src/b.py tests/b.py"),
    "two levels of titles": (
        "- **Backend**\n  - **API**\n    - `src/a.py`\n- Implementation / Core\n  - DB\n    - src/b.py",
        "src/a.py src/b.py",
    ),
    "three levels of titles, with numbers": (
        "1. Backend\n   - API (server)\n     1. Handlers\n        - `src/a.py`\n   - DB\n     - src/b.py (new)",
        "src/a.py src/b.py",
    ),
    "titles of two words above others": (
        "- Source files\n  - Python\n    - `src/a.py`\n  - Documents\n    - `src/a.md`",
        "src/a.py src/a.md",
    ),
    "a title beside a path": ("- Backend\n  - `src/a.py`\n  - Frontend\n    - `src/b.ts`", "src/a.py src/b.ts"),
    "a title with a slash": ("- UI/UX\n  - web/b.ts\n- **Backend/API**\n  - src/a.py", "web/b.ts src/a.py"),
    "titles of another language": ("- \u30b5\u30fc\u30d0\u30fc\n  - \u753b\u9762\n    - `src/a.py`", "src/a.py"),
    "names below words beside a title": (
        "- Backend\n  - src/a.py\n- Docs\n  - README.md\n- Build\n  - Makefile\n  - deploy/",
        "src/a.py README.md Makefile deploy",
    ),
    "folders below a title": (
        "- Backend\n  - src\n    - a.py\n- Frontend\n  - `Web/ui`\n    - b.ts\n    - x/c.ts",
        "src/a.py Web/ui/b.ts Web/ui/x/c.ts",
    ),
    "a title with a description": ("- Backend - the server\n  - API.\n    - src/a.py", "src/a.py"),
    "titles and a description of a path": ("- Backend\n  - API\n    - src/a.py\n      - add a handler", "src/a.py"),
    "a title within a folder": ("- src/\n  - API\n    - src/api/a.py", "src/api/a.py"),
    "titles below a heading": ("#### Backend\n\n- API\n  - `src/a.py`\n- DB\n  - src/b.py", "src/a.py src/b.py"),
    "titles above code": (
        "- Backend\n\n  - API\n\n    ```\n    src/a.py\n    ```\n- Docs\n\n  | File |\n  |-|\n  | a.md |",
        "src/a.py a.md",
    ),
    "titles in code": ("```\nBackend\n  API\n    src/a.py\n```", "src/a.py"),
    "a file without an extension in a folder": ("- src/\n  - Makefile\n  - a.c", "src/Makefile src/a.c"),
    "a nested description": ("- src/a.py\n  - add a handler\n\n  More about it.", "src/a.py"),
    "braces": (
        "- `src/{y,z}.ts`\n- src/{a, b}/{c,d}.ts",
        "src/y.ts src/z.ts src/a/c.ts src/a/d.ts src/b/c.ts src/b/d.ts",
    ),
    "bars in braces": ("- `src/x.{h|cpp}`\n- `src/{a,{b|c}}.py`", "src/x.h src/x.cpp src/a.py src/b.py src/c.py"),
    "a folder and files in it": (
        "| Folder | Files |\n|-|-|\n| src/x | a.py |\n| src/x | Makefile |\n| `lib/` | `b.py`, `*.c` |",
        "src/x/a.py src/x/Makefile lib/b.py lib/*.c",
    ),
    "a folder behind its file": ("| File | Directory |\n|-|-|\n| a.py | src |", "src/a.py"),
    "a path and its test": ("| Path | Test |\n|-|-|\n| src/a.py | test_a.py |", "src/a.py test_a.py"),
    "a file and what is in it": (
        "| Path | Name |\n|-|-|\n| src/x.py | Parser |\n| src/y.py | `parse_csv` |\n| src | z.py |",
        "src/x.py src/y.py src/z.py",
    ),
    "a file and its name": (
        "| Path | File |\n|-|-|\n| src/core/x.py | x.py |\n| v1.2 | `a.md` |",
        "src/core/x.py v1.2/a.md",
    ),
    "a folder, its file, and a test": (
        "| Folder | File | Test |\n|-|-|-|\n| conf.d | a.py | tests/a.py |",
        "conf.d/a.py tests/a.py",
    ),
    "a folder and its version": ("| Path | Since |\n|-|-|\n| src/ | `v1.2` |", "src v1.2"),
    "a reference": ("- `src/a.py` (see docs/spec.md)\n- src/b.py — see `docs/x.md`", "src/a.py src/b.py"),
    "code by HTML": ("- <code>src/b.py</code>, <kbd>src/c.py</kbd>", "src/b.py src/c.py"),
    "backslashes": (
        "- src\\a.py\n- `lib\\deep\\b.py`\n- src/\\_\\_init\\_\\_.py",
        "src/a.py lib/deep/b.py src/__init__.py",
    ),
    "a final dot": ("- src/a.py.\n- Makefile.", "src/a.py Makefile"),
    "dots for the rest": (
        "- `src/…`\n- lib/...\n- web/…/a.ts\n- ...py\n- a...py\n- `./...`",
        "src/** lib/** web/**/a.ts ...py a...py **",
    ),
    "headings below": ("#### Backend\n\n- src/a.py\n\n#### Frontend\n\n- web/b.ts", "src/a.py web/b.ts"),
    "a mention in the description": (
        "- src/a.py\n- `tests/test_a.py` — covers `src/a.py`\n- src/b.py (used by src/a.py and `A.read_all`, v1.2)",
        "src/a.py tests/test_a.py src/b.py",
    ),
    "everything": ("- `**`", "**"),
    "everything below folders": ("- `**/*`", "**/*"),
    "all in all folders": ("- */*", "*/*"),
    "remarks in brackets": ("- src/a.py (and its tests)\n- lib/ (see src/a.py)", "src/a.py lib"),
    "a way up below a folder": ("- `src/app/`\n  - ../shared/x.py", "src/shared/x.py"),
    "an entry of a comment": ("- src/a.py\n- [x] <!-- a -->", "src/a.py"),
    "two columns of paths": ("| Path | Test |\n|-|-|\n| src/a.py | tests/a.py |", "src/a.py tests/a.py"),
    "two columns with remarks": ("| Path | Test |\n|-|-|\n| src/a.py (new) | `t/a.py` (new) |", "src/a.py t/a.py"),
    "a head with paths": ("| src/a.py | new |\n|-|-|\n| src/b.py | old |", "src/a.py src/b.py"),
    "a fold": ("<details>\n<summary>Files</summary>\n\n- src/a.py\n\n</details>", "src/a.py"),
    "words of a change": (
        "- Create the file `src/a.py`.\n- T4 All below src/b/\n- ✅ src/c.py and its tests\n- `src/d.py` L16: new",
        "src/a.py src/b src/c.py src/d.py",
    ),
    "a title in bold": (
        "- **Files:** src/a.py\n- **Tests**: tests/b.py\n- **New** src/c.py",
        "src/a.py tests/b.py src/c.py",
    ),
    "titles in bold": ("**Backend**\n\n- src/a.py\n\n**Changed**\n\n- web/b.ts", "src/a.py web/b.ts"),
    "titles of two words": ("Files/modules:\n\n- src/a.py\n\n#### UI/UX\n\n- web/b.ts", "src/a.py web/b.ts"),
    "paths in brackets": (
        "- Writer (`src/a.py`)\n- Tests (tests/b.py, tests/c.py)\n- **Docs** (`docs/d.md`): new\n- Page (a/(b)/e.ts)",
        "src/a.py tests/b.py tests/c.py docs/d.md a/(b)/e.ts",
    ),
    "titles beside paths": (
        "- **Writer**, `src/a.py`\n- *Reader*, `src/b.py`\n- _Tests_ and `tests/a.py`",
        "src/a.py src/b.py tests/a.py",
    ),
    "names of folders and files": (
        "- Sources, Package.swift",
        "Sources Package.swift",
    ),
    "names without folders": (
        "- Dockerfile, Makefile and LICENSE\n- src, tests\n- Justfile & `src/a.py`, CODEOWNERS\n- OWNERS, `src/b.py`",
        "Dockerfile Makefile LICENSE src tests Justfile src/a.py CODEOWNERS OWNERS src/b.py",
    ),
    "punctuation without blanks": (
        "- src/a.py\uff0csrc/b.py\u3001`src/c.py`\n- src/d.py\uff08\u65b0\uff09\n- src/e.py\u2192src/f.py",
        "src/a.py src/b.py src/c.py src/d.py src/e.py src/f.py",
    ),
    "quotes, colons and dashes without blanks": (
        "- \u201csrc/g.py\u201d\n- src/h.py\uff1a\u65b0\n- src/i.py\u2014new",
        "src/g.py src/h.py src/i.py",
    ),
    "titles in Chinese and Japanese": (
        "\u5bfe\u8c61\uff1a\n- src/a.py\n- \u5c0e\uff08`src/b.py`\uff09\n- \u5f8c\uff1asrc/c.py\n- \u300csrc/d.c\u300d",
        "src/a.py src/b.py src/c.py src/d.c",
    ),
    "deeper lines of code": (
        "```\nsrc/\n  a.py\n  b/\n    c.py\n- lib/\n  - d.py\n```",
        "src/a.py src/b/c.py lib/d.py",
    ),
    "folders by a pattern": ("- packages/*/\n- src/**/", "packages/*/** src/**"),
    "parts of a file": ("- `src/a.py`\n  - `parse()`\n  - `read(text)`\n  - `Parser`", "src/a.py"),
    "entities": ("- src/a.py&nbsp;(new)\n- R&amp;D/b.md", "src/a.py R&D/b.md"),
    "numbers and options beside paths": (
        "- `--csv` in `src/a.py`\n\n| File | Size |\n|-|-|\n| src/b.py | 10.5 |",
        "src/a.py src/b.py",
    ),
    "paths behind a dash": ("- CSV writer — `src/a.py`\n- Tests - `tests/b.py` and `x/y`", "src/a.py tests/b.py x/y"),
    "a lone name in bold": ("**Makefile**", "Makefile"),
    "a heading with a folder": (
        "#### `src/`\n\n- a.py\n- src/b.py\n\n##### lib\n\n- c.py\n\n#### tests/x\n\n- d.py",
        "src/a.py src/b.py src/c.py tests/x/d.py",
    ),
    "a bold line with a folder": (
        "**Files in `src/`**\n\n- a.py\n\n**`lib/`**\n\n- b.py\n\n**web/c_d.ts**\n\n**/e/**",
        "src/a.py lib/b.py web/c_d.ts **/e/**",
    ),
    "a title with a folder in brackets": (
        "**Core (`src/`)**\n- a.py\n\n**Web (lib/):**\n- b.py\n\nDocs (`make`):\n- c.md\n\nTests (`t/`):\n- d.py",
        "src/a.py lib/b.py c.md t/d.py",
    ),
    "a line with a folder": ("Files below `src/x`:\n- a.py\n- src/x/b.py", "src/x/a.py src/x/b.py"),
    "a title with a file": ("**src/a.py**:\n- src/b.py", "src/a.py src/b.py"),
    "names of routes": (
        "- a/[id]/page.tsx\n- a/[id].vue\n- a/[[lang]]/x.md\n- a/[post-id].json",
        "a/[id]/page.tsx a/[id].vue a/[[lang]]/x.md a/[post-id].json",
    ),
    "numbers of rows": ("| No. | ID | File |\n|-|-|-|\n| 1 | WP-1 | src/a.py |", "src/a.py"),
    "what changes in a path": (
        "- Create `src/x.py` with the parser\n- Unit tests in tests/a.py\n- `src/a.py` gets a writer\n- Web: web/a.ts",
        "src/x.py tests/a.py src/a.py web/a.ts",
    ),
    "sentences about paths of the list": (
        "The parser is in `src/a.py`.\n\n- src/a.py\n- src/b.py\n\nNote: `src/b.py` is new.",
        "src/a.py src/b.py",
    ),
    "labels without a list": ("Source: `src/a.py`\nDocs: `docs/a.md` (new)", "src/a.py docs/a.md"),
    "entries of any verb": (
        "- Improve `src/a.py`\n- Migrate src/b.py to v2\n- Bump version in `src/c.py`\n- Wire `d.py` up",
        "src/a.py src/b.py src/c.py d.py",
    ),
    "paragraphs of any verb": ("Introduce `src/a.py` for v2.\n\nPort src/b.py.", "src/a.py src/b.py"),
    "a remark of a part": ("- src/a.py (types only)", "src/a.py"),
    "notes that say none": ("| Path | Notes |\n|-|-|\n| src/a.py | none |", "src/a.py"),
    "a name in code in front of a path": ("- `Parser` in src/a.py", "src/a.py"),
    "files in a table without a folder": ("| File | Notes |\n|-|-|\n| Makefile | new |\n| a.py | |", "Makefile a.py"),
    "names behind a label": (
        "- Modify: Makefile, src/a.py\n- Tests: tests/unit, tests/x",
        "Makefile src/a.py tests/unit tests/x",
    ),
    "labels with a colon": ("Backend:\n- src/a.py\n\nFrontend:\n- web/b.ts", "src/a.py web/b.ts"),
    "a lone word": ("- Dockerfile\n- LICENSE — new year", "Dockerfile LICENSE"),
}
UNREAD = {
    "TBD": "- src/a.py\n- TBD",
    "dots": "- src/a.py\n- …",
    "a name that is cut off": "- src/a.py\n- `src/pars…`",
    "one of two names that is cut off": "- src/pars..., src/b.py",
    "prose": "- src/a.py\n- the tests of the parser",
    "prose around the list": "Only the parser changes.\n\n- src/a.py",
    "all but a path": "- src/a.py\n- Everything but `src/b.py`",
    "all besides a path": "- src/a.py\n- Everything besides `src/b.py`",
    "a set of characters": "- src/a.py\n- `src/[ab].py`",
    "a range of characters": "- src/a.py, src/part[0-9]/",
    "a range of numbers": "- src/a.py\n- `src/p{1..3}.py`",
    "an address without its scheme": "- src/a.py\n- www.example.org/b.py",
    "a path that is struck out": "- src/a.py\n- ~~src/b.py~~",
    "code that is struck out": "- src/a.py\n- ~~`src/b.py`~~",
    "an open quote": "- src/a.py\n- \u2018src/b c.py\u2019",
    "a command": "- src/a.py\n- `npm test`",
    "a number": "- src/a.py\n- `3.11`",
    "a call": "- src/a.py\n- `parse(text)`",
    "a remark without a blank": "- src/a.py\n- src/b.py(new)",
    "a link to another file": "- src/a.py\n- [src/b.py](lib/c.py)",
    "a link to another file of a page": "- [src/b.py](https://example.org/blob/main/src/c.py)",
    "a pattern below a folder": "- src/\n  - !b.py",
    "a title for another folder": "Changes in `src/`:\n- lib/a.py",
    "a title within a paragraph": "src/a.py\nProtected files:\nsrc/b.py",
    "a second path in a sentence": "- src/a.py uses src/b.py",
    "a second path after words": "- Rename `old.py` to `new.py`",
    "an exception": "- Everything in `src/` except `src/legacy/`",
    "an exception in brackets": "- src/ (except src/gen/)",
    "an exception of a marked folder": "- `src/` (not `src/gen/x.py`)",
    "a file's name in brackets": "- `src/a.py` (also `Dockerfile`)",
    "a file's name behind a path": "- `src/a.py` plus Makefile",
    "another path in brackets": "- src/a.py (and src/b.py)",
    "another path behind a dash": "- `a/b.py` — as in `docs/spec.md`",
    "a file to leave out": "- src/exports/ (without vcard.py)",
    "a folder to leave out": "- `src/` (not `lib/`)",
    "a path to leave out behind a dash": "- app/ — except app/gen.py",
    "a folder of a folder": "- src/gen/ (but src/gen/keep may change)",
    "an exception below": "- src/exports/\n  - except vcard.py",
    "an exception below, with its folder": "- lib/\n  - but not lib/old.py",
    "exceptions below a label": "- src/\n  - Except:\n    - old.py",
    "exceptions below a label in an entry": "- src/\n\n  Generated:\n\n  - old.py",
    "one word below a folder": "- `src/ui/`\n  - Tests\n    - of the menu\n  - Styling of the button",
    "a label beside paths": "- src/a.py\n- **Tests**\n  - tests/a.py",
    "a name in front of a path in code": "- docs, `src/k.py`",
    "words with a slash in front of a file": "- Add CI/CD to ci.yml",
    "a row without a path": "| File | Why |\n|-|-|\n| src/a.py | new |\n| the rest | later |",
    "a folder in the words of another cell": "| File | Part |\n|-|-|\n| src/a.py | folder `lib/core` |",
    "a path in the sentence of a cell": "| File | Reason |\n|-|-|\n| src/a.py | generated from `src/b.py` |",
    "a drawing": "- src/a.py\n\n```\nsrc/\n└── b.py\n```",
    "a drawing without lines": "- src/a.py\n\n```\nsrc/\n`-- b.py\n```",
    "a list of another language": '- src/a.py\n\n```\n["src/b.py", "src/a.py"]\n```',
    "a pattern that leaves files out": "- src/*\n- !src/b.py",
    "an address": "- src/a.py\n- https://example.org/o/r/blob/main/src/b.py",
    "a word with an address": "- src/a.py\n- [x](https://example.org/src/b.py)",
    "a word with an anchor": "- src/a.py\n- [Parser](#parser)",
    "a word with a reference": "- src/a.py\n- **[Parser][parser]**",
    "lines by HTML": "- src/a.py\n- src/b.py<br>src/c.py",
    "everything": "- src/a.py\n- Everything",
    "names with bars": "- src/a.py\n- `a|b`",
    "alternatives in round brackets": "- src/a.py, `src/(b|c).py`",
    "too many alternatives": "- src/a.py\n- src/" + "{a,b}" * 7,
    "an exception in further text": "- src/\n\n  All but src/b.py.",
    "a block below a path": "- src/a.py\n\n  ```\n  src/b.py\n  ```",
    "a path with a blank": "- src/a.py\n- src/a b.py",
    "a name in code behind a path": "- `src/a.py`, `web`",
    "files behind their folder": "- **Folder:** `src`\n- Files: `a.py`, `b.py`",
    "an entry below": "- Backend:\n  - src/a.py\n  - and its tests",
    "html": "- src/a.py\n\n<p>the tests</p>",
}


@pytest.mark.parametrize("name", LISTS)
def test_paths_are_read_in_every_form_of_list(name: str) -> None:
    text, paths = LISTS[name]
    body = read_body(task_body(in_scope=text))
    assert (body.in_scope, body.scopes[0].unread) == (tuple(paths.split()), ())
    assert read_body(task_body(in_scope="- z.py", out_of_scope=text)).out_of_scope == tuple(paths.split())


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize("place", ["in_scope", "out_of_scope"])
def test_an_unread_part_of_a_scope_is_found_with_its_line(name: str, place: str) -> None:
    text = task_body(**{"in_scope": "- z.py", place: UNREAD[name]})
    (found,) = (each for each in body_findings(read_body(text), ItemKind.TASK, "") if each.code == "scope-unread")
    line = int(re.search(r"line (\d+)", found.message)[1])  # type: ignore[index]
    said = found.message.partition(": ")[2]
    assert said.strip("`") in text.splitlines()[line - 1].replace("|", "").replace("  ", " ") or said in text


KEPT_OUT = {
    "exceptions below a label": ("- src/\n- Do not touch:\n  - src/b.py", "src"),
    "exceptions behind a label": ("Files:\n- src/\n\nNot allowed:\n- src/b.py\n- src/c.py", "src"),
    "exceptions in a code block": ("- src/\n\nExcept:\n\n```\nsrc/b.py\n```", "src"),
    "exceptions below a heading": ("- src/\n\n#### Except\n\n- src/b.py", "src"),
    "an exception of a folder": ("- src/\n  - leave src/b.py alone", "src"),
    "another label": ("Files:\n- src/\n\nLeave alone:\n- lib/a.py", "src"),
    "words in the line above": ("- src/a.py\n\nDo not change\nsrc/b.py", "src/a.py"),
    "the words Leave alone above paths": ("- src/a.py\n- Leave alone\n  - src/b.py", "src/a.py"),
    "a sentence behind the label of a change": ("- Modify: `src/a.py` to use v2", "src/a.py"),
    "a label in a paragraph": ("- src/a.py\n\nTests: `tests/b.py`", "src/a.py tests/b.py"),
    "a lone label": ("Do not touch:\n- src/b.py", "src/b.py"),
    "a label in an entry": ("- src/\n  Except:\n  - src/b.py", "src src/b.py"),
    "a remark": ("- src/b.py (do not change)", "src/b.py"),
    "words beside a file": ("| Path | Name |\n|-|-|\n| src/x.py | not Parser |", "src/x.py"),
    "the other list in brackets": ("- src/b.py (out of scope)", "src/b.py"),
    "a right in brackets": ("- src/b.py (read only, by the tests)", "src/b.py"),
    "a right behind a dash": ("- src/b.py — read-only", "src/b.py"),
    "words behind a path": ("- `src/b.py` is off limits", "src/b.py"),
    "an exception in words": ("- src/ (all files except generated ones)", "src"),
    "all outside a folder": ("- src/a.py\n- Everything outside `src/`", "src/a.py"),
    "all apart from a path": ("- src/a.py\n- All files apart from src/b.py", "src/a.py"),
    "a title in the entry": ("- src/a.py\n- **Off limits:** src/b.py", "src/a.py"),
    "a title in a list": ("- src/a.py\n- **Off limits**\n  - src/b.py", "src/a.py"),
    "a lone word as a title": ("- src/a.py\n- **Excluded**\n  - API\n    - src/b.py", "src/a.py"),
    **{
        f"the label {label} in a list with paths": (f"- src/a.py\n- {label}\n  - src/b.py", "src/a.py src/b.py")
        for label in ("Forbidden", "Protected files:", "**Hands off**")
    },
    "a label above paths": ("- Forbidden\n  - src/b.py\n- src/a.py", "src/b.py src/a.py"),
    "a label in bold behind a list": ("- src/a.py\n\n**Forbidden**\n\n- src/b.py", "src/a.py src/b.py"),
    "a heading behind a list": ("- src/a.py\n\n#### Forbidden\n\n- src/b.py", "src/a.py src/b.py"),
    "entries with words below a file": (
        "- src/a.py\n  - `t/a.py` (new)\n  - t/b.py: x\n  - **T**: `t/unit`\n  - Create `src/c.py`\n  - not src/d.py",
        "src/a.py t/a.py t/b.py t/unit src/c.py",
    ),
    "a bold title with its own file behind": ("- **API (`src/api/`)**: `src/a.py`", "src/a.py"),
    "a remark below a folder": ("- src/\n  - a.py\n  - b.py (out of scope)", "src/a.py"),
    "words below a folder": ("- src/\n  - b.py is off limits", "src"),
    "a heading that forbids": ("- src/a.py\n\n#### Do not touch\n\n- src/b.py", "src/a.py"),
    "a heading below one that forbids": ("- src/a.py\n\n#### Off limits\n\n##### CLI\n\n- src/b.py", "src/a.py"),
    "a bold line that forbids": ("- src/a.py\n\n**Out of scope**\n\n`src/b.py`", "src/a.py"),
    "a line of a paragraph that forbids": ("src/a.py\nDo not touch:\nsrc/b.py", "src/a.py"),
    "a column of exclusions": ("| In | Out |\n|-|-|\n| src/a.py | src/b.py |", "src/a.py"),
    "a column that forbids": ("| Change | Do not change |\n|-|-|\n| `src/a.py` | `src/b.py` |", "src/a.py"),
    "a mark in a column that forbids": (
        "| Path | Off limits |\n|-|-|\n| src/a.py | |\n| src/b.py | ✓ |\n| src/a.py | no |",
        "src/a.py src/b.py",
    ),
    "a cross in a cell": ("| Path | In? |\n|-|-|\n| src/a.py | \u2705 |\n| src/b.py | \u274c |", "src/a.py src/b.py"),
    "a cross in front": ("- \u2705 src/a.py\n- \u274c src/b.py", "src/a.py"),
    "a cell that forbids": ("| Path | Change |\n|-|-|\n| src/b.py | off limits |", "src/b.py"),
    "a cell with words about another path": (
        "| File | Change |\n|-|-|\n| src/a.py | mirror the helper in `src/b.py` |",
        "src/a.py",
    ),
    "a cell that forbids another path": (
        "| File | Change |\n|-|-|\n| src/a.py | add it; do not change `src/b.py` |",
        "src/a.py",
    ),
    "a cell without a change": (
        "| Path | Change |\n|-|-|\n| src/a.py | new |\n| src/b.py | none |",
        "src/a.py src/b.py",
    ),
    "a remark of a limit": ("- src/a.py\n- `src/b.py` (reference only)", "src/a.py src/b.py"),
    "a remark that a path stays": ("- src/b.py (unchanged)", "src/b.py"),
    "a description that a path stays": ("- src/b.py \u2014 untouched by this", "src/b.py"),
    "a title that a path stays": ("- src/a.py\n- Unmodified: src/b.py", "src/a.py"),
    "an owner": ("- src/b.py (owned by #7)", "src/b.py"),
    "an owner in code": ("- src/b.py (owned by `#7`)", "src/b.py"),
    "an owner in code beside its path": ("- **PDF** (`src/b.py`, owned by `#7`)", "src/b.py"),
    "an owner behind a dash": ("- src/b.py \u2014 owned by #7", "src/b.py"),
    "a sentence behind a label": ("- src/a.py\n- Important: `src/b.py` must stay as it is.", "src/a.py src/b.py"),
    "a sentence behind a label in bold": ("- **Note:** `src/b.py` belongs to #7.", "src/b.py"),
    "a paragraph beside a table": ("| File |\n|-|\n| src/a.py |\n\nMind `src/b.py` too.", "src/a.py src/b.py"),
    "a paragraph around a path": (
        "- src/a.py\n\nThe existing helper in `src/b.py` should be reused.",
        "src/a.py src/b.py",
    ),
    "a paragraph that a path begins": ("`src/b.py` stays as it is.\n\n- src/a.py", "src/b.py src/a.py"),
    "a paragraph behind a label": ("- src/a.py\n\nReference: `src/b.py`", "src/a.py src/b.py"),
    "a quotation": ("- src/a.py\n\n> Note: `src/b.py` belongs to #7.", "src/a.py src/b.py"),
    "a column": ("| Path | In scope? |\n|-|-|\n| src/a.py | yes |\n| src/b.py | no |", "src/a.py src/b.py"),
}


@pytest.mark.parametrize("name", KEPT_OUT)
def test_a_sign_that_a_path_is_out_of_scope_is_found(name: str) -> None:
    text, paths = KEPT_OUT[name]
    (listed, _) = read_body(task_body(in_scope=text)).scopes
    assert (listed.paths, len(listed.unread)) == (tuple(paths.split()), 1)


DOUBTFUL = {
    "- backend\n  - api\n    - src/b.py": ("src/b.py", "backend api src/b.py"),
    "- Documentation\n  - README.md": ("README.md", "Documentation README.md"),
    "- Docs\n  - Guides\n    - README.md": ("README.md", "Docs Guides README.md"),
    "- src/\n  - Forms\n    - a.tsx": ("src/Forms/a.tsx", "src src/Forms src/Forms/a.tsx"),
    "- Folders\n  - src": ("src", "Folders src"),
    "- Legal\n  - LICENSE": ("LICENSE", "Legal LICENSE"),
    "- src/\n  - exports": ("src", "src"),
    "- src/\n  - a.py\n  - Forms": ("src/a.py", "src src/a.py"),
}
"""Lists whose last entry may be in a folder or below a title, with the paths in scope, and those out of scope."""


@pytest.mark.parametrize("text", DOUBTFUL)
def test_an_entry_below_what_may_be_a_folder_or_a_title_is_found(text: str) -> None:
    bodies = read_body(task_body(in_scope=text)), read_body(task_body(in_scope="- z.py", out_of_scope=text))
    for scope, paths in zip((bodies[0].scopes[0], bodies[1].scopes[1]), DOUBTFUL[text], strict=True):
        assert (scope.paths, [entry for _, entry in scope.unread]) == (tuple(paths.split()), [text.split("- ")[-1]])


@pytest.mark.parametrize(
    "part", ["src/a.py::f", "`src/a.py:Parser.read`", "src/z.py, src/a.py#f", "src/a.py::f src/z.py"]
)
def test_a_part_of_a_file_out_of_scope_is_found_and_bars_no_file(part: str) -> None:
    body = read_body(task_body(out_of_scope=f"- {part}\n- src/z.py"))
    assert (body.out_of_scope, [text for _, text in body.scopes[1].unread]) == (("src/z.py",), [part])


EXCEPTED = {
    "except ok.py": 1,
    "Except:\n    - ok.py": 1,
    "ok.py may change": 1,
    "all but ok.py": 1,
    "ok.py (may change)": 1,
    "`ok.py` — fine to change": 1,
    "ok.py: allowed": 1,
    "ok.py\n    - may change": 1,
    "ok.py\n\n    May change.": 1,
    "a.py\n  - except ok.py": 2,
    "a.py\n  - ok.py (may change)": 2,
}
"""Entries below an excluded folder, and the line of the exception."""


@pytest.mark.parametrize("below", EXCEPTED)
def test_an_exception_below_an_excluded_folder_is_found_and_removes_no_exclusion(below: str) -> None:
    (_, excluded) = read_body(task_body(out_of_scope=f"- src/vendor/\n  - {below}")).scopes
    line = below.split("\n")[EXCEPTED[below] - 1].removeprefix("  - ")
    assert (excluded.paths[0], [text for _, text in excluded.unread]) == ("src/vendor", [line])


@pytest.mark.parametrize("owner", ["#2", "`#2`"])
def test_a_folder_with_an_owner_stays_out_of_scope_beside_files_below_it(owner: str) -> None:
    text = f"- src/ (owned by {owner})\n  - a.py (owned by {owner})"
    (_, excluded) = read_body(task_body(out_of_scope=text)).scopes
    assert (excluded.paths, excluded.unread) == (("src", "src/a.py"), ())


@pytest.mark.parametrize("below", ["a.py", "`a.py` (owned by #3)", "[ ] a.py", "a.py, owned by #vcard-writer"])
def test_a_list_below_an_excluded_folder_names_the_files_that_are_excluded(below: str) -> None:
    (_, excluded) = read_body(task_body(out_of_scope=f"- src/\n  - {below}")).scopes
    assert (excluded.paths, excluded.unread) == (("src/a.py",), ())


@pytest.mark.parametrize(
    "words",
    ["do not touch {}", "Don't change {}", "No changes to {}", "not {}", "Exclude: {}", "without {}"],
)
def test_a_path_that_an_entry_excludes_is_not_in_scope(words: str) -> None:
    entry = words.format("src/b.py")
    body = read_body(task_body(in_scope=f"- src/a.py\n- {entry}", out_of_scope=f"- {entry}"))
    assert (body.in_scope, body.out_of_scope) == (("src/a.py",), ("src/b.py",))
    assert [text for _, text in body.scopes[0].unread] == [entry]


@pytest.mark.parametrize(
    "words",
    [
        "- All but {}",
        "- Except {}",
        "- Everything outside {}",
        "- Any file other than {}",
        "- Nothing except: {}",
        "- Everything besides {}",
        "- Anything that isn't in {}",
        "- All files save for the file {}",
        "- **Everything aside from**\n  - {}",
        "\nAll files besides:\n- {}",
        "\n#### Everything except\n\n- {}",
        "\n| All code minus |\n|-|\n| {} |",
    ],
)
def test_an_exception_to_what_is_out_of_scope_is_not_excluded(words: str) -> None:
    (_, excluded) = read_body(task_body(out_of_scope=f"- src/z.py\n{words.format('src/b.py')}")).scopes
    assert (excluded.paths, len(excluded.unread)) == (("src/z.py",), 1)


def test_the_template_is_guessed_when_no_label_tells() -> None:
    assert likely_kind(read_body(task_body())) is ItemKind.TASK
    assert likely_kind(read_body(refinement_body())) is ItemKind.REFINEMENT
    assert likely_kind(read_body("")) is ItemKind.TASK


OBJECTIVE, SCOPE, IN, OUT = "## Objective\n", "## Scope\n", "### In Scope\n", "### Out of Scope\n"
WITH_CODE = task_body(context="```py\na()\n```\n\n~~~\nb\n~~~")
FENCED = {
    "markdown": f"```markdown\n{TASK}```",
    "code inside": f"\n```md\n{WITH_CODE}```\n",
    "a longer fence": f"````\n{WITH_CODE}````",
    "tildes and CRLF": f"~~~ Markdown\n{TASK}~~~".replace("\n", "\r\n"),
}


@pytest.mark.parametrize("name", FENCED)
def test_a_body_in_a_fence_has_one_finding(name: str) -> None:
    assert [each.code for each in body_findings(read_body(FENCED[name]), ItemKind.TASK, "/body")] == ["body-fenced"]


def test_a_body_that_begins_and_ends_with_code_is_not_in_a_fence() -> None:
    assert codes(f"```\na\n```\n\n{TASK}\n```\nb\n```") == set()
    assert "body-fenced" not in codes(f"```\na\n```\n\n{TASK.replace('## Objective', '')}\n```\nb\n```")


BELOW = ["Write it as `### In Scope` under `Scope`.", "Write it as `### Out of Scope` under `Scope`."]
LEVELS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "too deep": ([(OBJECTIVE, f"#{OBJECTIVE}")], ["Write it as `## Objective`."]),
    "as a title": ([(OBJECTIVE, "# Objective\n")], ["Write it as `## Objective`."]),
    "a part of a section too deep": ([(OUT, f"#{OUT}")], BELOW[1:]),
    "both parts as sections": ([(IN, IN[1:]), (OUT, OUT[1:])], BELOW),
    "a section beside its parts": ([(f"{SCOPE}\n", f"#{SCOPE}\n")], ["Write it as `## Scope`.", *BELOW]),
    "parts in another section": ([(IN, "## Notes\n\nMore.\n\n" + IN)], BELOW),
    "everything too deep": (
        [("# ", "## ")],
        [
            f"Write it as `{line.strip()}`{' under `Scope`' if line[2] == '#' else ''}."
            for line in TASK.splitlines()
            if line.startswith("#")
        ],
    ),
}


@pytest.mark.parametrize("name", LEVELS)
def test_a_heading_of_another_level_has_the_hint_to_write_it_as_the_template_does(name: str) -> None:
    edits, hints = LEVELS[name]
    body = TASK
    for old, new in edits:
        body = body.replace(old, new)
    findings = [each for each in body_findings(read_body(body), ItemKind.TASK, "/body") if "missing" in each.code]
    assert [(each.code, each.hint) for each in findings] == [("section-missing", hint) for hint in hints]
    lines = body.split("\n")
    for each in findings:
        lines[int(re.findall("line ([0-9]+)", each.message)[0]) - 1] = each.hint.split("`")[1]
    assert codes("\n".join(line for line in lines if line not in ("## Notes", "More."))) == set()


def test_a_hostile_reference_section_does_not_hold_up_the_check() -> None:
    body = refinement_body(quote=".\n" * 20_000)
    assert codes(body, ItemKind.REFINEMENT) == {"quote-missing"}
