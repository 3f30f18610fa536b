"""Files that decide what agents and tools do, found among the paths of a change. One list for runs and patches.

A name counts in every folder, in any case, and in the spellings that a file system takes for the same name.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from accord.git.paths import path_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pathspec import GitIgnoreSpec

    from accord.git.patches import Change

STEERING = """
AGENTS.md AGENTS.*.md CLAUDE.md CLAUDE.*.md GEMINI.md GEMINI.*.md copilot-instructions.md opencode* .opencode*
.agent .agents .aider* .amazonq .augment* .claude* .cline* .codex* .continue* .copilot* .cursor* .gemini*
.goosehints SKILL.md .junie .kiro .roo .roomodes .roorules* .windsurf* .mcp.json
**/.github/agents **/.github/chatmodes **/.github/copilot* **/.github/hooks **/.github/instructions
**/.github/prompts **/.github/skills
/action.yml /action.yaml .gitmodules .gitattributes .githooks .husky lefthook* .lefthook* .pre-commit-config.yaml
.npmrc .yarnrc* .pnpmfile.cjs .envrc .vscode .devcontainer .devcontainer.json
"""
"""Files that agents obey or that tools start by themselves, as .gitignore patterns. Not pushed unless allowed."""

PROTECTED = """
.github CODEOWNERS .circleci .gitlab-ci.yml .travis.yml azure-pipelines.yml bitbucket-pipelines.yml .buildkite
Jenkinsfile
"""
"""Other files that only people change. A patch with one becomes a draft; a run with one is not pushed unless allowed.
"""

DEPENDENCIES = """
package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lock* deno.json*
deno.lock pyproject.toml setup.py setup.cfg requirements*.txt requirements*.in **/requirements/*.txt
constraints*.txt Pipfile Pipfile.lock poetry.lock pdm.lock uv.lock uv.toml pixi.toml pixi.lock environment.yml
environment.yaml Cargo.toml Cargo.lock go.mod go.sum go.work go.work.sum Gemfile Gemfile.lock *.gemspec composer.json
composer.lock pom.xml build.gradle* settings.gradle* gradle.lockfile libs.versions.toml gradle-wrapper.properties
mix.exs mix.lock Package.swift Package.resolved Podfile Podfile.lock *.csproj *.fsproj packages.lock.json
Directory.Packages.props NuGet.config vcpkg.json conanfile.* flake.nix flake.lock
"""
"""Dependency manifests and lock files. A change is reported."""

SUBMODULE = "160000"
"""The mode of an entry that is a commit of another repository."""

_SHORT_NAME = re.compile(r"(?:^|/)[^/~]{1,6}~\d+(?:\.[^/.]{0,3})?(?:/|$)")
"""A name in the form of Windows' short names, such as ``GITHUB~1``, which may stand for any other name."""

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HEADER = re.compile(rb"(---|\+\+\+|(?:rename|copy) (?:from|to)|diff --git) ([^\t\r]+)")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_PAIR = re.compile(r'"?[a-z]/.+ "?[a-z]/.+', re.DOTALL)
_ABSOLUTE_TOKEN = re.compile(r'(?:^| )"?(?:/|\\057)')
_ABSOLUTE = re.compile(r"(?:[a-z]/)?(?:/|\\|[A-Za-z]:[/\\])")


@dataclass(frozen=True)
class PathAudit:
    """Changed paths by kind, as they are spelled in the change."""

    steering: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()


def audit_changes(changes: Iterable[Change], patch: bytes = b"") -> PathAudit:
    """Sort what a change touches: both names of a renamed or copied file, removed files, and submodules."""
    changes = list(changes)
    copied = [name for key, name in _header_names(patch) if key == b"copy from"] if changes else []
    audit = audit_paths([*(change.path for change in changes), *copied])
    links = [change.path for change in changes if change.mode == SUBMODULE]
    return PathAudit(tuple(dict.fromkeys((*audit.steering, *links))), audit.protected, audit.dependencies)


def audit_paths(paths: Iterable[str], extra: Sequence[str] = ()) -> PathAudit:
    """Sort paths; ``extra`` are more patterns for protected ones. Raises WrongUsage for an invalid pattern."""
    steering, protected, dependencies = map(_spec_of, (STEERING, PROTECTED, DEPENDENCIES))
    more, folded = path_patterns(extra), path_patterns(pattern.lower() for pattern in extra)
    found: dict[str, list[str]] = {"steering": [], "protected": [], "dependencies": []}
    for path in dict.fromkeys(paths):
        name = _folded(path)
        if steering.match_file(name) or _SHORT_NAME.search(name):
            found["steering"].append(path)
        elif protected.match_file(name) or more.match_file(path) or folded.match_file(name):
            found["protected"].append(path)
        if dependencies.match_file(name):
            found["dependencies"].append(path)
    return PathAudit(**{kind: tuple(names) for kind, names in found.items()})


@cache
def _spec_of(patterns: str) -> GitIgnoreSpec:
    return path_patterns(patterns.lower().split())


def _folded(path: str) -> str:
    """Write a path as HFS+, APFS and NTFS compare it: case, ignored code points, and ends of names do not count."""
    plain = unicodedata.normalize("NFKD", path.replace("\\", "/"))
    visible = "".join(sign for sign in plain if unicodedata.category(sign) not in ("Cc", "Cf", "Mn"))
    return "/".join(part.partition(":")[0].rstrip(". ") or part for part in visible.casefold().split("/"))


def absolute_names(patch: bytes) -> list[str]:
    """List the absolute names in the headers of a patch, which git takes for names below the top of the work tree."""
    found = []
    for key, name in _header_names(patch):
        if key == b"diff --git":
            is_absolute = not _PAIR.fullmatch(name) and _ABSOLUTE_TOKEN.search(name)
        else:
            is_absolute = name != "/dev/null" and _ABSOLUTE.match(name)
        if is_absolute:
            found.append(name)
    return list(dict.fromkeys(found))


def _header_names(patch: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield the names in the headers of a patch with their keywords; ``diff --git`` has both names in one."""
    old = new = 0
    for line in patch.split(b"\n"):
        if old > 0 or new > 0:
            old -= line[:1] in (b" ", b"-", b"")
            new -= line[:1] in (b" ", b"+", b"")
        elif hunk := _HUNK.match(line):
            old, new = (int(1 if count is None else count) for count in hunk.groups())
        elif header := _HEADER.match(line):
            name = header[2] if header[1] == b"diff --git" else _unquoted(header[2])
            yield header[1], name.decode("utf-8", "surrogateescape")


def _unquoted(name: bytes) -> bytes:
    """Read a name as git quotes it: in double quotes, with escapes and octal numbers."""
    if not name.startswith(b'"'):
        return name
    text = name[1:].rpartition(b'"')[0]
    return _ESCAPE.sub(lambda hit: bytes([int(hit[1], 8) & 255]) if len(hit[1]) == 3 else hit[1], text)
