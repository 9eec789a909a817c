"""What happens to one call: the executor, its steps and the approvals."""
