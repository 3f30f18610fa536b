"""Operations, receipts, and applying in order: what every writing package shares."""
