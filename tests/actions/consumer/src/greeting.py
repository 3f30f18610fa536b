"""Greets."""


def greet() -> str:
    """Say hello to everybody."""
    return "Hello!"
