"""The table of operations: what it demands of requests, and that everything follows it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Protocol

import pytest

from agent_adapter.core.errors import AccessDeniedError, NotFoundError, ProtocolError, StaleTurn
from agent_adapter.network import (
    EV_TEXT,
    ChannelState,
    Envelope,
    Hub,
    Passport,
    Resume,
    Rule,
    TurnRef,
)
from agent_adapter.network.links.access import ANYBODY, own
from agent_adapter.network.links.bounds import Id
from agent_adapter.network.links.operation import operation, operations_of, to_wire
from agent_adapter.network.links.operations import OPERATIONS, HubLike
from agent_adapter.network.links.remote_hub import RemoteHub
from agent_adapter.network.links.remote_participants import RemoteParticipants
from agent_adapter.network.links.session_hub import SessionHub
from agent_adapter.store.memory import MemoryStore
from tests.network._protocol_page import PAGE, missing, row, unknown, written

pytestmark = pytest.mark.anyio


class Sink:
    """A connection that keeps what it is sent."""

    def __init__(self) -> None:
        self.frames: list[Any] = []

    async def push(self, frame: Any) -> None:
        """Keep a frame."""
        self.frames.append(frame)


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    """A hub over memory, without sweepers."""
    async with await Hub.open(
        MemoryStore(), ttl_sweep_interval=0, expectation_sweep_interval=0
    ) as opened:
        yield opened


@pytest.fixture
async def session(hub: Hub) -> AsyncIterator[SessionHub]:
    """The hub as a connection without participants may use it."""
    remote = RemoteParticipants(hub, [], 0.0)
    yield SessionHub(remote, Sink(), "i" * 32, ["*"])
    await remote.close()


async def joined(session: SessionHub, name: str) -> str:
    """The id of a person that the connection has registered."""
    passport = Passport(name=name, kind="human")
    params = {"passport": passport.to_dict(), "resume": Resume().to_dict()}
    stamped = await session.perform("register", params)
    return str(stamped["agent_id"])


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "params", "problem"),
    [
        ("get_agent", {}, "get_agent: name_or_id: Field required"),
        ("get_agent", {"name_or_id": 7}, "get_agent: name_or_id: Input should be a valid string"),
        ("get_agent", {"name_or_id": "x" * 1001}, "at most 1000 characters"),
        ("get_agent", {"name_or_id": "x", "as": "root"}, "get_agent: as: Extra inputs"),
        ("list_agents", {"limit": -1}, "list_agents: limit: Input should be greater than"),
        ("list_agents", {"limit": True}, "list_agents: limit: Input should be a valid integer"),
        ("list_channels", {"state": "odd"}, "list_channels: state"),
        ("window", {"channel_id": "c", "participant_id": "p", "recent_n": "9"}, "recent_n"),
        (
            "stage",
            {"turn": {"turn_id": "t"}, "call_key": None, "body": {}},
            "stage: turn: .*attempt",
        ),
        ("post_envelope", {"envelope": {"text": "hi"}}, "post_envelope: envelope: .*text"),
        ("register", {"passport": {"name": ""}, "resume": {}}, "register: passport: .*name"),
        ("park_turn", {"turn": {"turn_id": "t", "attempt": 1}, "waits_for": "x"}, "waits_for"),
    ],
)
def test_bad_parameters_are_named(op: str, params: dict[str, Any], problem: str) -> None:
    """The error of a bad parameter has the operation, the field and the problem."""
    with pytest.raises(ProtocolError, match=problem) as caught:
        OPERATIONS[op].read(params)
    assert str(caught.value).startswith(f"{op}: ")


def test_problems_are_few_and_short() -> None:
    """The error of a large bad parameter does not repeat it."""
    params = {"turn": {"turn_id": "t", "attempt": 1}, "waits_for": [1] * 5000, "y" * 5000: 1}
    with pytest.raises(ProtocolError, match="and 4991 more") as caught:
        OPERATIONS["park_turn"].read(params)
    assert len(str(caught.value)) < 2000


def test_large_limits_are_cut() -> None:
    """A limit beyond a page asks for a page."""
    assert OPERATIONS["list_agents"].read({"limit": 5000})["limit"] == 1000


REF = TurnRef(turn_id="t", channel_id="", attempt=2, owner_id="")
SAID = Envelope("chn_1", "agt_1", None, EV_TEXT, {"text": "hi"})


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        ("register", (Passport(name="ann"), Resume(summary="cooks"), Rule()), {"running": [REF]}),
        ("post_envelope", (SAID,), {"turn": REF, "adopted": ["k"], "answers": None}),
        ("stage", (REF, "key", {"set": {"a": 1}}), {}),
        ("list_channels", (), {"agent_id": "agt_1", "state": ChannelState.ACTIVE, "limit": 7}),
    ],
)
def test_written_parameters_are_read(
    op: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """What a client writes for a call, the server reads as the same arguments."""
    declared = OPERATIONS[op]
    arguments = declared.read(json.loads(json.dumps(declared.written(args, kwargs))))
    assert list(arguments.values())[: len(args)] == list(args)
    assert {name: arguments[name] for name in kwargs} == kwargs


# --- who may --------------------------------------------------------------------------------------


def test_an_operation_states_who_may_ask() -> None:
    """A declaration that does not say who may ask for it is refused."""
    with pytest.raises(TypeError, match="who may ask"):
        operation()


ACTS_FOR_OTHERS: dict[str, dict[str, Any]] = {
    "unregister": {"agent_id": "agt_1"},
    "leave": {"agent_id": "agt_1"},
    "get_rule": {"agent_id": "agt_1"},
    "set_resume": {"agent_id": "agt_1", "resume": Resume().to_dict()},
    "set_skill": {"agent_id": "agt_1", "skill_md": "# I"},
    "create_channel": {"creator_id": "agt_1", "manifest_type": "x", "participants": []},
    "post_envelope": {"envelope": SAID.to_dict()},
    "list_channels": {"agent_id": "agt_1"},
    "pending_turns_for": {"agent_id": "agt_1"},
    "resume_turns": {"agent_id": "agt_1"},
    "set_rule": {"agent_id": "agt_1", "rule": Rule().to_dict()},
    "set_by_hand": {"agent_id": "agt_1", "by_hand": True},
    "start_task": {"task_id": "tsk_1", "owner_id": "agt_1", "title": "x"},
    "record_observation": {"owner_id": "agt_1", "capability": "x", "outcome": "completed"},
}


@pytest.mark.parametrize("op", ACTS_FOR_OTHERS)
async def test_a_connection_acts_for_its_own(session: SessionHub, op: str) -> None:
    """An operation for a participant of somebody else, or of the hub's process, is refused."""
    await joined(session, "ann")
    with pytest.raises(AccessDeniedError):
        await session.perform(op, ACTS_FOR_OTHERS[op])


OF_CHANNELS_AND_TURNS: dict[str, dict[str, Any]] = {
    "close_channel": {"channel_id": "chn_1"},
    "reopen": {"channel_id": "chn_1"},
    "get_channel": {"channel_id": "chn_1"},
    "read_wal": {"channel_id": "chn_1"},
    "window": {"channel_id": "chn_1", "participant_id": "agt_1", "recent_n": 1},
    "adapter_state": {"channel_id": "chn_1"},
    "may_send": {"channel_id": "chn_1", "sender_id": "agt_1"},
    "wake_turn": {"turn_id": "t"},
    "take_turn": {"turn_id": "t"},
    "update_task": {"task_id": "tsk_1"},
    "observe_task": {"metadata": {"task_id": "t", "owner_id": "agt_1", "spec": {"title": "x"}}},
    "read_task": {"task_id": "tsk_1"},
    "get_task": {"task_id": "tsk_1"},
    "checkpoint_task": {"task_id": "tsk_1", "state": {}},
    "read_task_checkpoint": {"task_id": "tsk_1"},
    "stage": {"turn": to_wire(REF), "call_key": None, "body": {}},
    "end_silent_turn": {"turn": to_wire(REF)},
    "park_turn": {"turn": to_wire(REF), "waits_for": []},
    "fail_turn": {"turn": to_wire(REF), "error": "x", "message": "y"},
    "check_turn": {"turn": to_wire(REF)},
    "release_turn": {"turn": to_wire(REF)},
}


@pytest.mark.parametrize("op", OF_CHANNELS_AND_TURNS)
async def test_others_channels_and_turns_are_not_there(session: SessionHub, op: str) -> None:
    """Channels and turns of others look as if they did not exist."""
    await joined(session, "ann")
    with pytest.raises((NotFoundError, StaleTurn)):
        await session.perform(op, OF_CHANNELS_AND_TURNS[op])


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("op", ["start_task", "observe_task"])
async def test_a_task_names_no_channel_of_others(
    hub: Hub, session: SessionHub, op: str, exists: bool
) -> None:
    """A foreign channel and an invented one are answered alike, and no task is kept."""
    ann = await joined(session, "ann")
    ids = [await _registered(hub, name) for name in ("ben", "cid")]
    channel_id = "chn_1"
    if exists:
        made = await hub.create_channel(
            creator_id=ids[0], manifest_type="conversation", participants=ids[1:], required_acks=0
        )
        channel_id = made.channel_id
    task: dict[str, Any] = {"task_id": "t", "owner_id": ann, "channel_id": channel_id}
    params = task | {"title": "x"}
    if op == "observe_task":
        params = {"metadata": task | {"spec": {"title": "x"}}}
    with pytest.raises(NotFoundError, match=f"there is no channel '{channel_id}' here"):
        await session.perform(op, params)
    assert await hub.list_tasks() == []


async def test_a_task_names_a_channel_of_its_owner(hub: Hub, session: SessionHub) -> None:
    """Its owner is in it."""
    ann, ben = await joined(session, "ann"), await _registered(hub, "ben")
    made = await hub.create_channel(
        creator_id=ann, manifest_type="conversation", participants=[ben], required_acks=0
    )
    task = {"task_id": "t", "owner_id": ann, "channel_id": made.channel_id, "title": "x"}
    await session.perform("start_task", task)
    assert [item.channel_id for item in await hub.list_tasks()] == [made.channel_id]


async def _registered(hub: Hub, name: str) -> str:
    """The id of a participant of the hub's own process."""
    stamped = await hub.register_identity(Passport(name=name, kind="human"), Resume())
    return stamped.agent_id or ""


def test_every_restricted_operation_is_tried_here() -> None:
    """An operation that not everybody may ask for is in one of the two lists above."""
    restricted = {name for name, item in OPERATIONS.items() if item.access != (ANYBODY,)}
    assert restricted == {*ACTS_FOR_OTHERS, *OF_CHANNELS_AND_TURNS}


# --- everything follows the table -----------------------------------------------------------------


async def test_every_operation_is_served(hub: Hub) -> None:
    """The hub, or the session where the connection matters, has a method for each operation."""
    served = [name for name in OPERATIONS if hasattr(SessionHub, name) or hasattr(hub, name)]
    assert served == [*OPERATIONS]


@pytest.mark.parametrize("name", [*operations_of(HubLike)])
def test_every_operation_of_clients_crosses_a_connection(name: str) -> None:
    """`RemoteHub` does not leave an operation as `HubLike` declares it."""
    assert getattr(RemoteHub, name) is not getattr(HubLike, name)


class _More(Protocol):
    @operation(own("agent_id"))
    async def greet(self, agent_id: Id, *, times: int = 1) -> list[Passport]:
        """Greet somebody."""
        ...


async def test_an_operation_is_one_entry_and_one_method(
    hub: Hub, session: SessionHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new entry is validated, authorised and answered with nothing but the hub's method added."""

    async def greet(self: Hub, agent_id: str, *, times: int) -> list[Passport]:
        return [await self.get_agent(agent_id)] * times

    entry = operations_of(_More)["greet"]
    monkeypatch.setitem(OPERATIONS, "greet", entry)
    monkeypatch.setattr(Hub, "greet", greet, raising=False)
    ann = await joined(session, "ann")
    answer = await session.perform("greet", {"agent_id": ann, "times": 2})
    assert [item.name for item in entry.result.validate_python(answer)] == ["ann", "ann"]
    with pytest.raises(ProtocolError, match="greet: times"):
        await session.perform("greet", {"agent_id": ann, "times": "2"})
    with pytest.raises(AccessDeniedError, match="not for 'agt_2'"):
        await session.perform("greet", {"agent_id": "agt_2"})


def test_the_page_lists_every_operation() -> None:
    """The protocol's page has each operation as the table has it, and no other."""
    page = PAGE.read_text()
    assert (missing(page), unknown(page)) == ([], []), "run python -m tests.network._protocol_page"


def test_a_page_that_lacks_an_operation_fails() -> None:
    """A line that is gone, or tells something else, is found; writing the page repairs it."""
    page = PAGE.read_text()
    gone = page.replace(row(OPERATIONS["window"]) + "\n", "").replace("`set_rule`", "`set_role`")
    assert missing(gone) == ["set_rule", "window"]
    assert unknown(gone) == ["set_role"]
    assert written(gone) == page
