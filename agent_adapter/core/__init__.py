"""Values and protocols of a tool call; nothing here does I/O."""
