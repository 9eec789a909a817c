"""Turns: queued, claimed, run, parked and ended."""
