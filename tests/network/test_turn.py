"""A turn: its channel, its variables, its tools."""

from __future__ import annotations

from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.flow.envelope import EV_CONTEXT_SET, EV_TEXT
from agent_adapter.network.turns.turn import Staged
from agent_adapter.network.workflow_helpers import delete_context, set_context

from ._turns import FakePort, executor_of, turn_of_ann

pytestmark = pytest.mark.anyio

tools = aa.ToolRegistry()


@tools.tool
async def count(channel: aa.ChannelInject, state: aa.ChannelStateInject) -> int:
    """Counts up."""
    number: int = state.context_vars.get("count", 0) + 1
    await set_context(channel, "count", number)
    return number


@tools.tool
async def outer(channel: aa.ChannelInject) -> int:
    """Counts in a call inside of its own."""
    result: int = await aa.acall(count)
    return result


async def test_a_change_is_seen_at_once() -> None:
    """What a tool sets is in the state that the round's next tool receives."""
    turn = turn_of_ann()
    async with turn.scope():
        assert [await turn.call(count), await turn.call(count)] == [1, 2]
    assert turn.context_vars == {"count": 2}


async def test_a_change_is_staged_under_its_call() -> None:
    """The port keeps the change with the key of the call that made it."""
    port = FakePort()
    turn = turn_of_ann(port)
    async with turn.scope():
        await turn.call(count)
    [staged] = port.staged
    assert staged.body == {"set": {"count": 1}}
    assert staged.call_key is not None
    assert staged.call_key.startswith("call_")


async def test_a_replayed_call_brings_its_change_back() -> None:
    """In a second attempt the recorded call runs no function and its change counts again."""
    executor, port = executor_of(), FakePort()
    first = turn_of_ann(port, executor=executor)
    async with first.scope():
        await first.call(count)
    again = FakePort()
    second = turn_of_ann(again, executor=executor, attempt=2, staged_before=port.staged)
    async with second.scope():
        assert await second.call(count) == 1
    assert (again.staged, second.context_vars) == ([], {"count": 1})
    assert second.adopted == [port.staged[0].call_key]


async def test_what_no_call_repeats_is_not_adopted() -> None:
    """A change of an earlier attempt whose call does not come again is left out."""
    old = Staged(call_key="call_old", body={"set": {"count": 7}})
    turn = turn_of_ann(attempt=2, staged_before=[old])
    async with turn.scope():
        assert await turn.call(count) == 1
    assert turn.adopted == []


async def test_a_call_inside_a_call_names_both() -> None:
    """A change made by a nested call carries both keys, so that either of them adopts it."""
    port = FakePort()
    turn = turn_of_ann(port)
    async with turn.scope():
        await turn.call(outer)
    assert len((port.staged[0].call_key or "").split("/")) == 2


async def test_the_state_is_a_copy() -> None:
    """Changing what `state()` gave changes nothing."""
    turn = turn_of_ann()
    turn.state().context_vars["count"] = 9
    assert turn.context_vars == {}


async def test_a_deleted_variable_is_gone() -> None:
    """`delete_context` removes a variable for the round's tools at once."""
    turn = turn_of_ann(knobs={"context_vars": {"count": 3}})
    await delete_context(turn.channel, "count")
    assert turn.context_vars == {}


async def test_a_tool_cannot_speak_in_its_own_turn() -> None:
    """A text of a tool is refused: what the round returns is the turn's message."""
    with pytest.raises(aa.ProtocolError, match="return the text"):
        await turn_of_ann().channel.send("hello", event_type=EV_TEXT)


@pytest.mark.parametrize("option", [{"causation_id": "env_1"}, {"depth": 2}, {"audience": ["b"]}])
async def test_an_option_that_a_change_of_variables_ignores_is_refused(option: Any) -> None:
    """A change of variables is part of the packet, without a cause, depth or audience."""
    data = {"set": {"count": 1}}
    with pytest.raises(aa.ProtocolError, match="must be None"):
        await turn_of_ann().channel.send("", event_type=EV_CONTEXT_SET, event_data=data, **option)


async def test_a_forbidden_key_is_refused_in_the_round() -> None:
    """The access list is checked when the tool asks, and names who may."""
    turn = turn_of_ann(knobs={"context_acl": {"approved": ["bob"]}})
    with pytest.raises(aa.ProtocolError, match="allows bob"):
        await set_context(turn.channel, "approved", True)


async def test_closing_is_staged() -> None:
    """A tool that closes the channel leaves the round its packet."""
    port = FakePort()
    await turn_of_ann(port).channel.close("enough")
    assert port.staged[0].body == {"close": "enough"}


async def test_a_handoff_to_nobody_is_an_error_in_the_round() -> None:
    """The tool's result is withheld and the participants are named."""

    @tools.tool
    def pass_on(to: str) -> aa.Handoff:
        """Hands off."""
        return aa.Handoff(to)

    turn = turn_of_ann()
    async with turn.scope():
        with pytest.raises(aa.GuardrailBlocked, match="participants are ann, bob"):
            await turn.call(pass_on, to="zoe")
        assert await turn.call(pass_on, to="bob") == aa.Handoff("bob")


async def test_calls_of_any_executor_belong_to_the_turn() -> None:
    """Inside the scope a call's run is the turn, and its native run goes to the extras."""
    seen: list[aa.ToolContext] = []

    @tools.tool
    def look_around(ctx: aa.ToolContext) -> None:
        """Looks around."""
        seen.append(ctx)

    turn = turn_of_ann()
    async with turn.scope():
        native = aa.ToolContext(run_id="native")
        await executor_of().run_spec(aa.spec_of(look_around), {}, native)
    [ctx] = seen
    assert (ctx.run_id, ctx.thread_id) == ("trn_1", "chn_1")
    assert ctx.extras["native_run_id"] == "native"


async def test_a_named_tool_needs_a_registry() -> None:
    """A tool given by name is looked up in the executor's registry, or refused with the fix."""
    with pytest.raises(aa.ToolNotFound, match="pass the tool itself"):
        await turn_of_ann().call("count")
