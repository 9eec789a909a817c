"""A scripted LangChain model: each turn is a text, or tool calls as `(id, name, arguments)`."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from pydantic import Field

from agent_adapter.core.schema.dialects import inlined
from agent_adapter.core.tool import ToolSpec


class ScriptedModel(FakeMessagesListChatModel):
    """Plays its turns, then says "done"; `offered` are the tools as it was shown them."""

    offered: list[Any] = Field(default_factory=list)

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        """Keep what the model is offered."""
        self.offered[:] = tools
        return self


def scripted(*turns: Any) -> ScriptedModel:
    """A model that plays `turns` and then says "done"."""
    return ScriptedModel(responses=[*map(message, turns), AIMessage("done")])


def message(turn: Any) -> AIMessage:
    """One turn of a model: text, or tool calls as `(id, name, arguments)`."""
    if isinstance(turn, str):
        return AIMessage(turn)
    calls = [{"id": i, "name": name, "args": args} for i, name, args in turn]
    return AIMessage("", tool_calls=calls)


def untitled(spec: ToolSpec) -> dict[str, Any]:
    """The schema of a tool as LangChain's clients send it: inlined, without titles."""
    plain: dict[str, Any] = _untitled(inlined(spec.json_schema()))
    return plain


def _untitled(node: Any) -> Any:
    """A schema without titles; a parameter may be called `title`."""
    if isinstance(node, list):
        return [_untitled(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        name: {key: _untitled(item) for key, item in value.items()}
        if name == "properties"
        else _untitled(value)
        for name, value in node.items()
        if name != "title"
    }
