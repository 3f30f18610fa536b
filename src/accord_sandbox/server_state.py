"""The state of one serving process, which requests of the API and of git share."""

from __future__ import annotations

import sys
import traceback

from accord_sandbox.calls import SandboxSettings
from accord_sandbox.database import Database
from accord_sandbox.faults import Exchange, Faults, Observer
from accord_sandbox.git_storage import GitStorage
from accord_sandbox.rates import Meter


class ServerState:
    """The data, faults and counters. ``requests`` logs (method, path, status); a dropped connection has status 0."""

    def __init__(self, database: Database, settings: SandboxSettings) -> None:
        self.database = database
        self.settings = settings
        self.faults = Faults()
        self.meter = Meter(settings.rate_limits)
        self.storage = GitStorage(database.path.parent / "git")
        self.observers: list[Observer] = []
        self.requests: list[tuple[str, str, int]] = []

    def observe(self, exchange: Exchange) -> None:
        """Call the observers."""
        for observer in tuple(self.observers):
            try:
                observer(exchange)
            except Exception:  # the client gets a 500; stderr gets the reason
                traceback.print_exc(file=sys.stderr)
                raise
