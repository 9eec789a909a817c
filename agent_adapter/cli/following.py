"""Follows the ledger: prints entries as they are written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from agent_adapter.cli.acting import Actor, stored_run_of
from agent_adapter.cli.exit_codes import CommandError
from agent_adapter.cli.ledger import facts_line
from agent_adapter.cli.output import plain, print_text, when
from agent_adapter.cli.polling import print_json_line

if TYPE_CHECKING:
    from agent_adapter.exec.ledger import Entry
    from agent_adapter.store.base import Store

_PAGE_SIZE = 1000
_ALL = 10_000_000
_LATE_SECONDS = 2.0


def no_run(run: str) -> CommandError:
    """The error for a run that is not there."""
    return CommandError(f"no run {run}: `agent-adapter runs list` shows all")


class LedgerFollower:
    """Prints the entries that were written since its last poll."""

    def __init__(
        self, run: str | None, lines: int, as_json: bool, page_size: int = _PAGE_SIZE
    ) -> None:
        self._run = run
        self._lines = lines
        self._as_json = as_json
        self._page_size = page_size
        self._began = False
        self._within: str | None = None
        self._seen: dict[str, int] = {}
        self._since = 0.0

    async def look(self, store: Store, actor: Actor | None = None) -> bool:
        """Print what is new of the actor's tenant; `False`, since a ledger has no end."""
        self._within = None if actor is None else actor.within
        if self._began:
            await self._print_of(store, await self._fresh(store))
            return False
        from agent_adapter.exec.ledger import entries, newest

        if actor is not None and self._run is not None:
            self._run = await stored_run_of(store, self._run, actor) or self._run
        if self._run is None and self._within is not None:
            old = await newest(store, self._within, max(self._lines, 1))
        else:
            old = await entries(store, self._run, limit=_ALL if self._run else max(self._lines, 1))
        if not await self._is_shown(store):
            old = []
        if self._run is not None and not old:
            raise no_run(self._run)
        self._print(old[len(old) - min(self._lines, len(old)) :])
        self._since = old[-1].at if old else time.time()
        self._note(old)
        last = self._since
        fresh = [entry for entry in await self._fresh(store) if entry.at > last]
        await self._print_of(store, fresh)
        self._began = True
        return False

    async def _is_shown(self, store: Store) -> bool:
        run, within = self._run, self._within
        if run is None or within is None:
            return True
        from agent_adapter.store.queries import run_line

        return await store.read(lambda tx: run_line(tx, run, within)) is not None

    async def _print_of(self, store: Store, entries: Sequence[Entry]) -> None:
        from agent_adapter.exec.ledger import of_tenant

        within = self._within
        self._print(entries if within is None else await of_tenant(store, entries, within))

    async def _fresh(self, store: Store) -> list[Entry]:
        """The entries since the last poll, which count as seen from now on."""
        from agent_adapter.exec.ledger import entries

        fresh: list[Entry] = []
        # Clocks and commits of other processes may be late: read a little further back.
        since, limit = self._since - _LATE_SECONDS, self._page_size
        while True:
            found = await entries(store, self._run, limit=limit, since=since)
            fresh += [entry for entry in found if entry.seq > self._seen.get(entry.run_id, 0)]
            self._note(found)
            if len(found) < limit:
                return fresh
            if found[-1].at > since:
                since = found[-1].at
            else:
                limit *= 2  # more entries of one time than the limit: paging by time cannot advance

    def _note(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._seen[entry.run_id] = max(entry.seq, self._seen.get(entry.run_id, 0))
            self._since = max(self._since, entry.at)

    def _print(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if self._as_json:
                print_json_line(asdict(entry))
                continue
            head = f"{when(entry.at)} {entry.run_id} {entry.seq:>4} {entry.kind}"
            parts = (
                head,
                entry.facts.get("tool") or "",
                entry.call_key or "",
                facts_line(entry.facts),
            )
            print_text(plain(" ".join(filter(None, parts))))
