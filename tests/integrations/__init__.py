"""Tests of the integrations, and the contract kit they all pass."""
