"""The server: the tools with their typed inputs, over stdin and stdout."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from anyio import create_memory_object_stream, create_task_group
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, CallToolResult, ErrorData, JSONRPCError, TextContent, ToolAnnotations
from pydantic import ValidationError

from accord import __version__
from accord.core.errors import AccordError, BrokenContract
from accord.core.shapes import shape_findings
from accord.mcp.tools import EXAMPLES, SESSION, TOOLS, WRITING, Workspace, report_blocked
from accord.text.redaction import redactor_for

INSTRUCTIONS = (
    "You write a result to a file; accord checks it and applies it on GitHub after you have finished. Call `contract` "
    "first. End with `submit_result`{}: a result that breaks the contract is refused, with the reasons."
)
_TOKENS = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+(?![\d.eE]))|"(?:[^"\\]|\\.)*"?|[][{}]')
"""The tokens of a message that tell its own ``id`` from those inside of its parts."""


class _Server(MCPServer[Any]):
    """A server that explains wrong inputs as accord does: each with its place, what is expected, and an example.

    Its answers have no secrets.
    """

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool. Raises ToolError for wrong inputs."""
        redact = redactor_for(os.environ)
        try:
            answer = await super().call_tool(name, arguments, context)
        except ToolError as error:
            said = str(error)
            if isinstance(error.__cause__, ValidationError):
                tool = self._tool_manager.get_tool(name)
                model = tool.fn_metadata.arg_model if tool else ArgModelBase
                found = shape_findings(error.__cause__, model, arguments)
                lines = dict.fromkeys(f"- at {each.path or 'the top'}: {each.text}" for each in found)
                note = (
                    "The result is the object that `contract` shows as `example`." if "result" in EXAMPLES[name] else ""
                )
                example = f"Example: {json.dumps(EXAMPLES[name], ensure_ascii=False)} {note}".rstrip()
                said = "\n".join([f"`{name}` was not called, because its inputs are wrong:", *lines, example])
            raise ToolError(redact(said)) from error
        for part in answer.content if isinstance(answer, CallToolResult) else ():
            if isinstance(part, TextContent):
                part.text = redact(part.text)
        return answer

    async def run_stdio_async(self) -> None:
        """Serve stdin and stdout. The library drops messages that it cannot read; those with an id get an answer."""
        async with stdio_server() as (given, answers), create_task_group() as tasks:
            sender, requests = create_memory_object_stream[Any]()

            async def pass_on() -> None:
                async with sender:
                    async for item in given:
                        if not isinstance(item, ValidationError):
                            await sender.send(item)
                        elif refusal := refusal_of(item):
                            await answers.send(SessionMessage(refusal))

            tasks.start_soon(pass_on)
            await self._lowlevel_server.run(requests, answers, self._lowlevel_server.create_initialization_options())


def refusal_of(error: ValidationError) -> JSONRPCError | None:
    """Return the answer to a message that cannot be read, such as one with half a surrogate pair; None without id."""
    found = error.errors(include_url=False)  # the last one is about the whole message
    given, depth = found[-1]["input"], 0
    line = given if isinstance(given, str) else json.dumps(given)
    for token in _TOKENS.finditer(line):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        with suppress(ValueError):  # half a surrogate pair in the id, or too many digits
            if depth == 1 and token[1] and str(name := json.loads(token[1])).encode():
                message = f"The request cannot be read. {found[0]['msg']}."
                return JSONRPCError(jsonrpc="2.0", id=name, error=ErrorData(code=PARSE_ERROR, message=message))
    return None


def server_for(workspace: Workspace, *, has_session_tools: bool = True) -> MCPServer[Any]:
    """Return a server with all tools for a workspace; those of a session can be left out."""
    is_implementor = workspace.role == "implementor"
    said = INSTRUCTIONS.format(" or `report_blocked`" if is_implementor else "")
    server = _Server("accord", instructions=said, version=__version__, log_level="ERROR")
    left_out = [*(() if has_session_tools else SESSION), *(() if is_implementor else (report_blocked,))]
    for function in (each for each in TOOLS if each not in left_out):
        hints = ToolAnnotations(read_only_hint=function not in WRITING, destructive_hint=False, open_world_hint=False)
        server.tool(function.__name__, description=function.__doc__, annotations=hints, structured_output=False)(
            bound_tool(function, workspace)
        )
    for tool in server._tool_manager.list_tools():  # the library's models ignore unknown keys
        model = tool.fn_metadata.arg_model
        model.model_config["extra"] = "forbid"
        model.model_rebuild(force=True)
        tool.parameters = model.model_json_schema(by_alias=True)
    return server


def bound_tool(function: Callable[..., Any], workspace: Workspace) -> Callable[..., Any]:
    """Return a tool of this workspace, whose errors the agent reads and corrects."""

    def answer(**inputs: Any) -> Any:
        try:
            return function(workspace, **inputs)
        except AccordError as error:
            lines = [
                f"{one.severity.value} {one.code} at {one.path or 'the top'}: {one.message} {one.hint}".rstrip()
                for one in (error.findings if isinstance(error, BrokenContract) else ())
            ]
            said = ["Nothing was written. Correct this and try again:", *lines]
            raise ToolError("\n".join(said) if lines else f"{error.message} {error.hint}".rstrip()) from error

    signature = inspect.signature(function, eval_str=True)
    inputs = [parameter for name, parameter in signature.parameters.items() if name != "workspace"]
    answer.__signature__ = signature.replace(parameters=inputs)  # type: ignore[attr-defined]
    answer.__name__ = function.__name__
    answer.__annotations__ = {each.name: each.annotation for each in inputs}
    return answer
