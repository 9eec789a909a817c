"""Approvals: ports, decisions, and how a decision is bound to a call."""
