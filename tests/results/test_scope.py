"""The scope audit: nothing that a patch touches is missing from the report, and tests beside the work are expected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.errors import WrongUsage
from accord.results.implementor.plan import scope_findings, scope_report
from accord.results.implementor.rules import ScopeReport, audit_scope, is_test_of
from accord.results.texts import TextSanitizer
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

CO_LOCATED = [
    ("src/foo.ts", "src/foo.test.ts"),
    ("src/foo.tsx", "src/foo.spec.ts"),
    ("src/foo.js", "src/__tests__/foo.test.js"),
    ("src/foo.ts", "src/__tests__/foo.test.tsx"),
    ("pkg/foo.py", "pkg/test_foo.py"),
    ("pkg/foo.py", "pkg/tests/test_foo.py"),
    ("pkg/foo.py", "pkg/foo_test.py"),
    ("foo.go", "foo_test.go"),
    ("app/Foo.java", "app/FooTest.java"),
    ("src/main/java/a/Foo.java", "src/test/java/a/FooTest.java"),
    ("src/main/kotlin/a/Foo.kt", "src/test/kotlin/a/FooTests.kt"),
    ("lib/foo.rb", "lib/foo_spec.rb"),
    ("lib/foo.rb", "lib/spec/foo_spec.rb"),
    ("src/foo.rs", "src/foo_test.rs"),
    ("src/Foo.cs", "src/FooTests.cs"),
    ("src/foo.ts", "src/foo.test.py"),
    ("src/Foo.vue", "src/Foo.spec.ts"),
    ("src/Foo.svelte", "src/__tests__/Foo.test.js"),
    ("src/foo.hpp", "src/foo_test.cpp"),
    ("src/foo.ts", "src/foo.unit.test.ts"),
    ("src/foo.ts", "src/__tests__/foo.ts"),
    ("src/foo.sh", "src/foo.bats"),
    ("foo.go", "foo_internal_test.go"),
    ("src/foo.erl", "src/foo_tests.erl"),
    ("app/Foo.java", "app/TestFoo.java"),
    ("src/foo.ts", "src/foo.e2e-spec.ts"),
    ("mod/Get-Foo.ps1", "mod/Get-Foo.Tests.ps1"),
    ("src/HTTPServer.cs", "src/HTTPServerUnitTests.cs"),
    ("src/UserDAO.java", "src/UserDAOIT.java"),
    ("app/$.ts", "app/$.test.ts"),
    ("app/[...].tsx", "app/[...].test.tsx"),
    ("app/_.ts", "app/_.test.ts"),
]
NOT_CO_LOCATED = [
    ("src/foo.ts", "other/foo.test.ts"),
    ("src/foo.ts", "src/bar.test.ts"),
    ("src/foo.ts", "src/foo.config.test.ts"),
    ("src/foo.ts", "src/foobar.test.ts"),
    ("src/foo.ts", "src/foo.unit.ts"),
    ("i18n/app.ts", "i18n/app.it.ts"),
    ("src/_.ts", "src/test.ts"),
    ("src/foo.c", "src/fooTest"),
    ("src/foo.c", "src/unit_foo_test"),
    ("src/FooBar.m", "src/Foo+Bar_test.m"),
    ("res/app.properties", "res/app_IT.properties"),
    ("src/foo.ts", "src/foo.js"),
    ("src/foo.ts", "src/tests/foo.ts"),
    ("src/foo.ts", "src/foo.ts"),
    ("pkg/foo.py", "pkg/contest_foo.py"),
    ("src", "src/foo.test.ts"),
    ("Makefile", "test_Makefile"),
]


@pytest.mark.parametrize(("subject", "test"), CO_LOCATED)
def test_a_test_beside_its_subject_needs_no_listing(subject: str, test: str) -> None:
    assert is_test_of(test, subject)


@pytest.mark.parametrize(("subject", "other"), NOT_CO_LOCATED)
def test_any_other_file_is_not_taken_for_one(subject: str, other: str) -> None:
    assert not is_test_of(other, subject)


def test_files_folders_and_globs_are_scopes() -> None:
    report = audit_scope(
        ["src/a.py", "src/deep/b.py", "docs/x.md", "lib/c.py", "src2/a.py", "deep/src/a.py", "lib/c#.py"],
        (["src", "docs/*.md", "lib/c#.py"], []),
    )
    assert report.in_scope == ("src/a.py", "src/deep/b.py", "docs/x.md", "lib/c#.py")
    assert report.outside == ("lib/c.py", "src2/a.py", "deep/src/a.py")


EXCLUDED = {
    "a file of a folder": ("src", "src/a.py", "src/a.py outside"),
    "a folder of a folder": ("src", "src/deep", "src/deep/a.py outside"),
    "a pattern": ("src", "src/*_pb2.py", "src/a_pb2.py outside"),
    "another file": ("src", "src/b.py", "src/a.py in_scope"),
    "the same folder in other words": ("src/**", "src", "src/a.py outside"),
    "the same pattern": ("src/*", "src/**/*", "src/a.py outside"),
    "the folder of a listed file": ("src/a.py", "src", "src/a.py in_scope"),
    "a neighbour of a listed file in an excluded folder": ("src/a.py", "src", "src/b.py outside"),
    "the folder of a listed pattern": ("src/*.py", "src/**", "src/a.py in_scope"),
    "patterns that cross": ("**/*.py", "src", "src/a.py outside"),
    "everything": ("src/a.py", ".", "src/a.py in_scope"),
    "a file of everything": (".", "src/a.py", "src/a.py outside"),
    "the test of a listed file": ("src/a.py", "src/test_a.py", "src/test_a.py outside"),
    "all tests": ("src/a.py", "**/test_*.py", "src/test_a.py outside"),
    "the folder of a listed file and its test": ("src/a.py", "src", "src/test_a.py tests"),
    "the subject of a test": ("src/a.py", "src/a.py", "src/test_a.py outside"),
}


@pytest.mark.parametrize("name", EXCLUDED)
def test_a_path_out_of_scope_is_outside_unless_a_narrower_entry_lists_it(name: str) -> None:
    listed, excluded, expected = EXCLUDED[name]
    path, group = expected.split()
    assert getattr(audit_scope([path], ([listed], [excluded])), group) == (path,)


STEERING = ".github/workflows/ci.yml CODEOWNERS docs/CODEOWNERS AGENTS.md sub/CLAUDE.md .cursorrules"
STEERING += " sub/.claude/settings.json .gitlab-ci.yml infra/prod.tf"


@pytest.mark.parametrize("path", STEERING.split())
def test_files_that_steer_agents_and_ci_are_protected_also_in_scope(path: str) -> None:
    report = audit_scope([path, "src/a.py"], ([path, "src/a.py"], []), ["infra/"])
    assert report.protected == (path,)
    assert path in report.in_scope


def test_files_of_sessions_and_missions_are_reported_and_not_protected() -> None:
    report = audit_scope([".agents-work/s/status.json", "kitty-specs/001-a/tasks/WP01.md", "src/a.py"], (["src"], []))
    assert report.protected == ()
    (_, found) = scope_findings(report, None)
    assert (found.code, "kitty-specs/001-a/tasks/WP01.md" in found.message) == ("record-file", True)


ENTRIES = st.lists(st.text(min_size=1, max_size=12), max_size=4)


@pytest.mark.slow
@given(st.lists(st.text(min_size=1, max_size=12), max_size=8), st.tuples(ENTRIES, ENTRIES))
def test_every_path_is_reported_once(touched: list[str], scopes: tuple[list[str], list[str]]) -> None:
    report = audit_scope(touched, scopes)
    assert sorted([*report.in_scope, *report.tests, *report.outside]) == sorted(set(touched))


def test_a_path_that_an_agent_chose_is_shown_without_what_it_may_hide() -> None:
    token = "ghp_" + "a" * 36
    report = ScopeReport((f"src/{token}.py", "a\u202eb.py", "c`d\n.py"), (), (), ())
    sanitizer = TextSanitizer(Redactor(), PostingPolicy())
    shown = scope_report(report, sanitizer)
    assert token not in shown
    assert "\u202e" not in shown
    assert "- ``c`d\\n.py``" in shown
    assert sanitizer.sanitised["secrets"] == sanitizer.sanitised["hidden"] == 1


NAMES = "app/[slug]/page.tsx app/[[...all]]/page.tsx app/[z-a].ts app/[ app/a!b #a/b !a/b (group)/@slot/a+b.ts"


@pytest.mark.parametrize("name", NAMES.split())
def test_the_signs_of_a_pattern_in_the_name_of_a_file_stand_for_themselves(name: str) -> None:
    folder = name.rpartition("/")[0]
    for listed in (name, folder, f"{folder}/**", f"{folder}/*{name[-1]}"):
        assert audit_scope([name], ([listed], [])).in_scope == (name,), listed
        assert audit_scope(["s/page.tsx", "app2/s"], ([listed], [])).in_scope == (), listed


def test_an_invalid_protect_pattern_is_named() -> None:
    with pytest.raises(WrongUsage, match=r"\[z-a\]"):
        audit_scope(["a"], (["a"], []), ["*.tf", "[z-a]"])
