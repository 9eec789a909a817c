"""Message forms of model providers and of MCP: tools, calls and answers as they travel."""
