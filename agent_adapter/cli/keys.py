"""`agent-adapter keys`: key pairs for signed decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent_adapter.cli.options import AsJson
from agent_adapter.cli.output import print_line

app = typer.Typer(name="keys", help="Create key pairs for signed decisions.")

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The private key file; its stem is the reviewer's name."),
]


@app.command(epilog="Example: agent-adapter keys create ana.pem")
def create(file: File, as_json: AsJson = False) -> None:
    """Create an Ed25519 key pair: the private key in FILE, the public key in FILE.pub.

    Prints the public key for `DeferredApproval(reviewers={name: …})`.
    """
    from agent_adapter.exec.approval.signing import create_key

    made = create_key(file)
    _say(made.name, made.public, as_json)


@app.command(epilog="Example: agent-adapter keys show ana.pem")
def show(file: File, as_json: AsJson = False) -> None:
    """Print the public key of a private key."""
    from agent_adapter.exec.approval.signing import ReviewerKey

    key = ReviewerKey.read(file)
    _say(key.name, key.public, as_json)


def _say(name: str, public: str, as_json: bool) -> None:
    print_line({"name": name, "public": public}, f"{name} {public}", as_json)
