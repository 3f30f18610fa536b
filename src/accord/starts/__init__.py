"""Starts: events of GitHub that start plans, implementations and reviews, and the one status comment of an item."""
