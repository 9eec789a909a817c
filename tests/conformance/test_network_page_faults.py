"""The page's programs when a tool fails, a process dies, a model is away, or no key is set."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ag2")

from ag2 import Agent
from ag2.testing import TestConfig

from agent_adapter.network import Hub, Retries
from agent_adapter.store.memory import MemoryStore
from tests.conformance._faults_program import approving_once, ended, joined, opened, reviewer_of
from tests.network._scene import FakeClock

pytestmark = pytest.mark.anyio


async def test_a_tool_that_fails_once(tmp_path: Path) -> None:
    """N1: the model calls it again in its round, it runs, and the channel ends approved."""
    entered: list[int] = []

    def enter() -> None:
        entered.append(1)
        if len(entered) == 1:
            raise OSError("no luck")

    async with await Hub.open(str(tmp_path / "network.db")) as hub:
        user, drafter, reviewer = await joined(hub, reviewer_of(enter))
        data = await ended(user, await opened(user, drafter, reviewer))
        assert (data["reason"], len(entered)) == ("approved", 2)


async def test_a_tool_that_fails_and_ends_its_round(tmp_path: Path) -> None:
    """A framework that raises a tool's error repeats the round, and with it the call."""
    entered: list[int] = []

    def enter() -> None:
        entered.append(1)
        if len(entered) == 1:
            raise OSError("no luck")

    retries = Retries(usual=(0.01,))
    async with await Hub.open(str(tmp_path / "network.db"), retries=retries) as hub:
        user, drafter, reviewer = await joined(hub, approving_once(enter))
        data = await ended(user, await opened(user, drafter, reviewer))
        assert (data["reason"], len(entered)) == ("approved", 2)


async def test_a_process_killed_inside_a_tool(tmp_path: Path) -> None:
    """N2: `resume_pending_turns` after a new start dispatches the turn, and its tool runs again."""
    store, effects = str(tmp_path / "network.db"), tmp_path / "effects.txt"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.conformance._faults_program", store, str(effects)
    )
    assert await process.wait() == -signal.SIGKILL
    assert effects.read_text() == "entered\n"
    again: list[str] = []
    async with await Hub.open(store) as hub:
        user, _, reviewer = await joined(hub, approving_once(lambda: again.append("entered")))
        [channel] = await hub.list_channels()
        await reviewer.resume_pending_turns()
        data = await ended(user, channel.channel_id)
        assert (data["reason"], again) == ("approved", ["entered"])
        records = await hub.audit_log.of_channel(channel.channel_id)
        assert "turn_parked" not in [record["kind"] for record in records]


async def test_a_model_that_fails_for_30_seconds() -> None:
    """The round is tried again after 1, 10 and 60 seconds; the last attempt finds the model."""
    clock = FakeClock()
    up_again = clock.at + 30

    class Away(TestConfig):
        __test__ = False

        def create(self) -> Any:
            if clock.at < up_again:
                raise RuntimeError("the model is away")
            return approving_once(lambda: None).config.create()  # type: ignore[union-attr]  # it has one

    quiet: Any = {"ttl_sweep_interval": 0, "expectation_sweep_interval": 0}
    hub = await Hub.open(MemoryStore(clock=clock), clock=clock, **quiet)
    user, drafter, reviewer = await joined(hub, reviewer_of(lambda: None, Away()))
    channel_id = await opened(user, drafter, reviewer)
    for _ in range(80):
        await hub.poll()
        await hub.idle()
        clock.pass_by(1)
    assert (await ended(user, channel_id))["reason"] == "approved"
    await hub.close()


async def test_without_a_key_the_cause_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """N3: the closing event and the log say that no key is set, and the log has the traceback."""
    pytest.importorskip("openai")
    from ag2.config import OpenAIConfig

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = OpenAIConfig(model="gpt-4o-mini")
    retries = Retries(usual=(), outage=())
    async with await Hub.open(str(tmp_path / "network.db"), retries=retries) as hub:
        reviewer_agent = Agent("reviewer", config=config)
        user, drafter, reviewer = await joined(hub, reviewer_agent)
        data = await ended(user, await opened(user, drafter, reviewer))
    assert data["reason"] == "turn_failed"
    assert "api_key" in data["cause"]
    told = [r for r in caplog.records if r.levelno == logging.ERROR and r.exc_info]
    assert any("api_key" in r.getMessage() for r in told)
