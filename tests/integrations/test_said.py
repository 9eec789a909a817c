"""What each integration finds of the user's messages, and what it does not take for one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from agent_adapter.integrations.agno.calls import said_to
from agent_adapter.integrations.langchain_core.calls import Native
from agent_adapter.integrations.wires.history import ATTACHED, user_texts

GIVEN: dict[str, Any] = {
    "chat completions": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "no"},
        {"role": "tool", "tool_call_id": "c", "content": "no"},
        {"role": "user", "content": ATTACHED + "c: no"},
        {"role": "user", "name": "researcher", "content": "no"},
        {"role": "user", "content": [{"type": "text", "text": "two"}]},
    ],
    "anthropic": [
        {"role": "user", "content": "one"},
        {"role": "user", "content": [{"type": "tool_result", "content": "no"}]},
        {"role": "user", "content": [{"type": "text", "text": "two"}, {"type": "image"}]},
    ],
    "responses": [
        {"role": "user", "content": [{"type": "input_text", "text": "one"}]},
        {"type": "function_call_output", "call_id": "c", "output": "no"},
        {"role": "user", "content": "two"},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "one"}]},
        {"role": "model", "parts": [{"text": "no"}]},
        {"role": "user", "parts": [{"function_response": {"name": "f", "response": {}}}]},
        {"role": "user", "parts": [{"text": "two"}]},
    ],
    "a summary": [
        {"role": "user", "content": "one"},
        {"role": "user", "content": "no", "metadata": {"synthetic": True}},
        {"role": "user", "content": "two"},
    ],
}


@pytest.mark.parametrize("form", GIVEN)
def test_a_conversation_in_a_providers_form(form: str) -> None:
    """Results, other agents, attached media and summaries are not the user's."""
    assert user_texts(GIVEN[form]) == ["one", "two"]


def test_a_prompt_is_the_users() -> None:
    """A conversation may be one text."""
    assert user_texts("one") == ["one"]


def graph(namespace: str) -> list[str]:
    """What is found in the state of a graph's node."""
    messages = [
        SystemMessage("be kind"),
        HumanMessage("one"),
        AIMessage("no"),
        ToolMessage("no", tool_call_id="c"),
        HumanMessage("no", name="researcher"),
        HumanMessage("no", additional_kwargs={"lc_source": "summarization"}),
        HumanMessage("two"),
    ]
    config = {"configurable": {"checkpoint_ns": namespace}}
    native = Native("c", "c", None, None, None, pausable=False, config=config, messages=messages)
    return native.said()


def test_a_graphs_state() -> None:
    """Another agent's messages and LangChain's summaries are not the user's."""
    assert graph("tools:1") == ["one", "two"]


def test_in_a_graph_within_a_graph_nobody_knows_who_wrote() -> None:
    """The outer model may have written its messages: none of them is trusted."""
    assert graph("tools:1|tools:2") == []


def test_what_agno_adds_to_a_message_is_not_the_users() -> None:
    """Documents and dependencies stand behind what the user wrote."""
    added = "\n\nUse the following references from the knowledge base if it helps:\n<references>no"
    texts = [f"one{added}", "two\n\n<additional context>\nno</additional context>"]
    messages = [SimpleNamespace(role="user", content=text) for text in texts]
    messages.insert(1, SimpleNamespace(role="assistant", content="no"))
    assert said_to(SimpleNamespace(team_id=None), messages) == ["one", "two"]
    assert said_to(SimpleNamespace(team_id="team"), messages) == []
