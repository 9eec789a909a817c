"""AG2's frames: what a client and a hub send each other over a transport of their own.

The package's own connections (`WebSocketLink`, `serve`) use other frames, which survive a cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from agent_adapter.flow.envelope import Envelope


@dataclass(slots=True)
class HelloFrame:
    """A client takes the registered participant `name`; `auth_claim` proves that it may.

    With `since_envelope_id` the hub sends again what was not acknowledged after that envelope; an
    empty text is the beginning.
    """

    kind: ClassVar[str] = "hello"
    name: str
    auth_scheme: str = "none"
    auth_claim: dict[str, Any] = field(default_factory=dict)
    since_envelope_id: str | None = None


@dataclass(slots=True)
class WelcomeFrame:
    """The hub accepts a hello; `hub_time` is ISO 8601 in UTC."""

    kind: ClassVar[str] = "welcome"
    endpoint_id: str
    hub_time: str


@dataclass(slots=True)
class PingFrame:
    """Asks whether the other end is there."""

    kind: ClassVar[str] = "ping"


@dataclass(slots=True)
class PongFrame:
    """Answers a ping."""

    kind: ClassVar[str] = "pong"


@dataclass(slots=True)
class RequestFrame:
    """A client asks for the operation `op` of the hub; the answer has the same `request_id`."""

    kind: ClassVar[str] = "request"
    request_id: str
    op: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ResponseFrame:
    """The result of a request, or the code and text of its error."""

    kind: ClassVar[str] = "response"
    request_id: str
    ok: bool
    result: Any = None
    error_code: str = ""
    error_message: str = ""


@dataclass(slots=True)
class ErrorFrame:
    """The hub refuses a hello, or a malformed frame."""

    kind: ClassVar[str] = "error"
    code: str
    message: str
    envelope_id: str | None = None


@dataclass(slots=True)
class NotifyFrame:
    """The hub delivers an envelope to the participant `recipient_id`."""

    kind: ClassVar[str] = "notify"
    envelope: Envelope
    recipient_id: str = ""


@dataclass(slots=True)
class ReceiptFrame:
    """A client has taken an envelope (`status="ack"`), or could not (`"nack"`, with a reason)."""

    kind: ClassVar[str] = "receipt"
    envelope_id: str
    status: str
    recipient_id: str = ""
    channel_id: str = ""
    reason: str = ""


Frame = (
    HelloFrame
    | WelcomeFrame
    | PingFrame
    | PongFrame
    | RequestFrame
    | ResponseFrame
    | ErrorFrame
    | NotifyFrame
    | ReceiptFrame
)
"""Any frame."""

_KINDS: dict[str, type[Any]] = {
    item.kind: item
    for item in (
        HelloFrame,
        WelcomeFrame,
        PingFrame,
        PongFrame,
        RequestFrame,
        ResponseFrame,
        ErrorFrame,
        NotifyFrame,
        ReceiptFrame,
    )
}


def encode_frame(frame: Frame) -> dict[str, Any]:
    """The frame as JSON values."""
    return {**asdict(frame), "kind": frame.kind}


def decode_frame(data: Mapping[str, Any]) -> Frame:
    """The frame that `encode_frame` wrote; `ValueError` for anything else."""
    fields = dict(data)
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise ValueError(f"unknown frame kind: {kind!r}")
    if isinstance(fields.get("envelope"), Mapping):
        fields["envelope"] = Envelope.from_dict(fields["envelope"])
    try:
        frame: Frame = _KINDS[kind](**fields)
    except TypeError as exc:
        raise ValueError(f"not a {kind} frame: {exc}") from None
    return frame
