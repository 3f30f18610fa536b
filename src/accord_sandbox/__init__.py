"""A local GitHub: its REST subset with its own refusals, git over HTTP, and pages to look at; kept in SQLite.

It is the embedded default (``--sandbox``), the stage for rehearsals and the test double, so what it answers is what
GitHub answers, refusals included. Start one with ``accord_sandbox.server.serving``.
"""
