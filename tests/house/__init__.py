"""The shape of the package: what its modules import, are called and hold."""
