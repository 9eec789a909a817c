"""What another process asks the hub of a store to do: queued as rows, done in order.

    commands.queue(tx, "speak", {"channel_id": …, "sender": "ana", "text": "…"}, by="ana")

| kind | payload |
|---|---|
| `speak` | `channel_id`, `sender` (name or id), `text` or `event_type` with `event_data`, `key` |
| `close` | `channel_id`, `reason` |
| `fork` | `channel_id`, `at` (an envelope's id) |
| `resume` | `channel_id` of a fork that is to go on |
| `ack` | `channel_id`, `sender`, `agree` (true or false) |
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agent_adapter.core.errors import NetworkError, ProtocolError
from agent_adapter.exec.ids import new_id
from agent_adapter.flow.envelope import (
    EV_CHANNEL_INVITE_ACK,
    EV_CHANNEL_INVITE_REJECT,
    EV_TEXT,
    Envelope,
)
from agent_adapter.network.hub.channels import Channels
from agent_adapter.network.hub.identities import Identities
from agent_adapter.store.base import Row, Transaction

_AT_ONCE = 50

Handler = Callable[["Channels", "Identities", dict[str, Any], Row], Awaitable[dict[str, Any]]]
"""Runs a command: its payload and row to its result."""


def queue(tx: Transaction, kind: str, payload: Mapping[str, Any], by: str = "") -> str:
    """Ask the store's hub to do something; the command's id."""
    if kind not in KINDS:
        raise ProtocolError(f"no command {kind!r}; there are {', '.join(KINDS)}")
    id = new_id("cmd")
    row: Row = {"id": id, "kind": kind, "payload": json.dumps(dict(payload)), "by": by}
    tx.insert("commands", row | {"state": "queued", "created_at": tx.now})
    return id


def queued(tx: Transaction) -> list[Row]:
    """Commands that wait, oldest first, a bounded number."""
    return tx.select("commands", {"state": "queued"}, order_by="created_at", limit=_AT_ONCE)


def settle(tx: Transaction, id: str, state: str, result: Mapping[str, Any]) -> None:
    """Note what came of a command: `done` or `refused`."""
    values = {"state": state, "result": json.dumps(dict(result))}
    tx.update("commands", {"id": id, "state": "queued"}, values)


def result(tx: Transaction, id: str) -> dict[str, Any] | None:
    """`{"state", …}` of a command that was done or refused; `None` while it waits."""
    row = tx.get("commands", id)
    if row is None or row["state"] == "queued":
        return None
    return {"state": row["state"], **json.loads(row["result"])}


async def run(channels: Channels, identities: Identities, row: Row) -> tuple[str, dict[str, Any]]:
    """Do what the command asks: its end state and result."""
    payload = json.loads(row["payload"])
    work = KINDS.get(row["kind"])
    if work is None:
        return "refused", {"error": f"this hub knows no command {row['kind']!r}"}
    try:
        return "done", await work(channels, identities, payload, row)
    except (NetworkError, KeyError, ValueError) as exc:
        missing = f"the payload lacks {exc}" if isinstance(exc, KeyError) else str(exc)
        return "refused", {"error": missing, "kind": getattr(exc, "kind", "protocol-error")}


async def _speak(
    channels: Channels, identities: Identities, payload: dict[str, Any], row: Row
) -> dict[str, Any]:
    sender = (await identities.get_agent(payload["sender"])).agent_id or ""
    data = payload.get("event_data")
    sent = await channels.post_envelope(
        Envelope(
            payload["channel_id"],
            sender,
            None,
            payload.get("event_type", EV_TEXT),
            {"text": payload["text"]} if data is None else data,
            # A hub that dies between the acceptance and this row's end does it again: once.
            idempotency_key=payload.get("key") or row["id"],
        )
    )
    return {"envelope_id": sent}


async def _close(
    channels: Channels, identities: Identities, payload: dict[str, Any], row: Row
) -> dict[str, Any]:
    metadata = await channels.close_channel(payload["channel_id"], payload.get("reason", ""))
    return {"state_of_channel": metadata.state.value, "reason": metadata.close_reason}


async def _fork(
    channels: Channels, identities: Identities, payload: dict[str, Any], row: Row
) -> dict[str, Any]:
    channel_id, at = payload["channel_id"], payload["at"]
    made = await channels.fork(channel_id, at=at, new_channel_id=_fork_id(row))
    writes = await channels.writes_after(channel_id, at)
    return {"channel_id": made, "writes": writes}


async def _resume(
    channels: Channels, identities: Identities, payload: dict[str, Any], row: Row
) -> dict[str, Any]:
    metadata = await channels.resume_channel(payload["channel_id"])
    return {"state_of_channel": metadata.state.value}


async def _ack(
    channels: Channels, identities: Identities, payload: dict[str, Any], row: Row
) -> dict[str, Any]:
    sender = (await identities.get_agent(payload["sender"])).agent_id or ""
    agrees = payload.get("agree", True)
    event = EV_CHANNEL_INVITE_ACK if agrees else EV_CHANNEL_INVITE_REJECT
    await channels.post_envelope(Envelope(payload["channel_id"], sender, None, event, {}))
    return {"answer": "acked" if agrees else "rejected"}


def _fork_id(row: Row) -> str:
    command: str = row["id"]
    return "chn_" + command.removeprefix("cmd_")


KINDS: dict[str, Handler] = {
    "speak": _speak,
    "close": _close,
    "fork": _fork,
    "resume": _resume,
    "ack": _ack,
}
"""What can be asked."""
