"""Tests of reading and writing schemas."""
