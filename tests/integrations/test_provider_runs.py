"""`messages=` of the provider helpers: the run and the conversation that a history tells."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

import agent_adapter as aa
from agent_adapter.integrations.generic import run_tool_loop
from agent_adapter.integrations.wires.history import said_in

from ._provider_talk import Talk
from ._providers import ChatScript
from .test_provider_calls import PROVIDERS, Provider, kind_of
from .test_provider_identity import WATER, Garden

pytestmark = [pytest.mark.anyio, pytest.mark.contract]

LOOK: tuple[str, str, Any] = ("c0", "look", {})
_REFUSED = {True: "run-limit-exceeded", False: "approval-denied"}


@pytest.fixture(params=list(PROVIDERS))
def talk(request: pytest.FixtureRequest) -> Talk:
    """A conversation in the form of each provider."""
    return Talk(Provider(request.param))


async def test_i2_equal_ids_in_three_responses_of_a_history(talk: Talk) -> None:
    """I2: three turns of one history repeat id and arguments: three calls of one run."""
    garden = Garden()
    talk.user("water the beds")
    for _ in range(3):
        await talk.answer(garden, WATER)
    assert garden.done == ["north"] * 3
    assert len({ctx.identity.run for ctx in garden.seen} - {None}) == 1


async def test_i1_each_user_message_is_a_run_of_one_conversation(talk: Talk) -> None:
    """I1: the user's next message begins a run; the conversation stays."""
    garden = Garden()
    for text in ("water", "again", "again"):
        talk.user(text)
        await talk.answer(garden, WATER)
    found = [ctx.identity for ctx in garden.seen]
    assert garden.done == ["north"] * 3
    assert len({each.run for each in found}) == 3
    assert len({each.conversation for each in found} - {None}) == 1


async def test_two_conversations_that_begin_alike_share_nothing(talk: Talk) -> None:
    """The ids of the model's calls tell them apart."""
    garden = Garden()
    for call_id in ("call_a", "call_b"):
        other = Talk(talk.provider)
        other.user("hi")
        await other.answer(garden, (call_id, *WATER[1:]))
    first, second = (ctx.identity for ctx in garden.seen)
    assert first.run != second.run and first.conversation != second.conversation


async def test_i13_labels_last_over_the_user_messages(talk: Talk) -> None:
    """I13: an untrusted read in one turn of the user, a write in the next: asked."""
    garden = Garden(confirm="tainted")
    talk.user("water")
    await talk.answer(garden, WATER)
    talk.user("look")
    await talk.answer(garden, LOOK)
    talk.user("water")
    read = await talk.answer(garden, ("c3", *WATER[1:]))
    assert garden.done == ["north"] and kind_of(read) == "approval-denied"


async def test_i14_limits_hold_in_the_run_that_was_found(talk: Talk) -> None:
    """I14: `max_calls=1`: the second call of the run is refused, the next message's is not."""
    garden = Garden(limits=aa.RunLimits(max_calls=1))
    talk.user("water")
    await talk.answer(garden, WATER)
    assert kind_of(await talk.answer(garden, WATER)) == "run-limit-exceeded"
    talk.user("water")
    await talk.answer(garden, WATER)
    assert garden.done == ["north"] * 2


async def test_i24_a_history_that_is_cut_keeps_its_run(talk: Talk) -> None:
    """I24: a summary takes the place of all but the last turn: limits and labels stay."""
    limited, tainted = Garden(limits=aa.RunLimits(max_calls=2)), Garden(confirm="tainted")
    for garden in (limited, tainted):
        talk.user("look and water")
        await talk.answer(garden, LOOK)
        await talk.answer(garden, ("c1", "look", {}))
        talk.summarise(keep=2)
        read = await talk.answer(garden, ("c2", *WATER[1:]))
        assert kind_of(read) == _REFUSED[garden is limited] and garden.done == []


async def test_i25_an_approval_is_used_in_the_next_turn_of_the_user(talk: Talk) -> None:
    """I25: asked, approved, the user says "go on", the model calls anew: it runs once."""
    garden = Garden(deferred=True, confirm=True)
    talk.user("water")
    with pytest.raises(aa.ApprovalPending) as held:
        await talk.answer(garden, WATER)
    await garden.inbox.approve(held.value.id, reviewer="ann")
    talk.user("go on")
    await talk.answer(garden, WATER)
    assert garden.done == ["north"]
    with pytest.raises(aa.ApprovalPending):
        await talk.answer(garden, WATER)


async def test_i10_a_denial_ends_with_the_users_turn(talk: Talk) -> None:
    """I10: denied in one turn, asked for again in the next: asked."""
    garden = Garden(deferred=True, confirm=True)
    asked = []
    for text in ("water", "please do"):
        talk.user(text)
        with pytest.raises(aa.ApprovalPending) as held:
            await talk.answer(garden, WATER)
        asked.append(held.value.id)
        await garden.inbox.deny(held.value.id, reviewer="ann", reason="not today")
        assert kind_of(await talk.again(garden)) == "approval-denied"
    assert len(set(asked)) == 2


async def test_the_same_response_again_is_the_same_call_whatever_the_history(talk: Talk) -> None:
    """A response that is answered again after a crash, with a shorter history, runs nothing."""
    garden = Garden()
    talk.user("water")
    await talk.answer(garden, LOOK)
    first = await talk.answer(garden, WATER)
    elsewhere = aa.Executor(garden.registry, store=garden.store)  # knows nothing of the first
    talk.messages = talk.messages[:1]
    assert await talk.again(garden, executor=elsewhere) == first
    assert garden.done == ["north"]


async def test_a_response_without_an_id_is_found_in_its_history(talk: Talk) -> None:
    """Local servers leave ids out: the history still tells one turn's call from the next's."""
    garden = Garden()
    talk.user("water")
    for _ in range(2):
        await talk.answer(garden, WATER, nameless=True)
    assert garden.done == ["north"] * 2
    await talk.again(garden)
    assert garden.done == ["north"] * 2


async def test_a_history_without_a_user_leaves_the_run_unknown(talk: Talk) -> None:
    """Rules fail closed: a synthetic message is no user's, and neither are results."""
    garden = Garden(confirm="tainted")
    talk.synthetic("a summary of what was said")
    await talk.answer(garden, LOOK)
    assert kind_of(await talk.answer(garden, WATER)) == "approval-denied"
    assert garden.done == []


async def test_a_run_that_is_named_goes_before_the_history(talk: Talk) -> None:
    """`run_id` and a run scope are what the program itself says."""
    garden = Garden()
    talk.user("water")
    await talk.answer(garden, WATER, run_id="r1", thread_id="t1")
    async with garden.executor.run_scope("r2"):
        await talk.answer(garden, WATER)
    assert [ctx.identity.run for ctx in garden.seen] == ["r1", "r2"]
    assert garden.seen[0].identity.conversation == "t1"


async def test_media_of_a_result_is_no_message_of_the_user() -> None:
    """Chat Completions shows a result's media in a message of the user: the run goes on."""
    garden = Garden()

    @garden.registry.tool(effects="read")
    async def picture() -> aa.Image:
        """Gives a picture."""
        return aa.Image(data=b"\x89PNG", media_type="image/png")

    talk = Talk(Provider("chat"))
    talk.user("look and water")
    await talk.answer(garden, WATER)
    await talk.answer(garden, ("c1", "picture", {}))
    assert talk.messages[-1]["role"] == "user"
    await talk.answer(garden, WATER)
    assert len({ctx.identity.run for ctx in garden.seen}) == 1


async def test_responses_go_on_from_the_one_before() -> None:
    """Where OpenAI keeps the conversation, `previous_response_id` tells the run."""
    garden = Garden(limits=aa.RunLimits(max_calls=1))
    talk = Talk(Provider("responses"))
    talk.user("water")
    await talk.answer(garden, WATER)
    talk.messages = talk.messages[2:]  # only the outputs are sent
    read = await talk.answer(garden, WATER, previous=True)
    assert kind_of(read) == "run-limit-exceeded" and garden.done == ["north"]


@pytest.mark.parametrize(
    ("item", "is_user"),
    [
        ("go", True),
        ({"role": "user", "content": "go"}, True),
        ({"role": "user", "content": ""}, False),
        ({"role": "system", "content": "go"}, False),
        ({"role": "user", "content": [{"type": "image", "source": {"data": "aa"}}]}, True),
        ({"role": "user", "content": [{"type": "tool_result"}, {"type": "text", "text": "x"}]}, 0),
        ({"role": "user", "content": "a summary", "synthetic": True}, False),
        ({"role": "user", "content": "s", "additional_kwargs": {"lc_source": "x"}}, False),
        ({"parts": [{"text": "go"}]}, True),
        ({"text": "go"}, True),
        ({"role": "user", "parts": [{"inline_data": {"data": "aa"}}]}, True),
        ({"role": "user", "parts": [{"functionResponse": {"name": "water"}}]}, False),
        ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}, 1),
        ({"type": "function_call_output", "call_id": "c1", "output": "{}"}, False),
        ({"type": "reasoning", "summary": []}, False),
    ],
)
def test_what_is_a_message_of_the_user(item: Any, is_user: bool) -> None:
    """Text or media and no result, not marked synthetic, in the form of any provider."""
    [said] = said_in([item])
    assert (said.user is not None) == bool(is_user)


async def test_a_paused_loop_goes_on_at_its_own_call_whatever_its_id() -> None:
    """The third of three turns with one call id waits; with the kept messages it runs once."""
    garden = Garden(deferred=True, confirm=True)
    options: dict[str, Any] = {"model": "m", "executor": garden.executor}
    ended = await run_tool_loop(
        ChatScript([WATER]).client(), garden.registry, messages="go", **options
    )
    for turns in ([WATER], [WATER], ()):
        assert len(await garden.inbox.list()) == 1
        again = await run_tool_loop(
            ChatScript().client(),
            garden.registry,
            messages=json.loads(json.dumps(ended.messages)),
            run_id=ended.run_id,
            **options,
        )
        assert again.pending == ended.pending  # asked for while it waits: the same question
        await garden.inbox.approve(ended.pending[0], reviewer="ann")
        ended = await run_tool_loop(
            ChatScript(*([list(turns)] if turns else [])).client(),
            garden.registry,
            messages=json.loads(json.dumps(ended.messages)),
            run_id=ended.run_id,
            **options,
        )
    assert garden.done == ["north"] * 3 and ended.status == "done"


async def test_two_loops_of_one_run_share_no_call() -> None:
    """The same prompt and the same ids in one run: what another response asks for is new."""
    garden = Garden()
    for _ in range(2):
        await run_tool_loop(
            ChatScript([WATER]).client(),
            garden.registry,
            model="m",
            messages="go",
            executor=garden.executor,
            run_id="r1",
        )
    assert garden.done == ["north"] * 2


async def test_a_server_that_repeats_its_response_id_loses_no_call() -> None:
    """Three responses of one loop under one id and one call id: three calls."""

    class Constant(ChatScript):
        def whole(self, turn: Any) -> dict[str, Any]:
            return super().whole(turn) | {"id": "chatcmpl-1"}

    garden = Garden()
    client = Constant([WATER], [WATER], [WATER]).client()
    await run_tool_loop(client, garden.registry, model="m", messages="go", executor=garden.executor)
    assert garden.done == ["north"] * 3
