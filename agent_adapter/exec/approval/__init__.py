"""Who decides about a call, and what ties the answer to it."""
