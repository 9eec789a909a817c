"""A failed round: its cause is told, it is tried again, and its channel can be reopened."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import AccessDeniedError, ProtocolError
from agent_adapter.core.secret_texts import without_secrets
from agent_adapter.flow.envelope import EV_CHANNEL_CLOSED, EV_CHANNEL_OPENED, EV_TEXT
from agent_adapter.network.hub import commands
from agent_adapter.network.turns.causes import Retries, cause_of, is_outage
from agent_adapter.network.workflow_helpers import set_context
from tests.network._scene import Scene, TransitionGraph, scene

pytestmark = pytest.mark.anyio


class Model:
    """A participant whose model fails until a time, and what it did."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.attempts: list[int] = []

    async def __call__(self, turn: Any) -> str:
        """Answer, or fail."""
        self.attempts.append(turn.attempt)
        if self.error is not None:
            raise self.error
        return "here"


async def _asked(at: Scene, model: Any) -> Any:
    """A channel of a person and a worker, whose turn it is."""

    async def worker(turn: Any) -> str:
        return str(await model(turn))

    await at.person("user")
    await at.agent("worker", worker)
    graph = TransitionGraph.sequence(at.names("user", "worker"))
    channel = await at.open("user", ["worker"], graph)
    await channel.send("hello")
    await at.settle()
    return channel


async def _closing(at: Scene, channel: Any) -> dict[str, Any]:
    [end] = [e for e in await at.log(channel) if e.event_type == EV_CHANNEL_CLOSED]
    return end.event_data


async def test_the_cause_is_in_the_close_the_audit_and_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """N3: class and text in the closing event and the records, the traceback in the log."""
    async with scene(retries=Retries(usual=())) as at:
        channel = await _asked(at, Model(RuntimeError("no API key is set")))
        said = await _closing(at, channel)
        assert (said["reason"], said["cause"]) == ("turn_failed", "RuntimeError: no API key is set")
        records = [r for r in await at.hub.audit_log.read_all() if r["kind"] == "channel_closed"]
        assert records[0]["cause"] == said["cause"]
        errors = [r for r in caplog.records if r.levelno == logging.ERROR]
        assert "no API key is set" in errors[0].getMessage()
        assert errors[0].exc_info is not None


async def test_every_failed_attempt_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """With the cause, and when it is tried again; the traceback comes with the first and last."""
    async with scene() as at:
        await _asked(at, Model(ValueError("odd")))
        await at.pass_by(1.1)
        told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert "failed: ValueError: odd; it is tried again in 1 s" in told[0]
        assert "it is tried again in 10 s" in told[1]
        assert len([r for r in caplog.records if r.levelno == logging.ERROR]) == 1


async def test_a_model_that_fails_for_30_seconds_recovers() -> None:
    """The fourth attempt, after 71 seconds, is answered."""
    async with scene() as at:
        model = Model(ValueError("odd"))
        channel = await _asked(at, model)
        for _ in range(30):
            await at.pass_by(1)
        model.error = None
        for _ in range(50):
            await at.pass_by(1)
        assert model.attempts == [1, 2, 3, 4]
        assert await at.reason(channel) == "sequence_complete"


async def test_a_providers_outage_is_waited_for_longer() -> None:
    """Half an hour without a connection: the deadlines of the turn stand still, and it goes on."""
    async with scene() as at:
        model = Model(ConnectionError("refused"))
        channel = await _asked(at, model)
        for _ in range(30):
            await at.pass_by(60)
        assert await at.events(channel) == ["msg.text"]
        model.error = None
        for _ in range(15):
            await at.pass_by(60)
        assert await at.reason(channel) == "sequence_complete"


async def test_the_retries_are_the_hubs() -> None:
    """`Hub.open(retries=…)` says how often, and after how many seconds."""
    async with scene(retries=Retries(usual=(5,))) as at:
        model = Model(ValueError("odd"))
        channel = await _asked(at, model)
        await at.pass_by(4)
        assert model.attempts == [1]
        await at.pass_by(2)
        assert (model.attempts, await at.reason(channel)) == ([1, 2], "turn_failed")


@pytest.mark.parametrize("wrong", ["1", (1, -1), (1, float("nan")), 3])
def test_wrong_retries_are_refused(wrong: Any) -> None:
    """The error names the field and what belongs there."""
    with pytest.raises(ValueError, match=r"Retries\.usual"):
        Retries(usual=wrong)


class _Status(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code


class RateLimitError(Exception):
    """A provider's class of that name."""


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (_Status(503), True),
        (_Status(429), True),
        (_Status(401), False),
        (RateLimitError(), True),
        (ValueError("x"), False),
        (OSError("x"), False),
    ],
)
def test_what_an_outage_is(error: Exception, outage: bool) -> None:
    """No connection, a time-out, too many requests, or an error of the server's."""
    assert is_outage(error) is outage


def test_an_outage_may_be_the_cause_of_an_error() -> None:
    """Frameworks wrap what a provider's client raises."""
    try:
        try:
            raise ConnectionError("refused")
        except ConnectionError as exc:
            raise RuntimeError("the agent failed") from exc
    except RuntimeError as exc:
        assert is_outage(exc)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdefghijklmnop",
        "401 for Authorization: Bearer abcdefghijklmnop",
        "request with api_key=abcdefghijklmnop failed",
        '{"password": "abcdefghijklmnop"}',
        "cannot reach https://eve:abcdefghijklmnop@example.org/x",
    ],
)
def test_a_cause_has_no_secrets(text: str) -> None:
    """Credentials in the forms that error texts have are masked."""
    assert "abcdefghijklmnop" not in cause_of(ValueError(text))
    assert "***" in cause_of(ValueError(text))


def test_a_cause_has_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever form it has: the value of a variable whose name says that it is secret."""
    monkeypatch.setenv("SHOP_TOKEN", "tulips-and-bread")
    assert without_secrets("sent tulips-and-bread", 100) == "sent ***"


def test_a_cause_is_bounded() -> None:
    """A page of HTML does not fill the log."""
    assert len(cause_of(ValueError("x" * 100_000))) < 600


async def test_a_failed_channel_is_reopened_where_it_ended() -> None:
    """The same turn goes on; a call of it that had ended is not made again."""
    registry, done = aa.ToolRegistry(), []

    @registry.tool(effects="write")
    async def charge(channel: aa.ChannelInject) -> str:
        """Charge."""
        done.append("charged")
        await set_context(channel, "charged", 1)
        return "charged"

    model = Model(RuntimeError("away"))

    async def worker(turn: Any) -> str:
        await turn.call(charge)
        return await model(turn)

    async with scene(retries=Retries(usual=())) as at:
        channel = await _asked(at, worker)
        assert await at.reason(channel) == "turn_failed"
        model.error = None
        await at.hub.reopen(channel.channel_id)
        await at.settle()
        assert (await at.said(channel))[-1] == ("worker", "here")
        assert done == ["charged"]
        assert (await at.hub.adapter_state(channel.channel_id)).context_vars == {"charged": 1}
        report = await at.hub.replay(channel.channel_id)
        assert report.matches, report.differences
        kinds = [r["kind"] for r in await at.hub.audit_log.of_channel(channel.channel_id)]
        assert "channel_reopened" in kinds


async def test_a_channel_closed_by_hand_is_reopened_with_its_turn() -> None:
    """Its person is expected again, and nobody else."""
    async with scene() as at:
        ana, _ = await at.person("ana"), await at.person("bob")
        channel = await at.open("ana", ["bob"], TransitionGraph.round_robin(at.names("ana", "bob")))
        await channel.send("one")
        await channel.close("too early")
        await ana.hub_client.reopen(channel.channel_id, sender_id=ana.agent_id)
        with pytest.raises(ProtocolError):
            await channel.send("two")
        await at.people["bob"].send(channel.channel_id, "here")
        assert [text for _, text in await at.said(channel)] == ["one", "here"]


async def test_only_its_opener_reopens_a_channel() -> None:
    """Another participant is refused, and nothing changes."""
    async with scene() as at:
        await at.person("ana")
        bob = await at.person("bob")
        channel = await at.open("ana", ["bob"], TransitionGraph.round_robin(at.names("ana", "bob")))
        await channel.close("enough")
        with pytest.raises(AccessDeniedError, match="only the opener"):
            await at.hub.reopen(channel.channel_id, sender_id=bob.agent_id)
        assert (await channel.info()).is_terminal()


async def test_a_channel_that_came_to_its_end_is_not_reopened() -> None:
    """Its graph has nobody left to speak: a fork can go another way."""
    async with scene() as at:
        channel = await _asked(at, Model())
        assert await at.reason(channel) == "sequence_complete"
        with pytest.raises(ProtocolError, match="fork it"):
            await at.hub.reopen(channel.channel_id)


async def test_an_open_channel_is_left_unchanged_by_reopening() -> None:
    """It goes on as it does."""
    async with scene() as at:
        await at.person("ana")
        await at.person("bob")
        channel = await at.open("ana", ["bob"], TransitionGraph.round_robin(at.names("ana", "bob")))
        before = await at.events(channel)
        await at.hub.reopen(channel.channel_id)
        assert await at.events(channel) == before


async def test_a_channel_can_be_reopened_from_another_process() -> None:
    """The command is queued in the store, and the hub runs it."""
    async with scene(retries=Retries(usual=())) as at:
        model = Model(RuntimeError("away"))
        channel = await _asked(at, model)
        model.error = None
        asked = {"channel_id": channel.channel_id}
        id = await at.hub.store.write(lambda tx: commands.queue(tx, "reopen", asked))
        await at.settle()
        await at.settle()
        assert await at.hub.store.read(lambda tx: commands.result(tx, id)) == {
            "state": "done",
            "state_of_channel": "active",
        }
        assert (await at.said(channel))[-1] == ("worker", "here")
        opened = [e for e in await at.log(channel) if e.event_type == EV_CHANNEL_OPENED]
        assert opened[-1].event_data["reopened_after"] == "turn_failed"


async def test_the_end_of_a_reopened_channel_is_not_waited_for_again() -> None:
    """`wait_for_channel_event` gives the end that counts; other events are found as ever."""
    async with scene() as at:
        ana, bob = await at.person("ana"), await at.person("bob")
        channel = await ana.open(type="conversation", target=["bob"])
        await bob.send(channel.channel_id, "one")
        for reason in ("first", "second"):
            await at.hub.close_channel(channel.channel_id, reason)
            await at.hub.reopen(channel.channel_id)

        async def event(kind: str, timeout: float) -> Any:
            return await ana.wait_for_channel_event(
                channel_id=channel.channel_id,
                predicate=lambda item: item.event_type == kind,
                timeout=timeout,
            )

        with pytest.raises(TimeoutError):
            await event(EV_CHANNEL_CLOSED, 0.05)
        assert (await event(EV_TEXT, 60)).event_data["text"] == "one"
        await at.hub.close_channel(channel.channel_id, "third")
        assert (await event(EV_CHANNEL_CLOSED, 60)).event_data["reason"] == "third"
