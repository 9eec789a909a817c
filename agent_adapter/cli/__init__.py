"""The command line, `agent-adapter`."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code (see `agent_adapter.cli.exit_codes`).

    `argv` has no program name; `None` takes the arguments from `sys.argv`.
    """
    from agent_adapter.cli.app import run

    return run(argv)
