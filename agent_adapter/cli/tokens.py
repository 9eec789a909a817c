"""`agent-adapter tokens`: create, list and revoke tokens for the console."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.exit_codes import CommandError
from agent_adapter.cli.options import AsJson, Reviewer, StoreUrl, reviewer_name, with_store
from agent_adapter.cli.output import console, plain, print_json, print_line, print_list, when

if TYPE_CHECKING:
    from agent_adapter.store.base import Operation, Row, Store

app = typer.Typer(name="tokens", help="Create, list and revoke tokens for the console.")

_SHOWN = ("id", "name", "role", "created_at", "last_used_at", "revoked_at")


class Role(StrEnum):
    """Each role includes the roles before it."""

    VIEWER = "viewer"
    APPROVER = "approver"
    ADMIN = "admin"


@app.command(epilog="Example: agent-adapter tokens create kim --role approver")
def create(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The holder; decisions are attributed to this name."),
    ],
    role: Annotated[
        Role,
        typer.Option("--role", help="viewer reads, approver decides, admin may do everything."),
    ] = Role.VIEWER,
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Create a token. It is shown only once; the store keeps a hash of it."""
    by = reviewer_name(reviewer)
    row, secret = with_store(store, lambda opened: make_token(opened, name, role.value, by))
    if as_json:
        print_json({key: row[key] for key in _SHOWN} | {"token": secret})
        return
    console().print(plain(f"{row['name']} ({row['role']}), {row['id']}; shown only once:"))
    print(secret)


@app.command("list", epilog="Example: agent-adapter tokens list")
def list_(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List tokens, oldest first, without their secrets."""
    from agent_adapter.store.access import tokens

    rows = with_store(store, lambda opened: opened.read(tokens))
    print_list(
        [{key: row[key] for key in _SHOWN} for row in rows],
        ("id", "name", "role", "created", "last used", "revoked"),
        (
            (*(row[key] for key in _SHOWN[:3]), *(when(row[key]) for key in _SHOWN[3:]))
            for row in rows
        ),
        empty="no tokens",
        as_json=as_json,
    )


@app.command(epilog="Example: agent-adapter tokens revoke kim")
def revoke(
    which: Annotated[str, typer.Argument(metavar="TOKEN", help="Its id, tok_…, or its name.")],
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token and end the sessions that were opened with it."""
    from agent_adapter.store.access import revoke_token

    by = reviewer_name(reviewer)
    row = with_store(store, lambda opened: _done(opened, lambda tx: revoke_token(tx, which, by=by)))
    said = f"{row['id']} of {row['name']} is revoked"
    print_line({key: row[key] for key in _SHOWN}, said, as_json)


async def make_token(store: Store, name: str, role: str, by: str) -> tuple[Row, str]:
    """Create a token; returns its row and its secret, which the store does not keep."""
    from agent_adapter.store.access import create_token, new_secret

    secret = new_secret()
    return await _done(store, lambda tx: create_token(tx, name, role, secret, by=by)), secret


async def _done(store: Store, op: Operation[Any]) -> Row:
    from agent_adapter.store.approvals import Refusal

    row = await store.write(op)
    if isinstance(row, Refusal):
        raise CommandError(row.reason)
    made: Row = row
    return made
