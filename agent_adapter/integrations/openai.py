"""OpenAI: tools for Chat Completions and Responses, and the answers to a response's calls.

The SDK has no tool objects: a tool is a dictionary, and the call comes back in a response, which
`run_tool_calls` answers through the executor.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from agent_adapter.core.errors import IntegrationError
from agent_adapter.core.extras import check_installed
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.base import IntegrationBase
from agent_adapter.integrations.imports import imported
from agent_adapter.integrations.quarantine import OnError, exported
from agent_adapter.integrations.wires.calls import CallAnswerer, ResponseIds, settled
from agent_adapter.integrations.wires.openai import (
    CHAT_IDS,
    RESPONSE_IDS,
    Api,
    answers_of,
    calls_of,
    meant,
    tool_of,
)
from agent_adapter.integrations.wires.runs import place_in

if TYPE_CHECKING:
    from openai.lib.responses_tool_runner import AsyncRegisteredFunction, RegisteredFunction


_IDS: dict[Api, ResponseIds] = {"chat": CHAT_IDS, "responses": RESPONSE_IDS}


def openai_tool(spec: ToolSpec, *, api: Api = "chat", strict: bool = False) -> dict[str, Any]:
    """One tool as the API takes it: a dictionary for `tools=[…]`.

    With `strict` the schema is rewritten into OpenAI's strict subset; a null that a model then
    sends for a parameter that may be left out is taken as "not given".

    Raises:
        ToolDefinitionError: strict cannot express one of the parameters; names it.
        ValueError: `api` is neither `"chat"` nor `"responses"`.
        MissingDependency: the SDK is not installed.
        IntegrationError: the SDK is outside the supported range.
    """
    _check_openai()
    _check_api(api)
    return tool_of(spec, api, strict)


def _check_api(api: str) -> None:
    if api not in ("chat", "responses"):
        raise ValueError(f"api is 'chat' or 'responses', not {api!r}")


def openai_tools(
    registry: ToolRegistry,
    *,
    api: Api = "chat",
    strict: bool = False,
    on_error: OnError = "skip",
) -> list[dict[str, Any]]:
    """One `openai_tool` per tool of `registry` that is exported to `openai`, in its order."""
    _check_api(api)
    return exported(
        "openai", registry, lambda spec: openai_tool(spec, api=api, strict=strict), on_error
    )


async def run_tool_calls(
    response: Any,
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    run_id: str | None = None,
    thread_id: str | None = None,
    messages: Any = None,
) -> list[dict[str, Any]]:
    """The messages (Chat Completions) or items (Responses) that answer the calls of `response`.

    The calls run in parallel. Append the response's own message or items first, then these.
    The run is `run_id`, or what a run scope around says, or is found in `messages`: the messages or
    items that were sent, whose newest one of the user began it. Else it is unknown: rules kept per
    run ask or refuse. Giving the same response again answers what ended from the ledger and runs
    only the rest; a call in another response is a new call, whatever id it repeats.

    Raises:
        ApprovalPending: calls wait for a person (`ids`); the others have ended. Give the same
            response again when they are decided.
    """
    api, calls = calls_of(response)
    place, answered = place_in(
        _IDS[api],
        response,
        calls,
        executor=executor,
        run_id=run_id,
        thread_id=thread_id,
        messages=messages,
    )
    answerer = CallAnswerer(
        registry,
        "openai",
        executor=executor,
        place=place,
        mend=meant,
    )
    answers = settled(await answerer.answer_all(calls, response=answered))
    return answers_of(answers, api)


class OpenAIIntegration(IntegrationBase):
    """OpenAI as a target: `get_integration("openai")`."""

    name = "openai"
    requires: tuple[str, ...] = ("openai",)
    extra: str | None = "openai"
    call_id_fields = ("call_id", "id")
    reexecutes = True  # the same response may be answered again

    def export_tool(self, spec: ToolSpec, *, executor: ToolRunner | None = None) -> dict[str, Any]:
        """The `openai_tool` of `spec`; its calls go where `run_tool_calls` sends them."""
        return openai_tool(spec)

    def import_tool(
        self,
        native: RegisteredFunction | AsyncRegisteredFunction,
        *,
        name: str | None = None,
        **policy: Any,
    ) -> ToolSpec:
        """A function registered for the SDK's tool runner, as a spec.

        Untrusted and egress unless `policy` says otherwise. Raises `IntegrationError` for what is
        no such function.
        """
        _check_openai()
        from openai.lib.responses_tool_runner import AsyncRegisteredFunction, RegisteredFunction

        if not isinstance(native, (AsyncRegisteredFunction, RegisteredFunction)):
            raise IntegrationError(
                f"openai imports a RegisteredFunction or an AsyncRegisteredFunction, not "
                f"{type(native).__name__}; a plain function is added to a registry as it is"
            )
        tool: Any = native.tool
        execute: Any = native.execute
        schema = tool.get("parameters") or {}
        text = tool.get("description")
        return imported(tool["name"], text, schema, execute, name=name, **policy)


INTEGRATION = OpenAIIntegration()


@cache
def _check_openai() -> None:
    check_installed("openai", ("openai",))
