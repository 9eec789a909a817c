"""Frames: what goes over a wire, and what is refused as one."""

from __future__ import annotations

import json

import pytest

from agent_adapter.core.errors import (
    AccessDeniedError,
    NetworkError,
    ProtocolError,
    StaleTurn,
    ToolError,
)
from agent_adapter.network.links.frames import (
    FRAME_LIMIT,
    Frame,
    Hello,
    Joiner,
    Notify,
    Request,
    Response,
    decode_frame,
    encode_frame,
)
from agent_adapter.network.links.wire import error_from_wire, error_to_wire


def over_the_wire(frame: Frame) -> Frame:
    """What arrives of a frame."""
    joiner, arrived = Joiner(), None
    for text in encode_frame(frame):
        arrived = joiner.joined(decode_frame(text))
    assert arrived is not None
    return arrived


@pytest.mark.parametrize(
    "frame",
    [
        Hello(version=1, instance="x" * 32),
        Request(id=1, op="get_agent", params={"name_or_id": "a"}),
        Response(id=1, result=[1, {"a": None}]),
        Response(id=2, error="not-found", message="nobody"),
        Notify(agent_id="a", envelope={"event_type": "x"}),
    ],
)
def test_frames_arrive_as_sent(frame: Frame) -> None:
    """A frame reads back as it was written."""
    assert over_the_wire(frame) == frame


@pytest.mark.parametrize("text", ["x" * 2_000_000, '"\\\ud800é' * 400_000])
def test_long_frames_go_in_parts(text: str) -> None:
    """A frame that is too long goes in parts, none of them beyond the limit."""
    frame = Response(id=1, result=text)
    assert all(len(part.encode()) < FRAME_LIMIT for part in encode_frame(frame))
    assert over_the_wire(frame) == frame


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "one JSON object"),
        ("[" * 100_000, "one JSON object"),
        ("[]", "not list"),
        ('{"kind": "bomb"}', "expected tags: 'hello'"),
        ('{"kind": ["hello"]}', "not a frame: frame: Input tag"),
        ('{"kind": "request", "id": 1}', "request.op: Field required"),
        (
            '{"kind": "request", "id": "1", "op": "x"}',
            "request.id: Input",
        ),
        (
            '{"kind": "request", "id": true, "op": "x"}',
            "request.id: Input",
        ),
        (
            '{"kind": "hello", "version": 1, "instance": "x", "name": "root"}',
            "hello.name: Extra",
        ),
    ],
)
def test_what_is_no_frame_is_refused(text: str, what: str) -> None:
    """Anything else is refused with what a frame is."""
    with pytest.raises(ProtocolError, match=what):
        decode_frame(text)


def test_endless_parts_are_refused() -> None:
    """Parts that never end do not fill the memory."""
    part = decode_frame(json.dumps({"kind": "part", "text": "x" * 4_000_000, "last": False}))
    joiner = Joiner()
    with pytest.raises(ProtocolError, match="more than"):
        for _ in range(20):
            joiner.joined(part)


@pytest.mark.parametrize("error", [ProtocolError, AccessDeniedError, StaleTurn, NetworkError])
def test_errors_arrive_as_raised(error: type[NetworkError]) -> None:
    """An error of the network is raised at the other end as what it is, with its text."""
    arrived = error_from_wire(*error_to_wire(error("because")))
    assert (type(arrived), str(arrived)) == (error, "because")


def test_foreign_errors_tell_no_secrets() -> None:
    """Of an error that is not ours only the class crosses the wire."""
    kind, message = error_to_wire(KeyError("password=hunter2"))
    assert kind == "network-error"
    assert "KeyError" in message
    assert "hunter2" not in message


def test_our_other_errors_are_told() -> None:
    """An error of another room is told with its kind."""
    assert error_to_wire(ToolError("no stock")) == ("network-error", "tool-error: no stock")
