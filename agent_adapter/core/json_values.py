"""Python values as complete JSON-able values: what Pydantic masks or drops is kept."""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, RootModel, Secret, SecretBytes, SecretStr

SecretWriter = Callable[["SecretStr | SecretBytes | Secret[Any]"], Any]
"""Replaces a Pydantic secret."""

_JSON = (str, int, float, bool, type(None))


def json_or_text(text: str) -> Any:
    """The value of JSON text; other text unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def needs_rewriting(value: Any) -> bool:
    """Whether `value` holds objects that a plain dump would mask, rename or shorten."""
    kind = type(value)
    if kind in _JSON:
        return False
    if kind is dict:
        return any(map(needs_rewriting, value.values()))
    if kind is list or kind is tuple:
        return any(map(needs_rewriting, value))
    return True


def in_clear(value: SecretStr | SecretBytes | Secret[Any]) -> Any:
    """The value of a Pydantic secret."""
    return json_ready(value.get_secret_value())


# One return for each kind of value.
def json_ready(value: Any, secret: SecretWriter = in_clear) -> Any:  # noqa: PLR0911
    """`value` with models and dataclasses as plain data under the names they read.

    `secret` writes Pydantic's secrets. Values that `pydantic_core.to_json` writes faithfully
    (dates, Decimals, bytes) are unchanged.
    """
    kind = type(value)
    if kind in _JSON:
        return value
    if isinstance(value, RootModel):
        return json_ready(value.root, secret)
    if isinstance(value, BaseModel):
        return _model_fields(value, secret)
    if isinstance(value, (SecretStr, SecretBytes, Secret)):
        return secret(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: json_ready(getattr(value, item.name), secret)
            for item in dataclasses.fields(value)
            if item.init
        }
    if isinstance(value, enum.Enum):
        return json_ready(value.value, secret)
    if isinstance(value, Mapping):
        return {name: json_ready(item, secret) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return [json_ready(item, secret) for item in value]
    return value


def _model_fields(value: BaseModel, secret: SecretWriter) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for name, info in type(value).model_fields.items():
        alias = next(
            (text for text in (info.validation_alias, info.alias) if isinstance(text, str)), name
        )
        written[alias] = json_ready(getattr(value, name), secret)
    for name, item in (value.__pydantic_extra__ or {}).items():
        written[name] = json_ready(item, secret)
    read_as = type(value).model_config.get("val_json_bytes", "utf8")
    return {name: _with_text(item, read_as) for name, item in written.items()}


def _with_text(value: Any, read_as: str) -> Any:
    """`value` with bytes as the text that a model of its own configuration reads."""
    if isinstance(value, (bytes, bytearray)):
        if read_as == "utf8":
            return value.decode()
        return value.hex() if read_as == "hex" else base64.urlsafe_b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _with_text(item, read_as) for name, item in value.items()}
    return [_with_text(item, read_as) for item in value] if isinstance(value, list) else value
