"""What tools/generate.py writes into the documentation, by what it is about."""
