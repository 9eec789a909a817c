"""The command line, `agent-adapter`: tools, approvals, ledger, integrations and a demo."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code (see `agent_adapter.cli.exit_codes`).

    `argv` leaves out the program's name; `None` takes it from `sys.argv`.
    """
    from agent_adapter.cli.app import run

    return run(argv)
