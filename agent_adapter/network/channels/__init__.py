"""The log of a channel and everything derived from it."""
