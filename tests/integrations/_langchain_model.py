"""A scripted LangChain model: each turn is a text, or tool calls as `(id, name, arguments)`."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from pydantic import Field


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
