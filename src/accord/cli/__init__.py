"""The command line: one module a command group. Each parses, calls one function of a room, and prints."""
