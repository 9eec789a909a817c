"""Drivers of the re-entry matrix for Agno, AG2, AutoGen and MCP."""

from __future__ import annotations

from typing import Any

from ag2 import Agent as Ag2Agent
from ag2.events import ToolResultsEvent
from ag2.testing import TestConfig
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.response import ModelResponse
from agno.team import Team
from autogen_agentchat.messages import ToolCallExecutionEvent
from mcp import Client

import agent_adapter as aa
from agent_adapter.integrations.ag2 import ag2_tools
from agent_adapter.integrations.agno import agno_functions, resolve_requirements
from agent_adapter.integrations.autogen import autogen_tools
from agent_adapter.integrations.mcp import mcp_server

from . import _autogen_agent
from ._ag2_agent import call_event, shown
from ._agno_model import ScriptedModel
from ._mcp_wire import text_of
from ._reentry import Driver, Turn, World, declare


class Played(ScriptedModel):
    """A scripted model; a turn that is an exception is raised."""

    async def ainvoke(self, messages: list[Any], **options: Any) -> ModelResponse:
        """The next turn of the script."""
        if self.turns and isinstance(self.turns[0], Exception):
            raise self.turns.pop(0)
        return await super().ainvoke(messages, **options)


class AgnoDriver(Driver):
    """An agent with a session in a database."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.db = InMemoryDb()
        self.output: Any = None
        self.plan: list[Any] = []
        self.retries = 0

    def agent(self, turns: list[Any], **options: Any) -> Any:
        """The agent as a new process builds it; the script is shared."""
        tools = agno_functions(self.world.registry, executor=self.world.executor)
        model = Played()
        model.turns = turns
        options |= {"retries": self.retries, "delay_between_retries": 0}
        return Agent(model=model, tools=list(tools), telemetry=False, **options)

    def top(self) -> Any:
        """What the user talks to."""
        return self.agent(self.plan, db=self.db, session_id="s1")

    async def ask(self, *turns: Turn) -> None:
        """A run of the session."""
        self.plan = list(turns)
        self._ended(await self.top().arun("go"))

    async def again(self, *turns: Turn) -> None:
        """The model fails after the first turn; Agno makes the run again by itself."""
        first = [[(f"{id}_again" if id else id, *rest) for id, *rest in turns[0]]]
        self.plan = [*turns[:1], RuntimeError("overloaded"), *first, *turns[1:]]
        self.retries = 2
        self._ended(await self.top().arun("go"))

    async def go_on(self) -> None:
        """A pause is resolved, and the run continued."""
        port = aa.DeferredApproval(self.world.store)
        await resolve_requirements(self.output, port, self.world.registry)
        self._ended(await self.top().acontinue_run(run_response=self.output))

    def _ended(self, output: Any) -> None:
        self.output, self.waiting = output, bool(output.is_paused)
        if not self.waiting:
            self.note(*self._results(output))

    def _results(self, output: Any) -> list[tuple[str, str]]:
        return _results(output.messages)

    async def settled(self) -> None:
        """A pause files its questions when it is resolved for the first time."""
        for _ in range(8):
            if self.waiting:
                try:
                    await self.go_on()
                    continue
                except aa.ApprovalPending:
                    pass
            held = self.held()
            if not await self.world.approve_all() and not self.waiting and not held:
                return
            if not self.waiting and held:
                await self.ask(self.world.turn(*held))
        raise AssertionError("it waits for ever")

    async def sub(self, turn: Turn) -> str:
        """An agent of its own, in a tool of the first."""
        output = await self.agent([turn]).arun("go")
        return _results(output.messages)[0][1]


class AgnoTeamDriver(AgnoDriver):
    """A team whose member has the tools."""

    def top(self) -> Any:
        """A team of one; its leader hands the task on, once for each message of the user."""
        member = self.agent(self.plan, db=self.db)
        member.name = member.id = "gardener"
        task = {"member_id": "gardener", "task": "water"}
        leader = Played()
        leader.turns = [[(f"t{len(self.plan)}", "delegate_task_to_member", task)]]
        if self.waiting:
            leader.turns = []
        team = Team(members=[member], model=leader, telemetry=False, db=self.db, session_id="s1")
        return team

    def _results(self, output: Any) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for each in output.member_responses:
            found = _results(each.messages) or found
        return found


def _results(messages: Any) -> list[tuple[str, str]]:
    """Tool and text of the results after the last message with calls."""
    found: list[tuple[str, str]] = []
    for item in reversed(messages or ()):
        if item.role == "tool":
            found.append((item.tool_name or "", str(item.content)))
        elif item.tool_calls:
            break
    return found[::-1]


class Ag2Driver(Driver):
    """An agent with the executor's port; each message of the user is an ask of its stream."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.reply: Any = None

    def agent(self, *turns: Turn) -> Any:
        """An agent whose model plays `turns`."""
        tools = ag2_tools(self.world.registry, executor=self.world.executor)
        played = [[call_event(n, a, call_id=i) for i, n, a in turn] for turn in turns]
        config = TestConfig(*played, "done", raise_tool_errors=False)
        return Ag2Agent("gardener", config=config, tools=tools)

    async def ask(self, *turns: Turn) -> None:
        """The stream goes on with another ask, of an agent that plays the next turns."""
        self.turns = turns
        agent = self.agent(*turns)
        if self.reply is None:
            self.reply = await agent.ask("go")
        else:
            self.reply = await agent.ask("go", stream=self.reply.context.stream)
        self.note(*await _batch(self.reply))

    turns: tuple[Turn, ...] = ()

    async def go_on(self) -> None:
        """A stream that was cut off goes on by asking again."""
        await self.ask(*self.turns)

    async def sub(self, turn: Turn) -> str:
        """An agent of its own, in a tool of the first."""
        return (await _batch(await self.agent(turn).ask("go")))[0][1]


async def _batch(reply: Any) -> list[tuple[str, str]]:
    events = await reply.history.get_events()
    batches = [event for event in events if isinstance(event, ToolResultsEvent)]
    return [(result.name, shown(result)) for result in batches[-1].results]


class AutoGenDriver(Driver):
    """An agent in a run scope of the program's."""

    abandons = True

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.runs, self.attempt = 0, 1
        self.turns: tuple[Turn, ...] = ()

    async def ask(self, *turns: Turn) -> None:
        """Another run of the conversation."""
        self.runs, self.attempt, self.turns = self.runs + 1, 1, turns
        await self._run()

    async def go_on(self) -> None:
        """The program makes the run again, and says so."""
        self.attempt += 1
        await self._run()

    async def again(self, *turns: Turn) -> None:
        """Once to the first turn, then from the start."""
        await self.ask(*turns[:1])
        await self.settled()
        self.turns = turns
        await self.go_on()

    async def _run(self) -> None:
        executor = self.world.executor
        async with executor.run_scope(f"r{self.runs}", thread_id="t1", attempt=self.attempt):
            self.note(*await self._play(*self.turns))

    async def _play(self, *turns: Turn) -> list[tuple[str, str]]:
        tools = autogen_tools(self.world.registry, executor=self.world.executor)
        result = await _autogen_agent.agent_of(tools, *turns).run(task="go")
        events = [m for m in result.messages if isinstance(m, ToolCallExecutionEvent)]
        return [(r.name, r.content) for r in events[-1].content]

    async def sub(self, turn: Turn) -> str:
        """An agent of its own, in a tool of the first."""
        return (await self._play(turn))[0][1]


class McpDriver(Driver):
    """A client of a server in process; the model's turns are its requests."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.client: Any = None
        self.turns: tuple[Turn, ...] = ()

    async def open(self) -> None:
        """The connection."""
        server = mcp_server(self.world.registry, executor=self.world.executor)
        self.client = await Client(server).__aenter__()

    async def ask(self, *turns: Turn) -> None:
        """Each call is a request on one connection."""
        self.turns = turns
        for turn in turns:
            found = [(n, text_of(await self.client.call_tool(n, args))) for _, n, args in turn]
            self.note(*found)

    async def go_on(self) -> None:
        """The client sends the request again."""
        await self.ask(*self.turns)

    async def sub(self, turn: Turn) -> str:
        """A call that the server makes inside a tool."""
        _, name, args = turn[0]
        said: str = await self.world.executor.run(name, args)
        return said

    async def close(self) -> None:
        """The connection."""
        await self.client.__aexit__(None, None, None)


_NO_TRAVEL = "keeps no states to go back to"
_CALLS_HAVE_IDS = {"none": "the framework's own type of a call has an id, or an empty one"}
for name in ("agno", "agno team"):
    declare(
        name,
        {
            "node-retry": "it has no nodes; a model that fails makes the whole run again",
            "crash": "a run that was cut off is not stored: the user asks again, in a new run",
            "time-out": "a run that was cut off is not stored: the user asks again, in a new run",
            "travel": f"it {_NO_TRAVEL}",
        },
        {"none": "a message in which a call has no id cannot be answered"},
    )
declare(
    "ag2",
    {
        "node-retry": "it has no nodes",
        "run-retry": "it gives no evidence of a retry: another ask is a new run",
        "crash": "an ask that was cut off is not gone on with: the next ask is a new run",
        "travel": f"it {_NO_TRAVEL}",
    },
    _CALLS_HAVE_IDS,
)
declare(
    "autogen",
    {"node-retry": "it has no nodes", "travel": f"it {_NO_TRAVEL}"},
    _CALLS_HAVE_IDS,
)
declare(
    "mcp",
    {
        "node-retry": "a protocol has no nodes",
        "run-retry": "a request does not say whose run it belongs to",
        "crash": "a request that is sent again is a new call: give the tool a `once_key`",
        "travel": f"a protocol {_NO_TRAVEL}",
    },
    dict.fromkeys(("equal", "empty"), "request ids are the client's own, not the model's"),
)
declare("mcp", {}, {"none": "request ids are the client's own, not the model's"})
