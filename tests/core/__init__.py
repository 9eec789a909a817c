"""Tests of the values and protocols of a tool call."""
