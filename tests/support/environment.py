"""The one environment of all test processes, for every caller and on every machine.

``tests/conftest.py`` enters it before anything else is imported, so every process that a test starts inherits it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = re.compile(
    r"PATH|LD_LIBRARY_PATH|LD_PRELOAD"  # where programs are
    r"|ACCORD_(?:NIGHTLY|SHUFFLE|FUZZ_SEED|FUZZ_TEXTS|WALKS)|PYTEST_(?:XDIST_\w+|CURRENT_TEST|VERSION)|COVERAGE_\w+|PYTHONDONTWRITEBYTECODE"
    r"|PIP_(?:INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|TRUSTED_HOST|CERT|CLIENT_CERT|DEFAULT_TIMEOUT|CONFIG_FILE)"
    r"|UV_(?:INDEX|DEFAULT_INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|INSECURE_HOST|INDEX_\w+_(?:USERNAME|PASSWORD))"
    r"|(?i:npm_config_(?:registry|cafile|strict_ssl))"  # where packages come from
    r"|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS|GIT_SSL_CAINFO"
)
"""Variables of the caller that reach tests: programs, options of the tests, and the way to the package registries."""

GIT_CONFIG = """\
[user]
\tname = Tess Tester
\temail = tess@example.org
[init]
\tdefaultBranch = master
[protocol "file"]
\tallow = always
[maintenance]
\tauto = false
"""


def clean_environment(caller: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the variables of all test processes. ``home`` is an empty folder with nothing of the caller's."""
    caches = Path(caller.get("XDG_CACHE_HOME") or Path(caller.get("HOME") or "/", ".cache"))
    return {name: value for name, value in caller.items() if KEPT.fullmatch(name)} | {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "NO_PROXY": "127.0.0.1,localhost",
        "PIP_CACHE_DIR": caller.get("PIP_CACHE_DIR") or str(caches / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_CACHE_DIR": caller.get("UV_CACHE_DIR") or str(caches / "uv"),
        "npm_config_cache": caller.get("npm_config_cache") or str(Path(caller.get("HOME") or "/", ".npm")),
        "npm_config_update_notifier": "false",
    }


def enter_clean_environment() -> Path:
    """Replace the caller's variables, umask, time zone and folder for temporary files; return the new HOME."""
    home = Path(tempfile.mkdtemp(prefix="accord-tests-", dir="/tmp" if os.access("/tmp", os.W_OK) else None))
    (home / ".gitconfig").write_text(GIT_CONFIG)
    variables = clean_environment(os.environ, home)
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None
    os.umask(0o022)
    time.tzset()
    return home


def leave_clean_environment(home: Path) -> None:
    """Remove the HOME of the tests."""
    shutil.rmtree(home, ignore_errors=True)
