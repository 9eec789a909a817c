"""`agent-adapter demo`: the main story, on real frameworks, with no key and no network."""

from __future__ import annotations

import asyncio
import shlex
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from agent_adapter.cli.exit_codes import OK, USAGE, CommandError
from agent_adapter.cli.options import AsJson, reviewer_name, with_store

__all__ = ["command"]

_SHOP = "agent_adapter.cli.demo.shop:registry"


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
    serve: Annotated[
        bool, typer.Option("--serve", help="Look at what happened in the console afterwards.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Run an AG2 and an Agno agent over one registry, hold two calls, approve them, verify.

    The agents are real, their models are scripted. Nothing is sent anywhere.
    """
    from agent_adapter.integrations.discovery import get_integration

    for framework in ("ag2", "agno"):
        get_integration(framework)  # says at once how to install what is missing
    if serve:
        if as_json:
            raise CommandError("--serve goes on, --json ends: leave one out", code=USAGE)
        from agent_adapter.core.extras import check_installed

        check_installed("console")
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        return _tell(keep, kept=True, serve=serve, as_json=as_json)
    with tempfile.TemporaryDirectory(prefix="agent-adapter-demo-") as folder:
        return _tell(Path(folder), kept=False, serve=serve, as_json=as_json)


def _tell(folder: Path, *, kept: bool, serve: bool, as_json: bool) -> int:
    from agent_adapter.cli.demo.scenario import tell

    code = asyncio.run(tell(folder, as_json=as_json))
    if code != OK or as_json:
        return code
    url = f"sqlite:///{(folder / 'state.db').resolve()}"
    if serve:
        return _serve(url)
    if kept:
        typed = f"agent-adapter tokens create you --role admin --store {shlex.quote(url)}"
        print(f"\nSee it in the console (sign in with the token):\n$ {typed}")
        print(f"$ agent-adapter serve --store {shlex.quote(url)} --registry {_SHOP}")
    else:
        print("\nSee it in the console: agent-adapter demo --serve")
    return code


def _serve(url: str) -> int:
    from agent_adapter.cli import serve as serving
    from agent_adapter.cli.tokens import make_token

    by = reviewer_name(None)
    _, secret = with_store(url, lambda opened: make_token(opened, "you", "admin", by))
    print(f"\nSign in to the console with this token, which is shown this once:\n{secret}")
    return serving.command(port=0, registry=_SHOP, store=url)
