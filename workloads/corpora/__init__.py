"""Public tools, as they are: BFCL's functions and the tools of public MCP servers."""
