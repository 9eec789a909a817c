"""The frames of a connection: JSON objects with a `kind`, at most a megabyte each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from agent_adapter.core.errors import ProtocolError
from agent_adapter.core.records import StrictModel, problems

VERSION = 1
"""The version of the protocol; both ends must use the same."""

FRAME_LIMIT = 1024 * 1024
"""The most bytes that one frame may have."""

MAX_VALUES = 20_000
"""The most JSON values that one frame of a client may have."""

MAX_DEPTH = 100
"""The most levels of JSON in one frame of a client."""

# A text, also one that does not end, or a sign outside of texts.
_SIGNS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
_OPENING, _CLOSING, _VALUES = frozenset("[{"), frozenset("]}"), frozenset("[{,")
_PIECE = 400_000
_LONGEST = 64 * 1024 * 1024

_Name = Annotated[str, Field(max_length=1000)]


class _Frame(StrictModel):
    model_config = ConfigDict(frozen=True)


class Hello(_Frame):
    """The client's first frame; its secret `instance` identifies it when it reconnects."""

    kind: Literal["hello"] = "hello"
    version: int
    instance: _Name


class Welcome(_Frame):
    """The hub's answer; `resumed` is true if it still knew the client."""

    kind: Literal["welcome"] = "welcome"
    version: int
    hub_time: _Name
    resumed: bool = False


class Request(_Frame):
    """A request for the operation `op`; repeated with the same `id`, it is executed once."""

    kind: Literal["request"] = "request"
    id: Annotated[int, Field(ge=0, lt=2**63)]
    op: _Name
    params: dict[str, Any] = Field(default_factory=dict)


class Response(_Frame):
    """The answer to a request: `result`, or the kind and text of an `error`."""

    kind: Literal["response"] = "response"
    id: int
    result: Any = None
    error: str = ""
    message: str = ""


class Notify(_Frame):
    """An envelope for one of the client's participants."""

    kind: Literal["notify"] = "notify"
    agent_id: _Name
    envelope: dict[str, Any]


class TurnStart(_Frame):
    """A turn for one of the client's participants to run."""

    kind: Literal["turn"] = "turn"
    agent_id: _Name
    started: dict[str, Any]


class Part(_Frame):
    """A piece of a frame of the hub that is too long for one; `last` ends it."""

    kind: Literal["part"] = "part"
    text: str
    last: bool


Frame = Hello | Welcome | Request | Response | Notify | TurnStart | Part

_FRAMES: TypeAdapter[Frame] = TypeAdapter(Annotated[Frame, Field(discriminator="kind")])


def encode_frame(frame: Frame) -> Iterator[str]:
    """The texts that carry `frame`: one, or parts of at most a megabyte each."""
    text = _text(frame)
    if len(text) <= FRAME_LIMIT:
        yield text
        return
    for at in range(0, len(text), _PIECE):
        # Quoting can at most double a piece, which stays below the limit.
        yield _text(Part(text=text[at : at + _PIECE], last=at + _PIECE >= len(text)))


def decode_client_frame(text: str | bytes) -> Frame:
    """Like `decode_frame`, for a client: also at most `MAX_VALUES` and `MAX_DEPTH`."""
    read = text if isinstance(text, str) else bytes(text).decode("utf-8", "replace")
    opened = read.count("[") + read.count("{")
    # Signs in texts count too, so a frame with many of them is looked at sign by sign.
    if opened > MAX_DEPTH or opened + read.count(",") > MAX_VALUES:
        _check_shape(read)
    return decode_frame(text)


def decode_frame(text: str | bytes) -> Frame:
    """The frame that a text carries; `ProtocolError` for anything else."""
    data = _loaded(text)
    if not isinstance(data, Mapping):
        raise ProtocolError(f"a frame is a JSON object, not {type(data).__name__}")
    try:
        return _FRAMES.validate_python(data)
    except ValidationError as exc:
        raise ProtocolError(f"not a frame: {problems(exc, 'frame')}") from None


def _loaded(text: str | bytes) -> Any:
    try:
        # Not pydantic's parser: it refuses lone surrogates, which our own JSON may carry.
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as exc:
        raise ProtocolError(f"a frame is one JSON object: {exc!s:.300}") from None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _check_shape(text: str) -> None:
    """Count values and levels before the parser makes them: making a million lists takes long."""
    values = depth = 0
    for match in _SIGNS.finditer(text):
        sign = match[0]
        depth += (sign in _OPENING) - (sign in _CLOSING)
        values += sign in _VALUES
        if values > MAX_VALUES:
            raise ProtocolError(
                f"a frame has at most {MAX_VALUES:,} values; send large data as one text, or "
                "keep it elsewhere and send where it is"
            )
        if depth > MAX_DEPTH:
            raise ProtocolError(f"a frame is nested at most {MAX_DEPTH} levels deep")


class Joiner:
    """Joins the parts of long frames."""

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
    try:
        return json.dumps(dict(frame), separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise ProtocolError(f"the {frame.kind} frame is not JSON: {exc}") from None
