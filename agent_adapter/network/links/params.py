"""The parameters of a request from another process, read with their kinds checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_adapter.core.errors import ProtocolError

__all__ = ["Params"]


class Params:
    """The parameters of a request; what is missing or of another kind is a `ProtocolError`."""

    def __init__(self, op: str, values: Mapping[str, Any]) -> None:
        self._op = op
        self._values = values

    def text(self, name: str) -> str:
        """A text."""
        return str(self._typed(name, str, "a text"))

    def maybe_text(self, name: str) -> str | None:
        """A text or null."""
        return None if self._values.get(name) is None else self.text(name)

    def whole(self, name: str, default: int = 0) -> int:
        """A whole number from 0."""
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ProtocolError(f"{name} of {self._op} is a whole number from 0")
        return value

    def maybe_whole(self, name: str) -> int | None:
        """A whole number from 0, or null."""
        return None if self._values.get(name) is None else self.whole(name)

    def record(self, name: str) -> dict[str, Any]:
        """An object."""
        return dict(self._typed(name, dict, "an object"))

    def maybe_record(self, name: str) -> dict[str, Any] | None:
        """An object or null."""
        return None if self._values.get(name) is None else self.record(name)

    def texts(self, name: str) -> list[str]:
        """A list of texts; empty where it is left out."""
        value = self._values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ProtocolError(f"{name} of {self._op} is a list of texts")
        return value

    def records(self, name: str) -> list[dict[str, Any]]:
        """A list of objects; empty where it is left out."""
        value = self._values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ProtocolError(f"{name} of {self._op} is a list of objects")
        return value

    def raw(self, name: str) -> Any:
        """Whatever is there."""
        return self._values.get(name)

    def _typed(self, name: str, kind: type[Any], what: str) -> Any:
        value = self._values.get(name)
        if not isinstance(value, kind):
            raise ProtocolError(f"{name} of {self._op} is {what}")
        return value
