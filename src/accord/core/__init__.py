"""Findings, errors, documents and their kinds, state machines, graphs, and time."""
