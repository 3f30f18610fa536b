"""Patches are checked as text: what git would refuse, or silently drop, is found before a repository is there."""

import json

import pytest

from accord.git.patch_text import patch_findings
from accord.results.fixes import fix_implementation
from accord.results.implementor.rules import implementor_findings
from accord.results.models import ImplementorResult
from accord.results.run import read_result

FILE = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n"
HUNK = "@@ -1 +1 @@\n-old\n+new\n"
NEW = "diff --git a/NAME b/NAME\nnew file mode 100644\nindex 0000000..e69de29\n"


@pytest.mark.parametrize("name", ["AGENTS.md", "docs/CLAUDE.md", ".claude/settings.json", "docs/a b.md", "src/a.py"])
def test_a_patch_of_steering_files_is_found_without_a_repository(name: str) -> None:
    expected = [] if name in ("docs/a b.md", "src/a.py") else [("steering-file", "/patch", name)]
    for patch in (
        NEW.replace("NAME", name),
        FILE.replace("a.py", name) + HUNK,
        f"diff --git a/x b/{name}\nsimilarity index 100%\nrename from x\nrename to {name}\n",
    ):
        result = {"role": "implementor", "outcome": "completed", "patch": patch, "summary": "Done."}
        found = read_result(json.dumps(result).encode()).findings
        assert [(each.code, each.path, each.message.split("`")[1]) for each in found] == expected


def messages(patch: str) -> list[str]:
    result = ImplementorResult(role="implementor", outcome="completed", patch=patch, summary="Done.")
    found = implementor_findings(result)
    assert {(finding.code, finding.path) for finding in found} <= {("patch-invalid", "/patch")}
    return [finding.text for finding in found]


GOOD = {
    "a change": FILE + HUNK,
    "two hunks": FILE + HUNK + "@@ -9,2 +9,2 @@\n same\n-old\n+new\n",
    "an empty file": NEW.replace("NAME", "src/new.py"),
    "a name with dots": NEW.replace("NAME", "src/..new...py"),
    "a name like a folder of git": NEW.replace("NAME", ".github/x.yml"),
    "a quoted name": NEW.replace("a/NAME", '"a/caf\\303\\251.py"').replace("b/NAME", '"b/caf\\303\\251.py"'),
    "a mode": "diff --git a/x.sh b/x.sh\nold mode 100644\nnew mode 100755\n",
    "a rename": "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n",
    "a last line without its newline": FILE + HUNK + "\\ No newline at end of file\n",
    "prefixes of someone else": FILE.replace("a/", "old/").replace("b/", "new/") + HUNK,
    "a new file without a diff line": "--- /dev/null\n+++ b/src/new.py\n@@ -0,0 +1 @@\n+new\n",
    "no diff line": "--- a/a.py\n+++ b/a.py\n" + HUNK,
    "dots in a line": FILE + "@@ -1 +1 @@\n-../x\n+../../y\n",
    "a header in a line": FILE + "@@ -1,2 +1 @@\n--- /etc/passwd\n-x\n+y\n",
}
BAD = {
    "a count that is too high": (FILE + HUNK.replace("-1 +1", "-1,3 +1,3"), "line"),
    "a count that is too low": (FILE + HUNK + "+more\n", "`accord check --fix RESULT`"),
    "the format of another tool": (
        "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch\n",
        "Begin Patch",
    ),
    "no final newline": (FILE + HUNK.rstrip("\n"), "newline"),
    "no header": (HUNK, "no file"),
    "prose": ("I changed the parser.\n", "no file"),
    "a header alone": ("diff --git a/a b/a\n", "changes nothing"),
    "a code fence": (f"```diff\n{FILE}{HUNK}```\n", "code fence"),
    "an absolute name": ("--- /etc/x\n+++ /etc/x\n" + HUNK, "`/etc/x`"),
    "a name out of the tree": (FILE.replace("a.py", "../a.py") + HUNK, "../a.py"),
    "an octal name out of the tree": (
        FILE.replace("a/a.py", '"a/\\056\\056/a.py"').replace("b/a.py", '"b/\\056\\056/a.py"') + HUNK,
        "../a.py",
    ),
    "an empty file out of the tree": (NEW.replace("NAME", "src/../../x"), "../"),
    "an octal empty file": (NEW.replace("a/NAME", '"a/..\\057x"').replace("b/NAME", '"b/..\\057x"'), "../x"),
    "a rename out of the tree": (
        "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to ../y\n",
        "`../y`",
    ),
    "a file of git": (NEW.replace("NAME", ".git/config"), ".git/config"),
    **{
        f"no prefix: {name}": (patch, "`src/a b.py` without")
        for name, patch in {
            "a change": (FILE + HUNK).replace("a/a.py", "src/a b.py").replace("b/a.py", "src/a b.py"),
            "an empty file": NEW.replace("a/NAME", "src/a b.py").replace("b/NAME", "src/a b.py"),
            "no diff line": "--- src/a b.py\n+++ src/a b.py\n" + HUNK,
            "a header above": "+++ b/a.py\n--- src/a b.py\n+++ src/a b.py\n" + HUNK,
            "a new file without a diff line": "--- /dev/null\n+++ src/a b.py\n@@ -0,0 +1 @@\n+new\n",
        }.items()
    },
}


@pytest.mark.parametrize("name", GOOD)
def test_a_patch_that_git_reads_passes_without_a_repository(name: str) -> None:
    assert messages(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_patch_that_git_refuses_or_cuts_is_found_with_the_command_that_takes_it_again(name: str) -> None:
    patch, said = BAD[name]
    (message,) = messages(patch)
    assert said in message
    assert "accord patch" in message
    assert "error:" not in message


def test_a_hunk_in_a_repository_around_the_check_is_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert list(patch_findings((FILE + HUNK).encode())) == []


def test_a_code_fence_around_a_patch_is_removed() -> None:
    for fenced in (f"```diff\n{FILE}{HUNK}```", f"~~~\n{FILE}{HUNK}~~~\n"):
        value, fixes = fix_implementation({"patch": fenced})
        assert (value["patch"], len(fixes)) == (FILE + HUNK, 1)
