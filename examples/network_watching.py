"""Watch a hub: every event as a stream, and a listener for what has failed.

No framework, no key and no network:

    python examples/network_watching.py
"""

from __future__ import annotations

import asyncio

from agent_adapter.network import (
    BaseHubListener,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    Resume,
)


async def answer(text: str) -> str:
    """A participant that is a plain function."""
    return f"You said: {text}"


async def watch(hub: Hub, cursor: str | None = None) -> None:
    """Print what happens, until the channel is closed."""
    async for event in hub.subscribe(["turn_started", "turn_done", "channel_closed"], after=cursor):
        print(event.kind, event.payload.get("reason") or "")
        cursor = event.cursor  # kept in a file or a table, it survives a restart
        if event.kind == "channel_closed":
            return


class Alerts(BaseHubListener):
    """Is called with each attempt of a turn that fails."""

    async def on_turn_failed(
        self, channel_id: str, agent_id: str, envelope_id: str, exc: BaseException
    ) -> None:
        """Tell somebody."""
        print("failed:", exc)


async def main() -> None:
    """Let a person and a function talk, and watch them."""
    async with await Hub.open("memory://") as hub:
        hub.register_listener(Alerts())
        client = HubClient(LocalLink(hub))
        ana = await client.register_human(Passport(name="ana", kind="human"))
        await client.register(answer, Passport(name="echo"), Resume(), attach_plugin=False)
        watching = asyncio.create_task(watch(hub, cursor=""))
        channel = await ana.open(type="conversation", target=["echo"])
        await channel.send("hello")
        await ana.next_envelope(predicate=lambda e: e.sender_id != ana.agent_id, timeout=30)
        await hub.idle()
        await channel.close("enough")
        await watching


if __name__ == "__main__":
    asyncio.run(main())
