"""GitHub's refusals in words that say what to change. GitHub's own sentence is always kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.core.errors import AccordError, Refused
from accord.github.models import Conflict, EmptyRepository, Forbidden, NotThere

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def refusal(
    request: str,
    status: int,
    message: str,
    errors: Sequence[object],
    headers: Mapping[str, str],
    repository: str,
) -> AccordError:
    """Name a 3xx or 4xx answer. ``request`` is method and path; ``errors`` GitHub's list of field errors."""
    said = f'GitHub refused {request} with {status}: "{message.rstrip(".")}"{_details(errors)}.'
    if status < 400:
        return NotThere(said, hint=f"It has moved: name {repository} as it is called now, with --repo.")
    if status == 401:
        return Refused(said, hint="The token is not valid: check that GITHUB_TOKEN is set to one that has not expired.")
    if status == 403:
        return Forbidden(said, hint=_forbidden(request, message, headers))
    if status in (404, 410):
        return NotThere(
            said,
            hint=f"Check that {repository} exists and that the token may see it (repository access, permissions).",
        )
    if status == 422:
        return Conflict(said, hint="The request was understood and found invalid; correct what GitHub names.")
    if status == 409 and "repository is empty" in message.lower():
        return EmptyRepository(said, hint=f"{repository} holds no commit yet: push one, and run the same again.")
    kind = Conflict if status == 409 else Refused
    return kind(said, hint="GitHub's sentence says why; running the same again will not help.")


def _forbidden(request: str, message: str, headers: Mapping[str, str]) -> str:
    said = message.lower()
    kind = "pull-requests" if "/pulls" in request else "issues"
    if "archived" in said:
        return "The repository is archived: unarchive it in its settings."
    if "locked" in said:
        return "The conversation is locked: unlock it, or use a token with write access."
    needed = headers.get("x-accepted-github-permissions", "")
    if needed:
        return f"The token lacks a permission: it needs {needed.replace('=', ': ').replace(';', ' or ')}."
    if request.endswith("/dispatches") and "/actions/" not in request:
        return 'The token may not send events: grant the job "contents: write".'
    if "/git/" in request:
        return 'The token may not write git data: grant the job "contents: write".'
    if request.endswith("/dispatches"):
        return 'The token may not start workflows: grant the job "actions: write".'
    if "/actions/" in request:
        return 'The token may not read artifacts and logs: grant the job "actions: read".'
    if "resource not accessible" in said:
        return f'The token lacks a permission: grant the job "{kind}: write" (and what else the command writes).'
    if "saml" in said:
        return "The organisation enforces SAML: authorise the token for single sign-on."
    return f"The token may not do this: give it write access to {kind.replace('-', ' ')} of this repository."


def _details(errors: Sequence[object]) -> str:
    parts = []
    for error in errors:
        if isinstance(error, dict):
            field = ".".join(str(error[key]) for key in ("resource", "field") if error.get(key))
            parts.append(f"{field}: {error.get('message') or error.get('code') or 'invalid'}".strip(": "))
        else:
            parts.append(str(error))
    return f" ({'; '.join(parts)})" if parts else ""
