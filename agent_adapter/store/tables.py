"""The tables, as data: every store is built from these declarations.

A name, its columns, its primary key and the indexes that look-ups may use. Columns are `text`,
`int`, `real` (seconds since the epoch where they are times) or `blob`. Structured values are JSON
text with a version in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["TABLES", "Column", "Kind", "Table"]

Kind = Literal["text", "int", "real", "blob"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; all but those of the primary key may be `None`."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Table:
    """One table."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    indexes: tuple[tuple[str, ...], ...] = ()


def _columns(declared: str) -> tuple[Column, ...]:
    kinds: dict[str, Kind] = {"text": "text", "int": "int", "real": "real", "blob": "blob"}
    columns = []
    for line in declared.split():
        name, _, kind = line.partition(":")
        columns.append(Column(name, kinds[kind or "text"]))
    return tuple(columns)


CALLS = Table(
    "calls",
    _columns(
        "call_key tenant run_id tool digest n:int thread_id principal attempt:int last_attempt:int"
        " call_id parent_call_key effects fingerprint state ending error_kind error_text owner_id"
        " started_at:real finished_at:real arguments result cost:real once_key record_id"
        " place conversation asker replaces"
    ),
    key=("call_key",),
    indexes=(
        ("run_id", "tool", "digest", "n"),
        ("run_id", "tool", "digest", "ending"),
        ("run_id", "call_id", "tool", "digest", "last_attempt", "started_at"),
        ("run_id", "last_attempt", "tool", "digest", "started_at"),
        ("run_id", "started_at"),
        ("state", "owner_id"),
        ("ending", "finished_at"),
        ("tool", "started_at"),
        ("place", "tool", "digest", "n"),
        ("asker", "tool", "digest", "ending", "started_at"),
        ("replaces",),
    ),
)
"""One row per call that began. `state` is `open` or `done`; `ending` is `ok`, `no-effect`,
`unknown`, `aborted`, `suspended` (a call inside it waits, for a person for instance) or `failed` (a
read or idempotent call that raised); `arguments` and `result` name rows of `payloads`;
`last_attempt` is the latest attempt that issued the call. `place` is the key of its position in the
run, `conversation` and `asker` the keys of the dialogue and of whoever makes it; `replaces` is the
unclear call that a person agreed to repeat by it."""

APPROVALS = Table(
    "approvals",
    _columns(
        "id tenant state call_key run_id thread_id tool principal requester fingerprint binding"
        " digest request payload edited reviewer reason created_at:real decide_by:real"
        " decided_at:real use_by:real taken_at:real votes_needed:int signature"
        " conversation asker run_known:int asked_key root_run_id"
    ),
    key=("id",),
    indexes=(
        ("state", "created_at"),
        ("call_key",),
        ("run_id", "tool", "digest", "state"),
        ("run_id", "state"),
        ("principal", "state"),
        ("asker", "state"),
        ("root_run_id", "state"),
        ("conversation", "state"),
        ("created_at",),
    ),
)
"""One row per question put to a person. `state` is `pending`, `approved`, `denied`, `taken`,
`expired` or `withdrawn`; `request` is the JSON that reviewers see, `payload` and `edited` the bound
arguments. `root_run_id` is the run whose limits hold where a tool made the call.
`asked_key` is the call that was asked about, `call_key` the one that may take the approval."""

VOTES = Table(
    "votes",
    _columns("approval_id reviewer verdict digest reason at:real"),
    key=("approval_id", "reviewer"),
)
"""One row per reviewer of a record that needs several."""

LEDGER = Table(
    "ledger",
    _columns("run_id seq:int at:real kind call_key body:blob hash:blob"),
    key=("run_id", "seq"),
    indexes=(("call_key",), ("at",)),
)
"""The append-only chain of each run; `hash` is over the previous hash and `body`."""

CHAIN_HEADS = Table("chain_heads", _columns("run_id seq:int hash:blob mac:blob"), key=("run_id",))
"""The newest link of each chain, under the store's key."""

PAYLOADS = Table(
    "payloads",
    _columns("id run_id salt:blob data:blob"),
    key=("id",),
    indexes=(("run_id",),),
)
"""Arguments and results, apart from the chain: an erased one has no `data`."""

RUNS = Table(
    "runs",
    _columns(
        "run_id tenant principal root_run_id parent_call_key depth:int started_at:real"
        " cancelled:int name conversation"
    ),
    key=("run_id",),
    indexes=(("started_at",),),
)
"""One row per run, written with the first entry of its chain; who it acts for where that is
known by then. `name` is the run as its framework names it, `run_id` its key over all tenants."""

USAGE = Table(
    "usage",
    _columns("run_id tool calls:int cost:real started_at:real"),
    key=("run_id", "tool"),
)
"""What a run used of its limits; the row with `tool` `""` is the sum."""

RESERVATIONS = Table(
    "reservations",
    _columns("call_key run_id tool cost:real owner_id at:real"),
    key=("call_key",),
    indexes=(("run_id",),),
)
"""Calls under way that hold a part of their run's limits; those of a dead process expire."""

TAINTS = Table("taints", _columns("scope label at:real"), key=("scope", "label"))
"""Labels of what a run or a thread has read; `scope` is `run:…` or `thread:…`."""

TRUSTED_TEXTS = Table(
    "trusted_texts",
    _columns("id run_id conversation source at:real"),
    key=("id",),
    indexes=(("conversation", "at"), ("run_id",)),
)
"""What the user (`source` is `user`) and trusted tools said; `id` names the text in `payloads`."""

CACHE = Table(
    "cache",
    _columns("key result labels expires_at:real"),
    key=("key",),
    indexes=(("expires_at",),),
)
"""Results of cached read tools."""

OWNERS = Table(
    "owners",
    _columns("id host pid:int started_at:real heartbeat_at:real"),
    key=("id",),
)
"""Processes that have opened the store."""

META = Table("meta", _columns("name value"), key=("name",))
"""Single values: the stop switch among them."""

IDENTITIES = Table(
    "identities",
    _columns("name agent_id kind passport resume rule skill tenant registered_at:real"),
    key=("name",),
    indexes=(("agent_id",),),
)
"""Participants by their name; `passport`, `resume` and `rule` are JSON, `skill` is text."""

CHANNELS = Table(
    "channels",
    _columns(
        "channel_id type version:int state creator_id created_at:real expires_at:real"
        " closed_at:real close_reason parent_channel_id graph_hash knobs labels metadata folded"
        " revision:int seq:int spoken:int turn_id turn_n:int expected paused:int tenant summary"
    ),
    key=("channel_id",),
    indexes=(("state", "created_at"), ("state", "expires_at"), ("creator_id",)),
)
"""One row per channel: `folded` is the state of its log up to `seq`, `revision` counts the changes
of the row, `spoken` the texts and packets, `turn_id` and `turn_n` name the latest turn, `expected`
whose it is."""

CHANNEL_MEMBERS = Table(
    "channel_members",
    _columns("channel_id agent_id name role position:int ack joined_at:real"),
    key=("channel_id", "agent_id"),
    indexes=(("agent_id", "channel_id"),),
)
"""Who takes part; `ack` is `pending`, `acked` or `rejected`."""

GRAPHS = Table("graphs", _columns("hash data"), key=("hash",))
"""Transition graphs by their content, each kept once."""

ENVELOPES = Table(
    "envelopes",
    _columns(
        "channel_id seq:int envelope_id sender_id event_type causation_id idempotency_key turn_id"
        " at:real audience body"
    ),
    key=("channel_id", "seq"),
    indexes=(
        ("envelope_id",),
        ("channel_id", "idempotency_key"),
        ("channel_id", "event_type", "seq"),
    ),
)
"""The log of each channel, `seq` from 1 without gaps; `body` is the whole envelope as JSON."""

TURNS = Table(
    "turns",
    _columns(
        "turn_id channel_id n:int agent_id attempt:int fails:int state owner_id due_at:real"
        " started_at:real ended_at:real trigger reason"
    ),
    key=("turn_id",),
    indexes=(
        ("state", "due_at"),
        ("channel_id", "n"),
        ("channel_id", "state"),
        ("agent_id", "state"),
    ),
)
"""Turns. `state` is `due`, `running`, `parked`, `done`, `failed` or `dropped`; a due turn without
`due_at` waits for its participant's own message and is never started; `trigger` is the envelope
that it answers."""

TURN_WAITS = Table(
    "turn_waits",
    _columns("waits_for turn_id until:real"),
    key=("waits_for", "turn_id"),
    indexes=(("turn_id",), ("until",)),
)
"""What parked turns wait for: the id of an approval, or the key of a call in doubt."""

STAGED = Table(
    "staged",
    _columns("turn_id attempt:int position:int call_key at:real body"),
    key=("turn_id", "attempt", "position"),
)
"""What the tools of a round did to their channel, until the round's packet is accepted."""

EXPECTATIONS = Table(
    "expectations",
    _columns(
        "channel_id turn:int position:int name handler agent_id params due_at:real left:real"
        " fired_at:real"
    ),
    key=("channel_id", "turn", "position"),
    indexes=(("fired_at", "due_at"),),
)
"""Deadlines of channels (`turn` 0) and turns; while a turn is parked `due_at` is `None` and `left`
holds the seconds that remain."""

AUDIT = Table(
    "audit",
    _columns("id at:real kind agent_id channel_id payload"),
    key=("id",),
    indexes=(("at",), ("channel_id", "at")),
)
"""What happened to participants and channels, one JSON record each."""

COMMANDS = Table(
    "commands",
    _columns("id kind payload state result created_at:real by"),
    key=("id",),
    indexes=(("state", "created_at"),),
)
"""What other processes ask the hub of this store to do; `state` is `queued`, `done` or
`refused`."""

LEASES = Table("leases", _columns("name owner_id holder at:real"), key=("name",))
"""Who alone may do a thing: `hub` is the hub that dispatches turns."""

TASKS = Table(
    "tasks",
    _columns(
        "task_id owner_id channel_id title state payload result created_at:real updated_at:real"
    ),
    key=("task_id",),
    indexes=(("owner_id", "state"),),
)
"""Work that participants told their hub about."""

TOKENS = Table(
    "tokens",
    _columns("id name role hash created_at:real last_used_at:real revoked_at:real tenants"),
    key=("id",),
    indexes=(("hash",), ("name",)),
)
"""Who may sign in: `role` is `viewer`, `approver` or `admin`, `tenants` a JSON list; of the token
itself only a hash."""

SESSIONS = Table(
    "sessions",
    _columns("id token_id name role via csrf created_at:real expires_at:real tenant"),
    key=("id",),
    indexes=(("token_id",), ("expires_at",)),
)
"""People who are signed in; `id` is a hash of what their browser holds, `via` how they were known,
`token_id` is `None` for one whom a proxy named, and `tenant` is the one that they look at."""

PEOPLE = Table("people", _columns("id name folded created_at:real revoked_at:real"), key=("id",))
"""People; `folded` is the name in the form in which names are compared."""

LOGINS = Table(
    "logins",
    _columns("login person_id name public_key valid_until:real created_at:real revoked_at:real"),
    key=("login",),
    indexes=(("name",), ("person_id",)),
)
"""What people are known by: `name` is the bare name of a log-in, for comparison; a signing key has
a `public_key` and ends at `valid_until`."""

MEMBERSHIPS = Table(
    "memberships", _columns("person_id tenant role at:real"), key=("person_id", "tenant")
)
"""The role of a person in a tenant."""

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
)
"""The tables of channels and their participants."""

TABLES: tuple[Table, ...] = (
    CALLS,
    APPROVALS,
    VOTES,
    LEDGER,
    CHAIN_HEADS,
    PAYLOADS,
    RUNS,
    USAGE,
    RESERVATIONS,
    TAINTS,
    TRUSTED_TEXTS,
    CACHE,
    OWNERS,
    META,
    *NETWORK_TABLES,
    TOKENS,
    SESSIONS,
    PEOPLE,
    LOGINS,
    MEMBERSHIPS,
)
"""Every table, in the order in which they are made."""
