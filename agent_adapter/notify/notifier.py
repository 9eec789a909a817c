"""Fills the outbox and empties it, until it is cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.inert import one_line
from agent_adapter.notify.channels import send
from agent_adapter.notify.channels.sending import SECONDS, Outgoing, SendFailed
from agent_adapter.notify.messages import Message, compose
from agent_adapter.notify.rules import NotifyRule, expanded, stored_rules, unique
from agent_adapter.notify.scanning import Happening, Scanner, outbox_row
from agent_adapter.store import notifications
from agent_adapter.store.base import Row, Store, Transaction

POLL_SECONDS = 1.0
VERIFY_SECONDS = 86_400.0
"""How often the ledger is verified for a rule that asks for `chain-broken`."""

_AT_ONCE = 20
_SWEEP_EVERY = 600
_MOST_ERROR = 300
_MARGIN = 5.0

Send = Callable[[Outgoing], Awaitable[None]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round did: notifications found, sent, and failed for now."""

    found: int
    sent: int
    failed: int


class Notifier:
    """Notifies by the rules of the store and those that it is given.

    `console` is the address of the console, for links. Several notifiers of one store share its
    outbox; what one of them had taken when it died is sent by another. `verify_every` is the time
    between two verifications of the ledger in seconds; `None`: never.
    """

    def __init__(
        self,
        store: Store,
        rules: Sequence[NotifyRule] = (),
        *,
        console: str | None = None,
        verify_every: float | None = VERIFY_SECONDS,
        send: Send = send,
    ) -> None:
        self._store = store
        self._given = list(rules)
        self._console = console
        self._verify_every = verify_every
        self._verify_at = 0.0
        self._send = send
        self._scanner = Scanner()
        self._rounds = 0

    async def run(self) -> None:
        """Notify until it is cancelled; a failure of the store is logged and tried again."""
        released = False
        while True:
            try:
                if not released:
                    await self._store.write(notifications.release)
                    released = True
                await self.round()
            except AgentAdapterError as exc:
                log.warning("notifications: %s", one_line(str(exc)))
            except Exception:
                log.exception("notifications failed; they go on")
            await asyncio.sleep(POLL_SECONDS)

    async def round(self) -> Round:
        """Look for events once, and send what is due."""
        rules = await self.rules()
        if not rules and not await self._store.read(notifications.anything_due):
            return Round(found=0, sent=0, failed=0)
        found = await self._fill(rules) if rules else 0
        done = await self._empty({rule.name: rule for rule in rules})
        self._rounds += 1
        if self._rounds % _SWEEP_EVERY == 1:
            await self._store.write(notifications.sweep)
        return Round(found=found, sent=sum(done), failed=len(done) - sum(done))

    async def rules(self) -> list[NotifyRule]:
        """The rules that hold now; `RuleInvalid` where a stored one has the name of a given one."""
        stored = await self._store.read(stored_rules)
        return unique([*self._given, *stored]) if self._given else stored

    async def _fill(self, rules: Sequence[NotifyRule]) -> int:
        audited = any(set(rule.events) & {"channel-failed", "chain-broken"} for rule in rules)
        if audited and await self._store.read(notifications.cursor) is None:
            await self._store.write(lambda tx: notifications.move_cursor(tx, tx.now))
        rows = await self._store.read(lambda tx: self._scanner.look(tx, rules))
        rows += await self._broken_chain(rules)
        if not rows:
            return 0

        def op(tx: Transaction) -> int:
            if audited:
                notifications.move_cursor(tx, tx.now)
            return notifications.put(tx, rows)

        return await self._store.write(op)

    async def _broken_chain(self, rules: Sequence[NotifyRule]) -> list[Row]:
        wanting = [rule for rule in rules if rule.wants("chain-broken", "", None)]
        now = asyncio.get_running_loop().time()
        if not wanting or self._verify_every is None or now < self._verify_at:
            return []
        self._verify_at = now + self._verify_every
        from agent_adapter.core.canonical import digest
        from agent_adapter.exec.ledger import verify

        report = await verify(self._store)
        if report.ok:
            return []
        it = Happening(
            event="chain-broken",
            subject="ledger",
            tenant="",
            occurrence=digest(["problems", *sorted(report.problems)]),
        )
        return [outbox_row(rule, it) for rule in wanting]

    async def _empty(self, rules: dict[str, NotifyRule]) -> list[bool]:
        """Send what is due; for each, whether it needs no further attempt."""
        if not await self._store.read(notifications.anything_due):
            return []
        rows = await self._store.write(lambda tx: notifications.claim(tx, _AT_ONCE))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(row, rules.get(row["rule"]))) for row in rows]
        return [task.result() for task in tasks]

    async def _one(self, row: Row, rule: NotifyRule | None) -> bool:
        if rule is None:
            await self._write(notifications.drop, row, f"the rule {row['rule']} is gone")
            return True
        made = await self._store.read(
            lambda tx: compose(tx, row, console=self._console, details=rule.details)
        )
        if isinstance(made, str):
            await self._write(notifications.drop, row, made)
            return True
        problem = await attempt(self._send, rule, made, await self._store.read(lambda tx: tx.now))
        if problem is None:
            await self._store.write(lambda tx: notifications.sent(tx, row["id"]))
            return True
        said, wait = problem
        log.warning("notification %s to %s: %s", row["id"], rule.address, said)
        late = partial(notifications.later, id=row["id"], error=said, wait=wait)
        await self._store.write(late)
        return False

    async def _write(self, op: Callable[[Transaction, str, str], None], row: Row, why: str) -> None:
        await self._store.write(lambda tx: op(tx, row["id"], why))


async def attempt(
    send: Send, rule: NotifyRule, message: Message, at: float
) -> tuple[str, float | None] | None:
    """Send once; `None` if it was taken, else why not and how long the receiver asked to wait.

    The reason names no part of the address.
    """
    try:
        to = expanded(rule.to)
        secret = None if rule.secret is None else expanded(rule.secret)
        async with asyncio.timeout(SECONDS + _MARGIN):
            await send(Outgoing(to=to, secret=secret, message=message, at=at))
    except SendFailed as exc:
        return _bounded(str(exc)), exc.wait
    except AgentAdapterError as exc:
        return _bounded(str(exc)), None
    except TimeoutError:
        return f"no answer within {SECONDS:g} s", None
    except Exception as exc:
        log.debug("a notification failed", exc_info=exc)
        return f"unexpected {type(exc).__name__}", None
    return None


def _bounded(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _MOST_ERROR else f"{line[: _MOST_ERROR - 1]}…"
