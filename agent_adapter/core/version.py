"""The version of the installed distribution, which the project file states."""

from importlib.metadata import version

__version__: str = version("agent-adapter")
