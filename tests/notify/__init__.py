"""Notifications: rules, the outbox, messages, the ways to send them."""
