"""Links of the documentation lead somewhere, and its examples work."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from accord.core.errors import AccordError
from accord.core.kinds import check_document
from accord.core.shapes import read_shape
from accord.files.yaml import read_yaml
from accord.results.bodies import read_body
from accord.results.body_rules import body_findings
from accord.results.labels import ItemKind
from accord.results.texts import posted_body
from accord.text.hidden import GUARD
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.sanitise import KINDS
from accord_sandbox.faults import Fault
from accord_sandbox.seed import Seed

ROOT = Path(__file__).parents[2]
COMMIT = "0" * 40


def pages() -> list[str]:
    """All Markdown files of the project, committed or about to be; files of recorded sessions are data."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", ":!tests/data/sessions"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted(name for name in set(listed.stdout.split()) if (ROOT / name).exists())


@cache
def tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of headings; a repeated one gets a number."""
    found: set[str] = set()
    parsed = tokens(page)
    for i, token in enumerate(parsed):
        if token.type == "heading_open":
            text = "".join(child.content for child in parsed[i + 1].children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            numbered = (f"{slug}-{n}" for n in range(1, 100))
            found.add(slug if slug not in found else next(name for name in numbered if name not in found))
    written = re.findall(r'<a id="([^"]+)"></a>', page.read_text(encoding="utf-8"))
    assert len({*written, *found}) == len(written) + len(found), f"{page.name} has an anchor twice"
    return found | set(written)


def targets(page: Path) -> Iterator[str]:
    for token in tokens(page):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target:
                yield str(target)


def blocks(page: Path, language: str) -> list[str]:
    return [t.content for t in tokens(page) if t.type == "fence" and t.info.split()[:1] == [language]]


def wrong_link(page: Path, target: str) -> str:
    """Say what is wrong with the target of a link; empty if nothing is."""
    if re.match(r"[a-z]+:", target):
        return "" if target.startswith("https://") else "is not https"
    path, _, anchor = unquote(target).partition("#")
    there = (page.parent / path).resolve() if path else page
    if not there.exists():
        return "is not there"
    if not there.is_relative_to(ROOT):
        return "is out of the project"
    return "" if not anchor or anchor in anchors(there) else "is not a heading there"


def test_links_have_targets() -> None:
    links = [(name, target) for name in pages() for target in targets(ROOT / name)]
    assert len(links) > 500
    wrong = [(name, target, wrong_link(ROOT / name, target)) for name, target in links]
    assert [f"{name} links to {target}, which {problem}" for name, target, problem in wrong if problem] == []


def test_blocks_of_json_and_yaml_can_be_read() -> None:
    unread = []
    for name, language in product(pages(), ("json", "yaml")):
        for block in blocks(ROOT / name, language):
            try:
                assert language == "json" or read_yaml(block.encode()).value is not None
                json.loads(block if language == "json" else "{}")
            except (ValueError, AssertionError, AccordError) as error:
                unread.append(f"{name}: {error}\n{block}")
    assert unread == []


@pytest.mark.slow
def test_every_page_is_linked_from_another() -> None:
    linked = {
        ((ROOT / name).parent / target.partition("#")[0]).resolve()
        for name in pages()
        for target in targets(ROOT / name)
        if not re.match(r"[a-z]+:", target)
    }
    linked |= {page / "README.md" for page in linked if page.is_dir()}
    lonely = [name for name in pages() if name != "README.md" and ROOT / name not in linked]
    assert not lonely


@pytest.mark.slow
def test_workflows_in_pages_are_valid_for_github(tmp_path: Path) -> None:
    found = 0
    for name in pages():
        for block in blocks(ROOT / name, "yaml"):
            if re.search(r"^jobs:", block, re.MULTILINE):
                header = "" if re.search(r"^on:", block, re.MULTILINE) else "on: push\n"
                found += 1
                (tmp_path / f"{found}.yml").write_text(header + block.replace("<sha>", COMMIT))
    assert found >= 3
    check = Path(sys.executable).with_name("check-jsonschema")
    command = [str(check), "--builtin-schema", "vendor.github-workflows", *map(str, sorted(tmp_path.glob("*.yml")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_templates_to_copy_keep_every_rule() -> None:
    templates = blocks(ROOT / "docs" / "planner-results.md", "markdown")
    for kind, template in zip((ItemKind.TASK, ItemKind.REFINEMENT), templates, strict=True):
        assert not list(body_findings(read_body(template), kind, ""))


def test_the_results_to_copy_keep_every_rule() -> None:
    (done,) = (json.loads(block) for block in blocks(ROOT / "docs" / "implementor-results.md", "json"))
    (blocked, *_) = blocks(ROOT / "docs" / "implementor-results.md", "text")
    (review,) = (json.loads(block) for block in blocks(ROOT / "docs" / "reviewer-results.md", "json"))
    for result in (
        {**done, "patch": "diff --git a/a b/a\nnew file mode 100644\nindex 0000000..e69de29\n"},
        {**done, "outcome": "blocked", "summary": blocked},
        review,
    ):
        assert check_document(json.dumps(result).encode(), None)[1] == []


def test_the_seed_and_the_fault_in_the_sandboxs_page_are_accepted() -> None:
    page = ROOT / "docs" / "sandbox.md"
    (example,) = blocks(page, "yaml")
    assert read_shape(Seed, read_yaml(example.encode()).value).repositories
    (fault,) = re.findall(r"_sandbox/faults -d '(.+)'", page.read_text(encoding="utf-8"))
    assert Fault.parse(json.loads(fault)).kind == "lost-after"


def examples_of_sanitising() -> list[list[str]]:
    """The rows of the table in the page about agents' texts: kind, before, after."""
    page = (ROOT / "docs" / "outgoing-text.md").read_text(encoding="utf-8")
    table = page.partition("<!-- sanitised -->")[2].partition("<!-- /sanitised -->")[0]
    parsed = MarkdownIt("commonmark").enable("table").parse(table)
    cells = [parsed[i + 1] for i, token in enumerate(parsed) if token.type == "td_open"]
    said = ["".join(child.content for child in cell.children or ()) for cell in cells]
    return [said[i : i + 3] for i in range(0, len(said), 3)]


def as_posted(text: str) -> tuple[str, list[str]]:
    """Return the posted form of a text, in the signs of the page, and the counted changes."""
    made = posted_body(text.replace("⏎", "\n"), Redactor(), PostingPolicy())
    return made.text.replace(GUARD, "·").replace("\n", "⏎"), list(made.counts)


def test_agents_texts_are_posted_as_the_page_says() -> None:
    said = {before: (after, [kind] if kind else []) for kind, before, after in examples_of_sanitising()}
    assert {before: as_posted(before) for before in said} == said


def test_the_page_has_an_example_of_everything_that_is_counted() -> None:
    shown = [kind for kind, _, _ in examples_of_sanitising() if kind]
    assert list(dict.fromkeys(shown)) == [kind for kind in KINDS if kind != "unreadable"]


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


def test_each_defence_of_the_threat_model_names_tests_that_exist() -> None:
    rows = re.findall(r"^\| [^*\n]+ \| .+ \| (.+) \|$", (ROOT / "tests/reference/attacks.md").read_text(), re.MULTILINE)
    named = [name for cell in rows[rows.index("Test") + 2 :] for name in cell.split(", ")]
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    defined = {f"`{name}`" for text in sources for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    assert len(named) > 25
    assert [name for name in named if name not in defined] == []
