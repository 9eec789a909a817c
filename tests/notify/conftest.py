"""A shop whose refunds wait, and receivers that remember what they were sent."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

import agent_adapter as aa
from agent_adapter.notify.channels.sending import Outgoing, SendFailed
from agent_adapter.notify.notifier import Notifier
from agent_adapter.notify.rules import NotifyRule, rule_of, to_json
from agent_adapter.store import notifications
from agent_adapter.store.sqlite import SqliteStore

NOW = 1_790_000_000.0


def free_port() -> int:
    """A port of this machine that nobody listens on; aiosmtpd cannot be told 0."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        """The time."""
        return self.now


class Receiver:
    """What stands for a way to send: it keeps messages, and fails as long as it is told to."""

    def __init__(self) -> None:
        self.taken: list[Outgoing] = []
        self.fails: Exception | None = None

    async def __call__(self, outgoing: Outgoing) -> None:
        """Take a message, or fail."""
        if self.fails is not None:
            raise self.fails
        self.taken.append(outgoing)

    @property
    def ids(self) -> list[str]:
        """The ids of the messages, in order."""
        return [each.message.id for each in self.taken]


class World:
    """A store with a shop, and a notifier whose messages go to `receiver`."""

    def __init__(self, store: SqliteStore, clock: Clock) -> None:
        self.store, self.clock, self.receiver = store, clock, Receiver()
        self.registry = aa.ToolRegistry()
        self.fails = False

        @self.registry.tool(confirm=True)
        def refund(order: str) -> str:
            """Pay a customer back."""
            if self.fails:
                raise RuntimeError("the line went dead")
            return f"paid {order}"

        @self.registry.tool(confirm=True)
        def sign(order: str, pin: Annotated[str, aa.Secret()]) -> str:
            """Sign with a PIN."""
            return f"signed {order}"

        @self.registry.tool(confirm=True)
        def mail_customer(order: str) -> str:
            """Write to a customer."""
            return f"wrote {order}"

    async def ask(self, order: str = "A1", tool: str = "refund", **more: Any) -> str:
        """The id of a request that waits."""
        arguments = {"order": order} | more.pop("arguments", {})
        terms = more.pop("terms", {})
        executor = aa.Executor(
            self.registry, approval=aa.DeferredApproval(self.store, **terms), store=self.store
        )
        ctx = aa.ToolContext(run_id=more.pop("run", f"run_{order}"), **more)
        try:
            await executor.run(tool, arguments, ctx=ctx)
        except aa.ApprovalPending as exc:
            return exc.id
        raise AssertionError("it did not wait")

    async def doubt(self) -> str:
        """The key of a refund with unknown outcome."""
        id = await self.ask("D1")
        await aa.Inbox(self.store).approve(id, reviewer="ann")
        executor = aa.Executor(
            self.registry, approval=aa.DeferredApproval(self.store), store=self.store
        )
        self.fails = True
        with pytest.raises(aa.ToolError):
            await executor.resume(id)
        rows = await self.store.read(lambda tx: tx.select("calls", {"ending": "unknown"}))
        return str(rows[0]["call_key"])

    async def rule(self, name: str = "ops", **fields: Any) -> NotifyRule:
        """A stored rule."""
        rule = rule_of({"name": name, "to": "https://receiver.example/hook", **fields})
        await self.store.write(
            lambda tx: notifications.add_rule(tx, name, rule.tenant, to_json(rule), by="ana")
        )
        return rule

    def notifier(self, **more: Any) -> Notifier:
        """A notifier as after a start."""
        return Notifier(self.store, console="https://console.example", send=self.receiver, **more)

    async def rows(self) -> list[dict[str, Any]]:
        """The outbox."""
        return await self.store.read(lambda tx: notifications.outbox(tx))


@pytest.fixture
def clock() -> Clock:
    """The time of the store."""
    return Clock()


@pytest.fixture
async def world(tmp_path: Path, clock: Clock) -> AsyncIterator[World]:
    """The shop over a file."""
    store = SqliteStore(tmp_path / "state.db", clock=clock)
    yield World(store, clock)
    await store.aclose()


@pytest.fixture
def refuse() -> Callable[[str], SendFailed]:
    """Makes the failure of a receiver."""
    return SendFailed
