"""Loops that run the agent again and stop by themselves: keepalive, autofix, verifier and bot comments."""
