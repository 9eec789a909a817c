"""The tables of channels and their participants; see `agent_adapter.store.tables`."""

from __future__ import annotations

from agent_adapter.store.declaring import Table, columns_of

IDENTITIES = Table(
    "identities",
    columns_of("name agent_id kind passport resume rule skill tenant registered_at:real"),
    key=("name",),
    indexes=(("agent_id",),),
)
"""Participants by their name; `passport`, `resume` and `rule` are JSON, `skill` is text."""

CHANNELS = Table(
    "channels",
    columns_of(
        "channel_id type version:int state creator_id created_at:real expires_at:real"
        " closed_at:real close_reason parent_channel_id graph_hash knobs labels metadata folded"
        " revision:int seq:int spoken:int turn_id turn_n:int expected paused:int tenant summary"
        " ttl:real ttl_left:real"
    ),
    key=("channel_id",),
    indexes=(("state", "created_at"), ("state", "expires_at"), ("creator_id",)),
)
"""One row per channel: `folded` is the state of its log up to `seq`, `revision` counts the changes
of the row, `spoken` the texts and packets, `turn_id` and `turn_n` name the latest turn, `expected`
whose it is. It lives `ttl` seconds in all; `ttl_left` are those that remain while its clocks stand
still, without an `expires_at`."""

CHANNEL_MEMBERS = Table(
    "channel_members",
    columns_of("channel_id agent_id name role position:int ack joined_at:real"),
    key=("channel_id", "agent_id"),
    indexes=(("agent_id", "channel_id"),),
)
"""Who takes part; `ack` is `pending`, `acked` or `rejected`."""

GRAPHS = Table("graphs", columns_of("hash data"), key=("hash",))
"""Transition graphs by their content, each kept once."""

ENVELOPES = Table(
    "envelopes",
    columns_of(
        "channel_id seq:int envelope_id sender_id event_type causation_id idempotency_key turn_id"
        " at:real audience body event:int"
    ),
    key=("channel_id", "seq"),
    indexes=(
        ("envelope_id",),
        ("channel_id", "idempotency_key"),
        ("channel_id", "event_type", "seq"),
        ("event",),
    ),
)
"""The log of each channel, `seq` from 1 without gaps; `body` is the whole envelope as JSON,
`event` its position among all events."""

TURNS = Table(
    "turns",
    columns_of(
        "turn_id channel_id n:int agent_id attempt:int fails:int state owner_id due_at:real"
        " started_at:real ended_at:real trigger reason due_event:int started_event:int"
        " ended_event:int stuck_at:real"
    ),
    key=("turn_id",),
    indexes=(
        ("state", "due_at"),
        ("channel_id", "n"),
        ("channel_id", "state"),
        ("agent_id", "state"),
        ("due_event",),
        ("started_event",),
        ("ended_event",),
    ),
)
"""Turns. `state` is `due`, `running`, `parked`, `silent`, `done`, `failed` or `dropped`; a due turn
without `due_at` waits for its participant's own message, or the opener's, before it is started; a
silent one ended without a message that its channel still expects; `trigger` is the envelope that it
answers. `due_event`, `started_event` and `ended_event` are positions among all events, `stuck_at`
is when it was noticed that nobody takes the turn."""

TURN_WAITS = Table(
    "turn_waits",
    columns_of("waits_for turn_id until:real"),
    key=("waits_for", "turn_id"),
    indexes=(("turn_id",), ("until",)),
)
"""What parked turns wait for: the id of an approval, or the key of a call in doubt."""

STAGED = Table(
    "staged",
    columns_of("turn_id attempt:int position:int call_key at:real body"),
    key=("turn_id", "attempt", "position"),
)
"""What the tools of a round did to their channel, until the round's packet is accepted."""

EXPECTATIONS = Table(
    "expectations",
    columns_of(
        "channel_id turn:int position:int name handler agent_id params due_at:real left:real"
        " fired_at:real told handled_at:real"
    ),
    key=("channel_id", "turn", "position"),
    indexes=(("fired_at", "due_at"),),
)
"""Deadlines of channels (`turn` 0) and turns; while they stand still `due_at` is `None` and `left`
holds the seconds that remain. `told` lists whom an expectation of the program's own has fired for,
`handled_at` is when the program's own handler had its say."""

AUDIT = Table(
    "audit",
    columns_of("id at:real kind agent_id channel_id payload event:int"),
    key=("id",),
    indexes=(("at",), ("channel_id", "at"), ("event",)),
)
"""What happened to participants and channels, one JSON record each; `event` is its position
among all events."""

COMMANDS = Table(
    "commands",
    columns_of("id kind payload state result created_at:real by"),
    key=("id",),
    indexes=(("state", "created_at"),),
)
"""What other processes ask the hub of this store to do; `state` is `queued`, `done` or
`refused`."""

LEASES = Table("leases", columns_of("name owner_id holder at:real"), key=("name",))
"""Who alone may do a thing: `hub` is the hub that dispatches turns."""

TASKS = Table(
    "tasks",
    columns_of(
        "task_id owner_id channel_id title state payload result created_at:real updated_at:real"
        " expires_at:real event:int"
    ),
    key=("task_id",),
    indexes=(("owner_id", "state"), ("state", "expires_at"), ("channel_id",), ("event",)),
)
"""Work that participants told their hub about; `event` is the position of the latest progress."""

CHECKPOINTS = Table("checkpoints", columns_of("task_id state at:real"), key=("task_id",))
"""What a task continues from, as its owner saved it last."""

NETWORK_TABLES: tuple[Table, ...] = (
    IDENTITIES,
    CHANNELS,
    CHANNEL_MEMBERS,
    GRAPHS,
    ENVELOPES,
    TURNS,
    TURN_WAITS,
    STAGED,
    EXPECTATIONS,
    AUDIT,
    COMMANDS,
    LEASES,
    TASKS,
    CHECKPOINTS,
)
"""The tables of channels and their participants."""
