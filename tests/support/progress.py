"""The progress of a run of many tests, with each failure when it happens."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

EVERY_SECONDS = 15.0
"""How often a line of progress is printed."""


class Progress:
    """Replaces pytest's dots in the process that prints, when several workers run the tests."""

    def __init__(self, config: pytest.Config) -> None:
        self.reporter: TerminalReporter = config.pluginmanager.get_plugin("terminalreporter")  # type: ignore[assignment]
        self.total = self.ended = self.failed = 0
        self.printed = time.monotonic()

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Know what is to come."""
        self.total = len(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no dots."""
        if report.when == "call" or not report.passed:
            category = "error" if report.failed and report.when != "call" else report.outcome
            return (category, "", category.upper())
        return ("", "", "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a failure at once, and from time to time how far the tests are."""
        if report.failed:
            self.failed += 1
            self.reporter.write_sep("_", f"{report.nodeid} ({report.when})", red=True)
            report.toterminal(self.reporter._tw)
            self.reporter.write_line(f"Repeat it with: ./dev quick {shlex.quote(report.nodeid)}", red=True)
            self.reporter.flush()
        self.ended += report.when == "teardown"
        if time.monotonic() - self.printed >= EVERY_SECONDS:
            self.printed = time.monotonic()
            self.reporter.ensure_newline()
            self.reporter.write_line(f"{self.ended:,} of {self.total:,} tests, {self.failed} failed")
            self.reporter.flush()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Keep pytest from printing the failures again."""
        self.reporter.config.option.tbstyle = "no"
