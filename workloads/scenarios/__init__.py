"""Forty conversations of our own, honest and attacking, written before the policy was tuned."""
