"""`RecentErrors`: the exceptions behind recent events, which a store cannot hold."""

from __future__ import annotations

from collections import OrderedDict

_KEPT = 256


class RecentErrors:
    """Exceptions by what they belong to; the oldest is forgotten first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, BaseException] = OrderedDict()

    def keep(self, key: str, error: BaseException) -> None:
        """Keep the error of an event."""
        self._kept[key] = error
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def get(self, key: str) -> BaseException | None:
        """The error of that event, if it is recent and of this process."""
        return self._kept.get(key)


def attempt_key(turn_id: str | None, attempt: int) -> str:
    """What the error of a failed attempt is kept under."""
    return f"{turn_id}:{attempt}"
