"""The server: the tools with their typed inputs, over stdin and stdout."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from accord import __version__
from accord.core.errors import AccordError, BrokenContract
from accord.mcp.tools import TOOLS, WRITING

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.mcp.workspace import Workspace

INSTRUCTIONS = (
    "You write a result to a file; accord checks it and applies it on GitHub after you have finished. Call `contract` "
    "first. End with `submit_result` or `report_blocked`: they refuse a result that breaks the contract, and say why."
)


def server_for(workspace: Workspace) -> MCPServer[Any]:
    """Return a server with all tools for a workspace."""
    server: MCPServer[Any] = MCPServer("accord", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")
    for function in TOOLS:
        hints = ToolAnnotations(read_only_hint=function not in WRITING, destructive_hint=False, open_world_hint=False)
        server.tool(function.__name__, description=function.__doc__, annotations=hints, structured_output=False)(
            bound(function, workspace)
        )
    return server


def bound(function: Callable[..., Any], workspace: Workspace) -> Callable[..., Any]:
    """Return a tool of this workspace, whose errors the agent reads and corrects."""

    def answer(**inputs: Any) -> Any:
        try:
            return function(workspace, **inputs)
        except AccordError as error:
            raise ToolError(_text_of(error)) from error

    signature = inspect.signature(function, eval_str=True)
    inputs = [parameter for name, parameter in signature.parameters.items() if name != "workspace"]
    answer.__signature__ = signature.replace(parameters=inputs)  # type: ignore[attr-defined]
    answer.__name__ = function.__name__
    answer.__annotations__ = {each.name: each.annotation for each in inputs}
    return answer


def _text_of(error: AccordError) -> str:
    if not isinstance(error, BrokenContract) or not error.findings:
        return f"{error.message} {error.hint}".rstrip()
    lines = [
        f"{found.severity.value} {found.code} at {found.path or 'the top'}: {found.message} {found.hint}".rstrip()
        for found in error.findings
    ]
    return "\n".join(["Nothing was written. Correct this and try again:", *lines])
