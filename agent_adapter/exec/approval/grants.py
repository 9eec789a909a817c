"""One-use tokens that carry a gate's decision to the one call it was made for."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, NoReturn

from agent_adapter.core.ports import ApprovalPort
from agent_adapter.core.types import ApprovalDecision, Grant
from agent_adapter.exec import replay
from agent_adapter.exec.approval import decide
from agent_adapter.exec.call import Call


class ApprovalToken:
    """Stands for one prepared call in this process; it carries no data and is never serialised."""

    __slots__ = ("__weakref__",)

    def __copy__(self) -> ApprovalToken:
        return self

    def __deepcopy__(self, memo: Any) -> ApprovalToken:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("an approval token is never serialised")


class IssuedTokens:
    """The tokens in circulation, each with its prepared call; bounded in number and time."""

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
            forgotten.release()
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
        call.release()
        return None

    def drop(self, token: Any) -> None:
        """Forget a token that its call did not take."""
        found = self._out.pop(token, None) if isinstance(token, ApprovalToken) else None
        if found is not None:
            found[0].release()

    def __len__(self) -> int:
        return len(self._out)


async def grant(
    call: Call, port: ApprovalPort, tokens: IssuedTokens, *, edits_allowed: bool
) -> Grant:
    """Ask `port` about a prepared call that must be asked about, and issue its token.

    A call with a recorded end gets no token and no question: running it replays the record.
    """
    try:
        decision: ApprovalDecision | None = None
        if call.asked:
            if await _is_recorded(call):
                call.release()
                return Grant(needed=False)
            decision = await decide.ask(call, port, call.asked, edits_allowed=edits_allowed)
            await decide.accept(call, decision, edits_allowed=edits_allowed)
    except BaseException:
        call.release()
        raise
    token = tokens.issue(call)
    return Grant(needed=bool(call.asked), token=token, decision=decision, forget=tokens.drop)


async def _is_recorded(call: Call) -> bool:
    """Whether the call has ended before, with a value or an error."""
    try:
        return await replay.find(call) is not None
    except Exception:
        return True
