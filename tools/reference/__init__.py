"""The parts that tools/generate.py writes into the documentation, by subject."""
