"""A reviewer's result: a verdict with its comments, each where the diff has a place for it."""
