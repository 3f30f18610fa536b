"""All that is specific to an agent: the registry, its data, and the providers of models."""

from pathlib import Path

REGISTRY_PATH = Path(".github/agents/registry.yml")
"""Where a repository has its own registry. To ask for it must not import the models of all that it may hold."""
