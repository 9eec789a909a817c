"""Processes that join a hub from elsewhere: `python -m tests.network._far NAME URL ARGUMENTS`.

The token is in the environment, never in an argument.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import agent_adapter as aa
from agent_adapter.network import HubClient, Passport, Turn, WebSocketLink


def say(word: str) -> None:
    """Tell the test where this process is."""
    os.write(sys.stdout.fileno(), f"{word}\n".encode())


async def echo(client: HubClient, executor: aa.Executor, effects: Path) -> None:
    """Answer with what was heard, until the process is ended."""

    async def bot(text: str) -> str:
        return f"heard {text} in {os.getpid()}"

    await client.register(bot, Passport(name="bot"), attach_plugin=False)
    say("ready")
    await asyncio.Event().wait()


async def pay(client: HubClient, executor: aa.Executor, effects: Path) -> None:
    """Pay once in a round; the first process to do so then hangs, as if it were thinking."""

    @aa.tool(effects="write")
    async def pay_invoice(number: int) -> str:
        """Pay one invoice: its number is appended to the file of effects."""
        with effects.open("a") as file:
            file.write(f"{number}\n")
        return f"paid {number}"

    async def bot(turn: Turn) -> str:
        told = await turn.call(pay_invoice, number=7)
        if turn.attempt == 1:
            say("paid")
            await asyncio.Event().wait()
        return f"{told}, attempt {turn.attempt}"

    await client.register(bot, Passport(name="bot"), attach_plugin=False)
    say("ready")
    await asyncio.Event().wait()


async def ask(client: HubClient, executor: aa.Executor, effects: Path) -> None:
    """Refund an order, which a person must permit in this process's own store."""

    @aa.tool(confirm=True, effects="write")
    async def refund(number: int) -> str:
        """Refund one order: its number is appended to the file of effects."""
        with effects.open("a") as file:
            file.write(f"{number}\n")
        return f"refunded {number}"

    async def bot(turn: Turn) -> str:
        return str(await turn.call(refund, number=7))

    await client.register(bot, Passport(name="bot"), attach_plugin=False)
    say("ready")
    await asyncio.Event().wait()


async def main(name: str, url: str, folder: str) -> None:
    """Join the hub at `url` as the participant of that name."""
    store = aa.open_store(f"sqlite:///{Path(folder) / 'far.db'}")
    executor = aa.Executor(approval=aa.DeferredApproval(store), store=store)
    link = WebSocketLink(url, token=os.environ["HUB_TOKEN"])
    async with HubClient(link, executor=executor) as client:
        await {"echo": echo, "pay": pay, "ask": ask}[name](
            client, executor, Path(folder) / "effects"
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
