"""`agent-adapter demo`: the main story, on real frameworks, with no key and no network."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from agent_adapter.cli.options import AsJson

__all__ = ["command"]


def command(
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="FOLDER",
            help="Keep the store in this folder, to look at it afterwards.",
            file_okay=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run an AG2 and an Agno agent over one registry, hold two calls, approve them, verify.

    The agents are real, their models are scripted. Nothing is sent anywhere.
    """
    from agent_adapter.cli.demo.story import tell
    from agent_adapter.integrations.discovery import get_integration

    for framework in ("ag2", "agno"):
        get_integration(framework)  # says at once how to install what is missing
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        return asyncio.run(tell(keep, as_json=as_json))
    with tempfile.TemporaryDirectory(prefix="agent-adapter-demo-") as folder:
        return asyncio.run(tell(Path(folder), as_json=as_json))
