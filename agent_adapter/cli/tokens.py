"""`agent-adapter tokens`: create, list and revoke tokens for the console."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.completing import completing
from agent_adapter.cli.exit_codes import CommandError
from agent_adapter.cli.options import AsJson, Reviewer, StoreUrl, reviewer_name, with_store
from agent_adapter.cli.output import plain, print_json, print_line, print_list, print_text, when
from agent_adapter.cli.prefixes import whole_id

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
    tenants: Annotated[
        list[str] | None,
        typer.Option(
            "--tenant",
            metavar="NAME",
            help="A tenant of the token, repeatable; default: records without a tenant.",
        ),
    ] = None,
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Create a token. It is shown only once; the store keeps a hash of it."""
    by = reviewer_name(reviewer)
    row, secret = with_store(
        store, lambda opened: make_token(opened, name, role.value, by, tenants), new=True
    )
    if as_json:
        print_json(_facts(row) | {"token": secret})
        return
    print_text(plain(f"{row['name']} ({row['role']}), {row['id']}; shown only once:"))
    print_text(secret)


@app.command("list", epilog="Example: agent-adapter tokens list")
def list_(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List tokens, oldest first, without their secrets."""
    from agent_adapter.store.access import tokens

    rows = with_store(store, lambda opened: opened.read(tokens))
    print_list(
        [_facts(row) for row in rows],
        ("id", "name", "role", "tenants", "created", "last used", "revoked"),
        (
            (*(row[key] for key in _SHOWN[:3]), _tenants(row), *map(when, map(row.get, _SHOWN[3:])))
            for row in rows
        ),
        empty="no tokens",
        as_json=as_json,
    )


@app.command(epilog="Example: agent-adapter tokens revoke kim")
def revoke(
    which: Annotated[
        str,
        typer.Argument(
            metavar="TOKEN",
            help="Its id, tok_…, a beginning of it, or its name.",
            autocompletion=completing("token"),
        ),
    ],
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token and end the sessions that were opened with it."""
    from agent_adapter.store.access import revoke_token

    by = reviewer_name(reviewer)

    async def work(opened: Store) -> Row:
        whole = await whole_id(opened, "token", which, None)
        return await _done(opened, lambda tx: revoke_token(tx, whole, by=by))

    row = with_store(store, work)
    said = f"{row['id']} of {row['name']} is revoked"
    print_line(_facts(row), said, as_json)


def _facts(row: Row) -> dict[str, Any]:
    tenants = None if row["tenants"] is None else json.loads(row["tenants"])
    return {key: row[key] for key in _SHOWN} | {"tenants": tenants}


def _tenants(row: Row) -> str:
    if row["tenants"] is None:
        return "that of the console"
    return ", ".join(each or "(none)" for each in json.loads(row["tenants"]))


async def make_token(
    store: Store, name: str, role: str, by: str, tenants: Sequence[str] | None = None
) -> tuple[Row, str]:
    """Create a token; returns its row and its secret, which the store does not keep."""
    from agent_adapter.store.access import create_token, new_secret

    secret, belongs = new_secret(), tenants or [""]
    made = lambda tx: create_token(tx, name, role, secret, tenants=belongs, by=by)  # noqa: E731
    return await _done(store, made), secret


async def _done(store: Store, op: Operation[Any]) -> Row:
    from agent_adapter.store.approvals import Refusal

    row = await store.write(op)
    if isinstance(row, Refusal):
        raise CommandError(row.reason)
    made: Row = row
    return made
