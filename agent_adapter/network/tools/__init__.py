"""The tools that a participant gets from its network: who there is, channels, tasks, context."""
