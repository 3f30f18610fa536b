"""Files that steer agents and tools are found under any name that some file system takes for theirs."""

import subprocess
from pathlib import Path

import pytest
from support.trees import commit, copied, git, write

from accord.agents.registry import shipped_registry
from accord.core.errors import BrokenContract
from accord.git.patch_text import absolute_names
from accord.git.patches import Change, apply_patch, changes_between
from accord.git.program import Git, GitFailed
from accord.git.steering import audit_changes, audit_paths

AGENT_FILES = shipped_registry().steering_patterns
STEERING = """
.mcp.json .agents/skills/a/SKILL.md opencode.json opencode.jsonc .opencode/plugin/a.ts CLAUDE.local.md
AGENTS.override.md .claude/settings.json .claude/hooks/a.sh .codex/config.toml .gemini/settings.json
.cursor/rules/a.mdc .cursorrules .github/copilot-instructions.md .github/instructions/a.md .github/hooks/a.json
.github/skills/a/SKILL.md .github/agents/registry.yml .github/prompts/implement.md AGENTS.md CLAUDE.md GEMINI.md
action.yml action.yaml .gitmodules .npmrc .husky/pre-commit .husky/_/h .pre-commit-config.yaml .envrc
.vscode/tasks.json .devcontainer/devcontainer.json .claude .agents .github/agents .github/prompts
.kittify/missions/software-dev/mission-runtime.yaml .kittify/memory/constitution.md .rules .accord/state.json QWEN.md
.qwen/settings.json .clinerules/a.md .roo/rules/a.md .continue/config.yaml .junie/guidelines.md .amazonq/rules/a.md
.windsurfrules .aider.conf.yml .goosehints .goose/config.yaml .crush.json crush.json CRUSH.md CRUSH.local.md AGENT.md
.kilocode/rules/a.md .kilocodemodes .trae/rules/a.md .factory/droids/a.md .openhands/microagents/repo.md WARP.md
.opencode-rules .zed/settings.json .aiassistant/rules/a.md .kiro/steering/a.md .replit replit.md .idx/airules.md
.serena/memories/a.md .specify/memory/constitution.md .coderabbit.yaml docs/review.instructions.md plan.prompt.md
.gitpod.yml a.code-workspace .overcommit.yml mise.toml .mise.toml .config/mise/config.toml .exrc .sweep.yaml
"""
SPELLINGS = {
    "in a folder": "docs/deep/AGENTS.md", "small letters": "agents.MD",
    "another case of a folder": ".GitHub/Agents/registry.yml", "a long s": "AGENT\u017f.md",
    "a Kelvin sign": ".hus\u212ay/pre-commit", "a joiner": "AGE\u200dNTS.md",
    "a direction mark": ".cl\u200eaude/settings.json", "a byte order mark": "\ufeff.mcp.json",
    "a blank at the end": "AGENTS.md ", "dots at the end": ".claude../settings.json", "a stream": ".mcp.json::$DATA",
    "a stream of a folder": ".vscode::$INDEX_ALLOCATION/tasks.json",
    "backslashes": ".github\\agents\\registry.yml", "a short name": "CLAUDE~1/settings.json",
    "a short name with an end": "MCP~1.JSO", "a short name of a hash": "AG3F2A~1.MD",
    "a line end in a folder": "a\nb/AGENTS.md", "a line end behind a folder": ".claude\n/settings.json",
    "a variation selector": "AGENTS\ufe0f.md",
    "an action in a folder": "actions/build/action.yml", "an older file of opencode": ".opencode.json",
}  # fmt: skip
INNOCENT = [
    "src/a.py", "docs/agents-and-tools.md", "action.yml.md", "opencode_client.py", "AG\u00c9NTS.md", "AGE\u0301NTS.md",
    "\uff21GENTS.md", "lefthook_test.py", "notes.md", "github/x",
    "eslint.rules", "src/rules/a.py", "rules.md", "warp.py", "docs/prompt.md", "agent.md.txt",
    "accord/state.json", "a~b", "x.npmrc.txt", "日本",
]  # fmt: skip


def test_a_steering_file_is_found_by_every_name() -> None:
    paths = (*STEERING.split(), *SPELLINGS.values())
    assert audit_paths(["src/a.py", *paths], agent_files=AGENT_FILES).steering == paths


@pytest.mark.parametrize("negated", ["!*", "!AGENTS.md", " !AGENTS.md", "\u200b!AGENTS.md", "!/AGENTS.md", "!**"])
def test_own_patterns_do_not_take_built_in_ones_back(negated: str) -> None:
    audit = audit_paths(["AGENTS.md", "CODEOWNERS", "a.tf"], ["*.tf", negated], agent_files=[*AGENT_FILES, negated])
    assert (audit.steering, audit.protected) == (("AGENTS.md",), ("CODEOWNERS", "a.tf"))


def test_other_files_are_not_steering_files() -> None:
    audit = audit_paths(
        [*INNOCENT, ".github/workflows/ci.yml", "sub/CODEOWNERS", "infra/a.tf"], ["infra/"], agent_files=AGENT_FILES
    )
    assert audit.steering == ()
    assert audit.protected == (".github/workflows/ci.yml", "sub/CODEOWNERS", "infra/a.tf")
    folded = ["Infra/A.tf", "infra./b", "dotted./c"]
    assert audit_paths(folded, ["infra/", "dotted./"], agent_files=AGENT_FILES).protected == tuple(folded)
    others = (".woodpecker/a.yml", ".forgejo/a.yml", ".drone.yml", ".mergify.yml", "renovate.json5", "bors.toml")
    assert audit_paths([*INNOCENT, *others], agent_files=AGENT_FILES).protected == others
    named = ["package.json", "sub/uv.lock", "requirements-dev.txt", "cargo.toml", "go.sum", "requirements/dev.txt"]
    assert audit_paths([*INNOCENT, *named], agent_files=AGENT_FILES).dependencies == tuple(named)
    assert audit_paths([*INNOCENT, *named], agent_files=AGENT_FILES).steering == ()
    records = [".agents-work/2026-01-31_csv/status.json", "kitty-specs/001-csv/tasks/WP01.md", ".Agents-Work/x"]
    audit = audit_paths([*INNOCENT, *records], agent_files=AGENT_FILES)
    assert (audit.steering, audit.records) == ((), tuple(records))


def made(top: Path) -> None:
    git(top, "init", "-q", "-b", "main")
    write(top, {"AGENTS.md": "one\ntwo\nthree\n", "src.py": "1\n", "docs/guide.md": "1\n"})
    links = {"docs/claude/a.md": "../linked.md", "manual": "docs", "sub/CLAUDE.md": "../manual/guide.md"}
    links |= {".claude": "docs/claude", "GEMINI.md": "gone/gemini.md", "CODEOWNERS": "docs/owners"}
    for name, target in links.items():
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).symlink_to(target)
    commit(top)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return copied(tmp_path, made)


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("git mv AGENTS.md notes.md", ("AGENTS.md",)),
        ("git mv src.py .envrc", (".envrc",)),
        ("git rm -q AGENTS.md", ("AGENTS.md",)),
        ("chmod +x AGENTS.md && git add -A", ("AGENTS.md",)),
        ("ln -s src.py CLAUDE.md && git add -A", ("CLAUDE.md",)),
        ("ln -sfn /tmp .claude && git add -A", (".claude",)),
        ("echo 2 > docs/guide.md && git add -A", ("docs/guide.md",)),
        ("git mv docs/guide.md docs/other.md", ("docs/guide.md",)),
        ("echo 2 > docs/claude/new.md && git add -A", ("docs/claude/new.md",)),
        ("echo 2 > docs/linked.md && git add -A", ("docs/linked.md",)),
        ("ln -sfn sub manual && git add -A", ("manual",)),
        ("ln -s sub gone && git add -A", ("gone",)),
        ("echo 2 > docs/owners && echo 2 > docs/other.md && git add -A", ("docs/owners",)),
        ("mkdir .new && git mv src.py .new/a", (".new/a",)),
        ("ln -s src.py .new && git add -A", (".new",)),
        ("git mv src.py .cargo", (".cargo",)),
        ("ln -s src.py .GITATTRIBUTES && git add -A", (".GITATTRIBUTES",)),
        ("git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),.new", (".new",)),
        ("git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),vendor/lib", ("vendor/lib",)),
        ("echo 2 > src.py && git add -A", ()),
    ],
)
def test_every_kind_of_change_counts(tree: Path, script: str, found: tuple[str, ...]) -> None:
    subprocess.run(script, cwd=tree, shell=True, check=True)
    at_hand = Git(tree)
    changes = changes_between(at_hand, "HEAD", at_hand.line("write-tree"))
    audit = audit_changes(at_hand, "HEAD", changes, own=(AGENT_FILES, ()))
    protected = tuple(path for path in found if path in ("docs/owners", ".cargo", ".GITATTRIBUTES"))
    assert (audit.steering, audit.protected) == (tuple(path for path in found if path not in protected), protected)


NEW = {
    "steering": """
        .agent-of-tomorrow/rules.md src/.agent-of-tomorrow.toml .toolkeep/rc.toml .config/new.toml .Config/Other/a.toml
        docs/claude/.new/a.md .env .eslintrc.js docs/.vitepress/config.ts .trunk/a.yaml .idea/runConfigurations/a.xml
        .codiumai.toml .vimrc simple-git-hooks.json own.rules .\u200bhidden/a .\uff41gent/a""",
    "protected": """
        .gitattributes src/.gitattributes .GitAttributes .cargo/config.toml sub/.cargo/config .mvn/jvm.config mvnw.cmd
        gradle/wrapper/gradle-wrapper.jar .yarn/releases/yarn.cjs bunfig.toml src/Directory.Build.props
        directory.packages.props Directory.Solution.targets Directory.Build.rsp .gitlab/ci/a.yml
        templates/a.gitlab-ci.yml azure-pipelines-release.yml .azuredevops/a.yml ci/Jenkinsfile.release .tekton/a.yaml
        .builds/a.yml .circleci/b.sh .buildkite/hooks/pre-command tools/bazel OWNERS netlify.toml infra/a.tf""",
    "": """
        .gitignore src/.gitkeep .editorconfig .nvmrc .gitlint .config/known.toml docs/.gitlint src/new.py Makefile
        src/sbt/a.scala .Docs/more.md .agents-work/2026-01-31_csv/status.json""",
}


@pytest.mark.parametrize("kind", NEW)
def test_a_new_file_is_for_people_if_something_may_obey_it(tree: Path, kind: str) -> None:
    at_hand, paths = Git(tree), NEW[kind].split()
    blob = at_hand.line("rev-parse", "HEAD:src.py")
    index = "".join(f"100644 {blob}\t{name}\n" for name in (".gitlint", ".config/known.toml", ".docs/a.md"))
    at_hand("update-index", "--index-info", data=index.encode())
    before = at_hand.line("write-tree")
    for path in paths:
        change = Change(path, "100644", blob, "0" * 40)
        audit = audit_changes(at_hand, before, [change], own=((*AGENT_FILES, "*.rules"), ("infra/",)))
        assert (audit.steering, audit.protected) == ((path,) * (kind == "steering"), (path,) * (kind == "protected"))


COPY = 'diff --git a/AGENTS.md b/notes.md\nsimilarity index 90%\ncopy from "AGENTS\\056md"\ncopy to notes.md\n'
HUNK = "--- a/AGENTS.md\n+++ b/notes.md\n@@ -1,3 +1,3 @@\n-one\n+1\n two\n three\n"


@pytest.mark.parametrize("more", ["", f"{HUNK}copy from src.py\n"])  # git reads no header behind a hunk
def test_the_source_of_a_copy_counts(tree: Path, more: str) -> None:
    at_hand, patch = Git(tree), f"{COPY}{more}".encode()
    changes = changes_between(at_hand, "HEAD", apply_patch(at_hand, patch, "HEAD"))
    assert [change.path for change in changes] == ["notes.md"]
    assert audit_changes(at_hand, "HEAD", changes, patch, own=(AGENT_FILES, ())).steering == ("AGENTS.md",)


@pytest.mark.parametrize(
    "text",
    [
        "--- /dev/null\n+++ /etc/x\n@@ -0,0 +1 @@\n+x\n",
        "diff --git /etc/x /etc/x\nnew file mode 100644\n",
        "diff --git a/etc/x /etc/x\nnew file mode 100644\n",
        'diff --git "a/etc/x" "\\057etc/x"\nnew file mode 100644\n',
        "diff --git a/C:/x b/C:/x\nnew file mode 100644\n--- /dev/null\n+++ b/C:/x\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/src.py b/x\nsimilarity index 100%\nrename from src.py\nrename to /etc/x\n",
        "diff --git a//etc/x b//etc/x\nnew file mode 100644\n--- /dev/null\n+++ b//etc/x\n@@ -0,0 +1 @@\n+x\n",
    ],
)
def test_a_patch_with_an_absolute_name_is_refused_with_a_finding(tree: Path, text: str) -> None:
    with pytest.raises(BrokenContract, match="an absolute path") as caught:
        apply_patch(Git(tree), text.encode(), "HEAD")
    assert [finding.code for finding in caught.value.findings] == ["patch-invalid"]


def test_a_text_that_looks_like_a_header_is_not_a_name() -> None:
    body = "-- /etc/a\n+++ /etc/b\n rename to /etc/c\n"
    text = f"diff --git a/x /y b/x /y\n--- a/x /y\n+++ b/x /y\n@@ -1,3 +1,2 @@ def f():\n-{body}--- /etc/d\n"
    assert absolute_names(text.encode()) == []


@pytest.mark.parametrize("name", [".g\u200cit", ".GIT", ".git.", "git~1", ".git::$INDEX_ALLOCATION"])
def test_git_accepts_no_other_spelling_of_its_folder(tree: Path, name: str) -> None:
    blob = Git(tree).line("rev-parse", "HEAD:src.py")
    with pytest.raises(GitFailed, match="Invalid path"):
        Git(tree)("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}/config")
