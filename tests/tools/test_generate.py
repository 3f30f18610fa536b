"""The generator notices every difference, and refuses what it cannot describe."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import generate
import pytest
from reference import parts
from reference.commands import cli_reference
from reference.source import codes_in
from reference.text import Problem, plain

ROOT = Path(__file__).parents[2]
SOURCES = ["examples", "templates", "README.md", "action.yml", "actions", "docs", "schemas", ".github", "src", "tools"]
SOURCES += ["tests/data/README.md", "tests/reference"]
DEMO = "```text\nthe demo\n```"


@pytest.fixture(scope="module", autouse=True)
def _no_demo() -> Iterator[None]:
    """The demo itself is not run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "demo_output", lambda: DEMO)
        yield


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, _no_demo: None) -> Path:
    """The files that the generator reads and writes, up to date."""
    place = tmp_path_factory.mktemp("fresh")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place / name)
    assert generate.main([], place) == 0
    return place


@pytest.fixture
def copy(tmp_path: Path, fresh: Path) -> Path:
    """A copy of it that a test may spoil."""
    return shutil.copytree(fresh, tmp_path / "copy")


@pytest.mark.slow
def test_generated_parts_are_up_to_date(copy: Path) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert generate.main(["--check"], copy) == 0
    assert generate.main([], copy) == 0
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


DIFFERENCES = {
    "docs/cli.md": ("--run-key", "--key"),
    "docs/findings.md": ("`not-json`", "`no-json`"),
    "docs/applying.md": ("| 3 |", "| 5 |"),
    "docs/work-items.md": ("stateDiagram-v2", "stateDiagram"),
    "docs/workflows.md": ("`result-json`", "`json`"),
    "docs/examples.md": ("```text\nthe demo", "```text\na demo"),
    "actions/check/README.md": ("`paths`", "`path`"),
    "schemas/planner-result.strict.schema.json": ("tempID", "tempId"),
}


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["generated", "source"])
def test_a_difference_is_shown_with_the_command_that_fixes_it(
    copy: Path, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    if part == "generated":
        wanted = set(DIFFERENCES)
        for name, (old, new) in DIFFERENCES.items():
            replace(copy / name, old, new)
    else:
        wanted = {"actions/apply/README.md"}
        replace(copy / "actions/apply/action.yml", "run-key:", "run-name:")
    capsys.readouterr()
    assert generate.main(["--check"], copy) == 1
    shown = capsys.readouterr().out
    assert "./dev generate" in shown
    assert {name for name in wanted if name not in shown} == set()
    assert generate.main([], copy) == 0
    assert generate.main(["--check"], copy) == 0


@pytest.mark.slow
def test_a_schema_without_a_kind_is_deleted(copy: Path) -> None:
    stale = copy / "schemas" / "gone.schema.json"
    stale.write_text("{}")
    assert generate.main(["--check"], copy) == 1
    assert generate.main([], copy) == 0
    assert not stale.exists()


@pytest.mark.slow
def test_a_page_without_its_marks_is_a_problem(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = copy / "docs" / "labels.md"
    page.write_text(page.read_text().replace("<!-- /labels -->", ""))
    assert generate.main([], copy) == 1
    assert "docs/labels.md needs <!-- labels --> and <!-- /labels -->" in capsys.readouterr().out


@pytest.mark.slow
def test_codes_without_lines_and_lines_without_codes_are_found(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = copy / "src/accord/results/planner/rules.py"
    module.write_text(module.read_text() + '\n\nNEW = Finding("brand-new", "Never heard of.")\n')
    assert generate.main(["--check"], copy) == 1
    assert "without a line in src/accord/cli/findings.yml: brand-new" in capsys.readouterr().out
    module.write_text(
        module.read_text().replace("brand-new", "title-empty").replace('"self-reference"', '"title-empty"')
    )
    assert generate.main(["--check"], copy) == 1
    assert "codes that the source does not have: self-reference" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ('Finding("a", "text")', [("a", "error")]),
        ('warning("a", "text", path)', [("a", "warning")]),
        ('def _broken(code, text):\n    raise Broken([Finding(code, text)])\n\n_broken("a", "text")', [("a", "error")]),
        ('def invalid(code):\n    return {"code": code}\n\ninvalid("a")', []),
        ("\"Finding('a')\"", []),
    ],
)
def test_codes_are_collected_from_calls(source: str, codes: list[tuple[str, str]]) -> None:
    assert list(codes_in(source, "module.py")) == codes


def test_a_computed_code_is_a_problem() -> None:
    with pytest.raises(Problem, match=r"module\.py:1"):
        list(codes_in('Finding("label-" + name, "text")', "module.py"))


@pytest.mark.parametrize(("group", "option"), [("mission", "--root DIR"), ("board", "--static DIR")])
def test_the_options_of_a_group_are_listed(group: str, option: str) -> None:
    assert f"- `{option}`: " in cli_reference().partition(f"\n## accord {group}\n")[2].partition("\n###")[0]


def test_a_cell_cannot_break_its_table() -> None:
    assert plain("a | b\nc") == "a \\| b c"
