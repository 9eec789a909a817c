"""What a program holds of a network: a connection, its participants, their channels."""
