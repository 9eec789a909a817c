"""The plain loop: turns, streams, pauses, limits and cancellation, over real SDK clients."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

import agent_adapter as aa
from agent_adapter.integrations.generic import (
    CallEnded,
    CallMade,
    LoopResult,
    TextPiece,
    run_tool_loop,
)

from ._kit_support import FakeRunner, Probe
from ._providers import ChatScript, GeminiScript, MessagesScript, ResponsesScript
from ._shop import NO, YES, Shop, asking

pytestmark = [pytest.mark.anyio, pytest.mark.contract]

CLIENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "chat": (ChatScript, {}),
    "chat-streamed": (ChatScript, {"stream": True}),
    "responses": (ResponsesScript, {"api": "responses"}),
    "responses-streamed": (ResponsesScript, {"api": "responses", "stream": True}),
    "messages": (MessagesScript, {}),
    "messages-streamed": (MessagesScript, {"stream": True}),
    "contents": (GeminiScript, {}),
    "contents-streamed": (GeminiScript, {"stream": True}),
    "nameless": (lambda *turns: GeminiScript(*turns, ids=False), {}),
}
REFUND = ("c1", "refund", {"order": "A1", "amount": 5})
LOOK = ("c2", "look_up", {"order": "A2"})


class Client:
    """One way to drive the loop."""

    def __init__(self, name: str) -> None:
        self.make, self.options = CLIENTS[name]
        self.streams = bool(self.options.get("stream"))

    async def loop(self, shop: Shop, *turns: Any, **options: Any) -> LoopResult:
        """One loop over a script."""
        self.script = self.make(*turns)
        given = {"messages": "go", "executor": shop.executor, "model": "m"}
        options = given | self.options | options
        return await run_tool_loop(self.script.client(), shop.registry, **options)


@pytest.fixture(params=list(CLIENTS))
def client(request: pytest.FixtureRequest) -> Client:
    """Each client, streaming and not."""
    return Client(request.param)


async def test_turns_go_on_until_no_call_is_made(client: Client) -> None:
    """Two turns with calls, and the answer."""
    shop = Shop()
    result = await client.loop(shop, [LOOK], [("c3", "look_up", {"order": "A3"})], "all done")
    assert (result.status, result.text, result.turns) == ("done", "all done", 3)
    assert [args["order"] for _, args in shop.ran] == ["A2", "A3"]


async def test_calls_of_one_loop_are_one_run(client: Client) -> None:
    """The run stays while the loop goes on, and the thread is the caller's."""
    shop = Shop()
    result = await client.loop(shop, [LOOK], [LOOK], thread_id="t")
    assert {ctx.run_id for ctx in shop.contexts} == {result.run_id}
    assert {ctx.thread_id for ctx in shop.contexts} == {"t"}


async def test_repeated_call_id_in_a_later_turn_is_a_new_call(client: Client) -> None:
    """A6: a server that counts from zero in each response loses no call."""
    shop = Shop(approval=asking(YES))
    await client.loop(shop, [REFUND], [REFUND])
    assert len(shop.refunds) == 2


async def test_two_loops_are_two_runs(client: Client) -> None:
    """Unless the caller says otherwise."""
    shop = Shop()
    first = await client.loop(shop, [LOOK])
    second = await client.loop(shop, [LOOK])
    assert first.run_id != second.run_id


async def test_events_tell_what_goes_on(client: Client) -> None:
    """Calls as they are made and end, and pieces of text where it streams."""
    events: list[Any] = []
    await client.loop(Shop(), [LOOK], "the end", on_event=events.append)
    made, ended, *pieces = events
    assert isinstance(made, CallMade)
    assert isinstance(ended, CallEnded)
    assert (made.tool, ended.is_error) == ("look_up", False)
    assert all(isinstance(piece, TextPiece) for piece in pieces)
    assert "".join(piece.text for piece in pieces) == ("the end" if client.streams else "")


async def test_loop_pauses_for_a_person_and_goes_on(client: Client) -> None:
    """U13, U14: the paused conversation survives JSON; each call runs once."""
    store = aa.open_store("memory://")
    shop = Shop(approval=aa.DeferredApproval(store), store=store)
    paused = await client.loop(shop, [REFUND, ("c9", "note", {"text": "x"}), LOOK])
    assert (paused.status, len(paused.pending)) == ("paused", 1)
    await aa.Inbox(store).approve(paused.pending[0], reviewer="ann")
    kept = json.loads(json.dumps(paused.messages))
    done = await client.loop(shop, "paid", messages=kept, run_id=paused.run_id)
    assert (done.status, done.text) == ("done", "paid")
    assert len(shop.refunds) == 1
    assert len(client.script.requests) == 1
    assert "5 for A1" in json.dumps(client.script.requests[0])


async def test_finished_write_beside_a_pause_runs_once(client: Client) -> None:
    """What ended before the pause is answered from the ledger."""
    store = aa.open_store("memory://")
    shop = Shop(approval=aa.DeferredApproval(store), store=store)
    notes: list[str] = []

    @shop.registry.tool
    async def note(text: str) -> str:
        """Writes something down."""
        notes.append(text)
        return "noted"

    paused = await client.loop(shop, [REFUND, ("c9", "note", {"text": "x"})])
    await aa.Inbox(store).approve(paused.pending[0], reviewer="ann")
    await client.loop(shop, messages=paused.messages, run_id=paused.run_id)
    assert notes == ["x"]
    assert len(shop.refunds) == 1


async def test_forged_history_approves_nothing(client: Client) -> None:
    """A1, A9: a conversation that ends in a call is a request, whoever wrote it."""
    port = asking(NO)
    writer = Shop(approval=aa.DeferredApproval(aa.open_store("memory://")))
    forged = (await client.loop(writer, [REFUND])).messages
    shop = Shop(approval=port)
    await client.loop(shop, messages=forged)
    assert shop.ran == []
    assert len(port.requests) == 1


async def test_port_of_the_loop_decides(client: Client) -> None:
    """`approval=` asks before the executor does, and only once."""
    port, own = asking(YES), asking(NO)
    shop = Shop(approval=own)
    await client.loop(shop, [REFUND, LOOK], approval=port)
    assert (len(port.requests), len(own.requests), len(shop.refunds)) == (1, 0, 1)


async def test_reviewer_s_edits_run(client: Client) -> None:
    """The loop can apply them."""
    edited = {"order": "A1", "amount": 3}
    answer = aa.ApprovalDecision.approve(reviewer="ann", arguments=edited)
    shop = Shop()
    await client.loop(shop, [REFUND], approval=asking(answer))
    assert shop.refunds == [edited]


async def test_turns_have_a_limit(client: Client) -> None:
    """The last calls are answered, so that the conversation can be gone on with."""
    shop = Shop()
    result = await client.loop(shop, *[[LOOK]] * 5, max_turns=2)
    assert (result.status, result.turns, len(shop.ran)) == ("max-turns", 2, 2)


async def test_limits_hold_for_the_loop(client: Client) -> None:
    """The model reads that its run is used up."""
    shop = Shop()
    calls = [(f"c{n}", "look_up", {"order": f"A{n}"}) for n in range(3)]
    await client.loop(shop, calls, limits=aa.RunLimits(max_calls=2))
    assert len(shop.ran) == 2
    assert "run-limit-exceeded" in json.dumps(client.script.requests[-1])


async def test_cancellation_reaches_every_call(client: Client) -> None:
    """U15: no tool goes on."""
    probe = Probe()
    registry = aa.ToolRegistry()
    registry.add(probe.hanging())
    script = client.make([("c1", "contract_hang", {}), ("c2", "contract_hang", {})])
    loop = run_tool_loop(script.client(), registry, model="m", messages="go", **client.options)
    task = asyncio.ensure_future(loop)
    await probe.started()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert probe.cancelled


async def test_messages_given_are_not_changed(client: Client) -> None:
    """The caller's list is the caller's."""
    given: list[Any] = [{"role": "user", "content": "go"}]
    if isinstance(client.make(), GeminiScript):
        given = [{"role": "user", "parts": [{"text": "go"}]}]
    before = list(given)
    await client.loop(Shop(), [LOOK], messages=given)
    assert given == before


async def test_options_go_into_the_request() -> None:
    """What the loop does not know is the provider's."""
    client = Client("contents")
    await client.loop(Shop(), "hi", temperature=0.5)
    assert client.script.requests[0]["generationConfig"]["temperature"] == 0.5


async def test_run_scope_around_is_the_run() -> None:
    """A loop inside a scope belongs to it."""
    shop = Shop()
    async with shop.executor.run_scope("run_outer"):
        await Client("chat").loop(shop, [LOOK])
    assert shop.contexts[0].run_id == "run_outer"


async def test_paused_turn_of_the_provider_is_asked_again() -> None:
    """Anthropic pauses long turns by itself."""

    class Pausing(MessagesScript):
        def whole(self, turn: Any) -> dict[str, Any]:
            stop = {"stop_reason": "pause_turn"} if turn == "wait" else {}
            return super().whole(turn) | stop

    script = Pausing("wait", "ready")
    result = await run_tool_loop(script.client(), aa.ToolRegistry(), model="m", messages="go")
    assert (result.text, result.turns) == ("ready", 2)


async def test_blocking_client_is_refused_with_the_fix() -> None:
    """The loop is async."""
    from openai import OpenAI

    with pytest.raises(aa.IntegrationError, match="give AsyncOpenAI"):
        await run_tool_loop(OpenAI(api_key="k"), aa.ToolRegistry(), model="m", messages="go")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_turns": 0}, ValueError),
        ({"api": "nope"}, ValueError),
        ({"approval": lambda request: True}, TypeError),
        ({"executor": FakeRunner(), "limits": aa.RunLimits()}, TypeError),
    ],
    ids=["turns", "api", "approval", "limits"],
)
async def test_bad_option_is_refused(options: dict[str, Any], error: type[Exception]) -> None:
    """Before anything is sent."""
    client = Client("chat")
    with pytest.raises(error):
        await client.loop(Shop(), "hi", **options)
    assert client.script.requests == []
