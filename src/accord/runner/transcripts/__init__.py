"""Transcripts of agent CLIs, read as a stream: one codec for each structured format."""
