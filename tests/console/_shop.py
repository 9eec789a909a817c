"""A console over a store with something in it, and people who are signed in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.testclient import TestClient

import agent_adapter as aa
from agent_adapter.console import create_app
from agent_adapter.store import access
from agent_adapter.store.approvals import Refusal
from agent_adapter.store.base import Store

ORIGIN = "http://localhost"


class ShopConsole:
    """A shop whose refunds wait for a person, and the console over its store."""

    def __init__(self, store: Store, **settings: Any) -> None:
        self.store = store
        self.ran: list[dict[str, Any]] = []
        self.registry = aa.ToolRegistry()
        self.fails: BaseException | None = None

        @self.registry.tool(confirm=True, effects="write")
        def refund(order: str, amount: int, note: str = "", lines: list[str] | None = None) -> str:
            """Pay a customer back.

            Args:
                order: The order's number.
                amount: Cents to pay.
                note: For the customer.
                lines: Positions of the order.
            """
            self.ran.append({"order": order, "amount": amount, "note": note, "lines": lines})
            if self.fails is not None:
                raise self.fails
            return f"paid {amount}"

        @self.registry.tool(effects="read", trust="untrusted")
        def look_up(order: str) -> str:
            """Find an order."""
            return f"order {order}"

        self.executor = aa.Executor(self.registry, approval=aa.DeferredApproval(store), store=store)
        settings = {"undo_window": 0} | settings
        self.app = create_app(store, registry=self.registry, **settings)

    async def ask(self, order: str = "A1", amount: int = 5, run: str = "run_1", **more: Any) -> str:
        """The id of a refund's record that waits."""
        ctx = aa.ToolContext(run_id=run, principal=more.pop("principal", "ann"))
        try:
            await self.executor.run("refund", {"order": order, "amount": amount, **more}, ctx=ctx)
        except aa.ApprovalPending as exc:
            return exc.id
        raise AssertionError("it did not wait")

    async def doubt(self, run: str = "run_doubt") -> str:
        """The key of a refund that ran and raised: nobody knows whether it paid."""
        id = await self.ask(run=run)
        await aa.Inbox(self.store).approve(id, reviewer="ann")
        self.fails = RuntimeError("the line went dead")
        try:
            await self.executor.resume(id)
        except aa.ToolError:
            self.fails = None
        rows = await self.store.read(lambda tx: tx.select("calls", {"run_id": run}))
        return str(rows[0]["call_key"])

    async def token(self, name: str, role: str) -> str:
        """A new token of that role."""
        secret = access.new_secret()
        made = await self.store.write(lambda tx: access.create_token(tx, name, role, secret))
        assert not isinstance(made, Refusal), made
        return secret

    def client(self, **more: Any) -> TestClient:
        """A browser without a session."""
        return TestClient(
            self.app, base_url=more.pop("base_url", ORIGIN), follow_redirects=False, **more
        )

    async def browser(self, name: str = "kim", role: str = "approver") -> Browser:
        """A browser in which somebody is signed in."""
        return Browser(self.client(), await self.token(name, role))

    async def seen_records(self) -> list[str]:
        """What a form says of each record that waits."""
        found = await aa.Inbox(self.store).list()
        return [f"{each.id}|{each.digest}|{each.version}" for each in found]

    async def record(self, id: str) -> Any:
        """The record as it stands."""
        return await aa.Inbox(self.store).get(id)


class Browser:
    """A person with a session; forms carry what the pages gave them."""

    def __init__(self, client: TestClient, token: str) -> None:
        self.client = client
        self.token = token
        csrf = field(client.get("/sign-in").text, "csrf")
        data = {"csrf": csrf, "token": token, "next": "/approvals"}
        answer = client.post("/sign-in", data=data, headers={"origin": ORIGIN})
        assert answer.status_code == 303, answer.text
        self.csrf = field(client.get("/approvals").text, "csrf")

    def get(self, path: str, **more: Any) -> Any:
        """A page."""
        return self.client.get(path, **more)

    def post(self, path: str, data: Mapping[str, Any], **headers: str) -> Any:
        """A form of this session, from this origin, unless `headers` say otherwise."""
        sent = {"csrf": self.csrf} | dict(data)
        return self.client.post(path, data=sent, headers={"origin": ORIGIN} | headers)

    def decide(self, id: str, verdict: str = "approved", **more: Any) -> Any:
        """The form on the record's own page, sent."""
        text = self.get(f"/approvals/{id}").text
        seen = {name: field(text, name) for name in ("digest", "version")}
        return self.post(f"/approvals/{id}/decide", {"verdict": verdict} | seen | more)


def field(text: str, name: str) -> str:
    """What the first field of that name holds."""
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    return found[1] if found else ""
