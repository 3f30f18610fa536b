"""Where commands read from and post to: files, stdin, and GitHub as the environment names it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from accord.cli.options import (
    Arguments,
    PostingArguments,
    RepositoriesArguments,
    RepositoryArguments,
    ServerArguments,
    option,
    why_read_only,
)
from accord.cli.output import print_wait
from accord.cli.step import warn
from accord.core.clock import SystemClock, time_of, timestamp
from accord.core.documents import MAX_BYTES
from accord.core.environment import is_in_actions, needs_extra
from accord.core.errors import AccordError, BrokenContract, WrongUsage
from accord.core.network import is_loopback
from accord.text.addresses import is_web_address
from accord.text.posting import PostingPolicy, posting_policy

if TYPE_CHECKING:
    from accord.agents.registry import Registry
    from accord.git.trusted_files import TrustedFiles
    from accord.github.client import Connection, GitHub
    from accord.github.models import Access
    from accord.github.pacing import Pacer
    from accord.github.rest import RepositoryLists
    from accord_sandbox.server import RunningSandbox


def read_trusted(source: str) -> bytes:
    """Read a file that decides what runs do: in a job, as the default branch has it. Standard input stays as it is."""
    from accord.git.trusted_files import trusted_files

    raw = read_bytes(source)
    if source == "-":
        return raw
    files = trusted_files(Path.cwd(), os.environ)
    trusted = files.read(Path(source), is_named=True)
    if files.warning:
        warn(files.warning)
    return raw if trusted is None else trusted


def at_top(path: str) -> str:
    """Return the path below the top of the repository where a file or folder is only there; any other as it is."""
    here = Path.cwd()
    top = next((at for at in (here, *here.parents) if (at / ".git").exists()), here)
    return str(top / path) if not Path(path).exists() and (top / path).exists() else path


def read_bytes(path: str) -> bytes:
    """Read a file, or stdin for ``-``: at most one byte more than the limit, so that parsers can refuse it."""
    if path == "-":
        return standard_input().read(MAX_BYTES + 1)
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise not_readable(path, error) from None


def read_text(path: str | None) -> str | None:
    """Read a file, or stdin for ``-``, as text; bytes that are not text are replaced. None without a path."""
    return None if path is None else read_bytes(path).decode("utf-8-sig", "replace")


@contextmanager
def regular_file(path: str) -> Iterator[Path]:
    """Yield a file that can be read more than once: a copy of stdin (``-``), or of a pipe. Raises WrongUsage."""
    found = Path(path).resolve()
    with tempfile.TemporaryDirectory(prefix="accord-") as folder:
        try:
            with nullcontext(standard_input()) if path == "-" else Path(path).open("rb") as source:
                if path == "-" or not found.is_file():
                    found = Path(folder) / "copy"
                    with found.open("wb") as file:
                        shutil.copyfileobj(source, file)
        except OSError as error:
            raise not_readable(path, error) from None
        yield found


def standard_input() -> BinaryIO:
    """Return stdin as bytes. Raises WrongUsage where the process has none."""
    if sys.stdin is None:
        raise WrongUsage("No standard input to read.", hint="Name a file instead of `-`.")
    return sys.stdin.buffer


def not_readable(path: str, error: OSError) -> WrongUsage:
    """Return an error for a file that cannot be read."""
    wanted = "a file that exists" if isinstance(error, FileNotFoundError) else "a file that you may read"
    return WrongUsage(f"Cannot read `{path}`: {error.strerror}.", hint=f"Name {wanted}.")


def sandbox_server() -> Callable[..., AbstractContextManager[RunningSandbox]]:
    """Import the embedded local GitHub. Raises WrongUsage when a package is missing."""
    with needs_extra("web", "The sandbox"):
        from accord_sandbox.server import serving
    return serving


@contextmanager
def _access_for(given: RepositoryArguments, name: Callable[[str], str]) -> Iterator[tuple[Access, str]]:
    """Yield how to reach a repository, and the address of its server, from which ``name`` names the repository.

    A sandbox runs as long as the context; an existing one gets no new repository.
    """
    from accord.github.models import Access

    more = (given.identity, given.max_wait, why_read_only())
    if given.sandbox is not None:
        with sandbox_server()(Path(given.sandbox), repository=given.repo, creates=False) as server:
            yield Access(server.repository, server.token, server.url, *more), server.url
        return
    api_url, server_url = addresses(os.environ.get("GITHUB_API_URL", ""), os.environ.get("GITHUB_SERVER_URL", ""))
    yield Access(name(server_url), find_token(server_url), api_url, *more), server_url


@contextmanager
def github_for(
    given: RepositoryArguments, *, pacer: Pacer | None = None, root: Path | None = None
) -> Iterator[Connection]:
    """Connect to a repository. A ``pacer`` is shared by the connections of one token.

    Outside of GitHub Actions, the remote of the checkout in ``root`` names the repository where nothing else does.
    """
    from accord.github.client import Connection, GitHub

    def name(server_url: str) -> str:
        return given.repo or os.environ.get("GITHUB_REPOSITORY", "") or _repository_of(root or Path(), server_url)

    with _access_for(given, name) as (access, server_url):
        github = GitHub(access, SystemClock(), print_wait, pacer)
        yield Connection(github, access.repository, server_url, access.token)
    if given.sandbox is not None and sys.stderr.isatty():
        sys.stderr.write(f"To look at the pages: accord sandbox serve --dir {given.sandbox}\n")


class AsOfArguments(Arguments):
    """The argument of a command that hands text to an agent."""

    as_of: str | None = option("--as-of TIME|run", "Refuse text that people without write access changed later.")


AS_OF_RUN = "run"
"""In place of a time: when this workflow run was started."""


def read_as_of(text: str | None, github: GitHub) -> datetime | None:
    """Return the time in an option ``--as-of``, in whole seconds as GitHub's are; None without the option.

    Raises WrongUsage for another text, for a time after GitHub's last response, and for ``run`` outside of a workflow.
    """
    if text is None:
        return None
    if text != AS_OF_RUN:
        at, now = time_of(text), github.server_time()
        if at is None or at > now:
            hint = f"Use a past one such as `{timestamp(now)}`, or `{AS_OF_RUN}`."
            raise WrongUsage(f"`{text[:80]}` is {'in the future' if at else 'not a time'}.", hint=hint)
        return at.replace(microsecond=0)
    run_id = os.environ.get("GITHUB_RUN_ID", "")
    run = github.workflow_run(int(run_id)) if run_id.isdecimal() else None
    if run is None:
        hint = "Pass a time, or run this in a workflow."
        raise WrongUsage(f"The start of the workflow run {run_id or 'without GITHUB_RUN_ID'} is not known.", hint=hint)
    return run.created_at


def connect_all(given: RepositoriesArguments, stack: ExitStack) -> list[Connection]:
    """Connect to each repository once, as long as the stack is open."""
    repos: list[str | None] = [*dict.fromkeys(given.repos)] or [None]
    return [stack.enter_context(github_for(replace(given, repo=repo), root=given.root)) for repo in repos]


@contextmanager
def lists_for(given: ServerArguments) -> Iterator[RepositoryLists]:
    """Connect to a server for its lists of repositories."""
    from accord.github.rest import RepositoryLists

    with _access_for(given, lambda _: "") as (access, _):
        yield RepositoryLists(access, SystemClock(), print_wait)


def _repository_of(root: Path, server_url: str) -> str:
    """Name the repository of a checkout by its remote. Raises WrongUsage where it has none on this server.

    A remote on another server does not count: the token is for this one.
    """
    from accord.git.origin import read_origin

    origin = None if is_in_actions(os.environ) else read_origin(root)
    if origin is None:
        raise WrongUsage("No repository given.", hint="Pass `--repo OWNER/NAME`, or set `GITHUB_REPOSITORY`.")
    host = urlsplit(origin.server_url).netloc.lower()
    if host == urlsplit(server_url).netloc.lower():
        return origin.repository
    message = f"No repository given. The remote `origin` is on {host}, not on {server_url}."
    raise WrongUsage(
        message, hint=f"Set `GITHUB_SERVER_URL=https://{host}` and its token, or pass `--repo OWNER/NAME`."
    )


_GH_SECONDS = 10


def find_token(server_url: str = "") -> str:
    """Return the token: ``GITHUB_TOKEN``, else outside of GitHub Actions that of the GitHub CLI; empty without one.

    The GitHub CLI has one for each server: in ``GH_TOKEN`` for GitHub, in ``GH_ENTERPRISE_TOKEN`` for a server of
    one's own, or stored by ``gh auth login`` (manual of gh, "environment"). The server is by default the one that the
    environment names.
    """
    if token := os.environ.get("GITHUB_TOKEN", "").strip():
        return token
    _, default = addresses(os.environ.get("GITHUB_API_URL", ""), os.environ.get("GITHUB_SERVER_URL", ""))
    host = urlsplit(server_url or default).netloc.lower()
    is_github = host == "github.com" or host.endswith(".ghe.com")
    if token := os.environ.get("GH_TOKEN" if is_github else "GH_ENTERPRISE_TOKEN", "").strip():
        return token
    gh = None if is_in_actions(os.environ) else shutil.which("gh")
    if gh is None:
        return ""
    command = [gh, "auth", "token", "--hostname", host]
    import subprocess

    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GH_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def addresses(api_url: str, server_url: str) -> tuple[str, str]:
    """Return the URLs of the API and of git: the same GitHub, as one token opens both. Raises WrongUsage for two."""
    from accord.github.models import server_of

    for name, address in {"GITHUB_API_URL": api_url, "GITHUB_SERVER_URL": server_url}.items():
        if address and not is_web_address(address):
            hint = f"Set `{name}`, beginning with `https://`, or leave it out."
            raise WrongUsage(f"`{name}` ({address}) is not a URL.", hint=hint)
    if not api_url:
        url = urlsplit(server_url or "https://github.com")
        host = url.netloc.lower()
        is_cloud = host == "github.com" or host.endswith(".ghe.com")
        api_url = f"{url.scheme}://api.{host}" if is_cloud else f"{server_url.rstrip('/')}/api/v3"
    own = server_of(api_url)
    if is_loopback(urlsplit(own).hostname or ""):  # a sandbox's, also in a job, where the runner names its own server
        return api_url, own
    if server_url and _host(server_url) != _host(own):
        message = f"`GITHUB_API_URL` ({api_url}) and `GITHUB_SERVER_URL` ({server_url}) name two servers."
        raise WrongUsage(message, hint=f"Set `GITHUB_SERVER_URL` to {own}, or leave it out.")
    return api_url, server_url or own


def _host(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    port = {"https": ":443", "http": ":80"}.get(parts.scheme, "")
    return parts.scheme, parts.netloc.lower().removesuffix(port)


_UNREADABLE = (
    "The token may not read the agent registry, so only `--allowed-hosts` and `--break-words` count. "
    "To add the registry's, grant the job `contents: read`."
)


@contextmanager
def posting_to(given: PostingArguments, registry: Registry | None = None) -> Iterator[tuple[Connection, PostingPolicy]]:
    """Connect to a repository, and yield the policy for texts that are posted there.

    The policy comes from the registry (the given one, or else the repository's own), options and the environment.
    """
    with github_for(given) as connection:
        yield connection, policy_at(connection, given.allowed_hosts, given.break_words, registry)


def policy_at(
    connection: Connection,
    allowed_hosts: Sequence[str] = (),
    break_words: Sequence[str] = (),
    registry: Registry | None = None,
) -> PostingPolicy:
    """Read the policy for texts that are posted to a repository. Raises BrokenContract for an invalid registry."""
    try:
        own = registry or _own_registry(connection.github)
    except BrokenContract as broken:
        found = [replace(one, message=f"In the agent registry: {one.message}", line=None) for one in broken.findings]
        raise BrokenContract(broken.message, findings=found) from None
    return policy_of(own, allowed_hosts, break_words, connection.repository)


def policy_of(
    registry: Registry | None,
    allowed_hosts: Sequence[str] = (),
    break_words: Sequence[str] = (),
    repository: str | None = None,
) -> PostingPolicy:
    """Return the policy of a registry for texts in a repository, with hosts and words of options and environment."""
    hosts, words = (registry.allowed_hosts, registry.break_words) if registry else ([], [])
    here = os.environ.get("GITHUB_REPOSITORY", "") if repository is None else repository
    only = here if registry and registry.references == "own" else None
    return posting_policy(os.environ, hosts=[*hosts, *allowed_hosts], words=[*words, *break_words], repository=only)


def local_policy(files: TrustedFiles | None = None, registry: Path | None = None) -> PostingPolicy:
    """Return the policy without a connection: of the checkout's registry, if that can be read and is valid.

    ``files`` are those of the checkout where the caller has them.
    """
    from accord.git.trusted_files import trusted_files
    from accord.runner.registry import load_registry

    with suppress(AccordError, OSError):
        return policy_of(load_registry(files or trusted_files(Path.cwd(), os.environ), registry))
    return policy_of(None)


def _own_registry(github: GitHub) -> Registry | None:
    """Read the registry from the checkout, or from GitHub's default branch where that has none to trust.

    Without one, the policy needs none: accord's own registry has neither hosts nor words.
    """
    from accord.agents import REGISTRY_PATH
    from accord.git.trusted_files import WorkTreeFiles, trusted_files
    from accord.github.models import Forbidden

    files = trusted_files(Path.cwd(), os.environ)
    path = files.top / REGISTRY_PATH
    is_checkout = not isinstance(files, WorkTreeFiles) or (files.top / ".git").exists()
    if is_checkout or path.is_file():
        with suppress(WrongUsage, OSError):  # the checkout does not have the default branch
            raw = files.read(path)
            return _registry_in(raw, path)
    try:
        raw = github.find_file(str(REGISTRY_PATH))
    except Forbidden:
        warn(_UNREADABLE)
        return None
    return _registry_in(raw, REGISTRY_PATH)


def _registry_in(raw: bytes | None, path: Path) -> Registry | None:
    if raw is None:
        return None
    from accord.agents.registry_rules import registry_from  # slow, and most repositories have no registry

    return registry_from(raw, path)
