"""Tests of channels, their hub and their participants."""
