"""Who gives a command, and for which tenant: the user of the operating system, or a token.

The token is read from the environment, never from the command line, where other users can see it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from agent_adapter.cli.exit_codes import USAGE, CommandError
from agent_adapter.cli.options import TOKEN_VARIABLE, open_and, reviewer_name
from agent_adapter.cli.prefixes import whole_id

if TYPE_CHECKING:
    from agent_adapter.store.base import Row, Store, Transaction

T = TypeVar("T")

Tenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        metavar="NAME",
        help=f"The tenant; default: the first of the token in {TOKEN_VARIABLE}, if there is one.",
    ),
]
"""`--tenant NAME`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, as decisions are attributed; `within` is `None` for every tenant of the store.

    Only the user who can open the store, without a token and without `--tenant`, sees them all.
    """

    reviewer: str
    within: str | None

    @property
    def tenant(self) -> str:
        """The tenant where one is needed: without any, that of records without one."""
        return self.within or ""


def with_actor(
    url: str | None,
    tenant: str | None,
    work: Callable[[Store, Actor], Awaitable[T]],
    *,
    role: str = "viewer",
    reviewer: str | None = None,
    new: bool = False,
) -> T:
    """Open the store, run `work` as the actor in the tenant, and close the store.

    Refused where the token does not belong to the tenant, or has a lower role than `role` there.
    With `new` a store that does not exist is created.
    """

    async def _run(store: Store) -> T:
        return await work(store, await actor_of(store, tenant, role, reviewer))

    return open_and(url, _run, new=new)


def whole_store(actor: Actor) -> None:
    """Refuse what is about the whole store to an actor of one tenant."""
    if actor.within is not None:
        raise CommandError(
            f"this is about the whole store, and not about the tenant {actor.within!r}: name a run,"
            f" or leave --tenant and {TOKEN_VARIABLE} out"
        )


async def actor_of(store: Store, tenant: str | None, role: str, reviewer: str | None) -> Actor:
    """The actor of this process in the tenant."""
    secret = os.environ.get(TOKEN_VARIABLE)
    if not secret:
        return Actor(reviewer=reviewer_name(reviewer), within=tenant)
    if reviewer is not None:
        raise CommandError(
            f"--reviewer: the holder of the token in {TOKEN_VARIABLE} decides; omit it", code=USAGE
        )
    found = await store.read(lambda tx: _token(tx, secret.strip()))
    if found is None:
        raise CommandError(f"the token in {TOKEN_VARIABLE} is unknown or revoked: unset it")
    token, roles = found
    wanted = min(roles) if tenant is None else tenant
    if wanted not in roles:
        raise CommandError(f"--tenant {wanted}: the token of {token['name']} does not belong to it")
    _check_role(token["name"], roles[wanted], role)
    return Actor(reviewer=f"token:{token['name']}", within=wanted)


async def stored_run_of(store: Store, run: str, actor: Actor) -> str | None:
    """The key of a run that the actor may see; `None` for no such run.

    `run` is the key, the name, or a beginning of these.
    """
    from agent_adapter.store.queries import stored_run

    within = actor.within
    whole = await whole_id(store, "run", run, within)
    if within is None:
        return whole
    return await store.read(lambda tx: stored_run(tx, whole, within))


def _token(tx: Transaction, secret: str) -> tuple[Row, dict[str, str]] | None:
    from agent_adapter.store import access

    row = access.token_of(tx, secret)
    roles = {} if row is None else access.roles_of(tx, row)
    return None if row is None or not roles else (row, roles)


def _check_role(name: str, has: str, needed: str) -> None:
    from agent_adapter.store.people import ROLES

    if ROLES.index(has) < ROLES.index(needed):
        raise CommandError(f"the token of {name} has the role {has}; this needs the role {needed}")
