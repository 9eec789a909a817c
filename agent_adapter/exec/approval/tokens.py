"""One-use tokens: a gate's yes, handed to the one call it was given for."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from agent_adapter.exec.call import Call

__all__ = ["ApprovalToken", "TokenBook"]


class ApprovalToken:
    """Stands for one prepared call in this process; it says nothing and is never serialised."""

    __slots__ = ("__weakref__",)

    def __copy__(self) -> ApprovalToken:
        return self

    def __deepcopy__(self, memo: Any) -> ApprovalToken:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("an approval token is never serialised")


class TokenBook:
    """The tokens that are out, with the prepared call behind each; bounded in number and time."""

    def __init__(self, size: int = 10_000, seconds: float = 600.0) -> None:
        self._size = size
        self._seconds = seconds
        self._out: OrderedDict[ApprovalToken, tuple[Call, float]] = OrderedDict()

    def issue(self, call: Call) -> ApprovalToken:
        """A token for this prepared call."""
        token = ApprovalToken()
        self._out[token] = (call, time.monotonic() + self._seconds)
        while len(self._out) > self._size:
            _, (forgotten, _) = self._out.popitem(last=False)
            forgotten.executor.in_flight.release(forgotten)
        return token

    def take(self, token: Any) -> Call | None:
        """The prepared call behind a token, once; `None` for anything else."""
        if not isinstance(token, ApprovalToken):
            return None
        found = self._out.pop(token, None)
        if found is None:
            return None
        call, until = found
        if time.monotonic() <= until:
            return call
        call.executor.in_flight.release(call)
        return None

    def drop(self, token: Any) -> None:
        """Forget a token that its call did not take."""
        found = self._out.pop(token, None) if isinstance(token, ApprovalToken) else None
        if found is not None:
            found[0].executor.in_flight.release(found[0])

    def __len__(self) -> int:
        return len(self._out)
