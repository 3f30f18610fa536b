"""What an agent run did: contract ro, for any agent CLI."""
