"""Schemas of tools: from functions, from JSON Schema, and for each dialect."""
