"""Judging which tasks of a pull request a run completed: by models, and last by the agent's own words."""
