"""Analyzing which tasks of a pull request a run completed: by models, then by the agent's own words."""
