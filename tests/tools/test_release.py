"""A release that is not ready is refused, and examples name one commit."""

import subprocess
from pathlib import Path

import pytest
import release
import yaml
from reference.install import (
    PUBLISHED,
    SOURCE,
    gh_extension,
    install_in_readme,
    install_to_start,
    install_with_tools,
    is_released,
)

ROOT = Path(__file__).parents[2]
COMMIT = "a" * 40
PIN = f"{COMMIT} # v1.2.0"
USE = "uses: accord-ci/accord/actions/check@"
CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2026-12-01

### Added

- A command.

## [1.1.0] - 2026-11-01

- The first one.

[Unreleased]: https://example.org/1.2.0...HEAD
[1.2.0]: https://example.org/1.1.0...1.2.0
"""


def problems(
    version: str = "1.2.0", tag: str = "v1.2.0", changelog: str = CHANGELOG, page: str = USE + PIN
) -> list[str]:
    return release.problems(version, tag, changelog, PIN, [page])


def test_a_version_with_notes_link_and_pins_is_ready() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        (problems(tag="v1.3.0"), "The tag is `v1.3.0`"),
        (problems(version="1.3.0", tag="v1.3.0"), "no section `## [1.3.0]"),
        (problems(changelog=CHANGELOG.replace(" - 2026-12-01", "")), "no section `## [1.2.0]"),
        (problems(changelog=CHANGELOG.replace("\n[1.2.0]", "\n[1.0.0]")), "no link"),
        (problems(changelog=CHANGELOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n- New.\n")), "under Unreleased"),
        (problems(page=f"{USE}{'b' * 40} # v1.2.0"), "pinned to"),
        (problems(page=f"{USE}<sha> # v1.1.0"), "pinned to"),
    ],
)
def test_each_thing_that_a_release_lacks_is_named(lacking: list[str], words: str) -> None:
    (problem,) = lacking
    assert words in problem


def test_the_notes_of_a_release_are_those_of_its_version() -> None:
    assert release.notes_of(CHANGELOG, "1.2.0") == "### Added\n\n- A command."
    assert release.notes_of(CHANGELOG, "1.1.0") == "- The first one."


def test_pins_of_examples_change_and_those_of_the_kit_stay() -> None:
    kit = f"{USE}{'0' * 40} # v0.0.0"
    page = f"{USE}<sha> # v1.1.0\n{USE}{'b' * 40} # v1.1.0\n{kit}\nuses: other/accord@{'b' * 40} # v1.1.0"
    first, second, third, fourth = release.pinned(page, PIN).split("\n")
    assert [first, second, third] == [USE + PIN, USE + PIN, kit]
    assert fourth == f"uses: other/accord@{'b' * 40} # v1.1.0"


def test_every_example_of_this_checkout_has_the_pin_of_the_project() -> None:
    pin = (ROOT / release.PIN).read_text(encoding="utf-8").strip()
    assert release.pins_of(release.pages_of(ROOT).values()) == {pin}


@pytest.mark.slow
def test_the_next_release_of_this_checkout_lacks_only_its_words(tmp_path: Path) -> None:
    """Renaming Unreleased and adding a link are all that is left to do before a tag."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    changelog, version = clone / "CHANGELOG.md", release.version_of(clone)
    text = changelog.read_text(encoding="utf-8")
    if not release.notes_of(text, version):
        text = text.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{version}] - 2026-12-01\n", 1)
        changelog.write_text(f"{text}[{version}]: https://example.org\n", encoding="utf-8")
        text = changelog.read_text(encoding="utf-8")
    assert release.main(["check", f"v{version}"], clone) == int(bool(release.unreleased(text)))
    assert release.main(["check", "v99.0.0"], clone) == 1


@pytest.mark.parametrize(
    ("change", "code"),
    {
        "none": 0,
        "accord-1.2.0-py3-none-any.whl": 1,
        "a file more": 1,
        "a file less": 1,
        "nothing was built": 1,
    }.items(),
)
def test_only_the_packages_that_were_built_are_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], change: str, code: int
) -> None:
    wheel, source = tmp_path / "accord-1.2.0-py3-none-any.whl", tmp_path / "accord-1.2.0.tar.gz"
    wheel.write_bytes(b"wheel")
    source.write_bytes(b"source")
    (tmp_path / ".gitignore").write_text("*")  # uv writes it, and artifacts have no hidden files
    assert release.main(["digests", str(tmp_path)]) == 0
    (tmp_path / ".gitignore").unlink()
    built = capsys.readouterr().out.strip()
    match change:
        case "a file more":
            (tmp_path / "other-1.0.tar.gz").touch()
        case "a file less":
            source.unlink()
        case "nothing was built":
            built = ""
        case wheel.name:
            wheel.write_bytes(b"other")
    monkeypatch.setenv("DIGESTS", built)
    assert release.main(["compare", str(tmp_path)]) == code
    assert (built in capsys.readouterr().out) == bool(code)


def test_the_job_that_builds_runs_nothing_unlocked_and_others_compare_its_digests() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    steps = {job_id: [step.get("uses") or step["run"] for step in job.get("steps", ())] for job_id, job in jobs.items()}
    building = next(i for i, step in enumerate(steps["build"]) if " build " in step)
    assert "--require-hashes" in steps["build"][building]
    assert "upload-artifact" in steps["build"][building + 1]
    unlocked = [job_id for job_id, each in steps.items() if any("tool run" in step for step in each)]
    assert unlocked == ["demo"]
    assert "write" not in str(jobs["demo"]["permissions"])
    assert "release.py compare" not in str(steps["demo"])
    for job_id, publishes in (("release", "gh release create"), ("pypi", "publish --trusted")):
        script = next(step for step in steps[job_id] if publishes in step)
        at = [script.index(words) for words in ("gh run download", "release.py compare dist", publishes)]
        assert at == sorted(at)


def test_pages_name_the_package_only_when_it_is_published(tmp_path: Path) -> None:
    renderers = (install_in_readme, install_to_start, install_with_tools)
    (tmp_path / "tools").mkdir()
    for pin, is_published in (("<sha> # v0.1.0\n", False), (f"{PIN}\n", True)):
        (tmp_path / "tools/pin.txt").write_text(pin)
        for render in renderers:
            assert bool(PUBLISHED.search(render(tmp_path))) == is_published, (pin, render)


@pytest.mark.parametrize(
    ("command", "is_published"),
    {
        "uvx accord demo": True,
        "pipx install --force accord": True,
        "pip install --index-url https://example.org/simple accord": True,
        "pip install 'accord[mcp]'": True,
        "pip install 'accord[mcp] @ git+https://example.org/x'": False,
        f"pipx install {SOURCE}": False,
        f"uvx --from {SOURCE} accord": False,
    }.items(),
)
def test_a_command_that_asks_the_package_index_is_recognised(command: str, is_published: bool) -> None:
    assert bool(PUBLISHED.search(command)) == is_published


def test_the_extension_of_gh_runs_a_package_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    for pin, package in (("<sha> # v0.1.0\n", f"accord[web] @ {SOURCE}"), (f"{PIN}\n", "accord[web]")):
        (tmp_path / "tools/pin.txt").write_text(pin)
        assert f"\npackage='{package}'\n" in gh_extension(tmp_path)


@pytest.mark.slow
def test_no_other_text_tells_people_to_install_an_unpublished_package() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "*.yml", "actions", "templates", "gh-accord"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    own = ("tools/reference/install.py", "src/accord/core/environment.py", "tests/")
    named = [
        f"{name}: {found[0]}"
        for name in listed
        if not name.startswith(own) and (ROOT / name).is_file()
        for found in PUBLISHED.finditer((ROOT / name).read_text(encoding="utf-8", errors="replace"))
    ]
    assert is_released(ROOT) or not named
