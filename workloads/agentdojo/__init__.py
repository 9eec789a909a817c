"""AgentDojo's tools and user tasks, replayed through real agents and this library's executor."""
