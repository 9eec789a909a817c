"""Results as bytes for a record, and as text for a model."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic_core import from_json, to_json

from agent_adapter.core.canonical import canon, content_tag, tagged, untagged
from agent_adapter.core.content import Artifact, Json, Media, Text
from agent_adapter.core.result_parts import holds_content, without_artifacts, without_content
from agent_adapter.core.routing import Finish, Handoff

ResultTag = Literal[
    "json", "tagged", "typed", "typed-fields", "content", "handoff", "finish", "opaque"
]
"""The encoding of a recorded result."""

OPAQUE = "opaque"
"""The tag of a result that cannot be written: only its class is recorded."""

_CONFIG = ConfigDict(
    ser_json_bytes="base64",
    val_json_bytes="base64",
    ser_json_inf_nan="constants",
    arbitrary_types_allowed=True,
)
_ROUTES: dict[str, type[Handoff] | type[Finish]] = {"handoff": Handoff, "finish": Finish}
_SCALARS = (str, int, bool, float, type(None))


class ResultCodec:
    """Writes a tool's results and reads them back, by the return annotation if that is exact.

    A result that its annotation reads back differently is written with tags instead; one that
    cannot be written gets the tag `opaque`, with the name of its class.
    """

    __slots__ = ("_adapter", "_annotation")

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._adapter: TypeAdapter[Any] | None = None

    def encode(self, value: Any) -> tuple[str, bytes]:
        """`value` as a tag and bytes; never raises."""
        try:
            if _is_json(value):
                return "json", to_json(value, inf_nan_mode="constants")
        except Exception:  # a cycle, or a lone surrogate
            return OPAQUE, to_json(_class_name(value))
        kind = type(value)
        if kind is Handoff:
            return "handoff", to_json([value.target, value.reason])
        if kind is Finish:
            return "finish", to_json([value.summary, value.reason])
        if self._annotation is not None:
            written = self._typed(value)
            if written is not None:
                return written
        tag, data = _tagged_or_opaque(value)
        if tag == OPAQUE:
            tag, data = _tagged_or_opaque(without_artifacts(value))
        return ("content" if tag != OPAQUE and holds_content(value) else tag), data

    def decode(self, tag: str, data: bytes) -> Any:
        """The value that `encode` wrote; an opaque one is its class name."""
        if tag in _ROUTES:
            return _ROUTES[tag](*from_json(data))
        if tag == "typed":
            return self._types().validate_json(data)
        if tag == "json":
            return from_json(data)
        plain = untagged(from_json(data))
        if tag == "typed-fields":
            return self._types().validate_python(plain, by_alias=True, by_name=True)
        return plain

    def _types(self) -> TypeAdapter[Any]:
        if self._adapter is None:
            try:
                self._adapter = TypeAdapter(self._annotation, config=_CONFIG)
            except Exception:  # models bring a configuration of their own
                self._adapter = TypeAdapter(self._annotation)
        return self._adapter

    def _typed(self, value: Any) -> tuple[str, bytes] | None:
        """`value` by its annotation if it is read back unchanged, else `None`."""
        for tag in ("typed", "typed-fields"):
            try:
                data = (
                    self._types().dump_json(value, warnings="error", round_trip=True, by_alias=True)
                    if tag == "typed"
                    else to_json(_tagged(value))
                )
                same = _same(self.decode(tag, data), value)
            except Exception:  # the annotation does not describe this value
                same = False
            if same:
                return tag, data
        return None


def plain_result(value: Any) -> str:
    """`value` as JSON text for a model; NaN is `"NaN"`, a value without a JSON form its class name.

    Images, audio and files are replaced by a line that says what was left out.
    """
    if type(value) not in _SCALARS and holds_content(value):
        value = without_content(value)
    try:
        return to_json(
            value, bytes_mode="base64", inf_nan_mode="strings", fallback=_class_name
        ).decode()
    except Exception:
        return _rescued(value)


def _rescued(value: Any) -> str:
    """Text for a value that could not be fully written: lone surrogates, cycles, failing code."""
    try:
        return to_json(
            _replaced(value, 0), bytes_mode="base64", inf_nan_mode="strings", fallback=_class_name
        ).decode()
    except Exception:
        return to_json(_class_name(value)).decode()


def _replaced(value: Any, depth: int) -> Any:
    if depth > 50:
        return _class_name(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_replaced(str(k), 0): _replaced(item, depth + 1) for k, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_replaced(item, depth + 1) for item in value]
    if isinstance(value, BaseModel):
        return _replaced(dict(value), depth)
    return value


def _class_name(value: Any) -> str:
    return type(value).__qualname__


def _is_json(value: Any) -> bool:
    """Whether JSON reads back an equal value: it contains only JSON types."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is list:
        return all(map(_is_json, value))
    if kind is dict:
        return all(type(name) is str for name in value) and all(map(_is_json, value.values()))
    return False


def _tagged_or_opaque(value: Any) -> tuple[str, bytes]:
    try:
        data = to_json(_tagged(value))
    except Exception:
        data = b""
    # A secret is written as a hash and could not be read back.
    if not data or b'"$secret"' in data:
        return OPAQUE, to_json(_class_name(value))
    return "tagged", data


def _tagged(value: Any) -> Any:
    """Like `canonical.tagged`, but allows infinities and NaN."""
    kind = type(value)
    if kind is float:
        return {"$float": repr(value)}
    if kind is list or kind is tuple:
        return [_tagged(item) for item in value]
    if kind is dict and all(type(name) is str and not name.startswith("$") for name in value):
        return {name: _tagged(item) for name, item in value.items()}
    if isinstance(value, BaseModel):
        fields = dict(value.__dict__) | (value.__pydantic_extra__ or {})
        return {"$object": [kind.__qualname__, _tagged(fields)]}
    if isinstance(value, (Text, Json, Media, Artifact)):
        names = [item.name for item in dataclasses.fields(value)]
        return content_tag(value, {name: _tagged(getattr(value, name)) for name in names})
    if dataclasses.is_dataclass(kind):
        fields = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
        return {"$object": [kind.__qualname__, _tagged(fields)]}
    return tagged(value)


def _same(back: Any, value: Any) -> bool:
    if type(back) is not type(value):
        return False
    try:
        return canon(back) == canon(value)
    except (TypeError, ValueError):
        both_nan = isinstance(value, float) and math.isnan(value) and math.isnan(back)
        return bool(back == value) or both_nan
