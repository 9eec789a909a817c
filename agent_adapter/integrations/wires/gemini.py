"""Gemini's API: declarations, calls and answers in the SDK's types."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from agent_adapter.core.content import Content, Media, Text, attached, left_out
from agent_adapter.core.schema.providers import gemini
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.ids import new_id
from agent_adapter.integrations.part_text import part_text
from agent_adapter.integrations.quarantine import OnError, sent
from agent_adapter.integrations.wires.calls import (
    Answer,
    Mended,
    ProviderCall,
    ResponseIds,
    adapted,
    member,
)
from agent_adapter.integrations.wires.finish import WHOLE, FinishReason, Stopped, stopped
from agent_adapter.integrations.wires.protocol import Piece, Turn

IDS = ResponseIds(target="google_genai", id="response_id", made="create_time")

# What a function response may hold beside its JSON.
_SHOWN = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_WORDS: dict[str, FinishReason] = {
    "stop": "stop",
    "max_tokens": "length",
    "continuation": "length",
    "safety": "content-filter",
    "recitation": "content-filter",
    "language": "content-filter",
    "blocklist": "content-filter",
    "prohibited_content": "content-filter",
    "spii": "content-filter",
    "image_safety": "content-filter",
    "image_prohibited_content": "content-filter",
    "image_recitation": "content-filter",
    "escalation": "content-filter",
    "model_armor": "content-filter",
    "malformed_function_call": "malformed-call",
    "unexpected_tool_call": "malformed-call",
    "too_many_tool_calls": "malformed-call",
    "malformed_response": "malformed-call",
}


def declaration_of(spec: ToolSpec) -> Any:
    """The tool as a `FunctionDeclaration`, its schema as JSON Schema."""
    return _types().FunctionDeclaration(
        name=spec.name,
        description=spec.description,
        parameters_json_schema=adapted(spec, gemini),
    )


def tools_of(declarations: list[Any]) -> list[Any]:
    """All declarations in one `Tool`; an empty list without any."""
    return [_types().Tool(function_declarations=declarations)] if declarations else []


def calls_of(response: Any) -> list[ProviderCall]:
    """The function calls of a response's first candidate, or of one `Content`.

    Most backends give no ids: such a call is named by its response and its place in it.
    """
    candidates = member(response, "candidates")
    content = member(candidates[0], "content") if candidates else response
    parts = member(content, "parts") or ()
    origin = member(response, "response_id") or member(response, "responseId")
    return _calls_in(parts, origin, stopped_of(response))


def stopped_of(response: Any) -> Stopped:
    """Why a response's first candidate ended; a content and a stream's middle do not say."""
    candidates = member(response, "candidates")
    if not candidates:
        feedback = member(response, "prompt_feedback") or member(response, "promptFeedback")
        blocked = member(feedback, "block_reason") or member(feedback, "blockReason")
        return Stopped(reason="content-filter", said=_word(blocked)) if blocked else WHOLE
    why = member(candidates[0], "finish_reason") or member(candidates[0], "finishReason")
    return stopped(_WORDS, why) if why else WHOLE


def _calls_in(parts: Iterable[Any], origin: Any, end: Stopped) -> list[ProviderCall]:
    found = [call for part in parts if (call := _call_in(part))]
    return [
        ProviderCall(
            call_id=member(call, "id") or _made_up(origin, place),
            native_id=member(call, "id"),
            name=member(call, "name") or "",
            arguments=member(call, "args"),
            # A part holds a whole call, except where the arguments themselves are streamed.
            complete=end.reason in ("stop", "calls") and not _is_piece(call),
            finish="will_continue" if _is_piece(call) else end.said,
        )
        for place, call in enumerate(found)
    ]


def _is_piece(call: Any) -> bool:
    return bool(member(call, "will_continue") or member(call, "partial_args"))


def _word(said: Any) -> str:
    return str(getattr(said, "value", said))


def part_of(answer: Answer) -> Any:
    """The `FunctionResponse` part that answers a call, with its id only where it had one."""
    types = _types()
    key = "error" if answer.is_error else "output"
    parts = answer.parts
    response = types.FunctionResponse(
        id=answer.call.native_id,
        name=answer.call.name,
        response={key: _told(parts) if parts else answer.data},
        parts=[_media_of(part) for part in parts if _is_shown(part)] or None,
    )
    return types.Part(function_response=response)


def _told(parts: Sequence[Content]) -> Any:
    """The text and data of a result, with a line for each media part."""
    told: list[Any] = []
    for part in parts:
        if isinstance(part, Media):
            told.append(attached(part) if _is_shown(part) else left_out(part))
        else:
            told.append(part.text if isinstance(part, Text) else json.loads(part_text(part)))
    return told[0] if len(told) == 1 else told


def _is_shown(part: Content) -> bool:
    return isinstance(part, Media) and part.media_type in _SHOWN


def _media_of(part: Any) -> Any:
    types = _types()
    if part.data is None:
        known = types.FunctionResponseFileData(file_uri=part.uri, mime_type=part.media_type)
        return types.FunctionResponsePart(file_data=known)
    blob = types.FunctionResponseBlob(mime_type=part.media_type, data=part.data)
    return types.FunctionResponsePart(inline_data=blob)


def _call_in(part: Any) -> Any:
    return member(part, "function_call") or member(part, "functionCall")


def _made_up(origin: Any, place: int) -> str:
    return f"{origin}:{place}" if origin else new_id("call")


@cache
def _types() -> Any:
    from google.genai import types

    return types


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Gemini's generate-content API."""

    client: Any
    mend: Mended | None = None

    def tools(self, specs: Iterable[ToolSpec], on_error: OnError = "skip") -> Any:
        """Declarations in one `Tool`."""
        return tools_of(sent("Gemini", specs, declaration_of, on_error))

    def opening(self, prompt: str) -> list[Any]:
        """One content of the user."""
        return [{"role": "user", "parts": [{"text": prompt}]}]

    async def ask(self, request: Mapping[str, Any], *, piece: Piece | None) -> Turn:
        """One candidate."""
        from google.genai.types import AutomaticFunctionCallingConfig

        config = {key: value for key, value in request.items() if key not in ("model", "messages")}
        # Its own calling would run nothing of ours and show a model the text of exceptions.
        config["automatic_function_calling"] = AutomaticFunctionCallingConfig(disable=True)
        wanted = {
            "model": request["model"],
            "contents": request["messages"],
            "config": config,
        }
        parts, response, end = await self._parts(wanted, piece)
        said = [{"role": "model", "parts": [_part(part) for part in parts]}] if parts else []
        text = "".join(part.text for part in parts if part.text and not part.thought)
        calls = _calls_at(len(request["messages"]), parts, end)
        place = IDS.of(response)
        return Turn(said=said, calls=calls, text=text, response=response, stopped=end, place=place)

    async def _parts(
        self, wanted: Mapping[str, Any], piece: Piece | None
    ) -> tuple[list[Any], Any, Stopped]:
        if piece is None:
            response = await self.client.models.generate_content(**wanted)
            return _parts_of(response), response, stopped_of(response)
        parts: list[Any] = []
        last = None
        end = WHOLE
        async for last in await self.client.models.generate_content_stream(**wanted):
            end = end if (said := stopped_of(last)) is WHOLE else said
            found = _parts_of(last)
            parts += found
            for part in found:
                if part.text and not part.thought:
                    await piece(part.text)
        return parts, last, end if end is not WHOLE else Stopped(reason="unknown")

    def answers(self, answers: Sequence[Answer]) -> list[Any]:
        """One content of the user with every function response."""
        parts = [_part(part_of(answer)) for answer in answers]
        return [{"role": "user", "parts": parts}]

    def open_calls(self, messages: Sequence[Any]) -> list[ProviderCall]:
        """The calls of the last content, if it is the model's."""
        last = messages[-1] if messages else None
        if member(last, "role") != "model":
            return []
        return _calls_at(len(messages) - 1, member(last, "parts") or ())


def _calls_at(place: int, parts: Iterable[Any], end: Stopped = WHOLE) -> list[ProviderCall]:
    """The calls of the content at `place` of the conversation, which names those without an id.

    So they keep their names when the conversation is gone on with.
    """
    return _calls_in(parts, f"content_{place}", end)


def _parts_of(response: Any) -> list[Any]:
    candidates = response.candidates or ()
    content = candidates[0].content if candidates else None
    return list(content.parts or ()) if content is not None else []


def _part(part: Any) -> dict[str, Any]:
    """The part as JSON; bytes (a thought's signature, an image) travel as base64."""
    kept: dict[str, Any] = _without_bytes(part.model_dump(exclude_none=True))
    return kept


def _without_bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _without_bytes(item) for name, item in value.items()}
    return [_without_bytes(item) for item in value] if isinstance(value, list) else value
