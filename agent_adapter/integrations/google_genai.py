"""Google GenAI: tools as function declarations, and the answers to a response's calls.

The SDK's automatic function calling must be off (`AutomaticFunctionCallingConfig(disable=True)`):
it would answer without ids and show a model the text of exceptions.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from agent_adapter.core.extras import check_installed
from agent_adapter.core.ports import ToolRunner
from agent_adapter.core.registry import ToolRegistry
from agent_adapter.core.tool import ToolSpec
from agent_adapter.integrations.base import IntegrationBase
from agent_adapter.integrations.quarantine import OnError, exported
from agent_adapter.integrations.wires.calls import CallAnswerer, settled
from agent_adapter.integrations.wires.gemini import IDS, calls_of, declaration_of, part_of, tools_of
from agent_adapter.integrations.wires.runs import place_in

if TYPE_CHECKING:
    from google.genai.types import FunctionDeclaration, Part, Tool


def google_genai_declaration(spec: ToolSpec) -> FunctionDeclaration:
    """One tool as a `FunctionDeclaration` with `parameters_json_schema`.

    Raises:
        MissingDependency: the SDK is not installed.
        IntegrationError: the SDK is outside the supported range.
    """
    _check_google_genai()
    declaration: FunctionDeclaration = declaration_of(spec)
    return declaration


def google_genai_tools(registry: ToolRegistry, *, on_error: OnError = "skip") -> list[Tool]:
    """`GenerateContentConfig.tools` for the tools that `registry` exports to `google_genai`."""
    _check_google_genai()
    return tools_of(exported("google_genai", registry, declaration_of, on_error))


async def function_responses(
    response: Any,
    registry: ToolRegistry,
    *,
    executor: ToolRunner | None = None,
    run_id: str | None = None,
    thread_id: str | None = None,
    messages: Any = None,
) -> list[Part]:
    """The parts that answer the calls of `response` (or of its `Content`), in their order.

    The calls run in parallel. Append the candidate's own content first, then these parts as one
    `Content` of the user. The run is `run_id`, or what a run scope around says, or is found in
    `messages`: the contents that were sent, whose newest one of the user began it. Else it is
    unknown: rules kept per run ask or refuse. Giving the response again answers what ended from the
    ledger and runs only the rest, where the response or the calls have ids; a call in another
    response is a new call.

    Raises:
        ApprovalPending: calls wait for a person (`ids`); the others have ended. Give the same
            response again when they are decided.
    """
    calls = calls_of(response)
    place, answered = place_in(
        IDS,
        response,
        calls,
        executor=executor,
        run_id=run_id,
        thread_id=thread_id,
        messages=messages,
    )
    answerer = CallAnswerer(
        registry,
        "google_genai",
        executor=executor,
        place=place,
    )
    answers = settled(await answerer.answer_all(calls, response=answered))
    return [part_of(answer) for answer in answers]


class GoogleGenAIIntegration(IntegrationBase):
    """Google GenAI as a target: `get_integration("google_genai")`."""

    name = "google_genai"
    requires: tuple[str, ...] = ("google.genai",)
    extra: str | None = "google-genai"
    call_id_fields = ("id",)
    reexecutes = True  # the same response may be answered again

    def export_tool(
        self, spec: ToolSpec, *, executor: ToolRunner | None = None
    ) -> FunctionDeclaration:
        """The declaration of `spec`; its calls go where `function_responses` sends them."""
        return google_genai_declaration(spec)


INTEGRATION = GoogleGenAIIntegration()


@cache
def _check_google_genai() -> None:
    check_installed("google-genai", ("google.genai",))
