"""A hub in a process of its own, to be stopped and continued: `python -m … DB ROWS|LOCKS`.

Says `ready ID` when its channel is open; for each line on standard input it speaks there, and says
how that went. With `ROWS` liveness is told by heartbeats, as where a system has no file locks.
"""

from __future__ import annotations

import asyncio
import sys

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.network import Hub, HubClient, LocalLink, Passport
from agent_adapter.store.sqlite import owners

DEAD_AFTER = 1.0


def tell_by_rows() -> None:
    """Let every store of this process tell by heartbeats who lives, and lose patience soon."""
    defaults = owners.Owner.__init__.__kwdefaults__
    assert defaults is not None
    defaults["locks"] = None
    owners.DEAD_AFTER_SECONDS = DEAD_AFTER


async def main(database: str, how: str) -> None:
    """Open a channel, then speak as told."""
    if how == "ROWS":
        tell_by_rows()
    hub = await Hub.open(database, ttl_sweep_interval=0, expectation_sweep_interval=0)
    client = HubClient(LocalLink(hub), hub=hub)
    ann = await client.register_human(Passport(name="ann", kind="human"))
    await client.register_human(Passport(name="bob", kind="human"))
    channel = await ann.open(type="conversation", target=hub.name_to_id_map()["bob"])
    print("ready", channel.channel_id, flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            await channel.send(line.strip())
        except AgentAdapterError as exc:
            print(exc.kind, flush=True)
        else:
            print("ok", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
