"""Tasks: begun, mirrored, ended, counted for their owner's capability, continued after a crash."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import AccessDeniedError, NotFoundError, ProtocolError
from agent_adapter.network import (
    EV_TASK_CANCEL_REQUEST,
    ClientTask,
    HubBackedCheckpointStore,
    LimitsBlock,
    Resume,
    Rule,
    TaskMetadata,
    TaskMirror,
    TaskSpec,
    TaskState,
)
from agent_adapter.network.tools.tasks import tasks_tool
from agent_adapter.store import open_store
from tests.network._scene import scene
from tests.network.test_listeners import Recorder

pytestmark = pytest.mark.anyio


async def _echo(text: str) -> str:
    return text


def _task(owner: str, task_id: str = "t1", **more: Any) -> TaskMetadata:
    spec = TaskSpec("sort the post", capability=more.pop("capability", None))
    return TaskMetadata(task_id, owner, spec, **more)


async def test_a_task_is_followed_from_its_begin_to_its_end() -> None:
    """Started, progress, completed: as a record, as events, in the audit log."""
    async with scene() as at:
        bot = await at.agent("bot", _echo)
        events = at.hub.subscribe(["task_started", "task_progress", "task_completed"])
        await at.hub.observe_task(_task(bot.agent_id))
        await at.hub.update_task("t1", progress={"step": 1})
        await at.hub.update_task("t1", progress={"of": 3}, note="half way")
        at.clock.pass_by(2)
        await at.hub.update_task("t1", state="completed", result={"letters": 12})
        task = await at.hub.get_task("t1")
        assert (task.state, task.progress, task.result) == (
            TaskState.COMPLETED,
            {"step": 1, "of": 3},
            {"letters": 12},
        )
        assert task.notes == ["half way"]
        assert task.completed_at is not None
        kinds = [(await events.next(timeout=10)).kind for _ in range(3)]
        assert kinds == ["task_started", "task_progress", "task_completed"]
        ended = [r for r in await at.hub.audit_log.read_all() if r["kind"] == "task_terminated"]
        assert [(r["task_id"], r["outcome"]) for r in ended] == [("t1", "completed")]


async def test_a_task_that_has_ended_stays_as_it_is() -> None:
    """The second end changes nothing and counts nothing."""
    async with scene() as at:
        bot = await at.agent("bot", _echo)
        await at.hub.observe_task(_task(bot.agent_id, capability="sorting"))
        await at.hub.update_task("t1", state=TaskState.FAILED, error="no post")
        await at.hub.update_task("t1", state=TaskState.COMPLETED, result="all")
        task = await at.hub.get_task("t1")
        assert (task.state, task.error, task.result) == (TaskState.FAILED, "no post", None)
        observed = (await at.hub.get_resume(bot.agent_id)).observed["sorting"]
        assert (observed.n, observed.failed) == (1, 1)


async def test_n11_a_rule_limits_the_tasks_at_once() -> None:
    """N11: with `max_concurrent_tasks=1` the second task is refused, however it is begun."""
    async with scene() as at:
        rule = Rule(limits=LimitsBlock(max_concurrent_tasks=1))
        bot = await at.agent("bot", _echo, rule=rule)
        await at.hub.observe_task(_task(bot.agent_id))
        with pytest.raises(AccessDeniedError, match="max_concurrent_tasks"):
            await at.hub.observe_task(_task(bot.agent_id, "t2"))
        with pytest.raises(AccessDeniedError, match="max_concurrent_tasks"):
            await at.hub.start_task("t3", bot.agent_id, "another")
        await at.hub.observe_task(_task(bot.agent_id, progress={"again": True}))
        await at.hub.update_task("t1", state="completed")
        assert (await at.hub.start_task("t3", bot.agent_id, "another")).state == "running"


async def test_a_task_ends_when_its_time_is_over() -> None:
    """Its own `expires_at`, else `task_ttl_default` of its owner's rule."""
    async with scene() as at:
        rule = Rule(limits=LimitsBlock(task_ttl_default="10m"))
        bot = await at.agent("bot", _echo, rule=rule)
        await at.hub.observe_task(_task(bot.agent_id))
        at.clock.pass_by(599)
        await at.hub.expire_due()
        assert (await at.hub.get_task("t1")).state is TaskState.RUNNING
        at.clock.pass_by(2)
        await at.hub.expire_due()
        task = await at.hub.get_task("t1")
        assert (task.state, task.error) == (TaskState.EXPIRED, "ttl_expired")


async def test_a_task_ends_with_its_channel() -> None:
    """A channel that ends takes its tasks along."""
    async with scene() as at:
        ana = await at.person("ana")
        bot = await at.agent("bot", _echo)
        channel = await ana.open(type="conversation", target=["bot"])
        await at.hub.observe_task(_task(bot.agent_id, channel_id=channel.channel_id))
        await channel.close("enough")
        assert (await at.hub.get_task("t1")).state is TaskState.EXPIRED


async def test_what_was_observed_is_counted_once_and_kept(tmp_path: Path) -> None:
    """Success and median latency per capability; a restart and a new résumé keep it."""
    store = open_store(tmp_path / "hub.db")
    async with scene(store) as at:
        bot = await at.agent("bot", _echo)
        for number, seconds in enumerate((1, 5, 3)):
            await at.hub.observe_task(_task(bot.agent_id, f"t{number}", capability="sorting"))
            at.clock.pass_by(seconds)
            await at.hub.update_task(f"t{number}", state="completed")
        await at.hub.record_observation(
            owner_id=bot.agent_id, capability="sorting", outcome="expired", task_id="t0"
        )
        await bot.set_resume(Resume(claimed_capabilities=["reading"]))
        observed = (await at.hub.get_resume(bot.agent_id)).observed["sorting"]
        assert (observed.n, observed.completed, observed.p50_latency_ms) == (3, 3, 3000)
        assert at.hub.agents_with_capability("sorting") == [bot.agent_id]
    async with scene(store) as at:
        bot = await at.agent("bot", _echo)
        assert (await at.hub.get_resume(bot.agent_id)).observed["sorting"].n == 3
    await store.aclose()


async def test_a_checkpoint_survives_the_hub(tmp_path: Path) -> None:
    """What was saved last is read by the next process."""
    store = open_store(tmp_path / "hub.db")
    async with scene(store) as at:
        kept = HubBackedCheckpointStore(at.hub)
        assert await kept.read("t1") is None
        await kept.write("t1", {"page": 3})
        await HubBackedCheckpointStore(at.client).write("t1", {"page": 4})
    async with scene(store) as at:
        assert await HubBackedCheckpointStore(at.hub).read("t1") == {"page": 4}
        assert await HubBackedCheckpointStore(at.client).read("t1") == {"page": 4}
    assert (await store.read(lambda tx: tx.count("checkpoints"))) == 1
    await store.aclose()


@pytest.mark.parametrize("state", [{"at": object()}, {"n": float("nan")}, {"x": "y" * 2_000_000}])
async def test_a_checkpoint_that_cannot_be_kept_is_refused(state: dict[str, Any]) -> None:
    """A value that is not JSON, or too long, is named with its task."""
    async with scene() as at:
        with pytest.raises(ProtocolError, match="the checkpoint of task t1"):
            await at.hub.checkpoint_task("t1", state)


async def test_unknown_tasks_and_states_are_named() -> None:
    """Neither is a guess made."""
    async with scene() as at:
        bot = await at.agent("bot", _echo)
        with pytest.raises(NotFoundError, match="there is no task 't9'"):
            await at.hub.get_task("t9")
        with pytest.raises(NotFoundError):
            await at.hub.update_task("t9", state="completed")
        await at.hub.observe_task(_task(bot.agent_id))
        with pytest.raises(ProtocolError, match="a task is one of created, running"):
            await at.hub.update_task("t1", state="finished")
        with pytest.raises(ProtocolError):
            await at.hub.observe_task({"task_id": "t2"})


async def test_tasks_are_listed_by_owner_channel_and_state() -> None:
    """Newest first, for anybody who may ask the hub."""
    async with scene() as at:
        bot, other = await at.agent("bot", _echo), await at.agent("other", _echo)
        for number, owner in enumerate([bot, other, bot]):
            at.clock.pass_by(1)
            await at.hub.observe_task(_task(owner.agent_id, f"t{number}"))
        await at.hub.update_task("t0", state="completed")
        of_bot = await at.hub.list_tasks(agent_id=bot.agent_id)
        assert [task.task_id for task in of_bot] == ["t2", "t0"]
        assert [task.task_id for task in await at.hub.list_tasks(state="completed")] == ["t0"]
        assert len(await at.client.list_tasks(state=TaskState.RUNNING)) == 2


async def test_a_handle_reads_its_task_again() -> None:
    """`ClientTask` is a snapshot until `info()`."""
    async with scene() as at:
        bot = await at.agent("bot", _echo)
        handle = ClientTask(metadata=await at.hub.observe_task(_task(bot.agent_id)), client=bot)
        await at.hub.update_task("t1", state="cancelled", error="no longer needed")
        assert handle.state is TaskState.RUNNING
        assert (await handle.info()).error == "no longer needed"
        assert (handle.task_id, handle.owner_id) == ("t1", bot.agent_id)


async def test_a_peer_asks_the_owner_to_cancel() -> None:
    """The request is an envelope to the owner alone; the owner decides."""
    async with scene() as at:
        owner, peer = await at.agent("owner", _echo), await at.agent("peer", _echo)
        channel = await peer.open(type="conversation", target=["owner"])
        await at.hub.observe_task(_task(owner.agent_id, channel_id=channel.channel_id))
        told = await _run(peer, action="cancel", task_id="t1", reason="too slow")
        assert "cancel_request posted" in told
        request = [e for e in await at.log(channel) if e.event_type == EV_TASK_CANCEL_REQUEST]
        assert [(e.audience, e.event_data) for e in request] == [
            ([owner.agent_id], {"task_id": "t1", "reason": "too slow"})
        ]
        assert (await at.hub.get_task("t1")).state is TaskState.RUNNING
        assert (await _run(owner, action="cancel", task_id="t1"))["state"] == "cancelled"


async def test_the_tool_waits_for_a_task_to_end() -> None:
    """It returns when the task has ended, without asking again and again."""
    async with scene() as at:
        owner, peer = await at.agent("owner", _echo), await at.agent("peer", _echo)
        await at.hub.observe_task(_task(owner.agent_id))
        waiting = asyncio.create_task(_run(peer, action="wait", task_id="t1", timeout=30))
        await asyncio.sleep(0)
        await at.hub.update_task("t1", state="completed", result="done")
        assert (await waiting)["result"] == "done"
        await at.hub.observe_task(_task(owner.agent_id, "t2"))
        with pytest.raises(aa.ToolError, match="has not ended within"):
            await _run(peer, action="wait", task_id="t2", timeout=0.05)


async def _run(client: Any, **arguments: Any) -> Any:
    spec = tasks_tool(client)
    executor = aa.Executor(store=aa.open_store("memory://"))
    try:
        return await executor.run_spec(spec, arguments)
    finally:
        await executor.aclose()


async def test_a_listener_hears_of_tasks() -> None:
    """Each change is a call with the task's id, kind and owner."""

    class Tasks(Recorder):
        async def on_task_event(self, *arguments: Any) -> None:
            """Keep it."""
            self.calls.append(("task", arguments))

    async with scene() as at:
        bot = await at.agent("bot", _echo)
        heard = Tasks()
        at.hub.register_listener(heard)
        await at.hub.observe_task(_task(bot.agent_id))
        await at.hub.update_task("t1", state="failed", error="no")
        await at.hub.fire_task_event("t1", "mirror_failed", {"op": "progress"})
        kinds = [(task_id, kind) for task_id, kind, _ in heard.named("task")]
        assert kinds == [("t1", "started"), ("t1", "failed"), ("t1", "mirror_failed")]
        assert heard.named("task")[1][2]["owner_id"] == bot.agent_id


async def test_an_ag2_agent_s_own_tasks_are_mirrored() -> None:
    """`TaskMirror` tells the hub of a task of AG2, with its capability and its checkpoint."""
    pytest.importorskip("ag2")
    from ag2.context import ConversationContext
    from ag2.stream import MemoryStream
    from ag2.task import Task
    from ag2.task import TaskSpec as Ag2Spec

    async with scene() as at:
        bot = await at.agent("bot", _echo)
        stream = MemoryStream()
        mirror = TaskMirror(hub=at.hub, owner_id=bot.agent_id)
        told = mirror.attach(stream)
        kept = HubBackedCheckpointStore(at.hub)
        task = Task(
            owner_id=bot.agent_id,
            spec=Ag2Spec("count", capability="counting"),
            context=ConversationContext(stream=stream),
            checkpoint_store=kept,
        )
        async with task:
            await task.progress({"n": 1})
            await task.checkpoint({"n": 1})
            await task.complete({"n": 2})
        mirror.detach(stream, told)
        found = await at.hub.get_task(task.task_id)
        assert (found.state, found.progress, found.result) == ("completed", {"n": 1}, {"n": 2})
        assert (await at.hub.get_resume(bot.agent_id)).observed["counting"].completed == 1
        assert await kept.read(task.task_id) == {"n": 1}


async def test_a_mirror_that_cannot_tell_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """What the hub refuses is logged, and listeners hear of it."""
    pytest.importorskip("ag2")
    from ag2.context import ConversationContext
    from ag2.stream import MemoryStream
    from ag2.task import Task
    from ag2.task import TaskSpec as Ag2Spec

    async with scene() as at:
        rule = Rule(limits=LimitsBlock(max_concurrent_tasks=1))
        bot = await at.agent("bot", _echo, rule=rule)
        await at.hub.observe_task(_task(bot.agent_id))
        events = at.hub.subscribe("task_mirror_failed")
        stream = MemoryStream()
        TaskMirror(hub=at.hub, owner_id=bot.agent_id).attach(stream)
        async with Task(
            owner_id=bot.agent_id,
            spec=Ag2Spec("count"),
            context=ConversationContext(stream=stream),
        ):
            pass
        assert (await events.next(timeout=10)).payload["exc_type"] == "AccessDeniedError"
        assert "was not told" in caplog.text


def test_a_mirror_needs_somebody_to_tell() -> None:
    """Without a hub it is refused at once."""
    with pytest.raises(TypeError, match="hub_client= or the hub="):
        TaskMirror(owner_id="agt_1")
