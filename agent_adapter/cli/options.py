"""The options that several commands share, and what they stand for."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from agent_adapter.cli.exit_codes import USAGE, CommandError

if TYPE_CHECKING:
    from agent_adapter.exec.approval.signing import ReviewerKey
    from agent_adapter.store.base import Store

__all__ = [
    "AsJson",
    "KeyFile",
    "Reason",
    "Reviewer",
    "StoreUrl",
    "parse_object",
    "reviewer_key",
    "reviewer_name",
    "with_store",
]

T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
"""`--json`."""

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where records are kept, such as sqlite:///state.db; else AGENT_ADAPTER_STORE,"
        " else .agent_adapter/state.db under the working directory.",
    ),
]
"""`--store URL`."""

Reviewer = Annotated[
    str | None,
    typer.Option("--reviewer", help="Who decides; else the operating system's user."),
]
"""`--reviewer NAME`."""

Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept in the record.")]
"""`--reason TEXT`."""


def reviewer_name(stated: str | None) -> str:
    """Who decides, with how that is known: `os:alice` from the system, `cli:alice` as stated."""
    if stated is not None:
        if not stated.strip():
            raise CommandError("--reviewer is empty: name who decides, or leave it out", code=USAGE)
        return f"cli:{stated.strip()}"
    try:
        return f"os:{getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        raise CommandError(
            "the operating system does not say who you are: name the reviewer with --reviewer"
        ) from None


KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="FILE", help="Sign with this private key (`agent-adapter keys create`)."
    ),
]
"""`--key FILE`."""


def reviewer_key(file: Path | None) -> ReviewerKey | None:
    """The key that signs the decision, where one is given."""
    if file is None:
        return None
    from agent_adapter.exec.approval.signing import ReviewerKey

    return ReviewerKey.read(file)


def with_store(url: str | None, work: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store, do `work` with it, close it."""
    from agent_adapter.store.opening import open_store

    async def _run() -> T:
        store = open_store(url)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(_run())


def parse_object(text: str, option: str) -> dict[str, Any]:
    """The JSON object that an option carries."""
    like = "write it like '{\"n\": 1}'"
    try:
        value = json.loads(text)
    except json.JSONDecodeError as exc:
        problem = f"{option} is not JSON ({exc.msg} at character {exc.pos})"
        raise CommandError(f"{problem}: {like}", code=USAGE) from None
    if not isinstance(value, dict):
        problem = f"{option} is {type(value).__name__}, not a JSON object"
        raise CommandError(f"{problem}: {like}", code=USAGE)
    return value
