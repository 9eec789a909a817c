"""Parts of a result besides JSON: text, images, audio and files.

A target that can show a part gets it natively. Others get one line that says what was left out:
bytes never go into a prompt as base64 text.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote_to_bytes

_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+*-]+")


@dataclass(frozen=True, slots=True)
class Text:
    """A part that is text, shown unchanged."""

    text: str


@dataclass(frozen=True, slots=True)
class Json:
    """A part that is data: JSON values, or values that this library writes as JSON."""

    value: Any


@dataclass(frozen=True, slots=True, repr=False)
class Media:
    """Bytes or a URI; the subclass (`Image`, `Audio`, `File`) is the kind.

    Exactly one of `data` and `uri` is given; a `data:` URI is read. Without `media_type` the
    bytes or the URI's ending decide. `name` is a file name.

    Raises:
        ValueError: both or none are given, or the media type is not one of this kind.
    """

    data: bytes | None = None
    media_type: str = ""
    uri: str | None = None
    name: str | None = None

    kind: ClassVar[str] = "file"
    family: ClassVar[str] = ""
    usual: ClassVar[str] = "application/octet-stream"

    def __post_init__(self) -> None:
        if self.data is None and self.uri is not None and self.uri.startswith("data:"):
            media_type, data = _of_data_uri(self.uri)
            self._set(data=data, uri=None, media_type=self.media_type or media_type)
        kind = type(self).__name__
        if (self.data is None) == (self.uri is None):
            raise ValueError(f"{kind} needs data=bytes or uri=…, and not both")
        if self.data is not None and not isinstance(self.data, (bytes, bytearray, memoryview)):
            raise ValueError(f"{kind}: data is bytes, not {type(self.data).__name__}")
        if self.data is not None:
            self._set(data=bytes(self.data))
        if not self.media_type:
            self._set(media_type=self._guessed())
        if not _MEDIA_TYPE.fullmatch(self.media_type):
            raise ValueError(f"{kind}: {self.media_type!r} is no media type such as {self.usual!r}")
        if not self.media_type.startswith(self.family):
            raise ValueError(f"{kind}: its media type begins with {self.family!r}: {self!r}")

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _guessed(self) -> str:
        found = sniffed(self.data) if self.data is not None else None
        if found is None:
            found, _ = mimetypes.guess_type(self.name or (self.uri or "").split("?")[0])
        return found if found and found.startswith(self.family) else self.usual

    @property
    def size(self) -> int | None:
        """How many bytes; `None` for a URI."""
        return None if self.data is None else len(self.data)

    @property
    def digest(self) -> str | None:
        """SHA-256 of the bytes in hexadecimal; `None` for a URI."""
        return None if self.data is None else hashlib.sha256(self.data).hexdigest()

    @property
    def base64(self) -> str:
        """The bytes as base64 text, for a wire; empty for a URI."""
        return base64.b64encode(self.data or b"").decode("ascii")

    @property
    def url(self) -> str:
        """The URI, or the bytes as a `data:` URI, for a wire."""
        return self.uri or f"data:{self.media_type};base64,{self.base64}"

    def __repr__(self) -> str:
        """One line without the bytes."""
        return f"{type(self).__name__}({_described(self)})"


@dataclass(frozen=True, slots=True, repr=False)
class Image(Media):
    """An image: `Image(data=png)`, `Image(uri="https://…/a.png")`."""

    kind: ClassVar[str] = "image"
    family: ClassVar[str] = "image/"
    usual: ClassVar[str] = "image/png"


@dataclass(frozen=True, slots=True, repr=False)
class Audio(Media):
    """A recording: `Audio(data=wav)`."""

    kind: ClassVar[str] = "audio"
    family: ClassVar[str] = "audio/"
    usual: ClassVar[str] = "audio/wav"


@dataclass(frozen=True, slots=True, repr=False)
class File(Media):
    """Any other file: `File(data=pdf, name="bill.pdf")`."""


@dataclass(frozen=True, slots=True, repr=False)
class Artifact:
    """A value for the program besides the result; no model sees it.

    It is recorded if it can be written, else left out of the record.
    """

    value: Any

    def __repr__(self) -> str:
        """Only its class: an artifact may be large."""
        return f"Artifact({type(self.value).__qualname__})"


Content = Text | Json | Media
"""One part of a result."""

_KINDS: dict[str, type[Media]] = {"image": Image, "audio": Audio, "file": File}


def media_of(
    media_type: str | None,
    data: bytes | None = None,
    uri: str | None = None,
    *,
    usual: str = "",
    **more: Any,
) -> Media:
    """An `Image`, an `Audio` or a `File`, depending on the media type.

    Without one the bytes decide, else `usual`, the expected kind (`"image"`, `"audio"`).
    """
    if data is None and uri is not None and uri.startswith("data:"):
        of_uri, data = _of_data_uri(uri)
        media_type, uri = media_type or of_uri, None
    stated = (media_type or "").partition(";")[0].strip()
    stated = stated if _MEDIA_TYPE.fullmatch(stated) else ""
    known = stated or (sniffed(data) if data is not None else "") or ""
    kind = _KINDS.get(known.partition("/")[0] if known else usual, File)
    return kind(data=data, media_type=stated, uri=uri, **more)


def left_out(media: Media) -> str:
    """The line in place of a part that the target cannot show."""
    return f"[left out: {_described(media)}]"


def attached(media: Media) -> str:
    """The line in place of a part that follows elsewhere."""
    return f"[attached: {_described(media)}]"


def _described(media: Media) -> str:
    name = f" {media.name!r}" if media.name else ""
    # A URI may be untrusted: it is shortened, and invisible characters are removed.
    where = f"at {media.uri[:300]!r}" if media.uri is not None else f"{media.size:,} bytes"
    return f"{media.kind}{name}, {media.media_type}, {where}"


# The first bytes of the formats that models can read.
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)


def sniffed(data: bytes) -> str | None:
    """The media type of the first bytes; `None` if they are of no known format."""
    for begins, media_type in _MAGIC:
        if data.startswith(begins):
            return media_type
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(bytes(data[8:12]))
    return None


def _of_data_uri(uri: str) -> tuple[str, bytes]:
    head, comma, body = uri[len("data:") :].partition(",")
    media_type, *options = head.split(";")
    raw = unquote_to_bytes(body)
    try:
        data = base64.b64decode(raw, validate=True) if "base64" in options else raw
    except ValueError:
        comma = ""
    if not comma:
        raise ValueError("a data: URI is data:<media type>;base64,<text>")
    return media_type, data
