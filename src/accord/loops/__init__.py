"""Who runs the agent again, and when it ends: keepalive, autofix, verifier and bot comments, decided from facts."""
