"""``accord doctor``: what a repository lacks for agents, its settings on GitHub, and the file of a bug report."""
