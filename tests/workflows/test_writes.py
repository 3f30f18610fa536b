"""The names of outputs in scripts, held against what bash writes to the file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from accord.workflows.writes import written_names

OUT = '>> "$GITHUB_OUTPUT"'
READ = {
    "echo": f'echo "a-b=$X" {OUT}',
    "echo -n and a target without quotes": "echo -n a-b=$X >>$GITHUB_OUTPUT",
    "the target first": f'{OUT} echo "a-b=$X"',
    "a document": f"cat {OUT} <<EOF\na-b=$X\nEOF",
    "a quoted document behind tabs": f"if true; then\n\tcat <<-'EOF' {OUT}\n\ta-b=1\n\tEOF\nfi",
    "a document that tee reads": 'tee -a "$GITHUB_OUTPUT" <<EOF >/dev/null\na-b=$X\nEOF',
    "a document in a pipe": 'cat <<EOF | tee -a "$GITHUB_OUTPUT"\na-b=$X\nEOF',
    "a here-string": f'cat <<<"a-b=$X" {OUT}',
    "tee": 'echo "a-b=$X" | tee -a "$GITHUB_OUTPUT"',
    "a value of several lines": f'{{ echo "a-b<<END"; cat "$F"; echo; echo "c=d"; echo END; }} {OUT}',
    "an end that a variable names": f'E=$(date +%s)\n{{\n  echo "a-b<<$E"\n  echo "$X"\n  echo "${{E}}"\n}} {OUT}',
    "printf of several lines": f"""printf 'a-b<<END\\n%s\\nEND\\n' "$X" {OUT}""",
    "printf with the name as an argument": f"""printf '%s\\n' "a-b=$X" {OUT}""",
    "printf of pairs": f"printf '%s=%s\\n' a-b 1 {OUT}",
    "a block in a pipe": '{ echo start | tr a b >/dev/null; echo "a-b=$X"; } | tee -a "$GITHUB_OUTPUT"',
    "a subshell": f'(echo "a-b=$X") {OUT}',
    "a branch": f'if [ -s "$GITHUB_OUTPUT" ]; then :; else echo "a-b=$X"; fi {OUT}',
    "a name of the file with a check": 'f="${GITHUB_OUTPUT:?not set}"; let n=1; n=$(expr 1 + 1)\necho "a-b=$n" >> "$f"',
    "a pattern": f'if [[ $X =~ ^(x|y)$ ]]; then echo "a-b=$X" {OUT}; fi',
    "another name of the file": 'out="${GITHUB_OUTPUT}"\n[ -n "$out" ] && echo "a-b=$X" >> "${out}"',
    "all output of the shell": f'exec {OUT}\necho "a-b=$X"',
    "a stream of its own": f'exec 3{OUT}\necho "a-b=$X" >&3\nexec 3>&-',
    "a stream by its path": f'exec 3{OUT}\necho "a-b=$X" > /dev/fd/3',
    "a stream of a block": f'{{ echo "a-b=$X" >&4; }} 4{OUT} 2>/dev/null',
    "values of substitutions": f'echo "a-b=$(printf "%s" "x y" | tr x z)" {OUT}; cat "$GITHUB_OUTPUT" > /dev/null',
    "arithmetic": f'n=$((1 + 1)); (( n++ )); for ((i = 0; i < 2; i++)); do :; done; echo "a-b=$n" {OUT}',
    "a case": f'case "$X" in x|y) v=1 ;; *"z z"*) v=2 ;; esac\necho "a-b=$v" {OUT}',
    "escapes": f"""s=$'it\\'s'; t="${{s//\\'/}}"; echo "a-b=$t" {OUT}; echo 'c' > /dev/null""",
    "a trap": f"trap 'rm -f log' EXIT; echo \"a-b=$X\" {OUT}",
    "text on the next line": f'echo \\\n  "a-b=$X" \\\n  {OUT}',
}
SILENT = {
    "a file of that name": "echo exit-code=1 >> GITHUB_OUTPUT; echo exit-code=1 | tee -a GITHUB_OUTPUT",
    "a name in single quotes": "echo 'exit-code=1' >> '$GITHUB_OUTPUT'",
    "a name behind a backslash": 'echo exit-code=1 >> "\\$GITHUB_OUTPUT"; echo exit-code=1 >> \\${GITHUB_OUTPUT}',
    "a line without a value": f"echo exit-code {OUT}; cat {OUT} <<EOF\nexit-code: 1\nEOF",
    "a function that nothing calls": f'fin() {{\n  if true; then :; fi\n  echo "exit-code=1" {OUT}\n}}',
    "a text that names the file": """echo 'echo "exit-code=1" >> "$GITHUB_OUTPUT"'; echo "$GITHUB_OUTPUT." x""",
    "a function in one line": f'function fin {{ echo "exit-code=1" {OUT}; }}\n# fin\n',
}
ENDS = {
    "an end": 'names=(a b)\nfor k in "${names[@]}"; do if false; then exit 3; fi; done\nexit 0',
    "a file that is gone": "unset GITHUB_OUTPUT",
    "another file": "f() { :; }\nf\nexport GITHUB_OUTPUT=/dev/null",
}
COMPUTED = {
    "a loop": f'for k in a-b; do echo "$k=$X" {OUT}; done',
    "a loop over an array": f'names=(a-b)\nfor k in "${{names[@]}}"; do\n  printf "%s=%s\\n" "$k" 1\ndone {OUT}',
    "a function": f'put() {{ echo "$1=$2" {OUT}; }}\nput a-b "$X"',
    "a function that prints": f'p() {{\n  local n="$1"\n  printf "%s<<E\\n%s\\nE\\n" "$n" "$2"\n}}\np a-b "$X" {OUT}',
    "a function by its keyword": f'function p {{ printf "%s=%s\\n" "$1" "$2" {OUT}; }}\np a-b "$X"',
    "a function of pairs": f'p() {{ for pair in "$@"; do echo "$pair" {OUT}; done; }}\np "a-b=$X" a-b=1',
    "an array of lines": f'lines=()\nlines+=("a-b=$X")\nprintf "%s\\n" "${{lines[@]}}" {OUT}',
    "an array over several lines": f'names=(\n  a-b\n)\nfor k in "${{names[@]}}"; do echo "$k=1" {OUT}; done',
    "a variable": f'name=a-b\necho "$name=$X" {OUT}',
}
UNREAD = {
    "a file": f'cat "$F" {OUT}',
    "a text": f'echo "$ALL" {OUT}',
    "a file behind a here-string": f'cat <<<"a=1" {OUT}\ncat "$F" {OUT}',
    "a file through tee, beside a block": f'{{ echo a=1; }} {OUT}\ncat "$F" | tee -a "$GITHUB_OUTPUT" > /dev/null',
    "a text behind the end of a value": f'{{ echo "a<<E"; echo E; echo "$ALL"; }} {OUT}',
    "a value without an end": f'echo "a<<$(date)" {OUT}',
    "a loop over files": f'for k in out/*; do echo "$k=1" {OUT}; done',
    "a loop over lines": f'while read -r k v; do echo "$k=$v" {OUT}; done < "$F"',
    "a function with a computed name": f'put() {{ echo "$1=$2" {OUT}; }}\nfor k in $(ls out); do put "$k" 1; done',
    "a name in braces": f'for k in a-{{b,c}}; do echo "$k=1" {OUT}; done',
    "a name of two parts": f'echo "a-$X=1" {OUT}',
    "a name from an expression": f'echo "${{{{ matrix.name }}}}=1" {OUT}',
    "a program": "./write.sh",
    "a trap of a program": "trap ./write.sh EXIT",
    "a script of bash": "bash -c ./write.sh",
    "a script that bash reads": 'curl -s "$X" | bash',
    "a document that bash runs": f"bash <<'EOF'\necho \"$ALL\" {OUT}\nEOF",
    "brackets without an end": "cat > note <<'EOF'\n$(one\nEOF",
    "a program that edits the file": 'sed -i s/a/b/ "$GITHUB_OUTPUT"',
    "a copy": 'cp "$F" "$GITHUB_OUTPUT"',
    "a filter": f"""jq -r 'to_entries[] | "\\(.key)=\\(.value)"' "$F" {OUT}""",
    **{
        f"a program in {each}": each
        for each in (
            '[ -n "$(./write.sh)" ]',
            "[[ $(./write.sh) == x ]]",
            "n=$(( $(./write.sh) + 1 ))",
            'read -r x <<< "$(./write.sh)"',
            "find . -exec ./write.sh {} +",
            'retry() { "$@"; }; retry ./write.sh',
        )
    },
    "a name that grows": f'k=a; k+=-b; echo "$k=1" {OUT}',
    "names in an associative array": f'declare -A m=([a-b]=1)\nfor k in "${{!m[@]}}"; do echo "$k=1" {OUT}; done',
    "a write within a substitution": f'x=$(echo "$ALL" {OUT})',
}


def outputs_of(script: str, folder: Path) -> set[str]:
    """Run a script with bash, and read the names from its file as a runner does."""
    (folder / "f").write_text("f=1\nexit-code=1\n")
    out = folder / "out"
    out.write_text("")
    env = {"PATH": os.environ["PATH"], "GITHUB_OUTPUT": str(out), "F": str(folder / "f"), "X": "x", "ALL": "e-f=1\n"}
    subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=env, check=True, capture_output=True, timeout=60)
    names, lines = set[str](), iter(out.read_text().splitlines())
    for line in lines:
        name, sign, end = line.partition("<<")
        is_long = bool(sign) and "=" not in name
        names |= {name} if is_long else {line.partition("=")[0]} if "=" in line else set()
        while is_long and next(lines) != end:
            pass
    return names


@pytest.mark.parametrize("script", [*READ.values(), *COMPUTED.values()], ids=[*READ, *COMPUTED])
def test_the_outputs_that_a_script_sets_are_known(script: str, tmp_path: Path) -> None:
    assert outputs_of(script, tmp_path) == {"a-b"}
    names = written_names([script], (), ())
    assert names == {"a-b"} if script in READ.values() else {"a-b"} <= set(names or ())
    assert "exit-code" not in (names or ())


@pytest.mark.parametrize(
    "script",
    [*(f"{READ['echo']}\n{each}" for each in SILENT.values())]
    + [f"{READ['echo']}\n{each}\necho exit-code=1 {OUT} || :" for each in ENDS.values()],
    ids=[*SILENT, *ENDS],
)
def test_lines_that_set_no_output_are_known(script: str, tmp_path: Path) -> None:
    assert "exit-code" not in outputs_of(script, tmp_path)
    assert written_names([script], (), ()) == {"a-b"}


SET = f'echo "a-b=$X" {OUT}'
BESIDE = {
    "a function that a trap calls": f"fin() {{ {SET}; }}\ntrap fin EXIT",
    "a function of another function": f"one() {{ {SET}; }}\ntwo() {{ one; }}\ntwo",
    "an end in a branch": f'if [ -z "$X" ]; then\nexit 0\nfi\n{SET}',
    "an end in a loop": f"while [ ! -d . ]; do\necho y\nexit 1\ndone\n{SET}",
    "an end in a case": f"case $X in\n  y) echo y\n    exit 1 ;;\nesac\n{SET}",
    "an end in a subshell": f"echo y\n(\necho y\nexit 0\n)\n{SET}",
    "an end behind a condition": f'[ -n "$X" ] ||\n  exit 0\n[ "$X" ] || exit 0; {SET}',
    "an end in a function": f'die() {{ echo y\nexit 1\n}}\n[ -n "$X" ] || die\n{SET}',
    "an end in a document": f"cat > s <<'EOF'\nexit 0\nEOF\n{SET}",
    "an end in a pipe": f"exit 0 | cat\n{SET}",
    "a file of a subshell that is gone": f"(unset GITHUB_OUTPUT; true)\n{SET}",
    "a file under two names": 'out=$GITHUB_OUTPUT; unset GITHUB_OUTPUT; echo "a-b=$X" >> "$out"',
    "a file that is put back": f"GITHUB_OUTPUT=/dev/null; GITHUB_OUTPUT=$PWD/out; {SET}",
    "a file named by a word": 'v=GITHUB_OUTPUT; echo "a-b=$X" >> "${!v}"',
    "two texts of one line": f"printf a- {OUT}; echo b=1 {OUT}; echo -n a-b {OUT}; echo =1 {OUT}",
    "a text without the end of its line": f"if false; then printf c=1 {OUT}; else printf a-b=1 {OUT}; fi",
    "a document with another end": f"cat > s <<'---'\nexit 0\n---\n{SET}",
}


@pytest.mark.parametrize("script", BESIDE.values(), ids=BESIDE)
def test_lines_that_keep_no_script_from_setting_an_output_are_known(script: str, tmp_path: Path) -> None:
    assert "a-b" in outputs_of(script, tmp_path)
    names = written_names([script], (), ())
    assert names is None or "a-b" in names


@pytest.mark.parametrize("script", ["() { echo a; }", "> f () { echo a; }", ">f\n() {\necho a\n}", "f() {", "}"])
def test_a_script_that_no_shell_takes_has_no_outputs(script: str) -> None:
    assert not written_names([script], (), ())


@pytest.mark.parametrize("script", UNREAD.values(), ids=UNREAD)
def test_a_script_that_may_set_other_outputs_is_not_judged(script: str) -> None:
    assert written_names([script], (), ()) is None
    assert written_names([READ["echo"], script], (), ()) is None


CALLS = [
    "./out.sh a-b 1", "bash ./out.sh a-b 1", ". lib/out.sh", "source out.sh a-b 1 | cat",
    "bash -euo pipefail out.sh a-b", "bash -oe pipefail +o posix --norc -O extglob -- ./out.sh a-b 1",
    "sh -eo pipefail out.sh", "sudo -E ./out.sh", "timeout 10m ./out.sh",
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "script"),
    [
        *((call, f'put() {{ echo "$1=$2" {OUT}; }}\nput a-b "$X"') for call in CALLS),
        *((f"{call} {OUT}", 'echo "a-b=$X"') for call in CALLS[:7] if "|" not in call),
        *((call, f'echo "$1=$X" {OUT}') for call in (CALLS[0], CALLS[1], CALLS[4])),
    ],
)
def test_the_outputs_of_a_called_script_are_known(call: str, script: str) -> None:
    names = written_names([call, script], {"out.sh", "lib/out.sh"}, ())
    assert names is not None
    assert ("a-b" in names, "exit-code" in names) == (True, False)


@pytest.mark.parametrize(
    "call",
    ["cd lib && ./out.sh", 'pushd lib; bash "$PWD/out.sh"', 'D=lib; "$D/out.sh"', "./other/out.sh", 'sh "${D}/out.sh"'],
)
def test_a_script_of_the_same_name_elsewhere_may_set_other_outputs(call: str) -> None:
    assert written_names([READ["echo"], call, "echo x"], {"out.sh"}, ()) is None
    assert written_names([READ["echo"], '"$GITHUB_WORKSPACE/ci/out.sh"', "echo x"], {"ci/out.sh"}, ()) == {"a-b"}


AGENTS = {
    "a prompt with text": ('codex exec "$(cat "$PROMPT") text"', True),
    "a prompt with an input": ('codex exec "$(cat $PROMPT) $APPENDIX"', True),
    "two files": ("codex exec \"$(cat 'my file')$(sed 's/x//' \"$P\" | head -n 5)$A\" x", True),
    "a prompt in backticks": ('codex exec "`cat $PROMPT` (see $A)"', True),
    "a package": ("npx -y @openai/codex@0.169.0 exec - < prompt.md", True),
    "a package behind a time": ('timeout 30m npx -y @openai/codex exec -C . "$(cat p)" || code=$?', True),
    "another package": ("npx -y tsx write.ts", False),
    "another program in a word": ('codex exec "$(./write.sh) text"', False),
    "another program behind one": ('codex exec "$(cat p) $(./write.sh)"', False),
    "another program behind an open bracket": ('codex exec "$(case x in x) ./write.sh;; esac) text"', False),
    "another program in a package's words": ('npx -y @openai/codex exec "$(./write.sh)"', False),
    "another program on the next line": ("codex exec ./write.sh\n./write.sh", False),
    "a script of that name": ("bash codex", False),
}


@pytest.mark.parametrize("name", AGENTS)
def test_the_words_of_an_agent_are_data_except_the_programs_in_them(name: str) -> None:
    script, is_known = AGENTS[name]
    assert (written_names([f"{script}\n{READ['echo']}"], (), {"codex"}) == {"a-b"}) is is_known


def test_outputs_elsewhere_and_programs_that_write_none_are_known() -> None:
    elsewhere = 'echo "c=1" >> "$GITHUB_ENV"; echo "d=1" > log; echo e=1 >&2; date | tee log; # f=1\ncodex exec - < p\n'
    assert written_names([elsewhere + READ["echo"], "echo ::set-output name=G::1"], (), {"codex"}) == {"a-b", "g"}
