"""Handoffs: the artifacts that roles leave for each other on a task, and the moves between its statuses."""
