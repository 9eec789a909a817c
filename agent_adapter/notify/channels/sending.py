"""What the ways to send share: a failure, and one bounded HTTP request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.extras import check_installed
from agent_adapter.notify.messages import Message

SECONDS = 15.0
"""How long one attempt may take."""

_MOST_READ = 64 * 1024
_QUOTED = 120


class SendFailed(AgentAdapterError):
    """A message was not taken; `wait` is how many seconds the receiver asked to wait."""

    kind = "send-failed"

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A message and where it goes, at a time; `secret` signs webhooks."""

    to: str
    secret: str | None
    message: Message
    at: float


async def post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """POST a body; a redirect is a failure, and of the answer at most 64 KB are read."""
    check_installed("notify", ["httpx"])
    import httpx

    sent = {"content-type": "application/json", "user-agent": "agent-adapter", **headers}
    try:
        async with (
            httpx.AsyncClient(timeout=SECONDS, follow_redirects=False) as client,
            client.stream("POST", url, content=body, headers=sent) as answer,
        ):
            said = await _start_of(answer)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        # Without the text: it may have the address, which may be a secret.
        raise SendFailed(f"no answer ({type(exc).__name__})") from exc
    if not answer.is_success:
        wait = answer.headers.get("retry-after", "")
        raise SendFailed(
            f"answered {answer.status_code}: {said!r}"
            if said
            else f"answered {answer.status_code}",
            wait=float(wait) if wait.isascii() and wait.isdecimal() and len(wait) < 7 else None,
        )


async def _start_of(answer: object) -> str:
    read = b""
    async for part in answer.aiter_bytes():  # type: ignore[attr-defined]
        read += part
        if len(read) >= _MOST_READ:
            break
    return read[:_QUOTED].decode("utf-8", "replace").strip()
