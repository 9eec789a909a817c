"""The tables, as data: every store is built from these declarations.

A name, its columns, its primary key and the indexes that look-ups may use. Columns are `text`,
`int`, `real` (seconds since the epoch where they are times) or `blob`. Structured values are JSON
text with a version in it.
"""

from __future__ import annotations

from agent_adapter.store.declaring import Column, Kind, Table, columns_of
from agent_adapter.store.network_tables import NETWORK_TABLES

__all__ = ["TABLES", "Column", "Kind", "Table"]

CALLS = Table(
    "calls",
    columns_of(
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
    columns_of(
        "id tenant state call_key run_id thread_id tool principal requester fingerprint binding"
        " digest request payload edited reviewer reason created_at:real decide_by:real"
        " decided_at:real use_by:real taken_at:real votes_needed:int signature"
        " conversation asker run_known:int asked_key root_run_id released_at:real answer"
    ),
    key=("id",),
    indexes=(
        ("state", "created_at"),
        ("state", "decide_by"),
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
`expired`, `withdrawn` or `answered`; `request` is the JSON that reviewers see, `payload` and
`edited` the bound arguments, `answer` a person's result in place of a run. Until `released_at` the
decision can be undone. `root_run_id` is the run whose limits hold where a tool made the call.
`asked_key` is the call that was asked about, `call_key` the one that may take the approval."""

VOTES = Table(
    "votes",
    columns_of("approval_id reviewer verdict digest reason at:real"),
    key=("approval_id", "reviewer"),
)
"""One row per reviewer of a record that needs several."""

LEDGER = Table(
    "ledger",
    columns_of("run_id seq:int at:real kind call_key body:blob hash:blob"),
    key=("run_id", "seq"),
    indexes=(("call_key",), ("at",)),
)
"""The append-only chain of each run; `hash` is over the previous hash and `body`."""

CHAIN_HEADS = Table("chain_heads", columns_of("run_id seq:int hash:blob mac:blob"), key=("run_id",))
"""The newest link of each chain, under the store's key."""

PAYLOADS = Table(
    "payloads",
    columns_of("id run_id salt:blob data:blob"),
    key=("id",),
    indexes=(("run_id",),),
)
"""Arguments and results, apart from the chain: an erased one has no `data`."""

RUNS = Table(
    "runs",
    columns_of(
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
    columns_of("run_id tool calls:int cost:real started_at:real"),
    key=("run_id", "tool"),
)
"""What a run used of its limits; the row with `tool` `""` is the sum."""

RESERVATIONS = Table(
    "reservations",
    columns_of("call_key run_id tool cost:real owner_id at:real"),
    key=("call_key",),
    indexes=(("run_id",),),
)
"""Calls under way that hold a part of their run's limits; those of a dead process expire."""

TAINTS = Table("taints", columns_of("scope label at:real"), key=("scope", "label"))
"""Labels of what a run or a thread has read; `scope` is `run:…` or `thread:…`."""

TRUSTED_TEXTS = Table(
    "trusted_texts",
    columns_of("id run_id conversation source at:real"),
    key=("id",),
    indexes=(("conversation", "at"), ("run_id",)),
)
"""What the user (`source` is `user`) and trusted tools said; `id` names the text in `payloads`."""

CACHE = Table(
    "cache",
    columns_of("key result labels expires_at:real"),
    key=("key",),
    indexes=(("expires_at",),),
)
"""Results of cached read tools."""

OWNERS = Table(
    "owners",
    columns_of("id host pid:int started_at:real heartbeat_at:real"),
    key=("id",),
)
"""Processes that have opened the store."""

META = Table("meta", columns_of("name value"), key=("name",))
"""Single values: the stop switch among them."""

TOKENS = Table(
    "tokens",
    columns_of("id name role hash created_at:real last_used_at:real revoked_at:real tenants"),
    key=("id",),
    indexes=(("hash",), ("name",)),
)
"""Who may sign in: `role` is `viewer`, `approver` or `admin`, `tenants` a JSON list; of the token
itself only a hash."""

SESSIONS = Table(
    "sessions",
    columns_of("id token_id name role via csrf created_at:real expires_at:real tenant"),
    key=("id",),
    indexes=(("token_id",), ("expires_at",)),
)
"""People who are signed in; `id` is a hash of what their browser holds, `via` how they were known,
`token_id` is `None` for one whom a proxy named, and `tenant` is the one that they look at."""

PEOPLE = Table("people", columns_of("id name folded created_at:real revoked_at:real"), key=("id",))
"""People; `folded` is the name in the form in which names are compared."""

LOGINS = Table(
    "logins",
    columns_of("login person_id name public_key valid_until:real created_at:real revoked_at:real"),
    key=("login",),
    indexes=(("name",), ("person_id",)),
)
"""What people are known by: `name` is the bare name of a log-in, for comparison; a signing key has
a `public_key` and ends at `valid_until`."""

MEMBERSHIPS = Table(
    "memberships", columns_of("person_id tenant role at:real"), key=("person_id", "tenant")
)
"""The role of a person in a tenant."""

SAVED_VIEWS = Table(
    "saved_views",
    columns_of("id tenant person name query created_at:real"),
    key=("id",),
    indexes=(("person", "tenant"),),
)
"""Searches of the inbox that a person has given a name; `query` is that of the page's address."""

NOTIFICATIONS = Table(
    "notifications",
    columns_of(
        "id tenant rule event subject occurrence state owner_id attempts:int created_at:real"
        " due_at:real sent_at:real error"
    ),
    key=("id",),
    indexes=(("state", "due_at"), ("created_at",)),
)
"""The outbox: one row per rule and event that it asks for. `state` is `pending`, `sending` (by
`owner_id`), `sent`, `dropped` or `failed`; `subject` names the record, `occurrence` tells apart
events of one record. Texts are made when a row is sent, and not kept."""

NOTIFICATION_RULES = Table(
    "notification_rules", columns_of("name tenant data by created_at:real"), key=("name",)
)
"""Who is told what, and where; `data` is JSON, `tenant` is `None` for every tenant."""

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
    SAVED_VIEWS,
    NOTIFICATIONS,
    NOTIFICATION_RULES,
)
"""Every table, in the order in which they are made."""
