"""Real workloads: tools and tasks that others wrote, run through the library."""
