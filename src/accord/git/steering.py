"""Files that decide what agents and tools do, found among the paths of a change. One list for runs and patches.

A name counts in every folder, in any case, and in the spellings that a file system takes for the same name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from accord.core.frozen import Frozen
from accord.files.patterns import added_patterns
from accord.git.patch_text import header_names
from accord.git.patches import Change
from accord.git.paths import links_of, names_on_way
from accord.git.program import SUBMODULE, Git, split_nul

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


STEERING = """
.accord* .kittify .specify **/.github/accord **/.github/agents **/.github/chatmodes **/.github/hooks
**/.github/instructions **/.github/prompts **/.github/skills action.yml action.yaml .gitmodules .githooks .husky*
lefthook.y*ml lefthook.toml lefthook.json* lefthook-local.* .lefthook* .pre-commit-config.yaml .npmrc .yarnrc*
*pnpmfile.*js .envrc .vscode .devcontainer devcontainer.json .devcontainer.json .gitpod* *.code-workspace
.overcommit.yml mise.toml .mise* **/.config/mise* .exrc .nvimrc .nvim.lua .lvimrc .dir-locals.el .gdbinit
.ycm_extra_conf.py **/.idea/runConfigurations *.sublime-project simple-git-hooks.* captainhook.json grumphp.y*ml
lint-staged.config.* .lintstagedrc* commitlint.config.* .rusty-hook.toml .gitconfig
"""
"""Files that tools start by themselves, as .gitignore patterns. Not pushed unless allowed.

``.kittify``, ``.accord`` and some folders of ``.github`` decide what accord itself offers the next agent. The files
that agents obey are in their registry. A new dot file counts, too, unless it is ``HARMLESS`` or ``PROTECTED``.
"""

PROTECTED = """
.github CODEOWNERS OWNERS OWNERS_ALIASES .gitattributes .lfsconfig .ci* ci_scripts .circleci circle.yml .gitlab*
*.gitlab-ci.y*ml .travis* azure-pipelines*.y*ml .azure* .pipelines .vsts* bitbucket-pipelines.y*ml .buildkite*
buildkite.y*ml Jenkinsfile* .jenkins* jenkins-x*.y*ml .forgejo .gitea .woodpecker* .drone* .appveyor* appveyor.y*ml
cloudbuild*.y*ml .semaphore bitrise.y*ml .bitrise* codemagic.y*ml .cirrus* wercker.y*ml .wercker* shippable.y*ml
.shippable* codeship-*.y*ml .scrutinizer* buildspec*.y*ml .tekton .concourse .harness .prow* .zuul* zuul.y*ml zuul.d
.builds .build.y*ml .onedev* .teamcity .space.kts *.gocd.y*ml .dagger dagger.json .screwdriver* screwdriver.y*ml
.packit* packit.y*ml .readthedocs* readthedocs.y*ml .atlantis* atlantis.y*ml .mergify* mergify.y*ml .bors.toml bors.toml
.kodiak* kodiak.toml .bulldozer* .policy.y*ml renovate.json* .renovaterc* .dependabot .greenkeeper* greenkeeper.json
netlify.toml vercel.json now.json amplify.y*ml render.y*ml heroku.yml goreleaser.y*ml release-please-config.json
release.config.* codecov.y*ml fastlane .cargo .mvn mvnw* gradlew* gradle-wrapper.* .gradle init.gradle*
**/.yarn/releases **/.yarn/plugins **/.yarn/sdks .pnp.* bunfig.toml .bunfig.toml /sbt .sbtopts Directory.*.props
Directory.*.targets Directory.*.rsp **/.config/dotnet-tools.json .bazelrc **/tools/bazel .buckconfig .bundle pip.conf
.pip sitecustomize.py usercustomize.py
"""
"""Other files that only people change: of CI and bots, wrappers and settings of builds, and what hides a change.

A patch with one becomes a draft; a run with one is not pushed unless allowed.
"""

HARMLESS = """
.*ignore .*keep .editorconfig .mailmap .git-blame-ignore-revs .nojekyll .clang-format .nvmrc .node-version
.python-version .ruby-version .env.example .env.sample
"""
"""New dot files that start nothing, and change nothing for other files than those that they list."""

DEPENDENCIES = """
package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lock* deno.json*
deno.lock pyproject.toml setup.py setup.cfg requirements*.txt requirements*.in **/requirements/*.txt
constraints*.txt Pipfile Pipfile.lock poetry.lock pdm.lock uv.lock uv.toml pixi.toml pixi.lock environment.yml
environment.yaml Cargo.toml Cargo.lock go.mod go.sum go.work go.work.sum Gemfile Gemfile.lock *.gemspec composer.json
composer.lock pom.xml build.gradle* settings.gradle* gradle.lockfile libs.versions.toml gradle-wrapper.properties
mix.exs mix.lock Package.swift Package.resolved Podfile Podfile.lock *.csproj *.fsproj packages.lock.json
Directory.Packages.props NuGet.config vcpkg.json conanfile.* CMakeLists.txt flake.nix flake.lock
"""
"""Dependency manifests and lock files. A change is reported."""

RECORDS = ".agents-work kitty-specs"
"""Folders of sessions and missions, which agents write on purpose and later agents read. A change is reported."""

_SHORT_NAME = re.compile(r"(?:^|/)[^/~]{1,6}~\d+(?:\.[^/.]{0,3})?(?:/|$)")
"""A name in the form of Windows' short names, such as ``GITHUB~1``, which may stand for any other name."""

_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Code points that Unicode allows to ignore, as file systems do (Default_Ignorable_Code_Point)."""


class PathAudit(Frozen):
    """Changed paths by kind, as they are spelled in the change."""

    steering: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    records: tuple[str, ...] = ()


def audit_changes(
    git: Git, tree: str, changes: Iterable[Change], patch: bytes = b"", *, own: tuple[Sequence[str], Sequence[str]]
) -> PathAudit:
    """Sort what a change of a tree touches: both names of a renamed or copied file, removed files too.

    ``own`` are patterns of the registry, of steering and of protected files. Submodules and new dot files count as
    steering files. The target of a link counts by the name of the link.
    """
    changes = list(changes)
    if not changes:
        return PathAudit()
    links = links_of(git, tree)
    copied = [name for key, name in header_names(patch) if key == b"copy from"]
    paths = list(dict.fromkeys([*(change.path for change in changes), *copied]))
    audit, linked = (audit_paths(names, own[1], agent_files=own[0]) for names in (paths, links))
    steering, protected = (_targets(links, names) for names in (linked.steering, linked.protected))
    modules = [change.path for change in changes if change.mode == SUBMODULE]
    unknown = [path for path in _unknown_dot_files(git, tree, paths) if path not in audit.protected]
    steers = [*audit.steering, *(path for path in paths if _is_beside(path, steering)), *modules, *unknown]
    stays = [*audit.protected, *(path for path in paths if _is_beside(path, protected))]
    return PathAudit(
        tuple(dict.fromkeys(steers)),
        tuple(path for path in dict.fromkeys(stays) if path not in steers),
        audit.dependencies,
        audit.records,
    )


def _unknown_dot_files(git: Git, tree: str, paths: Iterable[str]) -> list[str]:
    """Return the files with a dot name that no path of the tree has: unknown tools read their settings from such."""
    new = {path: names for path in paths if (names := _dot_names(path))}
    if not new:
        return []
    known = set(RECORDS.split()).union(
        *map(_dot_names, split_nul(git("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)))
    )
    return [path for path, names in new.items() if names - known]


def _dot_names(path: str) -> set[str]:
    """Return the dot names in a path; in ``.config``, each tool has a name of its own."""
    names = _folded_path(path).split("/") if "." in path else []
    if names and _spec_of(*HARMLESS.split()).match_file(names[-1]):
        names.pop()
    inside = {f".config/{name}" for above, name in pairwise(names) if above == ".config"}
    return {name for name in names if name.startswith(".") and name != ".config"} | inside


def _targets(links: Mapping[str, str], chosen: Iterable[str]) -> set[str]:
    """Return the folded names that lie on the ways of the chosen links, and of links in the folders they lead to."""
    found: set[str] = set()
    left, todo = {*links} - {*chosen}, list(chosen)
    while todo:
        way = [name for name in names_on_way(todo.pop(), links) if name]
        below = [link for link in left if link.startswith(f"{way[-1]}/")] if way else []
        found.update(way)
        left.difference_update(below)
        todo += below
    return {_folded_path(name) for name in found}


def _is_beside(path: str, names: set[str]) -> bool:
    """Return whether a path is one of these names, in one of these folders, or in the place of their folder."""
    name = _folded_path(path)
    return any(f"{name}/".startswith(f"{known}/") or known.startswith(f"{name}/") for known in names)


def audit_paths(paths: Iterable[str], extra: Sequence[str] = (), *, agent_files: Sequence[str]) -> PathAudit:
    """Sort paths by the tables, ``extra`` protected ones, and files that agents obey. Raises WrongUsage."""
    protected, dependencies, records = (_spec_of(*table.split()) for table in (PROTECTED, DEPENDENCIES, RECORDS))
    steering = _spec_of(*STEERING.split(), *agent_files)
    more, folded = added_patterns(extra), added_patterns(map(_comparable_path, extra))
    found: dict[str, list[str]] = {"steering": [], "protected": [], "dependencies": [], "records": []}
    for path in dict.fromkeys(paths):
        name = _folded_path(path)
        if steering.match_file(name) or _SHORT_NAME.search(name):
            found["steering"].append(path)
        elif protected.match_file(name) or more.match_file(path) or folded.match_file(name):
            found["protected"].append(path)
        if dependencies.match_file(name):
            found["dependencies"].append(path)
        if records.match_file(name):
            found["records"].append(path)
    return PathAudit(**{kind: tuple(names) for kind, names in found.items()})


@cache
def _spec_of(*patterns: str) -> GitIgnoreSpec:
    return added_patterns(map(_comparable_path, patterns))


def _folded_path(path: str) -> str:
    """Write a path as file systems compare it: without case, ignored code points and ends of names; no line ends."""
    parts = _comparable_path(path.replace("\\", "/").replace("\n", " ")).split("/")
    return "/".join(part.partition(":")[0].rstrip(". ") or part for part in parts)


def _comparable_path(text: str) -> str:
    """Fold a text as HFS+, APFS and case-insensitive ext4 do. Other letters, such as those with accents, differ."""
    visible = _IGNORED.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", visible.casefold())
