"""Missions: where their work packages run, how far they are, and which moves are legal. Source: mission contracts."""
