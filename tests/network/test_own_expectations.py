"""Expectations of the program's own: judged at each sweep, fired once, also over a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_adapter.core.errors import ProtocolError
from agent_adapter.flow.envelope import EV_EXPECTATION_VIOLATED, EV_TEXT, Envelope
from agent_adapter.network import (
    AcksWithinEvaluator,
    AuditHandler,
    AutoCloseHandler,
    ChannelManifest,
    ChannelState,
    Expectation,
    ExpectationContext,
    MaxSilenceEvaluator,
    NotifyChannelHandler,
    ReplyWithinEvaluator,
    Violation,
    default_evaluators,
    default_handlers,
)
from agent_adapter.network.adapters.conversation import ConversationAdapter
from agent_adapter.store import open_store
from tests.network._channels import metadata
from tests.network._scene import Scene, scene

pytestmark = pytest.mark.anyio


class Shouting:
    """Fires for whoever has written in capitals."""

    name = "no_shouting"

    def __init__(self) -> None:
        self.asked = 0

    def evaluate(self, expectation: Expectation, context: ExpectationContext) -> Violation | None:
        """The speakers of texts in capitals."""
        self.asked += 1
        loud = [
            item.sender_id
            for item in context.wal
            if item.event_type == EV_TEXT and item.event_data["text"].isupper()
        ]
        return Violation(expectation, loud, {"n": len(loud)}) if loud else None


class Paging:
    """Keeps whom it was called for."""

    name = "page"

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []

    async def handle(self, hub: Any, channel_id: str, violation: Violation) -> None:
        """Keep the call."""
        self.calls.append((channel_id, list(violation.violator_ids)))


def _type(*expectations: Expectation) -> ConversationAdapter:
    adapter = ConversationAdapter()
    adapter.manifest = ChannelManifest("watched", expectations=list(expectations))
    return adapter


async def _open(at: Scene, *expectations: Expectation) -> Any:
    at.hub.register_adapter(_type(*expectations))
    ana = await at.person("ana")
    await at.person("bob")
    return await ana.open(type="watched", target=["bob"])


async def _registered(at: Scene) -> tuple[Shouting, Paging]:
    evaluator, handler = Shouting(), Paging()
    at.hub.register_expectation_evaluator(evaluator)
    at.hub.register_violation_handler(handler)
    return evaluator, handler


async def test_an_evaluator_fires_once_for_each_violator() -> None:
    """Recorded, told to listeners, and handled: once for ana, once for bob."""
    async with scene() as at:
        _, handler = await _registered(at)
        channel = await _open(at, Expectation("no_shouting", "page"))
        await at.pass_by(1)
        assert handler.calls == []
        await channel.send("HELLO")
        for _ in range(3):
            await at.pass_by(1)
        assert handler.calls == [(channel.channel_id, [at.id("ana")])]
        await at.people["bob"].send(channel.channel_id, "OH")
        await at.pass_by(1)
        assert handler.calls[1:] == [(channel.channel_id, [at.id("bob")])]
        records = [r for r in await at.hub.audit_log.read_all() if r["kind"].startswith("expec")]
        assert [(r["expectation"], r["violators"]) for r in records] == [
            ("no_shouting", [at.id("ana")]),
            ("no_shouting", [at.id("bob")]),
        ]


@pytest.mark.parametrize("action", ["warn", "notify_channel", "auto_close", "audit"])
async def test_the_hub_s_own_actions_work_for_it(action: str) -> None:
    """The channel is told, or closed with the name of the expectation, or neither."""
    async with scene() as at:
        at.hub.register_expectation_evaluator(Shouting())
        channel = await _open(at, Expectation("no_shouting", action))
        await channel.send("HELLO")
        await at.pass_by(1)
        kinds = [item.event_type for item in await at.log(channel)]
        assert (EV_EXPECTATION_VIOLATED in kinds) == (action in ("warn", "notify_channel"))
        closed = await at.reason(channel)
        assert closed == ("expectation_violated:no_shouting" if action == "auto_close" else None)


async def test_it_fires_once_over_a_restart(tmp_path: Path) -> None:
    """The next hub knows whom it has fired for."""
    store = open_store(tmp_path / "hub.db")
    async with scene(store) as at:
        _, first = await _registered(at)
        channel = await _open(at, Expectation("no_shouting", "page"))
        await channel.send("HELLO")
        await at.pass_by(1)
        assert len(first.calls) == 1
    async with scene(store) as at:
        evaluator, second = await _registered(at)
        at.hub.register_adapter(_type(Expectation("no_shouting", "page")))
        await at.pass_by(1)
        assert evaluator.asked == 1
        assert second.calls == []
    await store.aclose()


async def test_a_handler_that_was_not_called_is_called_by_the_next_hub(tmp_path: Path) -> None:
    """A violation is recorded before its handler runs: a crash in between loses nothing."""
    store = open_store(tmp_path / "hub.db")
    async with scene(store) as at:
        await _registered(at)
        channel = await _open(at, Expectation("no_shouting", "page"))
        await channel.send("HELLO")
        await at.pass_by(1)
        where = {"channel_id": channel.channel_id, "name": "no_shouting"}
        await store.write(lambda tx: tx.update("expectations", where, {"handled_at": None}))
    async with scene(store) as at:
        _, handler = await _registered(at)
        at.hub.register_adapter(_type(Expectation("no_shouting", "page")))
        await at.pass_by(1)
        await at.pass_by(1)
        assert [channel_id for channel_id, _ in handler.calls] == [channel.channel_id]
    await store.aclose()


async def test_asynchronous_evaluators_and_plain_handlers_work() -> None:
    """Either may be a function or a coroutine function."""

    class Later:
        name = "no_shouting"

        async def evaluate(
            self, expectation: Expectation, context: ExpectationContext
        ) -> Violation | None:
            """The same, awaited."""
            return Shouting().evaluate(expectation, context)

    class Plain:
        name = "page"

        def __init__(self) -> None:
            self.calls = 0

        def handle(self, hub: Any, channel_id: str, violation: Violation) -> None:
            """Count."""
            self.calls += 1

    async with scene() as at:
        handler = Plain()
        at.hub.register_expectation_evaluator(Later())
        at.hub.register_violation_handler(handler)
        channel = await _open(at, Expectation("no_shouting", "page"))
        await channel.send("HELLO")
        await at.pass_by(1)
        assert handler.calls == 1


async def test_what_they_raise_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Other expectations are judged, and the violation is not handled again and again."""

    class Broken(Shouting):
        name = "broken"

        def evaluate(self, expectation: Any, context: Any) -> Violation | None:
            """Fail."""
            raise ValueError("cannot judge")

    class Clumsy(Paging):
        async def handle(self, hub: Any, channel_id: str, violation: Violation) -> None:
            """Fail."""
            await super().handle(hub, channel_id, violation)
            raise OSError("no pager")

    async with scene() as at:
        handler = Clumsy()
        at.hub.register_expectation_evaluator(Broken())
        at.hub.register_expectation_evaluator(Shouting())
        at.hub.register_violation_handler(handler)
        expectations = Expectation("broken", "page"), Expectation("no_shouting", "page")
        channel = await _open(at, *expectations)
        await channel.send("HELLO")
        await at.pass_by(1)
        await at.pass_by(1)
        assert len(handler.calls) == 1
        assert caplog.text.count("the evaluator 'broken' failed") == 1
        assert "the handler 'page' failed" in caplog.text


async def test_a_handler_takes_the_place_of_the_hub_s_own() -> None:
    """With the name `warn` it acts in place of the hub, on deadlines too."""

    class Mine(Paging):
        name = "warn"

    async with scene() as at:
        handler = Mine()
        at.hub.register_violation_handler(handler)
        channel = await _open(at, Expectation("reply_within", "warn", {"seconds": 30}))
        await channel.send("hello")
        await at.pass_by(31)
        await at.pass_by(31)
        assert handler.calls == [(channel.channel_id, [at.id("bob")])]
        kinds = [item.event_type for item in await at.log(channel)]
        assert EV_EXPECTATION_VIOLATED not in kinds


async def test_an_unknown_expectation_or_action_is_refused() -> None:
    """A channel type that nobody could judge is not registered."""
    async with scene() as at:
        with pytest.raises(ProtocolError, match="register_expectation_evaluator"):
            at.hub.register_adapter(_type(Expectation("no_shouting", "warn")))
        with pytest.raises(ProtocolError, match="unknown action 'page'"):
            at.hub.register_adapter(_type(Expectation("max_silence", "page", {"seconds": 5})))
        for register in (
            at.hub.register_expectation_evaluator,
            at.hub.register_violation_handler,
        ):
            nameless: Any = object()
            with pytest.raises(TypeError, match="needs a `name`"):
                register(nameless)


async def test_the_built_in_handlers_act_on_a_hub() -> None:
    """A handler of the program may call them."""
    async with scene() as at:
        ana = await at.person("ana")
        await at.person("bob")
        channel = await ana.open(type="conversation", target=["bob"])
        violation = Violation(Expectation("mine", "x"), [at.id("bob")], {"n": 1})
        await AuditHandler().handle(at.hub, channel.channel_id, violation)
        await NotifyChannelHandler().handle(at.hub, channel.channel_id, violation)
        told = (await at.log(channel))[-1]
        assert told.event_data == {
            "expectation": "mine",
            "violators": [at.id("bob")],
            "detail": {"n": 1},
        }
        await AutoCloseHandler().handle(at.hub, channel.channel_id, violation)
        assert await at.reason(channel) == "expectation_violated:mine"
        await NotifyChannelHandler().handle(at.hub, channel.channel_id, violation)


def _context(
    now: float, wal: list[Envelope], state: ChannelState = ChannelState.ACTIVE, **more: Any
) -> ExpectationContext:
    from dataclasses import replace

    from agent_adapter.network.channels.snapshot import iso

    found = replace(metadata("conversation", ("a", "b")), state=state, created_at=iso(0), **more)
    return ExpectationContext(found, None, wal, iso(now), now)


def _said(sender: str, at: float) -> Envelope:
    from agent_adapter.network.channels.snapshot import iso

    return Envelope("ch", sender, None, EV_TEXT, {"text": "x"}, "e", created_at=iso(at))


@pytest.mark.parametrize(
    ("evaluator", "context", "violators"),
    [
        (AcksWithinEvaluator, lambda now: _pending(now), ["b"]),
        (ReplyWithinEvaluator, lambda now: _context(now, [_said("a", 0)]), ["b"]),
        (MaxSilenceEvaluator, lambda now: _context(now, [_said("a", 0)]), []),
        (MaxSilenceEvaluator, lambda now: _context(now, []), []),
    ],
)
def test_the_evaluators_fire_at_their_limit(
    evaluator: Any, context: Callable[[float], ExpectationContext], violators: list[str]
) -> None:
    """Not a second before it, and from it on."""
    expectation = Expectation(evaluator.name, "audit", {"seconds": 60})
    assert evaluator().evaluate(expectation, context(59)) is None
    found = evaluator().evaluate(expectation, context(60))
    assert found is not None and found.violator_ids == violators


def _pending(now: float) -> ExpectationContext:
    return _context(now, [], ChannelState.PENDING, pending_acks=["b"])


def test_an_answer_ends_the_wait() -> None:
    """Whoever has answered since owes nothing."""
    context = _context(100, [_said("a", 0), _said("b", 10)])
    expectation = Expectation("reply_within", "audit", {"seconds": 60})
    found = ReplyWithinEvaluator().evaluate(expectation, context)
    assert found is not None and found.violator_ids == ["a"]


def test_the_defaults_are_one_of_each() -> None:
    """By their names."""
    assert [item.name for item in default_evaluators()] == [
        "acks_within",
        "reply_within",
        "max_silence",
    ]
    assert [item.name for item in default_handlers()] == ["audit", "notify_channel", "auto_close"]
