"""`agent-adapter keys`: the key pairs that reviewers sign their decisions with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent_adapter.cli.exit_codes import OK
from agent_adapter.cli.options import AsJson
from agent_adapter.cli.output import plain, print_json

__all__ = ["app"]

app = typer.Typer(help="Make the key pairs that reviewers sign their decisions with.")

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The private key; its name is the reviewer's."),
]


@app.command(epilog="Example: agent-adapter keys create ana.pem")
def create(file: File, as_json: AsJson = False) -> int:
    """Make an Ed25519 key pair: the private key in FILE, the public one in FILE.pub.

    What is printed is what `DeferredApproval(reviewers={name: …})` pins.
    """
    from agent_adapter.exec.approval.signing import create_key

    made = create_key(file)
    _say(made.name, made.public, as_json)
    return OK


@app.command(epilog="Example: agent-adapter keys show ana.pem")
def show(file: File, as_json: AsJson = False) -> int:
    """Print the public half of a private key."""
    from agent_adapter.exec.approval.signing import ReviewerKey

    key = ReviewerKey.read(file)
    _say(key.name, key.public, as_json)
    return OK


def _say(name: str, public: str, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "public": public})
    else:
        print(plain(f"{name} {public}"))
