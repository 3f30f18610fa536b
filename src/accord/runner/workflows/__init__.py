"""Workflow files of GitHub Actions, read and judged: runners by their contract, and what goes wrong beside agents."""
