"""What goes over a wire: JSON objects with a `kind`, none longer than a megabyte."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from agent_adapter.core.errors import ProtocolError

__all__ = [
    "FRAME_LIMIT",
    "VERSION",
    "Frame",
    "Hello",
    "Joiner",
    "Notify",
    "Part",
    "Request",
    "Response",
    "TurnStart",
    "Welcome",
    "decode_frame",
    "encode_frame",
]

VERSION = 1
"""The version of the protocol; both ends must speak the same."""

FRAME_LIMIT = 1024 * 1024
"""Bytes that one frame may have."""

_PIECE = 400_000
_LONGEST = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The client's first word; `instance` is its secret, by which it is known when it returns."""

    kind: ClassVar[str] = "hello"
    version: int
    instance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The hub's answer; `resumed` says that it still knew the client."""

    kind: ClassVar[str] = "welcome"
    version: int
    hub_time: str
    resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The client asks for `op`; asked again under the same `id`, it is done once."""

    kind: ClassVar[str] = "request"
    id: int
    op: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came of a request: `result`, or the kind and text of an `error`."""

    kind: ClassVar[str] = "response"
    id: int
    result: Any = None
    error: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """An envelope for one of the client's participants."""

    kind: ClassVar[str] = "notify"
    agent_id: str
    envelope: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStart:
    """A turn for one of the client's participants to run."""

    kind: ClassVar[str] = "turn"
    agent_id: str
    started: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a frame of the hub that is too long for one; `last` ends it."""

    kind: ClassVar[str] = "part"
    text: str
    last: bool


Frame = Hello | Welcome | Request | Response | Notify | TurnStart | Part

_KINDS: dict[str, type[Any]] = {
    item.kind: item for item in (Hello, Welcome, Request, Response, Notify, TurnStart, Part)
}
_TYPES: dict[str, tuple[type, ...]] = {
    "version": (int,),
    "id": (int,),
    "instance": (str,),
    "hub_time": (str,),
    "op": (str,),
    "error": (str,),
    "message": (str,),
    "agent_id": (str,),
    "text": (str,),
    "params": (dict,),
    "envelope": (dict,),
    "started": (dict,),
    "resumed": (bool,),
    "last": (bool,),
    "result": (object,),
}


def encode_frame(frame: Frame) -> Iterator[str]:
    """The texts that carry `frame`: one, or parts of at most a megabyte each."""
    text = _text(frame)
    if len(text) <= FRAME_LIMIT:
        yield text
        return
    for at in range(0, len(text), _PIECE):
        # Quoting can at most double a piece, which stays below the limit.
        yield _text(Part(text=text[at : at + _PIECE], last=at + _PIECE >= len(text)))


def decode_frame(text: str | bytes) -> Frame:
    """The frame that a text carries; `ProtocolError` says what is wrong with another one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ProtocolError(f"a frame is one JSON object: {exc}") from None
    if not isinstance(data, Mapping):
        raise ProtocolError(f"a frame is a JSON object, not {type(data).__name__}")
    values = dict(data)
    kind = values.pop("kind", None)
    frame = _KINDS.get(kind) if isinstance(kind, str) else None
    if frame is None:
        raise ProtocolError(f"a frame's kind is one of {', '.join(_KINDS)}, not {kind!r:.80}")
    known = {item.name for item in fields(frame)}
    for name, value in values.items():
        if name not in known:
            raise ProtocolError(f"a {kind} frame has no {name!r:.80}")
        if not isinstance(value, _TYPES[name]) or (_TYPES[name] == (int,) and value is True):
            raise ProtocolError(f"{name} of a {kind} frame is a {_TYPES[name][0].__name__}")
    try:
        decoded: Frame = frame(**values)
    except TypeError:
        missing = ", ".join(sorted(known - set(values)))
        raise ProtocolError(f"a {kind} frame lacks some of {missing}") from None
    return decoded


class Joiner:
    """Puts the parts of long frames together."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def joined(self, frame: Frame) -> Frame | None:
        """`frame`, or the long one that it completes; `None` while parts are missing."""
        if not isinstance(frame, Part):
            return frame
        self._pieces.append(frame.text)
        self._size += len(frame.text)
        if self._size > _LONGEST:
            raise ProtocolError(f"a frame in parts has more than {_LONGEST} bytes")
        if not frame.last:
            return None
        text, self._pieces, self._size = "".join(self._pieces), [], 0
        return decode_frame(text)


def _text(frame: Frame) -> str:
    data = {item.name: getattr(frame, item.name) for item in fields(frame)}
    try:
        return json.dumps({"kind": frame.kind, **data}, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise ProtocolError(f"the {frame.kind} frame is not JSON: {exc}") from None
