"""Rules as data: durations, globs, and what cannot be a rule."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_adapter.core.errors import AccessDeniedError, ProtocolError
from agent_adapter.network import (
    AccessBlock,
    Decision,
    InboxBlock,
    LimitsBlock,
    RateBlock,
    Rule,
    RuleBasedArbiter,
    parse_duration,
)
from agent_adapter.network.hub.admission import allows
from tests.network._scene import scene


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("15m", 900), ("2h", 7200), ("1d", 86400), ("90", 90), (45, 45), ("", 0)],
)
def test_duration(text: str | int, seconds: int) -> None:
    """A duration has a unit, or is in seconds."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["2 weeks", "h", "-5s", "1.5h", "٣s", -1])
def test_no_duration(text: str | int) -> None:
    """Anything else is refused with the ways to write one."""
    with pytest.raises(ValueError, match="30s, 15m, 2h, 1d"):
        parse_duration(text)


def test_rule_survives_json() -> None:
    """A rule reads back as it was written."""
    rule = Rule(access=AccessBlock(inbound_from=["support-*"]), limits=LimitsBlock())
    assert Rule.from_dict(rule.to_dict()) == rule


def test_unknown_limit_is_refused() -> None:
    """A misspelt limit is refused, not ignored: it would limit nothing."""
    with pytest.raises(ProtocolError, match="max_chanels"):
        Rule.from_dict({"limits": {"max_chanels": 3}})


def test_dropping_messages_is_refused() -> None:
    """A rule that would lose accepted messages cannot be written."""
    with pytest.raises(ValueError, match="never dropped"):
        InboxBlock(overflow="drop_oldest")


def test_pressure_begins_before_the_limit() -> None:
    """Without a high-water mark there is pressure from 80 per cent on."""
    assert InboxBlock(max_pending=10).pressure_at() == 8


def test_globs_keep_capitals_apart() -> None:
    """A pattern matches names as they are written."""
    assert allows(["support-*"], "support-1")
    assert not allows(["support-*"], "Support-1")


@pytest.mark.anyio
async def test_a_rule_limits_the_tasks_that_run_at_once() -> None:
    """N11: one task more than `max_concurrent_tasks` is refused, and counts again once one ends."""
    rule = Rule(limits=LimitsBlock(max_concurrent_tasks=2))
    async with scene() as at:
        worker = (await at.agent("worker", lambda text: text, rule=rule)).agent_id
        other = (await at.agent("other", lambda text: text)).agent_id
        for number in (1, 2):
            await at.hub.start_task(f"t{number}", worker, "dig")
        with pytest.raises(AccessDeniedError, match=r"2 tasks .* its rule allows 2"):
            await at.hub.start_task("t3", worker, "dig")
        assert (await at.hub.start_task("t2", worker, "dig")).task_id == "t2"
        await at.hub.start_task("o1", other, "dig")
        await at.hub.update_task("t1", worker, state="completed")
        await at.hub.start_task("t3", worker, "dig")
        assert len(await at.hub.list_tasks(worker)) == 3


@pytest.mark.anyio
@pytest.mark.parametrize("own", [False, True], ids=["rules", "arbiter"])
async def test_a_rule_limits_the_channels_that_are_opened_at_the_same_moment(own: bool) -> None:
    """Of ten openings at once three are admitted, also by an arbiter of the program's own."""

    class Own(RuleBasedArbiter):
        """Waits before it decides, as one that asks a service."""

        async def authorize_channel_open(self, *about: Any) -> Decision:
            await asyncio.sleep(0)
            return await super().authorize_channel_open(*about)

    rule = Rule(limits=LimitsBlock(max_concurrent_channels=3, rate=RateBlock(per_minute=10)))
    async with scene() as at:
        if own:
            at.hub.register_arbiter(Own())
        ana = await at.person("ana", rule=rule)
        await at.person("bob")
        opened = await asyncio.gather(
            *(ana.open(type="conversation", target="bob") for _ in range(10)),
            return_exceptions=True,
        )
        refused = [item for item in opened if isinstance(item, BaseException)]
        assert len(refused) == 7
        assert {str(item) for item in refused} == {
            "ana has 3 channels open and may have 3 (limits.max_concurrent_channels);"
            " close one first"
        }
        assert len(await at.hub.list_channels()) == 3
