"""Whether what the store keeps of a channel is what was written there."""

from __future__ import annotations

import json

from agent_adapter.core.errors import NetworkError
from agent_adapter.flow.compiled import graph_hash
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.chain_check import ChainCheck
from agent_adapter.store.witness import CHANNEL

_MOST_NAMED = 3


class ChannelAltered(NetworkError):
    """Rows of the channel were changed by something else than this library; it does not go on."""

    kind = "channel-altered"


def problems(tx: Transaction, channel_id: str) -> list[str]:
    """What is not as it was written: log, graph, participants, turns; the cost is the log's length.

    Empty for a channel that does not exist.
    """
    row = tx.get("channels", channel_id)
    if row is None:
        return []
    check = ChainCheck(tx, CHANNEL + channel_id)
    check.check(None)
    return check.problems + _of_graph(tx, row)


def altered(channel_id: str, found: list[str]) -> ChannelAltered:
    """The error for a channel with these problems."""
    more = "" if len(found) <= _MOST_NAMED else f", and {len(found) - _MOST_NAMED} more"
    return ChannelAltered(
        f"channel {channel_id} was changed in the store ({'; '.join(found[:_MOST_NAMED])}{more});"
        " it takes no messages and starts no turns: run `agent-adapter ledger verify`, restore the"
        " store from a backup and open the hub again"
    )


def _of_graph(tx: Transaction, row: Row) -> list[str]:
    if row["graph_hash"] is None:
        return []
    graph = tx.get("graphs", row["graph_hash"])
    if graph is None:
        return [f"graph {row['graph_hash']} was deleted"]
    try:
        same = graph_hash(json.loads(graph["data"])) == row["graph_hash"]
    except (ValueError, TypeError):
        same = False
    return [] if same else [f"graph {row['graph_hash']} was changed"]
