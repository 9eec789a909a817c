"""Clients of a hub: the connection of a program, its participants and their channels."""
