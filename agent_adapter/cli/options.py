"""The options that several commands share."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from agent_adapter.cli.exit_codes import USAGE, CommandError
from agent_adapter.core.logins import bare

if TYPE_CHECKING:
    from agent_adapter.exec.approval.signing import ReviewerKey
    from agent_adapter.store.base import Store

T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
"""`--json`."""

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="The store, such as sqlite:///state.db; default: AGENT_ADAPTER_STORE, else"
        " .agent_adapter/state.db in the working directory.",
    ),
]
"""`--store URL`."""

Reviewer = Annotated[
    str | None,
    typer.Option(
        "--reviewer", help="The name of the reviewer; default: the user of the operating system."
    ),
]
"""`--reviewer NAME`."""

Reason = Annotated[str | None, typer.Option("--reason", help="The reason, kept in the record.")]
"""`--reason TEXT`."""


def reviewer_name(stated: str | None) -> str:
    """The reviewer with the source of the name: `os:alice`, or `cli:alice` if stated."""
    if stated is not None:
        if not bare(stated):
            raise CommandError("--reviewer is empty: give a name, or omit the option", code=USAGE)
        return f"cli:{stated.strip()}"
    try:
        return f"os:{getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        raise CommandError(
            "the operating system has no name for this user: give one with --reviewer"
        ) from None


KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="FILE", help="Sign with this private key (`agent-adapter keys create`)."
    ),
]
"""`--key FILE`."""


def reviewer_key(file: Path | None) -> ReviewerKey | None:
    """The key that signs the decision, if one is given."""
    if file is None:
        return None
    from agent_adapter.exec.approval.signing import ReviewerKey

    return ReviewerKey.read(file)


TOKEN_VARIABLE = "AGENT_ADAPTER_TOKEN"  # noqa: S105  # the name of a variable
"""The environment variable with the token of whoever gives the command."""


def with_store(url: str | None, work: Callable[[Store], Awaitable[T]], *, new: bool = False) -> T:
    """Open the store, run `work` with the whole of it, and close it; not for holders of a token."""
    if os.environ.get(TOKEN_VARIABLE):
        raise CommandError(
            f"this command works on the whole store, a token only on its tenants: unset"
            f" {TOKEN_VARIABLE}"
        )
    return open_and(url, work, new=new)


def open_and(url: str | None, work: Callable[[Store], Awaitable[T]], *, new: bool = False) -> T:
    """Open the store, run `work` with it, and close it, whoever asks.

    With `new` a store that does not exist is created; else it is an error, and nothing is created.
    """
    from agent_adapter.store.opening import missing_store, open_store

    missing = None if new else missing_store(url)
    if missing is not None:
        raise CommandError(f"no such store: {missing}; check --store", kind="no-such-store")

    async def _run() -> T:
        async with contextlib.aclosing(open_store(url)) as store:
            return await work(store)

    return asyncio.run(_run())


def _unique(option: str) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Refuses a key that stands twice in an object: neither value may win silently."""

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise CommandError(f"{option} has {twice!r} twice: give it once", code=USAGE)
        return value

    return made


def parse_json(text: str, option: str, like: str = "write a text in quotes, '\"done\"'") -> Any:
    """The JSON value of an option."""
    try:
        return json.loads(text, object_pairs_hook=_unique(option))
    except json.JSONDecodeError as exc:
        problem = f"{option} is not JSON ({exc.msg} at character {exc.pos})"
        raise CommandError(f"{problem}: {like}", code=USAGE) from None


def parse_object(text: str, option: str) -> dict[str, Any]:
    """The JSON object in the value of an option."""
    like = "write it like '{\"n\": 1}'"
    value = parse_json(text, option, like)
    if not isinstance(value, dict):
        problem = f"{option} is {type(value).__name__}, not a JSON object"
        raise CommandError(f"{problem}: {like}", code=USAGE)
    return value
