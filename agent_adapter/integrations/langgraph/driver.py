"""One round of a compiled LangGraph graph in a channel; LangChain's agents are such graphs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.ports import TurnView
from agent_adapter.flow.reply import Reply
from agent_adapter.flow.routing import RoundCall
from agent_adapter.integrations.base import is_instance_of
from agent_adapter.integrations.langchain_core.calls import told_apart
from agent_adapter.integrations.langchain_core.gate import APPROVAL
from agent_adapter.integrations.langgraph.native import governed


def drives(agent: Any) -> bool:
    """Whether `agent` is a compiled graph, told by its class without importing LangGraph."""
    return is_instance_of(agent, "langgraph.graph.state", "CompiledStateGraph")


async def drive(agent: Any, turn: TurnView) -> Reply:
    """Run the graph on the turn's message, after the channel as it sees it.

    Its state must have `messages`; the tools of its tool nodes run in the turn. Each attempt of a
    turn is a thread of its own, so what a checkpointer of the graph keeps is not mixed with the
    channel's history. `IntegrationError` where the graph asks for other input than approvals, or
    where tools would have to be added.
    """
    _refuse_tools(turn)
    before = _messages(turn)
    config = {"configurable": {"thread_id": f"{turn.turn_id}:{turn.attempt}"}}
    output = await governed(agent, turn).ainvoke({"messages": before}, config)
    for item in output.get("__interrupt__") or ():
        _refuse_question(item.value)
    messages = output["messages"]
    return Reply(_body(messages), _calls(messages, turn))


def _refuse_tools(turn: TurnView) -> None:
    if turn.tools:
        raise IntegrationError(
            "a compiled graph cannot be given the channel's tools; register it with "
            "attach_plugin=False, and build it with langgraph_tools of those that it needs"
        )


def _refuse_question(value: Any) -> None:
    if not (isinstance(value, dict) and value.get("type") == APPROVAL):
        raise IntegrationError(
            "the graph was interrupted to ask for input, which a channel's turn cannot give; "
            "ask with confirm=True instead"
        )


def _messages(turn: TurnView) -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage

    seen = [
        AIMessage(message.text) if message.own else HumanMessage(message.text)
        for message in turn.messages
    ]
    return [*seen, HumanMessage(turn.input_text)]


def _body(messages: Sequence[Any]) -> str:
    """The text of the last message, where the graph ended with one of the model's."""
    last = messages[-1] if messages else None
    return str(last.text) if last is not None and last.type == "ai" else ""


def _calls(messages: Sequence[Any], turn: TurnView) -> list[RoundCall]:
    """The calls in the model's order, with what they returned."""
    found: list[RoundCall] = []
    for index, message in enumerate(messages):
        for call in getattr(message, "tool_calls", None) or ():
            answer = _answer(messages[index:], call["id"])
            if answer is None:
                continue  # it waits for a person
            call_id = told_apart(call["id"], messages[: index + 1])
            value = turn.result_of(call_id, call["name"])
            if value is None or isinstance(value, (str, dict)):
                value = _read(answer.content)
            ok = answer.status != "error"
            args = call["args"]
            found.append(RoundCall(tool=call["name"], ok=ok, result=value, arguments=args))
    return found


def _answer(messages: Sequence[Any], call_id: str | None) -> Any:
    return next((m for m in messages if getattr(m, "tool_call_id", None) == call_id), None)


def _read(content: Any) -> Any:
    if not isinstance(content, str):
        return content
    try:
        return json.loads(content)
    except ValueError:
        return content
