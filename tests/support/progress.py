"""The progress of a run of many tests, with each failure when it happens and the reasons of skipped tests."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

EVERY_SECONDS = 15.0
"""How often a line of progress is printed."""

DURATIONS = "accord/seconds"
"""The key of pytest's cache for the seconds that each test took last time."""

ORDINARY_SECONDS = 0.02
"""The estimate for a test that has not run on this machine."""


def minutes(seconds: float) -> str:
    """Return a time as ``2:05``."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def seconds_left(elapsed: float, done: float, left: float) -> float:
    """Return the estimate for the rest. ``done`` and ``left`` are the seconds of work that were expected."""
    return left * elapsed / done if done > 0 else left


class Progress:
    """Replaces pytest's dots in the process that prints, when several workers run the tests."""

    def __init__(self, config: pytest.Config) -> None:
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        self.reporter: TerminalReporter = reporter
        self.cache = config.cache
        self.expected: dict[str, float] = self.cache.get(DURATIONS, {}) if self.cache else {}
        self.spent: Counter[str] = Counter()
        self.waiting: dict[str, float] = {}
        self.ended = self.failed = 0
        self.done = 0.0
        self.began = self.printed = time.monotonic()

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Know what is to come."""
        if not self.waiting and not self.ended:
            self.waiting = {name: self.expected.get(name, ORDINARY_SECONDS) for name in ids}
            self.began = self.printed = time.monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no dots."""
        if report.when == "call" or not report.passed:
            category = "error" if report.failed and report.when != "call" else report.outcome
            return (category, "", category.upper())
        return ("", "", "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a failure at once, and from time to time how far the tests are."""
        self.spent[report.nodeid] += report.duration
        if report.failed:
            self.failed += 1
            self.reporter.write_sep("_", f"{report.nodeid} ({report.when})", red=True)
            report.toterminal(self.reporter._tw)
            self.reporter.write_line(f"Repeat it with: ./dev quick {shlex.quote(report.nodeid)}", red=True)
            self.reporter.flush()
        if report.when == "teardown":
            self.ended += 1
            self.done += self.waiting.pop(report.nodeid, 0.0)
            if time.monotonic() - self.printed >= EVERY_SECONDS:
                self.print_progress()

    def print_progress(self) -> None:
        """Print one line."""
        self.printed = time.monotonic()
        total = self.ended + len(self.waiting)
        left = seconds_left(self.printed - self.began, self.done, sum(self.waiting.values()))
        is_known = self.expected or self.ended > total / 4  # the slowest tests come first
        shown = f", about {minutes(left)} left" if is_known else ""
        self.reporter.ensure_newline()
        self.reporter.write_line(f"{self.ended:,} of {total:,} tests, {self.failed} failed{shown}")
        self.reporter.flush()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Keep pytest from printing the failures again."""
        self.reporter.config.option.tbstyle = "no"

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Say what was skipped and what to install for it, and remember how long each test took."""
        reasons = Counter(skip_reason(report) for report in terminalreporter.stats.get("skipped", []))
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count} skipped: {reason}")
        if self.cache:
            self.cache.set(DURATIONS, self.expected | {name: round(spent, 3) for name, spent in self.spent.items()})


def skip_reason(report: pytest.TestReport) -> str:
    """Return why a test was skipped, without pytest's prefix."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
