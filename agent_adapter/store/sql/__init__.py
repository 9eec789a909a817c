"""Stores in SQL databases; nothing here is imported before one is opened."""
