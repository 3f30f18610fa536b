"""Agent sessions: the documents of a session folder, its states, and what people are asked (global agent contract)."""
