"""The generator notices every difference, and refuses what it cannot describe."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
SOURCES = ["examples", "README.md", "action.yml", "actions", "docs", "schemas", ".github", "src", "tools"]
DEMO = "```text\nthe demo\n```"


@pytest.fixture
def copy(tmp_path: Path, generate: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the generator reads and writes, up to date; the demo itself is not run."""
    for name in SOURCES:
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(source, tmp_path / name)
    monkeypatch.setattr(generate, "demo_output", lambda: DEMO)
    assert generate.main([], tmp_path) == 0
    return tmp_path


def test_what_was_just_written_is_up_to_date(copy: Path, generate: ModuleType) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert generate.main(["--check"], copy) == 0
    assert generate.main([], copy) == 0
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("docs/cli.md", "--run-key", "--key"),
        ("docs/findings.md", "`not-json`", "`no-json`"),
        ("docs/applying.md", "| 3 |", "| 5 |"),
        ("docs/work-items.md", "stateDiagram-v2", "stateDiagram"),
        ("docs/actions.md", "`max-wait`", "`patience`"),
        ("docs/workflows.md", "`result-json`", "`json`"),
        ("README.md", "the demo", "a demo"),
        ("actions/check/README.md", "`paths`", "`path`"),
        ("schemas/planner-result.strict.schema.json", "tempID", "tempId"),
        ("action.yml", "run-key:", "run-name:"),
    ],
)
def test_a_difference_is_shown_with_the_command_that_mends_it(
    copy: Path, generate: ModuleType, capsys: pytest.CaptureFixture[str], name: str, old: str, new: str
) -> None:
    text = (copy / name).read_text()
    assert old in text
    (copy / name).write_text(text.replace(old, new))
    capsys.readouterr()
    assert generate.main(["--check"], copy) == 1
    shown = capsys.readouterr().out
    assert "./dev generate" in shown
    assert ("docs/actions.md" if name == "action.yml" else name) in shown
    assert generate.main([], copy) == 0
    assert generate.main(["--check"], copy) == 0


def test_a_schema_of_no_kind_is_found_and_deleted(copy: Path, generate: ModuleType) -> None:
    stale = copy / "schemas" / "gone.schema.json"
    stale.write_text("{}")
    assert generate.main(["--check"], copy) == 1
    assert generate.main([], copy) == 0
    assert not stale.exists()


def test_a_page_without_its_marks_is_a_problem(
    copy: Path, generate: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    page = copy / "docs" / "labels.md"
    page.write_text(page.read_text().replace("<!-- /labels -->", ""))
    assert generate.main([], copy) == 1
    assert "docs/labels.md needs <!-- labels --> and <!-- /labels -->" in capsys.readouterr().out


def test_a_code_without_a_line_and_a_line_without_a_code_are_problems(
    copy: Path, generate: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    module = copy / "src" / "accord" / "results" / "rules.py"
    module.write_text(module.read_text() + '\n\nNEW = Finding("brand-new", "Never heard of.")\n')
    assert generate.main(["--check"], copy) == 1
    assert "without a line in tools/findings.yml: brand-new" in capsys.readouterr().out
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
def test_codes_are_collected_from_calls(generate: ModuleType, source: str, codes: list[tuple[str, str]]) -> None:
    assert list(generate.codes_in(source, "module.py")) == codes


def test_a_code_that_is_put_together_is_a_problem(generate: ModuleType) -> None:
    with pytest.raises(generate.Problem, match=r"module\.py:1"):
        list(generate.codes_in('Finding("label-" + name, "text")', "module.py"))


def test_a_cell_cannot_break_its_table(generate: ModuleType) -> None:
    assert generate.plain("a | b\nc") == "a \\| b c"
