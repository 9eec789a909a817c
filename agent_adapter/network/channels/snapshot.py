"""`ChannelSnapshot`: a channel in memory, loaded from its rows once per revision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from pydantic_core import to_json

from agent_adapter.core.errors import NetworkError, NotFoundError
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.channels.expectations import Deadline, deadlines_of
from agent_adapter.network.channels.metadata import ChannelManifest, ChannelMetadata, ChannelState
from agent_adapter.store.base import Row, Transaction


@dataclass(slots=True, eq=False)
class ChannelSnapshot:
    """One channel in memory; valid while its row has this `revision`.

    `folded` is the folded state as text, kept so that an unchanged state is not encoded again.
    """

    revision: int
    seq: int
    metadata: ChannelMetadata
    state: Any
    adapter: ChannelAdapter
    names: Mapping[str, str]
    folded: str
    deadlines: tuple[Deadline, ...]

    def after(
        self, revision: int, seq: int, metadata: ChannelMetadata, state: Any, folded: str
    ) -> ChannelSnapshot:
        """The channel at a later revision; type, names and deadlines never change."""
        return ChannelSnapshot(
            revision, seq, metadata, state, self.adapter, self.names, folded, self.deadlines
        )


def channel_row(tx: Transaction, channel_id: str, tenant: str | None = None) -> Row:
    """The channel's row; `NotFoundError` for an unknown id, or one of another tenant."""
    row = tx.get("channels", channel_id)
    if row is None or (tenant is not None and (row["tenant"] or "") != tenant):
        raise NotFoundError(f"channel not found: there is no channel {channel_id!r} here")
    return row


def load_snapshot(
    tx: Transaction, row: Row, adapters: AdapterRegistry, cached: ChannelSnapshot | None = None
) -> ChannelSnapshot:
    """`cached` if it has the row's revision, else a snapshot read from the rows."""
    if cached is not None and cached.revision == row["revision"]:
        return cached
    metadata = _metadata(tx, row)
    adapter = adapters.get(row["type"], row["version"])
    if row["summary"] is None:
        state = adapter.state_from_dict(metadata, json.loads(row["folded"]))
    else:  # its transcript was removed
        state = adapter.initial_state(metadata)
    names = metadata.names()
    deadlines = deadlines_of(metadata, adapters.own_evaluators)
    return ChannelSnapshot(
        row["revision"], row["seq"], metadata, state, adapter, names, row["folded"], deadlines
    )


def stored_knobs(knobs: Mapping[str, Any]) -> str:
    """The knobs as stored, without the graph: equal graphs share one row of their own."""
    try:
        return json.dumps({key: value for key, value in knobs.items() if key != "graph"})
    except (TypeError, ValueError) as exc:
        raise NetworkError(f"the knobs are not JSON: {exc}") from exc


def state_text(data: Mapping[str, Any]) -> str:
    """A folded state as stored."""
    try:
        return to_json(data, inf_nan_mode="constants").decode()
    except Exception:  # a lone surrogate: only json's escapes can carry it
        return json.dumps(data)


def iso(at: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC, to the microsecond."""
    seconds, micros = divmod(round(at * 1_000_000), 1_000_000)
    return f"{_second(seconds)}.{micros:06}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _metadata(tx: Transaction, row: Row) -> ChannelMetadata:
    fixed = json.loads(row["metadata"])
    knobs = json.loads(row["knobs"])
    if row["graph_hash"] is not None:
        graph = tx.get("graphs", row["graph_hash"])
        if graph is not None:
            knobs["graph"] = json.loads(graph["data"])
    where = {"channel_id": row["channel_id"]}
    members = tx.select("channel_members", where, order_by="position")
    data = {
        "channel_id": row["channel_id"],
        "manifest": fixed["manifest"],
        "creator_id": row["creator_id"],
        "participants": [_participant(member) for member in members],
        "state": row["state"],
        "created_at": iso(row["created_at"]),
        "required_acks": fixed["required_acks"],
        "parent_channel_id": row["parent_channel_id"],
        "labels": json.loads(row["labels"]),
    }
    metadata = ChannelMetadata.from_dict(data)
    return replace(
        metadata,
        knobs=knobs,
        expires_at=_maybe_iso(row["expires_at"]),
        closed_at=_maybe_iso(row["closed_at"]),
        close_reason=row["close_reason"] or "",
        pending_acks=[m["agent_id"] for m in members if m["ack"] == "pending"],
        rejected_by=[m["agent_id"] for m in members if m["ack"] == "rejected"],
    )


def _participant(member: Row) -> dict[str, Any]:
    return {
        "agent_id": member["agent_id"],
        "role": member["role"],
        "order": member["position"],
        "joined_at": iso(member["joined_at"]),
        "name": member["name"],
    }


def _maybe_iso(at: float | None) -> str | None:
    return None if at is None else iso(at)


def fixed_metadata(manifest: ChannelManifest, required_acks: int | None) -> str:
    """The part of a channel's metadata that never changes, as stored."""
    return json.dumps({"v": 1, "manifest": manifest.to_dict(), "required_acks": required_acks})


def in_state(metadata: ChannelMetadata, state: ChannelState, **changes: Any) -> ChannelMetadata:
    """The metadata with another lifecycle state."""
    return replace(metadata, state=state, **changes)
