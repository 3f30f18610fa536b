"""Handoffs: what each role leaves for the next one on a task, and which moves that allows. Source: handoff schema."""
