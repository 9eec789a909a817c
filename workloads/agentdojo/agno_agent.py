"""Plays a script through a real Agno agent; Agno ships no scripted model, so one is here."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NoReturn

from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse, ToolExecution
from agno.run.agent import RunOutput

from agent_adapter import Executor
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.agno import agno_function, resolve_requirements
from workloads.agentdojo.scripted import Call, Played, Script

__all__ = ["ScriptedModel", "build_agent", "play"]


class ScriptedModel(Model):
    """An Agno model that says a script: one call per turn, then the output."""

    def __init__(self, script: Script) -> None:
        super().__init__(id="scripted", name="scripted", provider="scripted")
        self._turns = iter([*map(_call_turn, script.calls), _text_turn(script.output)])

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """The script's next turn."""
        return next(self._turns)

    def invoke(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the tools are async, so Agno must be run with `arun`."""
        raise NotImplementedError("the scripted model answers arun() only")

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Iterator[ModelResponse]:
        """Refused: a script is not streamed."""
        raise NotImplementedError("the scripted model does not stream")

    def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        """Refused: a script is not streamed."""
        raise NotImplementedError("the scripted model does not stream")

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        parsed: ModelResponse = response
        return parsed

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        parsed: ModelResponse = response
        return parsed


def _call_turn(call: Call) -> ModelResponse:
    function = {"name": call.tool, "arguments": json.dumps(dict(call.arguments))}
    return ModelResponse(
        role="assistant",
        tool_calls=[{"id": call.id, "type": "function", "function": function}],
    )


def _text_turn(text: str) -> ModelResponse:
    return ModelResponse(role="assistant", content=text)


def build_agent(script: Script, specs: Sequence[ToolSpec], executor: Executor) -> Agent:
    """An agent with those tools whose model says `script`."""
    functions = [agno_function(spec, executor=executor) for spec in specs]
    return Agent(model=ScriptedModel(script), tools=functions, telemetry=False)


async def play(script: Script, specs: Sequence[ToolSpec], executor: Executor) -> Played:
    """Run the agent to its end and read its history."""
    agent = build_agent(script, specs, executor)
    output: RunOutput = await agent.arun(script.prompt)
    while output.is_paused and executor.approval is not None and executor.registry is not None:
        await resolve_requirements(output, executor.approval, executor.registry)
        output = await agent.acontinue_run(run_response=output)
    tools = output.tools or []
    return Played(
        output=output.content or "",
        calls=tuple(
            Call(
                id=tool.tool_call_id or "",
                tool=tool.tool_name or "",
                arguments=tool.tool_args or {},
            )
            for tool in tools
        ),
        errors=tuple(f"{tool.tool_name}: {tool.result}" for tool in tools if _failed(tool)),
    )


def _failed(tool: ToolExecution) -> bool:
    """Agno has no channel for a tool's error but its text, which is then `{"error": {...}}`."""
    return bool(tool.tool_call_error) or (tool.result or "").startswith('{"error"')
