"""Ids by a unique beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_adapter.cli.exit_codes import CommandError
from agent_adapter.core.inert import short

if TYPE_CHECKING:
    from agent_adapter.store.base import Store, Transaction

_SHORTEST = 4
_LISTED = 10


async def whole_id(store: Store, kind: str, written: str, tenant: str | None) -> str:
    """The id of that kind that begins as `written`; `written` itself if none does.

    `tenant` `None` is every tenant. Several are an error that lists them: none is guessed.
    """
    if not _is_beginning(written):
        return written
    await store.flush()
    return await store.read(lambda tx: whole_id_in(tx, kind, written, tenant))


def whole_id_in(tx: Transaction, kind: str, written: str, tenant: str | None) -> str:
    """The same inside of an operation."""
    from agent_adapter.store.prefixes import beginning_with

    if not _is_beginning(written):
        return written
    found = beginning_with(tx, kind, written, tenant, _LISTED + 1)
    if len(found) > 1:
        shown = ", ".join(map(short, found[:_LISTED]))
        more = ", …" if len(found) > _LISTED else ""
        raise CommandError(
            f"{written} is the beginning of several: {shown}{more}; write more of it",
            kind="ambiguous",
        )
    return found[0] if found else written


def _is_beginning(written: str) -> bool:
    """Whether it may be short for an id: more than the mark of its kind (`apr_`) is given."""
    return len(written) >= _SHORTEST and not written.endswith("_") and written.isprintable()
