"""The approval ports: who decides, and how they are asked."""
