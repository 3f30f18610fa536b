"""Errors from GitHub's refusals: what was refused, in GitHub's words, and what a person changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accord.core.errors import AccordError, Refused
from accord.core.refusals import KnownRefusal, known_refusal
from accord.github.models import Conflict, EmptyRepository, Forbidden, NotThere, PullsNotAllowed

_BY_RULE = {"push-protection", "unsigned-commits", "workflow-files", "ruleset", "protected-branch"}
"""Refusals of a change that stay, whatever the status of the answer. Another writer did not cause them."""


def refusal(
    request: str,
    status: int,
    message: str,
    errors: Sequence[object],
    headers: Mapping[str, str],
    repository: str,
    server_url: str = "",
) -> AccordError:
    """Name a 3xx or 4xx answer. ``request`` is method and path; ``errors`` GitHub's list of field errors."""
    details = _details(errors)
    said = f'GitHub refused {request} with {status}: "{" ".join(message.split()).rstrip(".")}"{details}.'
    known = known_refusal(f"{message} {details}") if status in (403, 409, 422) else None
    if known is not None:
        return _kind(known, status)(said, hint=known.hint_for(f"{server_url}/{repository}" if server_url else ""))
    if status < 400:
        return NotThere(said, hint=f"It has moved: name {repository} as it is called now, with --repo.")
    if status == 401:
        return Refused(said, hint="The token is not valid: check that GITHUB_TOKEN is set to one that has not expired.")
    if status == 403:
        return Forbidden(said, hint=_forbidden(request, message, headers))
    if status in (404, 410):
        return NotThere(
            said, hint=f"Check that {repository} exists and that the token may see it (repository access, permissions)."
        )
    if status == 422:
        return Conflict(said, hint="The request was understood and found invalid; correct what GitHub names.")
    if status == 409 and "repository is empty" in message.lower():
        return EmptyRepository(said, hint=f"{repository} holds no commit yet: push one, and run the same again.")
    kind = Conflict if status == 409 else Refused
    return kind(said, hint="GitHub's sentence says why; running the same again will not help.")


def _kind(known: KnownRefusal, status: int) -> type[Refused]:
    if status == 403:
        return PullsNotAllowed if known.code == "pull-requests-not-allowed" else Forbidden
    return Refused if known.code in _BY_RULE else Conflict


_CALLER = (
    "A reusable workflow gets no more than the job that calls it grants, a run for a fork's pull request only reads."
)


def _forbidden(request: str, message: str, headers: Mapping[str, str]) -> str:
    said, starts = message.lower(), request.endswith("/dispatches")
    kind = "pull-requests" if "/pulls" in request else "issues"
    needed = headers.get("x-accepted-github-permissions", "").replace("=", ": ").replace(";", " or ")
    is_file = "/contents/" in request
    hints = {
        f"The token lacks a permission: it needs {needed}.": needed,
        'The token may not send events: grant the job "contents: write".': starts and "/actions/" not in request,
        'The token may not write git data: grant the job "contents: write". Workflow files need "workflows: write", '
        "which `GITHUB_TOKEN` never has.": "/git/" in request or is_file,
        'The token may not start workflows: grant the job "actions: write".': starts,
        'The token may not read artifacts and logs: grant the job "actions: read".': "/actions/" in request,
        f'The token lacks a permission: grant the job "{kind}: write" (and what else the command writes).': (
            "resource not accessible" in said
        ),
        f"The token may not do this: give it write access to {kind.replace('-', ' ')} of this repository.": True,
    }
    hint = next(hint for hint, applies in hints.items() if applies)
    return f"{hint} {_CALLER}" if "by integration" in said else hint


def _details(errors: Sequence[object]) -> str:
    parts = []
    for error in errors:
        if isinstance(error, dict):
            field = ".".join(str(error[key]) for key in ("resource", "field") if error.get(key))
            parts.append(f"{field}: {error.get('message') or error.get('code') or 'invalid'}".strip(": "))
        else:
            parts.append(str(error))
    return f" ({'; '.join(parts)})" if parts else ""
