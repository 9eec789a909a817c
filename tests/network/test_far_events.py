"""Events over a connection: what its own participants may see, and nothing of others."""

from __future__ import annotations

from typing import Any

import pytest

from agent_adapter.core.errors import AccessDeniedError, NotFoundError
from agent_adapter.network import HubClient, Passport, WebSocketLink, serve
from tests.network._scene import Scene, scene

pytestmark = pytest.mark.anyio


async def _echo(text: str) -> str:
    return f"heard {text}"


async def _two_channels(at: Scene, client: HubClient) -> tuple[Any, Any]:
    """One channel of the far bot with ana, and one of bob and carl that is not its business."""
    ana, bob = await at.person("ana"), await at.person("bob")
    await at.person("carl")
    await client.register(_echo, Passport(name="bot"), attach_plugin=False)
    mine = await ana.open(type="conversation", target=["bot"])
    return mine, await bob.open(type="conversation", target=["carl"])


async def test_a_far_reader_sees_its_own_channels() -> None:
    """The messages and turns of its channel come; those of another channel do not."""
    pytest.importorskip("websockets")
    async with (
        scene() as at,
        serve(at.hub) as server,
        HubClient(WebSocketLink(server.url)) as client,
    ):
        mine, other = await _two_channels(at, client)
        newest = str(at.hub.feed.newest)
        events = await client.subscribe(["envelope_posted", "turn_done"], after=newest)
        await other.send("secret")
        await mine.send("hello")
        found = [await events.next(timeout=30) for _ in range(3)]
        assert {event.channel_id for event in found} == {mine.channel_id}
        assert [event.kind for event in found] == [
            "envelope_posted",
            "envelope_posted",
            "turn_done",
        ]
        await events.aclose()


async def test_a_far_reader_sees_nothing_of_others() -> None:
    """Neither records, nor tasks, nor channels that its participants are not in."""
    pytest.importorskip("websockets")
    async with (
        scene() as at,
        serve(at.hub) as server,
        HubClient(WebSocketLink(server.url)) as client,
    ):
        mine, other = await _two_channels(at, client)
        await other.send("secret")
        await at.hub.start_task("t1", at.id("bob"), "count the money")
        await at.hub.audit_log.append({"kind": "backup", "channel_id": mine.channel_id})
        far = await client.hub_like()
        answer = await far.request("read_events", {"after": "", "kinds": None, "wait": 0.0})  # type: ignore[attr-defined]
        channels = {event["channel_id"] for event in answer["events"]} - {None}
        assert channels == {mine.channel_id}
        kinds = {event["kind"] for event in answer["events"]}
        assert not kinds & {"task_started", "backup", "rule_set"}
        assert "secret" not in str(answer)
        with pytest.raises(NotFoundError):
            await client.get_task("t1")
        with pytest.raises(NotFoundError):
            await client.update_task("t1", state="completed")
        with pytest.raises(NotFoundError):
            await client.read_task_checkpoint("t1")
        assert await client.list_tasks() == []
        with pytest.raises(AccessDeniedError):
            await client.record_observation(
                owner_id=at.id("bot"), capability="x", outcome="completed"
            )


async def test_a_far_owner_has_its_tasks_kept() -> None:
    """Begun, ended and counted over the connection; the checkpoint comes back."""
    pytest.importorskip("websockets")
    async with (
        scene() as at,
        serve(at.hub) as server,
        HubClient(WebSocketLink(server.url)) as client,
    ):
        await _two_channels(at, client)
        task = {
            "task_id": "t1",
            "owner_id": at.id("bot"),
            "spec": {"title": "x", "capability": "y"},
        }
        await client.observe_task(task)
        await client.checkpoint_task("t1", {"page": 2})
        assert await client.read_task_checkpoint("t1") == {"page": 2}
        ended = await client.update_task("t1", state="completed", result=[1])
        assert (ended.state, ended.result) == ("completed", [1])
        assert (await client.get_resume(at.id("bot"))).observed["y"].completed == 1
