"""A script that starts an agent is known however it is written; one that only names an agent is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import grows_too_fast

from accord.agents.registry import Registry
from accord.workflows.agents import known_agents, shipped_agents, starts_agent

STARTS = [
    "gemini --yolo", "gemini < prompt.md", "claude --dangerously-skip-permissions 'fix it'", "sudo -u a claude -p x",
    "sudo -n -u a -H -- env X=1 claude -p x", "sudo --user a codex exec -", "X=1 Y='a b' codex exec -",
    "env -i PATH=$PATH X=1 gemini -p x", "time claude -p x", "timeout -k 5 30m claude -p x",
    "nice -n 5 nohup claude -p x &", "bash -c 'claude -p x'", 'bash -lc "cd y && exec claude -p \\"x\\""',
    "su a -c 'claude -p x'", "npx -y @google/gemini-cli@0.61.0 --yolo", "npx --package=@openai/codex codex exec -",
    "npm exec -- claude -p x", "pnpm dlx @anthropic-ai/claude-code -p x", "docker run --rm -v a:b image claude -p x",
    "docker run --rm -e X codiumai/pr-agent:0.30 --pr_url x review",
    'IMAGE=codiumai/pr-agent@sha256:0\ndocker run --rm "$IMAGE" review', "cat prompt.md | claude -p > out.txt",
    "cat prompt.md | xargs -0 claude -p", "answer=$(claude -p x)", 'answer="$(claude -p x)"',
    "if ! gemini -p x; then\n  exit 1\nfi", "set -e\ncd x && {\n  claude -p x\n}", "2>err.log >out.log claude -p x",
    "claude \\\n  --verbose \\\n  -p x", 'case "$AGENT" in\n  claude) claude -p x ;;\nesac',
    "/opt/agents/bin/gemini -p x", "uv run accord run --agent codex", "python -m accord run",
    "bash <<EOF\nclaude -p x\nEOF", "echo don't\nclaude -p x", "cat <<EOF\n$(claude -p x)\nEOF",
    "cat > x <<'EOF'\ntext\nEOF\nclaude -p x", "AGENT=claude\n$AGENT -p x", 'CMD="codex exec"\nCMD=$CMD\n$CMD -',
    "CMD=(claude --verbose)\n${CMD[@]} -p x", "x=${{ a || b }}; claude -p x", "command claude -p x",
    "builtin command -p codex exec -", "if command gemini -p x; then :; fi", "env -S 'claude -p x'",
    "env --split-string 'X=1 claude -p x'", "for a in claude codex; do $a -p x; done",
    'for agent in "gemini" "codex"\ndo\n  "$agent" exec hi\ndone', "for a in make codex; do npx ${a} exec x; done",
]  # fmt: skip


@pytest.mark.parametrize("script", STARTS)
def test_an_agent_is_recognised_behind_wrappers(script: str) -> None:
    assert starts_agent(script, shipped_agents().programs)


NAMES_ONLY = [
    "echo claude -p x", "echo 'claude -p x'", "# claude -p x", "npm install -g @anthropic-ai/claude-code",
    "sudo -E npm install -g @openai/codex", "command -v claude", "which gemini", "claude --version",
    "codex login --with-api-key", "claude mcp list", "sudo -u claude whoami", "cp -r .claude/ gemini", "cat < claude",
    "date > gemini", 'case "$AGENT" in\n  codex|claude) echo x ;;\n  gemini) true ;;\nesac', "CLAUDE=claude make",
    "timeout 9m make -s x 'codex exec -'", "bash run.sh 'claude -p x'", "npx tool --prompt 'gemini does it'",
    "cat > prompt.md <<'EOF'\nclaude code is fun\nEOF", "gh issue comment --body-file - <<EOF\ngemini -p x\nEOF",
    "cat <<-END\n\tcodex exec -\n\tEND", "AGENT=claude\necho $AGENT -p x", "uv tool install claude",
    "command -V claude", "for a in claude codex; do command -v $a; done",
    "for a in claude codex; do $a --version; done",
    "for a in claude codex; do echo $a; done", "env X=1 cat <<'EOF'\nclaude -p x\nEOF",
    "accord publish run", "git commit -m 'let claude do it'", "",
]  # fmt: skip


@pytest.mark.parametrize("script", NAMES_ONLY)
def test_a_script_that_only_mentions_an_agent_does_not_start_it(script: str) -> None:
    assert not starts_agent(script, shipped_agents().programs)


def test_the_programs_are_those_of_the_registry() -> None:
    assert shipped_agents().programs >= {"codex", "claude", "claude-code", "gemini", "gemini-cli"}
    own = {"mine": {"command": ["python3", "tools/agent.py", "{prompt}"]}, "any": {"command": ["{command}"]}}
    programs = known_agents(Registry.model_validate({"agents": own})).programs
    assert starts_agent("python tools/agent.py", programs)
    assert not starts_agent("python tools/other.py; {command}", programs)
    assert not starts_agent("claude -p x", programs)


@pytest.mark.slow
@given(st.text("claude -pc'\"$(`){}\\\n;|&<>#sudo", max_size=80))
def test_every_script_can_be_read(script: str) -> None:
    assert starts_agent(script, shipped_agents().programs) in (True, False)


@pytest.mark.parametrize("inner", ["it's $(codex exec)", "'$(codex exec)'", "`codex exec`", r"\"$(codex exec)\""])
def test_an_agent_behind_another_substitution_is_found(inner: str) -> None:
    assert starts_agent(f'echo "$(a) {inner}"', shipped_agents().programs)


@pytest.mark.parametrize("unit", ["$(x ", "`a ", "'$('", "'$(a)' it's "])
def test_many_substitutions_are_read_in_no_time(unit: str) -> None:
    assert not starts_agent(f'echo "{unit * 200}"', shipped_agents().programs)
    assert not grows_too_fast(lambda size: starts_agent(f'echo "{unit * size}"', shipped_agents().programs), 2000)
