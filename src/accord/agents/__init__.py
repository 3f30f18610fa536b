"""All that is specific to an agent: the registry, its data, and the providers of models."""
