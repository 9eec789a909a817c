"""Tests mirror the package; `tests.integrations.kit` is the contract of an integration."""
