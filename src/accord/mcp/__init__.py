"""Tools for agents while they work: a server of the Model Context Protocol, offline and without a token."""
