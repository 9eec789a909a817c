"""Times on the command line: ISO 8601, or how long ago."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent_adapter.cli.exit_codes import USAGE, CommandError

_AGE = re.compile(r"(\d{1,6})([mhdw])")
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}

Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Not before 2026-03-01T12:00Z; 2h: 2 h ago."),
]
"""`--since TIME`."""

Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Not after this time.")]
"""`--until TIME`."""


def moment_of(written: str, option: str) -> float:
    """A time in seconds since the epoch; without an offset it is UTC."""
    found = _AGE.fullmatch(written.strip())
    if found is not None:
        return time.time() - int(found[1]) * _SECONDS[found[2]]
    try:
        moment = datetime.fromisoformat(written.strip())
    except ValueError:
        raise CommandError(
            f"{option} {written!r} is no time: write 2026-03-01T12:00Z, 2026-03-01, or 2h",
            code=USAGE,
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
