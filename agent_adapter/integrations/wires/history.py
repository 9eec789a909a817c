"""What a conversation in a provider's form says of a call: its run, its dialogue and its place.

All forms are read by their shape: the messages of Chat Completions and of Anthropic, the items of
Responses, and Gemini's contents, as JSON or as the SDK's objects.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_adapter.integrations.wires.calls import ProviderCall, member

ATTACHED = "Attached to the result of "
"""How a message begins that shows the media of results, where a result holds text only."""

Named = tuple[str, str]
"""A call's id, "" where it has none, and its tool."""

_MARKS = ("synthetic", "is_synthetic", "lc_source")
_MEDIA = ("inline_data", "inlineData", "file_data", "fileData")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message: what the user said in it, the calls that the model made, or results.

    `user` is a digest of the text and media of a genuine message of the user, else `None`.
    """

    user: str | None = None
    calls: tuple[Named, ...] = ()
    results: bool = False


def said_in(messages: Any) -> list[Said]:
    """What each message says; calls that follow each other as items are one message's."""
    listed = [messages] if isinstance(messages, (str, Mapping)) else list(messages)
    read: list[Said] = []
    for item in listed:
        found = _said(item, after_results=bool(read) and read[-1].results)
        if found.calls and member(item, "type") == "function_call" and read and read[-1].calls:
            found = Said(calls=(*read.pop().calls, *found.calls))
        read.append(found)
    return read


def user_texts(messages: Any) -> list[str]:
    """What the user wrote, without what a framework, a tool or another agent put in its place."""
    listed = [messages] if isinstance(messages, (str, Mapping)) else list(messages or ())
    found, results = [], False
    for item in listed:
        own = not (_is_marked(item) or _has_results(item) or member(item, "name"))
        shown = _written(item) if own else ""
        if shown and not (results and shown.startswith(ATTACHED)):
            found.append(shown)
        results = _has_results(item) or bool(results and shown.startswith(ATTACHED))
    return found


def _written(item: Any) -> str:
    """The text of a message of the user; media are not text."""
    if isinstance(item, str):
        return item
    if not _is_users(item):
        return ""
    content = member(item, "content")
    if isinstance(content, str):
        return content
    texts = (block if isinstance(block, str) else member(block, "text") for block in _blocks(item))
    return "\n".join(text for text in texts if isinstance(text, str))


def named(calls: Iterable[ProviderCall]) -> tuple[Named, ...]:
    """The calls of a response as `said_in` reads them."""
    return tuple((call.native_id or "", call.name) for call in calls)


def _said(item: Any, *, after_results: bool) -> Said:
    calls = tuple(_calls(item))
    if calls:
        return Said(calls=calls)
    if _has_results(item):
        return Said(results=True)
    shown = None if _is_marked(item) else _user_text(item)
    if shown is not None and after_results and shown.startswith(ATTACHED):
        return Said(results=True)
    return Said(user=None if shown is None else digest_of(shown))


def _calls(item: Any) -> Iterator[Named]:
    if member(item, "type") == "function_call":
        yield member(item, "call_id") or "", member(item, "name") or ""
    for call in member(item, "tool_calls") or ():
        yield member(call, "id") or "", member(member(call, "function"), "name") or ""
    for block in _blocks(item):
        if member(block, "type") == "tool_use":
            yield member(block, "id") or "", member(block, "name") or ""
        call = member(block, "function_call") or member(block, "functionCall")
        if call:
            yield member(call, "id") or "", member(call, "name") or ""


def _has_results(item: Any) -> bool:
    if member(item, "role") in ("tool", "function"):
        return True
    if str(member(item, "type") or "").endswith("_output"):
        return True
    return any(
        member(block, "type") == "tool_result"
        or member(block, "function_response")
        or member(block, "functionResponse")
        for block in _blocks(item)
    )


def _is_marked(item: Any) -> bool:
    """Whether a framework says that it wrote this message itself, such as a summary."""
    places = (item, member(item, "metadata"), member(item, "additional_kwargs"))
    return any(bool(member(place, mark)) for place in places for mark in _MARKS if place)


def _user_text(item: Any) -> str | None:
    """Text and media of a message of the user; `None` for one of anybody else, or an empty one."""
    if isinstance(item, str):
        return item or None
    if not _is_users(item):
        return None
    content = member(item, "content")
    if isinstance(content, str):
        return content or None
    shown = [text for block in _blocks(item) if (text := _shown(block))]
    return "\n".join(shown) or None


def _is_users(item: Any) -> bool:
    role = member(item, "role")
    if role is None and member(item, "type") == "human":  # LangChain
        return True
    if role is None:  # Gemini takes contents without a role, and parts alone
        return member(item, "type") is None and bool(_blocks(item))
    return bool(role == "user")


def _blocks(item: Any) -> list[Any]:
    for name in ("content", "parts"):
        found = member(item, name)
        if isinstance(found, (list, tuple)):
            return list(found)
    return [] if isinstance(item, str) or member(item, "role") is not None else [item]


def _shown(block: Any) -> str:
    """What a block shows; a cache's marks, which move from turn to turn, are left out."""
    if isinstance(block, str):
        return block
    text = member(block, "text")
    if isinstance(text, str):
        return text
    if member(block, "type") is None and not any(member(block, name) for name in _MEDIA):
        return ""
    plain = block.model_dump(mode="json") if hasattr(block, "model_dump") else block
    kept = {k: v for k, v in plain.items() if v is not None and k != "cache_control"}
    return json.dumps(kept, sort_keys=True, default=str)


def digest_of(*parts: Any) -> str:
    """A short hash of texts and lists of them."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
