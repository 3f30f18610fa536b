"""Markdown and untrusted text: parsing, redaction, sanitising, and quoting."""
