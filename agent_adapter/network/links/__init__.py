"""How a client reaches a hub: in the same process, or over a WebSocket."""
