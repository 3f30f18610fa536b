"""A client of accord's tool server for agents of tests: the package mcp takes a second to import."""

import contextlib
import json
import subprocess


class Client:
    """Speaks to a server over its stdin and stdout, a message a line."""

    def __init__(self, server):
        self.server = server
        about = {"name": "agent", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about})
        self.tell({"method": "notifications/initialized"})

    def tell(self, message):
        """Send a message."""
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.server.stdin.flush()

    def ask(self, method, params):
        """Return the result of a request."""
        self.tell({"id": 1, "method": method, "params": params})
        while True:
            answer = json.loads(self.server.stdout.readline())
            if answer.get("id") == 1:
                return answer["result"]

    def call(self, tool, inputs):
        """Return whether a tool worked, and its words."""
        answer = self.ask("tools/call", {"name": tool, "arguments": inputs})
        return not answer.get("isError"), "".join(part.get("text", "") for part in answer["content"])


@contextlib.contextmanager
def tool_client(entry):
    """Start the server of an agent's settings."""
    command = [entry["command"], *entry["args"]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as server:
        yield Client(server)
