"""Drivers of the re-entry matrix for LangGraph and LangChain."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, RetryPolicy

from agent_adapter.integrations.langchain import langchain_tools
from agent_adapter.integrations.langgraph import langgraph_tools

from ._langchain_model import message
from ._reentry import Driver, Turn, World, declare

THREAD: Any = {"configurable": {"thread_id": "t1"}}


class Played(FakeMessagesListChatModel):
    """A model that plays the script of its driver, then says "done"."""

    script: list[Any] = []  # noqa: RUF012  # replaced by `playing`, never changed

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        """Nothing of them is used."""
        return self

    def _generate(self, *args: Any, **options: Any) -> ChatResult:
        said = message(self.script.pop(0)) if self.script else AIMessage("done")
        return ChatResult(generations=[ChatGeneration(message=said)])


def playing(script: list[Turn]) -> Played:
    """A model that takes its turns from this very list."""
    model = Played(responses=[])
    model.script = script  # given to the constructor, pydantic would copy it
    return model


class LangGraphDriver(Driver):
    """A graph of a model and a `ToolNode`, with a checkpointer."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.saver = InMemorySaver()
        self.pauses: list[str] = []

    def graph(self, script: list[Turn], saver: Any) -> Any:
        """The graph as a new process builds it."""
        tools = langgraph_tools(self.world.registry, executor=self.world.executor)
        node, model = ToolNode(tools), playing(script)

        async def ask(state: MessagesState) -> Any:
            return {"messages": [await model.ainvoke(state["messages"])]}

        async def run(state: MessagesState) -> Any:
            output = await node.ainvoke(state)
            if self.fails and saver is not None:
                raise self.fails.pop()
            return output

        policy = RetryPolicy(retry_on=OSError, jitter=False, initial_interval=0.0)
        graph = StateGraph(MessagesState)
        graph.add_node("model", ask)
        graph.add_node("tools", run, retry_policy=policy)
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
        graph.add_edge("tools", "model")
        return graph.compile(checkpointer=saver)

    async def ask(self, *turns: Turn) -> None:
        """A message in the thread."""
        self.script = list(turns)
        await self._run({"messages": [("user", "go")]})

    async def go_on(self) -> None:
        """The thread goes on from its checkpoint."""
        resume = Command(resume=dict.fromkeys(self.pauses, True))
        await self._run(resume if self.waiting else None)

    async def rewind(self) -> None:
        """Back to the checkpoint before the last tools."""
        graph = self.graph([], self.saver)
        past = [s async for s in graph.aget_state_history(THREAD) if s.next == ("tools",)]
        await self._run(None, past[0].config)

    async def _run(self, given: Any, config: Any = THREAD) -> None:
        self.waiting = False
        output = await self.graph(self.script, self.saver).ainvoke(given, config)
        self.pauses = [pause.id for pause in output.get("__interrupt__", ())]
        self.waiting = bool(self.pauses)
        if not self.waiting:
            self.note(*_last(output["messages"]))

    async def sub(self, turn: Turn) -> str:
        """A graph of its own, called in a tool of the first."""
        graph = self.graph([turn], None)
        output = await graph.ainvoke({"messages": [("user", "go")]})
        return _last(output["messages"])[0][1]


class LangChainDriver(LangGraphDriver):
    """An agent of `create_agent`, with a checkpointer."""

    def graph(self, script: list[Turn], saver: Any) -> Any:
        """The agent as a new process builds it."""
        tools = langchain_tools(self.world.registry, executor=self.world.executor)
        return create_agent(playing(script), tools, checkpointer=saver)


def _last(messages: list[Any]) -> list[tuple[str, str]]:
    """Tool and text of the results after the last message with calls."""
    found: list[tuple[str, str]] = []
    for item in reversed(messages):
        if isinstance(item, ToolMessage):
            found.append((str(item.name), str(item.content)))
        elif getattr(item, "tool_calls", None):
            break
    return found[::-1]


_AGAIN = "a thread goes on from its checkpoint: nothing makes its run again"
_NO_ID = {"none": "a `ToolMessage` needs the id of its call"}
declare("langgraph", {"run-retry": _AGAIN}, _NO_ID)
declare(
    "langchain",
    {"run-retry": _AGAIN, "node-retry": "`create_agent` gives its nodes no retry policy"},
    _NO_ID,
)
