"""Commands of other processes to the hub of a store: queued as rows, run in order.

    commands.queue(tx, "speak", {"channel_id": …, "sender": "ana", "text": "…"}, by="ana")

| kind | payload |
|---|---|
| `speak` | `channel_id`, `sender` (name or id), `text` or `event_type` with `event_data`, `key`,
 `answers` (the turn that is answered: refused once it has passed) |
| `close` | `channel_id`, `reason` |
| `fork` | `channel_id`, `at` (an envelope's id) |
| `resume` | `channel_id` of a paused fork |
| `reopen` | `channel_id` of a channel that has ended |
| `ack` | `channel_id`, `sender`, `agree` (true or false) |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agent_adapter.core.errors import NetworkError, ProtocolError
from agent_adapter.core.records import StrictModel, problems
from agent_adapter.exec.ids import new_secret_id
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


def queue(tx: Transaction, kind: str, payload: Mapping[str, Any], by: str = "") -> str:
    """Queue a command for the store's hub; returns its id."""
    if kind not in KINDS:
        raise ProtocolError(f"no command {kind!r}; the commands are {', '.join(KINDS)}")
    id = new_secret_id("cmd")
    row: Row = {"id": id, "kind": kind, "payload": json.dumps(dict(payload)), "by": by}
    tx.insert("commands", row | {"state": "queued", "created_at": tx.now})
    return id


def queued(tx: Transaction) -> list[Row]:
    """The oldest queued commands, at most 50."""
    return tx.select("commands", {"state": "queued"}, order_by="created_at", limit=_AT_ONCE)


def settle(tx: Transaction, id: str, state: str, result: Mapping[str, Any]) -> None:
    """Record the end of a command: `done` or `refused`, and its result."""
    values = {"state": state, "result": json.dumps(dict(result))}
    tx.update("commands", {"id": id, "state": "queued"}, values)


def result(tx: Transaction, id: str) -> dict[str, Any] | None:
    """`{"state", …}` of a command that was done or refused; `None` while it waits."""
    row = tx.get("commands", id)
    if row is None or row["state"] == "queued":
        return None
    return {"state": row["state"], **json.loads(row["result"])}


async def run(channels: Channels, identities: Identities, row: Row) -> tuple[str, dict[str, Any]]:
    """Run the command; returns its end state and result."""
    kind = row["kind"]
    command = KINDS.get(kind)
    if command is None:
        return "refused", {"error": f"this hub knows no command {kind!r}"}
    try:
        asked = command.model_validate(json.loads(row["payload"]))
        return "done", await asked.run(channels, identities, row["id"])
    except ValidationError as exc:
        error = f"{kind}: {problems(exc, 'payload')}"
        return "refused", {"error": error, "kind": ProtocolError.kind}
    except (NetworkError, ValueError) as exc:
        return "refused", {"error": str(exc), "kind": getattr(exc, "kind", ProtocolError.kind)}


class HubCommand(StrictModel):
    """What can be asked of a channel; the fields are the payload."""

    channel_id: str

    async def run(self, channels: Channels, identities: Identities, id: str) -> dict[str, Any]:
        """Do it; returns the result of the command with this `id`."""
        raise NotImplementedError


class SpeakCommand(HubCommand):
    """Send a text, or an event of another type with its data."""

    sender: str
    text: str | None = None
    event_type: str = EV_TEXT
    event_data: dict[str, Any] | None = None
    key: str | None = None
    answers: str | None = None

    async def run(self, channels: Channels, identities: Identities, id: str) -> dict[str, Any]:
        """Post the envelope once, also if this hub dies before the command's end is recorded."""
        if self.text is None and self.event_data is None:
            raise ProtocolError("speak: the payload has neither text nor event_data")
        sender = (await identities.get_agent(self.sender)).agent_id or ""
        sent = await channels.post_envelope(
            Envelope(
                self.channel_id,
                sender,
                None,
                self.event_type,
                {"text": self.text} if self.event_data is None else self.event_data,
                # Without a key, the command's id: the next hub repeats an unsettled command.
                idempotency_key=self.key or id,
            ),
            answers=self.answers,
        )
        return {"envelope_id": sent}


class CloseCommand(HubCommand):
    """Close a channel."""

    reason: str = ""

    async def run(self, channels: Channels, identities: Identities, id: str) -> dict[str, Any]:
        """Close it; a channel that has ended is left unchanged."""
        metadata = await channels.close_channel(self.channel_id, self.reason)
        return {"state_of_channel": metadata.state.value, "reason": metadata.close_reason}


class ForkCommand(HubCommand):
    """Copy a channel up to an envelope."""

    at: str

    async def run(self, channels: Channels, identities: Identities, id: str) -> dict[str, Any]:
        """Fork it under an id made of the command's: a repeated command finds the same fork."""
        new = "chn_" + id.removeprefix("cmd_")
        made = await channels.fork(self.channel_id, at=self.at, new_channel_id=new)
        return {
            "channel_id": made,
            "writes": await channels.writes_after(self.channel_id, self.at),
        }


class ResumeCommand(HubCommand):
    """Continue a paused fork."""

    async def run(self, channels: Channels, identities: Identities, id: str) -> dict[str, Any]:
        """Continue it with the turn at which it stopped."""
        metadata = await channels.resume_channel(self.channel_id)
        return {"state_of_channel": metadata.state.value}


class ReopenCommand(HubCommand):
    """Let a channel go on that has ended while somebody was expected to speak."""

    async def run(self, channels: Channels, identities: Identities, id: str) -> dict[str, Any]:
        """Reopen it; an open channel is left unchanged."""
        metadata = await channels.reopen(self.channel_id)
        return {"state_of_channel": metadata.state.value}


class AckCommand(HubCommand):
    """Answer an invitation."""

    sender: str
    agree: bool = True

    async def run(self, channels: Channels, identities: Identities, id: str) -> dict[str, Any]:
        """Accept or decline as the sender."""
        sender = (await identities.get_agent(self.sender)).agent_id or ""
        event = EV_CHANNEL_INVITE_ACK if self.agree else EV_CHANNEL_INVITE_REJECT
        await channels.post_envelope(Envelope(self.channel_id, sender, None, event, {}))
        return {"answer": "acked" if self.agree else "rejected"}


KINDS: dict[str, type[HubCommand]] = {
    "speak": SpeakCommand,
    "close": CloseCommand,
    "fork": ForkCommand,
    "resume": ResumeCommand,
    "reopen": ReopenCommand,
    "ack": AckCommand,
}
"""The commands by their kind."""
