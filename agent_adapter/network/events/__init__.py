"""What happened in a hub, as one durable stream."""
