"""Parts of results: what they are, how they are kept, and what stands for them in text."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from pydantic import BaseModel

import agent_adapter as aa
from agent_adapter.core.content import Artifact, media_of
from agent_adapter.core.result_parts import content_facts, parts_of
from agent_adapter.core.results import ResultCodec, plain_result
from agent_adapter.exec import ledger

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 150_000
IMAGE = aa.Image(data=PNG)


class Report(BaseModel):
    """A result with a picture in it."""

    title: str
    chart: aa.Image


@dataclasses.dataclass
class Page:
    """The same as a dataclass."""

    chart: aa.Image


VALUES: dict[str, Any] = {
    "image": IMAGE,
    "bytes": PNG,
    "list": ["a chart", IMAGE, {"n": 1}],
    "deep": {"pages": [{"chart": IMAGE}]},
    "model": Report(title="sales", chart=IMAGE),
    "dataclass": Page(IMAGE),
    "file": aa.File(data=b"x" * 9000, name="a.zip"),
    "many bytes": b"\x07" * 9000,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_no_base64_in_text(value: Any) -> None:
    """S10: one line says what was left out."""
    text = plain_result(value)
    json.loads(text)
    assert len(text) < 400
    assert "[left out: " in text


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("annotated", [False, True])
def test_recorded_parts_come_back(value: Any, annotated: bool) -> None:
    """A replayed call gives what the first one gave."""
    codec = ResultCodec(type(value) if annotated else None)
    back = codec.decode(*codec.encode(value))
    if annotated or not isinstance(value, (Report, Page)):
        assert back == value
    assert content_facts(back) == content_facts(value)


def test_media_deep_inside_follow_their_data() -> None:
    """The data say in their place that they are attached."""
    data, image = parts_of({"pages": [{"chart": IMAGE}]})
    assert isinstance(data, aa.Json)
    assert "[attached: image" in data.value["pages"][0]["chart"]
    assert image is IMAGE


def test_plain_values_have_no_parts() -> None:
    """JSON stays JSON, and so do a few bytes of no known kind."""
    for value in ("x", 7, None, [1, {"a": b"\x01\x02"}], b"", {"type": "image"}):
        assert parts_of(value) == ()


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", "audio/wav"),
        (b"%PDF-1.7", "application/pdf"),
    ],
)
def test_bytes_show_what_they_are(data: bytes, media_type: str) -> None:
    """A tool that returns bytes need not say more."""
    (part,) = parts_of(data)
    assert part == media_of(media_type, data)


def test_data_uri_is_read() -> None:
    """Its bytes count, not its text."""
    image = aa.Image(uri="data:image/gif;base64,R0lGODlh")
    assert (image.data, image.media_type, image.uri) == (b"GIF89a", "image/gif", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "data=bytes or uri"),
        ({"data": b"x", "uri": "https://a/b"}, "not both"),
        ({"data": "text"}, "data is bytes, not str"),
        ({"data": b"x", "media_type": "png"}, "no media type"),
        ({"data": b"x", "media_type": "audio/wav"}, "begins with 'image/'"),
        ({"uri": "data:image/png;base64,?"}, "a data: URI is"),
    ],
)
def test_bad_part_is_refused(options: dict[str, Any], message: str) -> None:
    """It names what is wrong."""
    with pytest.raises(ValueError, match=message):
        aa.Image(**options)


def test_repr_has_no_bytes() -> None:
    """Logs stay readable."""
    assert repr(IMAGE) == "Image(image, image/png, 150,008 bytes)"


@pytest.mark.anyio
@pytest.mark.parametrize("effects", ["read", "write"])
async def test_ledger_tells_digest_and_size(effects: Any) -> None:
    """S10: the bytes lie beside the entry, and the call is answered from there."""
    registry = aa.ToolRegistry()
    ran: list[int] = []

    @registry.tool(effects=effects)
    def shoot() -> aa.Image:
        """Takes a picture."""
        ran.append(1)
        return IMAGE

    store = aa.open_store("memory://")
    executor = aa.Executor(registry, store=store)
    for _ in range(2):
        ctx = aa.ToolContext("c1", "run_1", reexecutes=True)
        assert await executor.run("shoot", {}, ctx=ctx) == IMAGE
    assert len(ran) == 1
    told = [
        entry.facts["content"]
        for entry in await ledger.entries(store, "run_1")
        if "content" in entry.facts
    ]
    assert told[0] == [
        {"kind": "image", "media_type": "image/png", "size": 150_008, "sha256": IMAGE.digest}
    ]
    assert (await ledger.verify(store)).ok


def test_artifact_that_cannot_be_written_costs_no_result() -> None:
    """The rest is recorded."""
    codec = ResultCodec(None)
    tag, data = codec.encode(["text", Artifact(object())])
    assert codec.decode(tag, data) == ["text"]
    assert codec.decode(*codec.encode(["text", Artifact({"a": 1})]))[1] == Artifact({"a": 1})
