"""`agent-adapter demo`: two real frameworks share one registry, without keys and network."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from agent_adapter.cli.exit_codes import OK, USAGE, CommandError
from agent_adapter.cli.options import AsJson, open_and, reviewer_name

_SHOP = "agent_adapter.cli.demo.shop:registry"


app = typer.Typer()


@app.command("demo", epilog="Example: agent-adapter demo --keep ./demo")
def command(
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="FOLDER",
            help="Keep the store in this folder.",
            file_okay=False,
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the console over the demo's store afterwards.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Run an AG2 and an Agno agent over one registry, approve two calls, verify the ledger.

    The agents are real, their models are scripted, and nothing is sent over a network.
    """
    from agent_adapter.integrations.discovery import get_integration

    for framework in ("ag2", "agno"):
        get_integration(framework)  # raises with the install command if it is missing
    if serve:
        if as_json:
            raise CommandError("--serve and --json exclude each other: omit one", code=USAGE)
        from agent_adapter.core.extras import check_installed

        check_installed("console")
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        return _run(keep, kept=True, serve=serve, as_json=as_json)
    with tempfile.TemporaryDirectory(prefix="agent-adapter-demo-") as folder:
        return _run(Path(folder), kept=False, serve=serve, as_json=as_json)


def _run(folder: Path, *, kept: bool, serve: bool, as_json: bool) -> int:
    from agent_adapter.cli.demo.scenario import Scenario

    url = f"sqlite:///{(folder / 'state.db').resolve()}"
    code = open_and(url, lambda store: Scenario(store, as_json).run(), new=True)
    if code != OK or as_json:
        return code
    if serve:
        _serve(url)
    elif kept:
        typed = f"agent-adapter tokens create you --role admin --store {shlex.quote(url)}"
        print(f"\nOpen it in the console (sign in with the token):\n$ {typed}")
        print(f"$ agent-adapter serve --store {shlex.quote(url)} --registry {_SHOP}")
    else:
        print("\nOpen it in the console: agent-adapter demo --serve")
    return code


def _serve(url: str) -> None:
    from agent_adapter.cli import serve as serving
    from agent_adapter.cli.tokens import make_token

    by = reviewer_name(None)
    _, secret = open_and(url, lambda opened: make_token(opened, "you", "admin", by))
    print(f"\nSign in to the console with this token, shown only once:\n{secret}")
    serving.command(port=0, registry=_SHOP, store=url)
