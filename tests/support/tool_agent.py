"""An agent that starts the tool server of its settings like Claude Code, and plays a script of calls.

The script is ``calls.json`` beside this file's copy: for each turn a list of ``[tool, inputs]``; ``["write", text]``
writes the result's file past the tools. Its last message is ``message``. ``seen.json`` in the work tree gets the
answers backwards, so that no secret in them is found by anything but the test.
"""

import json
import pathlib
import stat
import sys

from tool_client import tool_client

here = pathlib.Path(__file__).parent
play = json.loads((here / "calls.json").read_text())
words, prompt = sys.argv[1:], sys.stdin.read()
seen = pathlib.Path("seen.json")
turns = json.loads(seen.read_text()[::-1]) if seen.exists() else []


def talk(entry, calls):
    """Call the tools; return their answers."""
    folder = pathlib.Path(entry["args"][entry["args"].index("--run-dir") + 1])
    found = []
    with tool_client(entry) as client:
        for tool, inputs in calls:
            if tool == "write":
                (folder / "result.json").write_text(inputs)
            else:
                found.append(client.call(tool, inputs))
    return found


turn = {"words": words, "prompt": prompt, "answers": []}
if "--mcp-config" in words:
    path = pathlib.Path(words[words.index("--mcp-config") + 1])
    turn["file"] = [str(path), [stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent)]]
    entry = json.loads(path.read_text())["mcpServers"]["accord"]
    turn["server"] = [entry["command"], *entry["args"]]
    turn["answers"] = talk(entry, play["turns"][len(turns)])
turns.append(turn)
seen.write_text(json.dumps(turns)[::-1])
begin = {"type": "system", "subtype": "init", "model": "mock", "session_id": "a-1", "tools": []}
end = {"type": "result", "subtype": "success", "is_error": False, "result": play["message"], "usage": {}}
sys.stdout.write(f"{json.dumps(begin)}\n{json.dumps(end)}\n")
