"""The plays of `accord attack`: the known attacks, tried against a copy of a repository on the sandbox."""
