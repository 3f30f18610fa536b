"""What agent CLIs print while they work, read as a stream: one codec for each structured format."""
