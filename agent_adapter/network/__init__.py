"""Durable channels whose turns a hub governs."""
