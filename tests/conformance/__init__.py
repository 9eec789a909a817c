"""What the documentation shows must work as a reader would type it."""
