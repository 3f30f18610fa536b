"""The server: the tools with their typed inputs, over stdin and stdout."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from accord import __version__
from accord.core.errors import AccordError, BrokenContract
from accord.core.shapes import shape_findings
from accord.mcp.tools import EXAMPLES, SESSION, TOOLS, WRITING, Workspace
from accord.text.redaction import redactor_for

INSTRUCTIONS = (
    "You write a result to a file; accord checks it and applies it on GitHub after you have finished. Call `contract` "
    "first. End with `submit_result` or `report_blocked`: they refuse a result that breaks the contract, and say why."
)


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


def server_for(workspace: Workspace, *, has_session_tools: bool = True) -> MCPServer[Any]:
    """Return a server with all tools for a workspace; those of a session can be left out."""
    server = _Server("accord", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")
    for function in TOOLS if has_session_tools else [each for each in TOOLS if each not in SESSION]:
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
