"""Functions as participants, and who drives what."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.plugins import Plugins
from agent_adapter.integrations import discovery
from agent_adapter.network.turns.drivers import driver_for
from agent_adapter.network.turns.turn import Reply, Turn
from agent_adapter.network.turns.turn_runner import run_round

from ._turns import FakePort, turn_of_ann

pytestmark = pytest.mark.anyio

tools = aa.ToolRegistry()


async def _round(participant: Any) -> FakePort:
    port = FakePort()
    await run_round(participant, turn_of_ann(port), driver_for(participant))
    return port


@tools.tool
def pick() -> aa.Handoff:
    """Picks bob."""
    return aa.Handoff("bob", "fits")


async def test_a_function_of_a_text() -> None:
    """A parameter that is not the turn receives the message that is answered."""

    def shout(text: str) -> str:
        return text.upper()

    assert (await _round(shout)).body == "[BOB]: HELLO"


async def test_a_function_of_the_turn() -> None:
    """A parameter named `turn`, or annotated with `Turn`, receives the turn."""

    async def by_name(turn: Any) -> str:
        return str(turn.agent_name)

    async def by_type(now: Turn) -> str:
        return now.channel_id

    assert [(await _round(f)).body for f in (by_name, by_type)] == ["ann", "chn_1"]


async def test_a_function_without_parameters() -> None:
    """It just speaks."""
    assert (await _round(lambda: "hi")).body == "hi"


async def test_a_default_is_kept() -> None:
    """A parameter with a default is the function's own, unless it is named `text` or `turn`."""
    assert (await _round(lambda word="hi": word)).body == "hi"
    assert (await _round(lambda text="": text)).body == "[bob]: hello"


async def test_a_partial_is_a_function() -> None:
    """A function with some of its arguments given takes part like any other."""

    async def greet(word: str, text: str) -> str:
        return f"{word}, {text}"

    assert (await _round(functools.partial(greet, "yes"))).body == "yes, [bob]: hello"


async def test_a_function_may_hand_off() -> None:
    """A returned `Handoff` routes the turn; the call is named after the function."""

    async def pass_on(turn: Turn) -> aa.Handoff:
        return aa.Handoff("bob", "your turn")

    assert (await _round(pass_on)).routing == {
        "kind": "handoff",
        "tool": "pass_on",
        "reason": "your turn",
        "target": "B",
    }


async def test_a_function_may_finish() -> None:
    """A returned `Finish` ends the channel with its reason and summary."""
    port = await _round(lambda: aa.Finish("all done", "enough"))
    assert (port.routing["kind"], port.routing["reason"]) == ("finish", "enough")


async def test_a_called_tool_routes_too() -> None:
    """A tool that a function called in its turn routes as one that a model called."""

    async def participant(turn: Turn) -> str:
        await turn.call(pick)
        return "over to bob"

    port = await _round(participant)
    assert (port.body, port.routing["target"], port.routing["tool"]) == ("over to bob", "B", "pick")


async def test_a_reply_says_it_all() -> None:
    """A function may give text and calls in one."""
    assert (await _round(lambda: Reply("body"))).body == "body"


async def test_none_is_silence() -> None:
    """A function without an answer ends its turn without a packet."""
    assert (await _round(lambda: None)).packets == [None]


async def test_another_value_fails_the_turn() -> None:
    """What is none of these is an error that says what would be one."""
    [error] = (await _round(lambda: 42)).errors
    assert "returned a int; return a text, a Handoff" in str(error)


async def test_a_stranger_cannot_take_part() -> None:
    """An object that nobody drives is refused, with what can take part."""
    with pytest.raises(aa.NetworkError, match="people join with register_human"):
        driver_for(object())


async def test_a_plug_in_can_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    """An integration with `drives` and `drive` runs the rounds of its own agents."""

    class Robot:
        """An agent of some framework."""

    class Robots:
        """Its integration, as far as rounds need it."""

        def drives(self, agent: Any) -> bool:
            """Robots only."""
            return isinstance(agent, Robot)

        async def drive(self, agent: Any, turn: Any) -> Reply:
            """Beeps."""
            return Reply(f"beep: {turn.input_text}")

    robots: Any = Robots()
    found = Plugins(found={"robots": robots}, skipped={})
    monkeypatch.setattr(discovery, "_cache", found)
    assert (await _round(Robot())).body == "beep: [bob]: hello"
