"""Files on disk: an atomic store with locks, YAML, and archives."""
