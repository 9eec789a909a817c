"""`agent-adapter people`: who decides, under which log-ins and keys, with which roles."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.exit_codes import USAGE, CommandError
from agent_adapter.cli.options import AsJson, Reviewer, StoreUrl, reviewer_name, with_store
from agent_adapter.cli.output import print_line, print_list

if TYPE_CHECKING:
    from agent_adapter.store.base import Operation, Row, Store

app = typer.Typer(name="people", help="Add people, link their log-ins, keys and roles.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The person.", show_default=False)]


class MemberRole(StrEnum):
    """Each role includes the roles before it; `none` takes the role away."""

    VIEWER = "viewer"
    APPROVER = "approver"
    ADMIN = "admin"
    NONE = "none"


@app.command(epilog='Example: agent-adapter people add "Kim Lee"')
def add(
    name: Name, reviewer: Reviewer = None, store: StoreUrl = None, as_json: AsJson = False
) -> None:
    """Add a person. The user of the operating system needs no entry to decide."""
    from agent_adapter.store import people

    by = reviewer_name(reviewer)
    op = lambda tx: people.add(tx, name, by=by)  # noqa: E731
    row = with_store(store, lambda opened: _done(opened, op), new=True)
    print_line({"id": row["id"], "name": row["name"]}, f"{row['name']} is {row['id']}", as_json)


@app.command(epilog='Example: agent-adapter people link "Kim Lee" os:kim token:kim --role approver')
def link(
    name: Name,
    logins: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LOGIN]...", help="os:NAME, token:NAME or proxy:NAME.", show_default=False
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="A public key, FILE.pub.")
    ] = None,
    valid_for: Annotated[
        str | None, typer.Option("--valid-for", metavar="AGE", help="How long the key counts: 90d.")
    ] = None,
    rotate: Annotated[
        bool, typer.Option("--rotate", help="End the person's other keys now.")
    ] = False,
    role: Annotated[
        MemberRole | None, typer.Option("--role", help="The role in the tenant.")
    ] = None,
    tenant: Annotated[
        str, typer.Option("--tenant", help="The tenant of the role; default: none.")
    ] = "",
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Link log-ins, a signing key or a role to a person: whatever is linked counts as one."""
    from agent_adapter.exec.approval.signing import read_public_key
    from agent_adapter.store import people

    if not (logins or key or role):
        raise CommandError("nothing to link: give a log-in, --key or --role", code=USAGE)
    if key is None and (rotate or valid_for is not None):
        raise CommandError("--rotate and --valid-for need the new key: give --key", code=USAGE)
    by = reviewer_name(reviewer)
    seconds = None if valid_for is None else _seconds(valid_for)
    public = None if key is None else read_public_key(key)
    roles = {} if role is None else {tenant: role.value}

    def op(tx: Any) -> Any:
        return people.link(
            tx,
            name,
            logins=logins or (),
            key=public,
            valid_for=seconds,
            rotate=rotate,
            roles=roles,
            by=by,
        )

    row = with_store(store, lambda opened: _done(opened, op))
    what = [*(logins or ()), *([str(key)] if key else []), *([role.value] if role else [])]
    said = f"{row['name']}: {', '.join(what)} linked"
    print_line({"id": row["id"], "name": row["name"], "linked": what}, said, as_json)


@app.command("list", epilog="Example: agent-adapter people list")
def list_(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List people with their log-ins, keys and roles, oldest first."""
    from agent_adapter.store import people

    rows = with_store(store, lambda opened: opened.read(people.people))
    shown = [_shown(row) for row in rows]
    print_list(
        shown,
        ("id", "name", "log-ins", "roles", "state"),
        (
            (
                each["id"],
                each["name"],
                ", ".join(login["login"] + _ended(login) for login in each["logins"]),
                ", ".join(f"{role} of {of or '(none)'}" for of, role in each["roles"].items()),
                "revoked" if each["revoked_at"] else "",
            )
            for each in shown
        ),
        empty="no people: everybody is known by the name of a log-in",
        as_json=as_json,
    )


@app.command(epilog="Example: agent-adapter people revoke token:kim")
def revoke(
    which: Annotated[
        str, typer.Argument(metavar="WHICH", help="A person, a log-in, or a key (key:ed25519:…).")
    ],
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a person, a log-in or a key: nothing counts that is decided with it from now on."""
    from agent_adapter.store import people

    by = reviewer_name(reviewer)
    row = with_store(
        store, lambda opened: _done(opened, lambda tx: people.revoke(tx, which, by=by))
    )
    print_line({"id": row["id"], "revoked": which}, f"{which} is revoked", as_json)


def _shown(row: Row) -> dict[str, Any]:
    logins = [
        {name: each[name] for name in ("login", "created_at", "valid_until", "revoked_at")}
        for each in row["logins"]
        if not each["login"].startswith("name:")
    ]
    kept = {name: row[name] for name in ("id", "name", "created_at", "revoked_at")}
    return kept | {"logins": logins, "roles": row["roles"]}


def _ended(login: Row) -> str:
    if login["revoked_at"] is not None:
        return " (revoked)"
    return "" if login["valid_until"] is None else " (ends)"


def _seconds(written: str) -> float:
    found = re.fullmatch(r"(\d{1,5})([hdw])", written.strip())
    if found is None or int(found[1]) == 0:
        raise CommandError(f"--valid-for {written!r}: write 90d, 12w or 36h", code=USAGE)
    days = {"h": 1 / 24, "d": 1.0, "w": 7.0}[found[2]]
    return timedelta(days=int(found[1]) * days).total_seconds()


async def _done(store: Store, op: Operation[Any]) -> Row:
    from agent_adapter.store.refusal import Refusal

    row = await store.write(op)
    if isinstance(row, Refusal):
        raise CommandError(f"{row.reason}; nothing was changed")
    made: Row = row
    return made
