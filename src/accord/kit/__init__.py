"""The consumer kit: the callers, registry, labels and prompts that a repository takes from accord and keeps in step."""
