"""The tools of `NetworkPlugin`: peers, channels, tasks, context and delegate."""
